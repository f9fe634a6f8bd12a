"""Which events are read in a thread: long texts, and what has to be read, but not rows."""

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.source.long_events import any_takes_long, takes_long

KIB = 1 << 10


def event(kind: EventType, size: int) -> bytes:
    return bytes((0, 0, 0, 0, kind)).ljust(size, b"\0")


@pytest.mark.parametrize(
    ("kind", "size", "is_long"),
    [
        (EventType.QUERY_EVENT, 60 * KIB, False),
        (EventType.QUERY_EVENT, 70 * KIB, True),
        (EventType.WRITE_ROWS_EVENT, 70 * KIB, False),
        (EventType.UPDATE_ROWS_EVENT_V1, 70 * KIB, False),
        (EventType.WRITE_ROWS_EVENT, 2000 * KIB, True),
        # These become larger when they are read.
        (EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT, 70 * KIB, True),
        (EventType.TRANSACTION_PAYLOAD_EVENT, 70 * KIB, True),
    ],
    ids=lambda each: each.name if isinstance(each, EventType) else str(each),
)
def test_by_kind_and_size(kind: EventType, size: int, *, is_long: bool) -> None:
    one = event(kind, size)
    assert takes_long(one) is is_long
    assert any_takes_long([b"", one]) is is_long


def test_nothing() -> None:
    assert not any_takes_long([])
