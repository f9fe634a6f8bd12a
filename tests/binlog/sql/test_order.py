"""What no checksum tells: that every event is there, once, and in its place."""

import re
import struct

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupDropped, PositionReached, StreamItem
from mtsd.model.position import LogFile, Position
from tests.binlog.building import event, net_int, query
from tests.binlog.payloads import compressed
from tests.binlog.recording import Recording
from tests.binlog.transactions import (
    begin,
    grouped,
    grouper,
    gtid,
    in_stream,
    placed,
    rows,
    table_map,
    xid,
)

TABLE = table_map(1, "a")
# Equal sizes, so that only their places tell them apart.
ROWS = [rows(1, bytes((number,))) for number in range(3)]
FIRST = [gtid(1), begin(), TABLE, *ROWS, xid()]
SECOND = [gtid(2), begin(), TABLE, *ROWS[::-1], xid()]
THIRD = [gtid(3), begin(), TABLE, *ROWS, xid()]
SIZE = len(FIRST)


def rotate(file: bytes, offset: int = 4, **header: int) -> bytes:
    return event(EventType.ROTATE_EVENT, offset.to_bytes(8, "little") + file, **header)


def heartbeat(file: bytes, offset: int) -> bytes:
    position = net_int(offset)
    body = bytes((1, len(file))) + file + bytes((2, len(position))) + position + b"\0"
    return event(EventType.HEARTBEAT_LOG_EVENT_V2, body, log_pos=offset & 0xFFFFFFFF)


def read(reader: Grouper, pieces: list[list[bytes]]) -> tuple[list[StreamItem], BinlogError | None]:
    """Return what comes, and the error that ends it."""
    items: list[StreamItem] = []
    try:
        for events in pieces:
            for item in reader.groups(events):
                items.append(item)  # noqa: PERF402 - what comes before an error counts
    except BinlogError as error:
        return items, error
    return items, None


def ends_in_error(events: list[bytes], *, checksums: bool) -> list[Group]:
    """Return the groups before the error, read at once and one by one."""
    found = []
    for pieces in (1, len(events)):
        reader = grouper(checksums=checksums)
        items, error = read(
            reader, [events[at : at + pieces] for at in range(len(events))[::pieces]]
        )
        assert error is not None
        assert error.position is not None
        assert re.search(r"missing|outside|inside|without", str(error))
        found.append([item for item in items if isinstance(item, Group)])
        assert len(found[-1]) == len(items)
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("checksums", [True, False])
def test_every_event_that_is_lost_doubled_or_swapped_is_an_error(checksums: bool) -> None:
    plain = [*FIRST, *SECOND, *THIRD]
    events = in_stream(plain) if checksums else placed(plain)
    whole = list(grouper(checksums=checksums).groups(events))
    assert len(whole) == 3
    for at in range(SIZE, 2 * SIZE):
        damaged = [events[:at] + events[at + 1 :], events[: at + 1] + events[at:]]
        damaged += [
            [*events[:at], events[other], *events[at + 1 : other], events[at], *events[other + 1 :]]
            for other in range(at + 1, 2 * SIZE)
        ]
        for found in damaged:
            # What is behind the second group's end cannot take it back.
            groups = ends_in_error(found, checksums=checksums)
            assert groups == whole[: len(groups)]
            assert len(groups) <= 2


@pytest.mark.parametrize("checksums", [True, False])
def test_a_whole_group_that_is_lost_doubled_or_swapped_is_an_error(checksums: bool) -> None:
    plain = [*FIRST, *SECOND, *THIRD]
    events = in_stream(plain) if checksums else placed(plain)
    first, second, third = (events[at : at + SIZE] for at in (0, SIZE, 2 * SIZE))
    assert len(ends_in_error([*first, *third], checksums=checksums)) == 1
    assert len(ends_in_error([*first, *first, *second], checksums=checksums)) == 1
    assert len(ends_in_error([*second, *first, *third], checksums=checksums)) == 0


def test_an_events_length_is_that_of_its_header() -> None:
    head, *others = in_stream(FIRST)
    with pytest.raises(BinlogError, match="claims a length of"):
        list(grouper().groups([head[:-1], *others]))


def test_heartbeats_bridge_what_a_dump_by_gtid_leaves_out() -> None:
    for far in (5000, 5 << 32):
        reader = grouper()
        grouped(*FIRST, reader=reader)
        (group,) = reader.groups([heartbeat(b"f.000001", far), *placed(SECOND, far)])
        assert isinstance(group, Group)
        assert reader.position == Position("f.000001", group.end.offset)
        assert group.end.offset == far + sum(map(len, SECOND))


@pytest.mark.parametrize(
    ("beat", "message"),
    [
        (heartbeat(b"f.000001", 3), "a heartbeat at f.000001:3"),
        (heartbeat(b"f.000002", 5000), "a heartbeat at f.000002:5000"),
        (heartbeat(b"f.000001", 5000)[:-3], "claims a length"),
        (event(EventType.HEARTBEAT_LOG_EVENT, b"\n", log_pos=9999), "is not a file name"),
    ],
)
def test_a_heartbeat_that_cannot_be(beat: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        list(grouper().groups([beat]))


def test_a_heartbeat_inside_a_group_moves_nothing() -> None:
    reader = grouper()
    grouped(*FIRST[:3], reader=reader)
    here = reader.position
    assert list(reader.groups([heartbeat(b"f.000001", here.offset)])) == []
    assert reader.position == here
    with pytest.raises(BinlogError, match="inside a group"):
        list(reader.groups([heartbeat(b"f.000001", here.offset + 500)]))


@pytest.fixture
def reading(recording: Recording) -> Grouper:
    """Return a grouper that has read a description and a group in the file f.000003."""
    reader = grouper(start=Position("f.000003", 4))
    described = recording.raw[0]
    file, reached = reader.groups([described])
    assert file == LogFile("f.000003", int.from_bytes(described[:4], "little"))
    assert isinstance(reached, PositionReached)
    reader._reader.checksums = False
    grouped(*FIRST, reader=reader)
    return reader


@pytest.mark.parametrize(
    "artificial",
    [
        rotate(b"f.000003"),
        rotate(b"f.000003", 200),
        rotate(b"f.000003", 20_000),
        rotate(b"f.000002"),
        rotate(b"f.000004", 5),
    ],
)
def test_a_rotate_leads_only_to_the_next_file(reading: Grouper, artificial: bytes) -> None:
    with pytest.raises(BinlogError, match="a Rotate event to"):
        list(reading.groups([artificial]))


def test_a_file_that_was_never_closed_is_followed_by_the_next(reading: Grouper) -> None:
    grouped(*FIRST[:3], reader=reading)
    assert list(reading.groups([rotate(b"f.000004")])) == []
    assert reading.position == Position("f.000004", 4)
    # It says so again where the file was closed.
    assert list(reading.groups([rotate(b"f.000004")])) == []
    with pytest.raises(BinlogError, match="a Rotate event to"):
        list(reading.groups([rotate(b"f.000005")]))


def test_a_half_group_that_is_streamed_is_dropped_there(reading: Grouper) -> None:
    reading._hold_bytes = reading._chunk_bytes = 10
    grouped(*FIRST[:4], reader=reading)
    assert list(reading.groups([rotate(b"f.000004")])) == [GroupDropped(2)]


def test_a_closed_file(reading: Grouper) -> None:
    (reached,) = grouped(rotate(b"f.000004"), reader=reading)
    assert reached == PositionReached(Position("f.000004", 4))


XA_END = query(b"XA END X'61',X'',1")
INNER = [begin(), TABLE, *ROWS, xid()]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([compressed(*INNER)], "does not come right after its GTID"),
        ([gtid(1), begin(), compressed(*INNER)], "does not come right after its GTID"),
        ([gtid(1), compressed(*INNER[:-1])], "a transaction without its end"),
        ([gtid(1), compressed(*INNER, *INNER)], "after the transaction's end"),
        ([gtid(1), compressed(*INNER, query(b"CREATE TABLE t (a INT)"))], "after the transaction"),
        ([gtid(1), compressed(heartbeat(b"f.000001", 10_000), *INNER)], "is not allowed"),
        ([gtid(1), compressed(INNER[0], INNER[1], xid()[:-1])], "cut off|but only|exceeds"),
        ([XA_END], "XA END outside"),
        ([gtid(1), begin(), query(b"XA START X'61'")], "BEGIN inside"),
        ([gtid(1), begin(), event(EventType.XID_EVENT, bytes(7))], "number of 8 bytes"),
        ([gtid(1), begin(), event(EventType.XID_EVENT, bytes(9))], "unexpected bytes at its end"),
        ([gtid(1), begin(), event(EventType.XA_PREPARE_LOG_EVENT, bytes(9))], "bqual length"),
    ],
)
def test_a_transaction_that_is_none(events: list[bytes], message: str) -> None:
    items, error = read(grouper(), [placed(events)])
    assert re.search(message, str(error))
    assert items == []


def test_a_group_goes_on_only_when_its_payload_is_sound_to_the_end() -> None:
    sound = compressed(*INNER)
    (group,) = grouped(gtid(1), sound)
    assert isinstance(group, Group)
    announced = sound.index(struct.pack("<Q", sum(map(len, INNER))), HEADER_SIZE)
    more = bytearray(sound)
    more[announced] += 1
    with pytest.raises(BinlogError, match="bytes instead of"):
        # Nothing was yielded before: it would be applied.
        next(grouper().groups(placed([gtid(1), bytes(more)])))
