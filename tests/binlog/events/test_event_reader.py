"""Events read from anywhere: whole files, and parts of them with only the description known."""

from pathlib import Path
from zlib import crc32

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.errors import BinlogError
from mtsd.model.position import FIRST_EVENT, Position
from tests.binlog.recording import Recording
from tests.binlog.transactions import in_stream, rows, table_map


def raw_events(path: Path) -> list[bytes]:
    return list(FileFramer().feed(path.read_bytes()))


def test_a_file_is_read_the_same_from_each_of_its_events_on(recording: Recording) -> None:
    path = recording.files[0]
    events = raw_events(path)
    reader = EventReader(Position(path.name, FIRST_EVENT))
    whole = []
    ends = [FIRST_EVENT]
    for raw in events:
        whole.append(reader.read(raw))
        ends.append(ends[-1] + len(raw))
        assert reader.position.offset == ends[-1] or raw[4] == EventType.ROTATE_EVENT
    assert whole == recording.raw[: len(events)]
    description = reader.raw_description
    assert description == events[0]
    for first in range(1, len(events)):
        part = EventReader(Position(path.name, ends[first]), description=description)
        assert part.description == reader.description
        assert [part.read(raw) for raw in events[first : first + 3]] == whole[first : first + 3]
        if first + 1 < len(events):
            wrong = EventReader(Position(path.name, ends[first]), description=description)
            with pytest.raises(BinlogError, match="events are missing"):
                wrong.read(events[first + 1])
            assert wrong.position.offset == ends[first]


def test_a_part_of_a_file_that_begins_with_its_description(recording: Recording) -> None:
    """A dump from the middle of a file begins so: in no file, it does not move the place."""
    path = recording.files[0]
    events = raw_events(path)
    middle = len(events) // 2
    offset = FIRST_EVENT + sum(map(len, events[:middle]))
    reader = EventReader(Position(path.name, offset))
    made_up = events[0][:13] + bytes(4) + events[0][17:-4]
    made_up += crc32(made_up).to_bytes(4, "little")
    assert reader.read(made_up) == made_up
    assert reader.position.offset == offset
    assert reader.read(events[middle]) == recording.raw[middle]
    with pytest.raises(BinlogError, match="events are missing"):
        reader.read(events[0])


def test_a_relay_log_keeps_the_places_of_the_source() -> None:
    events = in_stream([table_map(1), rows(1)], start=5000)
    reader = EventReader(Position("relay.000001", FIRST_EVENT), checksums=True, in_place=False)
    assert [reader.read(raw) for raw in events] == [raw[:-4] for raw in events]
    assert reader.position.offset == FIRST_EVENT + sum(map(len, events))
    damaged = events[0][:30] + bytes((events[0][30] ^ 1,)) + events[0][31:]
    with pytest.raises(BinlogError, match="checksum mismatch"):
        reader.read(damaged)


def test_what_a_payload_holds(recording: Recording) -> None:
    reader = EventReader(Position("f.000001", FIRST_EVENT))
    inner = [
        found
        for event in recording.of(EventType.TRANSACTION_PAYLOAD_EVENT)
        for found in reader.inner(event)
    ]
    assert inner
    assert set(inner) <= set(recording.events)


def test_groups_come_the_same_way(recording: Recording) -> None:
    """The grouper's position is the reader's, after each event."""
    path = recording.files[0]
    reader = EventReader(Position(path.name, FIRST_EVENT))
    grouper = Grouper(
        start=Position(path.name, FIRST_EVENT),
        next_number=1,
        checksums=False,
        hold_bytes=1 << 30,
        chunk_bytes=1 << 20,
    )
    for raw in raw_events(path):
        reader.read(raw)
        list(grouper.groups((raw,)))
        assert grouper.position == reader.position
