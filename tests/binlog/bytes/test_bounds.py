"""Lengths, counts and sizes that lie: memory and time stay those of the bytes that came."""

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC, FileFramer
from mtsd.binlog.events.payload import payload_events
from mtsd.binlog.events.previous_gtids import decode_gtid_set
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.sql.qualifiers import qualifiers
from mtsd.binlog.sql.statement import classify, disable_on_replica
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupClosed, StreamItem
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.wire.framing import PacketFramer
from tests.binlog.building import event
from tests.binlog.payloads import field, payload
from tests.binlog.transactions import begin, grouped, grouper, gtid, rows, table_map, xid

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

MIB = 1 << 20
HUGE = [b"\xfe" + b"\xff" * 8, b"\xfe" + (1 << 40).to_bytes(8, "little"), b"\xfd\xff\xff\xff"]
"""Length-encoded integers."""


@contextmanager
def memory_below(size: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size


@pytest.mark.parametrize("length", [0, 18, (1 << 30) + 1, 0xFFFFFFFF])
def test_an_event_of_no_possible_length(length: int) -> None:
    header = bytes(9) + length.to_bytes(4, "little") + bytes(6)
    with memory_below(MIB), pytest.raises(BinlogError, match=f"claims a length of {length}"):
        list(FileFramer().feed(MAGIC + header))


def test_an_event_that_claims_a_huge_length_takes_what_came() -> None:
    framer = FileFramer()
    with memory_below(MIB):
        assert (
            list(framer.feed(MAGIC + bytes(9) + (1 << 30).to_bytes(4, "little") + bytes(6))) == []
        )
        assert list(framer.feed(bytes(1000))) == []
        with pytest.raises(BinlogError, match="the file ends inside an event: 1019 bytes"):
            framer.finish()


def test_a_packet_that_claims_a_huge_length_takes_what_came() -> None:
    framer = PacketFramer(0)
    with memory_below(MIB):
        assert framer.feed(b"\xff\xff\xff\0" + bytes(1000)) == []
        assert framer.feed(bytes(1000)) == []


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("at", [14, 17])
def test_a_table_of_too_many_columns(number: bytes, at: int) -> None:
    body = bytes.fromhex("010000000002 0100 0164 00 0174 00 02 030f 02 7800 02 010100")
    raw = event(EventType.TABLE_MAP_EVENT, body[:at] + number + body[at + 1 :])
    with memory_below(MIB), pytest.raises(BinlogError, match="exceeds the end"):
        parse_table_map(raw)


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("kind", range(1, 14))
def test_metadata_of_too_many_values(number: bytes, kind: int) -> None:
    body = bytes.fromhex("010000000002 0100 0164 00 0174 00 04 03f7fef8 04 f701f801 00")
    for value in (number, b"\1" + number, b"\0" + number):
        raw = event(EventType.TABLE_MAP_EVENT, body + bytes((kind, len(value))) + value)
        with memory_below(MIB), pytest.raises(BinlogError):
            parse_optional_metadata(parse_table_map(raw))


@pytest.mark.parametrize("entries", [1, (1 << 48) - 1, (1 << 56) - 1])
@pytest.mark.parametrize("count", [1 << 20, (1 << 64) - 1])
def test_a_gtid_set_of_too_many(entries: int, count: int) -> None:
    raw = entries.to_bytes(8, "little") + bytes(16) + count.to_bytes(8, "little") + bytes(32)
    with memory_below(MIB), pytest.raises(BinlogError, match="do not fit into 32 bytes"):
        decode_gtid_set(raw)


def test_a_large_gtid_set_takes_time_by_its_size() -> None:
    count = 200_000
    intervals = b"".join(
        (2 * number + 1).to_bytes(8, "little") + (2 * number + 2).to_bytes(8, "little")
        for number in range(count)
    )
    raw = b"\1" + bytes(7) + bytes(16) + count.to_bytes(8, "little") + intervals
    began = time.process_time()
    assert len(decode_gtid_set(raw)) == count
    assert time.process_time() - began < 5


def zeros() -> bytes:
    return compress(bytes(256 * MIB))


def claiming() -> bytes:
    header = bytes(9) + (1 << 30).to_bytes(4, "little") + bytes(6)
    return compress(header + bytes(256 * MIB))


EMPTY = b"\x28\xb5\x2f\xfd\0\0\1\0\0"
SKIPPED = b"\x50\x2a\x4d\x18\0\0\0\0"

BOMBS: dict[str, Callable[[], bytes]] = {
    "more than announced": lambda: payload(zeros(), uncompressed=1000),
    "no events": lambda: payload(zeros(), uncompressed=256 * MIB),
    "an event larger than announced": lambda: payload(claiming(), uncompressed=256 * MIB + 19),
    "announced too much": lambda: payload(zeros(), uncompressed=1 << 62),
    "empty frames": lambda: payload(EMPTY * (4 * MIB // 9), uncompressed=1000),
    "skipped frames": lambda: payload(SKIPPED * (4 * MIB // 8), uncompressed=1000),
    "a window too large": lambda: payload(b"\x28\xb5\x2f\xfd\0\xff" + zeros()[6:]),
    "fields": lambda: event(EventType.TRANSACTION_PAYLOAD_EVENT, field(2, 255) * MIB),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_not_unpacked(name: str) -> None:
    raw = BOMBS[name]()
    began = time.process_time()
    with memory_below(16 * MIB), pytest.raises(BinlogError):
        list(payload_events(raw))
    assert time.process_time() - began < 10


def test_many_table_maps_are_not_all_remembered() -> None:
    """Each is another one, and has a megabyte of metadata."""
    reader = grouper(hold_bytes=2 * MIB, chunk_bytes=2 * MIB)
    grouped(begin(), reader=reader)
    with memory_below(40 * MIB):
        for number in range(200):
            large = table_map(number) + bytes(MIB)
            raw = large[:9] + len(large).to_bytes(4, "little") + large[13:]
            assert all(isinstance(item, StreamItem) for item in grouped(raw, reader=reader))


def test_a_group_of_very_many_databases_is_alone_and_names_only_some() -> None:
    reader = grouper(hold_bytes=MIB, chunk_bytes=MIB)
    grouped(gtid(1), begin(), reader=reader)
    maps = [table_map(1, f"d{number}") for number in range((1 << 16) + 10)]
    grouped(*maps, reader=reader)
    *_, last = grouped(rows(1), xid(), reader=reader)
    assert isinstance(last, GroupClosed)
    assert last.group.alone
    assert len(last.group.databases) == 1 << 16


def test_a_transaction_length_that_lies_only_decides_how_it_is_read() -> None:
    for length in (0, 1, (1 << 64) - 1):
        reader = grouper(hold_bytes=1000, chunk_bytes=100)
        events = (gtid(1, length=length), begin(), table_map(1), rows(1), xid())
        *_, last = grouped(*events, reader=reader)
        group = last.group if isinstance(last, GroupClosed) else last
        assert isinstance(group, Group)
        assert group.size == len(events[2]) + len(events[3])


MANY = 1 << 19
GBK = SessionContext(character_set_client=28)


@pytest.mark.parametrize(
    ("text", "context"),
    [
        (b"'" + b"\\0" * MANY + b"'", SessionContext()),
        (b"'" + b"''" * MANY + b"'", SessionContext()),
        (b"'" + b"\x81\x40" * MANY + b"'", GBK),
        (b"\x81\x40" * MANY, GBK),
        (b"/*" + b"a*" * MANY + b"*/", SessionContext()),
        (b"`" * (2 * MANY), SessionContext()),
        (b"'" + b"a''" * MANY, SessionContext()),
        (b"(" * (MANY // 8), SessionContext()),
    ],
    ids=range(8),
)
def test_a_large_definition_takes_little_memory_and_time(
    text: bytes, context: SessionContext
) -> None:
    began = time.process_time()
    for use in _uses(context):
        with memory_below(24 * MIB):
            use(text)
    assert time.process_time() - began < 60


def _uses(context: SessionContext) -> Iterator[Callable[[bytes], object]]:
    yield lambda text: classify(StatementText(text, context))
    yield lambda text: classify(StatementText(b"XA COMMIT " + text, context))
    yield lambda text: qualifiers(StatementText(b"CREATE PROCEDURE p() SELECT " + text, context))

    def event_of(text: bytes) -> object:
        try:
            return disable_on_replica(StatementText(b"CREATE EVENT e COMMENT " + text, context))
        except BinlogError:
            return None

    yield event_of
