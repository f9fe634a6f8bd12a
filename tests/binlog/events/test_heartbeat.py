import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.heartbeat import Heartbeat, parse_heartbeat
from mtsd.model.errors import BinlogError
from mtsd.model.position import Position
from tests.binlog.building import event
from tests.binlog.recording import Recording


def test_real_ones_of_both_types_say_where_the_source_is(recording: Recording) -> None:
    assert [raw[4] for raw in recording.heartbeats] == [
        EventType.HEARTBEAT_LOG_EVENT,
        EventType.HEARTBEAT_LOG_EVENT_V2,
    ]
    for raw in recording.heartbeats:
        assert parse_heartbeat(raw) == Heartbeat(recording.end)


def test_the_second_type_reaches_past_four_gigabytes() -> None:
    body = b"\x01\x03b.1\x02\x09\xfe" + (1 << 40).to_bytes(8, "little") + b"\0"
    raw = event(EventType.HEARTBEAT_LOG_EVENT_V2, body)
    assert parse_heartbeat(raw) == Heartbeat(Position("b.1", 1 << 40))


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (EventType.HEARTBEAT_LOG_EVENT, b"", "is not a file name"),
        (EventType.HEARTBEAT_LOG_EVENT, b"b\0", "is not a file name"),
        (EventType.HEARTBEAT_LOG_EVENT_V2, b"", "field type of 1 bytes"),
        (EventType.HEARTBEAT_LOG_EVENT_V2, b"\0", "file or position is missing"),
        (EventType.HEARTBEAT_LOG_EVENT_V2, b"\1\3b.1\0", "file or position is missing"),
        (EventType.HEARTBEAT_LOG_EVENT_V2, b"\3\1\0\0", "unknown field 3"),
        (EventType.HEARTBEAT_LOG_EVENT_V2, b"\2\2\4\4\0", "field 2 does not have 2 bytes"),
        (EventType.HEARTBEAT_LOG_EVENT_V2, b"\1\3b.1\2\1\4\0x", "1 unexpected bytes"),
    ],
)
def test_what_is_refused(kind: int, body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_heartbeat(event(kind, body))
