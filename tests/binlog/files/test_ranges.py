"""Every group belongs to one range, wherever the ranges are cut; damage is never silent."""

import random
from itertools import pairwise

import pytest

from mtsd.binlog.bytes.event_type import IN_USE, EventType
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, planned, ranges_of, whole_file
from mtsd.binlog.files.sync import first_event
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.position import FIRST_EVENT
from mtsd.model.step import row_events
from tests.binlog.damage import Binlog
from tests.binlog.range_cases import (
    NAME,
    Contents,
    LargeContents,
    Small,
    chosen,
    declared,
    events,
    moved,
    parts,
    places,
    raw_events,
    without_gtids,
)


def many(data: bytes, count: int) -> list[int]:
    most = -(-(len(data) - FIRST_EVENT) // count)
    return [part.begin for part in ranges_of(NAME, len(data), most)]


def test_every_cut_gives_the_same_groups_once(small: Small) -> None:
    wanted = declared(small.wanted)
    assert len(wanted) == 9
    for cut in places(small.data):
        assert declared(parts(small.data, [cut])) == wanted, cut


def test_every_cut_gives_the_same_events_once(small: Small) -> None:
    wanted = events(small.data)
    for cut in places(small.data):
        assert events(small.data, [cut]) == wanted, cut


def test_a_group_belongs_to_the_range_that_it_begins_in(small: Small) -> None:
    for cut in places(small.data):
        bounds = ByteRange(NAME, cut, len(small.data), len(small.data))
        found = list(RangeReader(Contents(small.data), bounds, NAME).parts())
        assert declared(found) == declared([part for part in small.wanted if part.begin >= cut])


@pytest.mark.parametrize("checksum", [True, False])
def test_servers_that_know_no_gtid_events(
    small: Small, binlogs: list[Binlog], *, checksum: bool
) -> None:
    data = small.data
    if not checksum:
        data = next(
            binlog.data for binlog in binlogs if binlog.sequence is None and not binlog.checksums
        )
    data = without_gtids(data, checksum=checksum)
    wanted = declared(parts(data))
    assert len(wanted) == 8 if checksum else len(wanted) > 30
    rng = random.Random(1)
    cuts = places(data)
    for cut in cuts if checksum else rng.sample(cuts, 150):
        assert declared(parts(data, [cut])) == wanted, cut


@pytest.mark.parametrize("count", [1, 6, 48])
def test_every_file_in_many_ranges(binlogs: list[Binlog], count: int) -> None:
    for binlog in binlogs:
        if binlog.sequence is None:
            cuts = many(binlog.data, count)
            assert declared(parts(binlog.data, cuts)) == declared(parts(binlog.data))
            assert events(binlog.data, cuts) == events(binlog.data)


def test_a_range_for_every_byte(small: Small) -> None:
    assert declared(parts(small.data, range(FIRST_EVENT, len(small.data)))) == declared(
        small.wanted
    )


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_cuts_of_every_file(binlogs: list[Binlog]) -> None:
    for binlog in binlogs:
        if binlog.sequence is None:
            wanted = declared(parts(binlog.data))
            for cut in range(FIRST_EVENT + 1, len(binlog.data), 11):
                assert declared(parts(binlog.data, [cut])) == wanted, cut


def test_large_groups_come_in_parts(small: Small) -> None:
    data = small.data
    for cut in places(data):
        found = parts(data, [cut], hold_bytes=100)
        assert len(found) > len(small.wanted)
        assert [(part.begin, part.end) for part in found if part.group] == [
            (part.begin, part.end) for part in small.wanted
        ]
        ends = {part.begin: part.end for part in small.wanted}
        assert all(ends[part.begin] == part.end for part in found)
        assert rows_of(found) == rows_of(small.wanted)


def rows_of(found: list[GroupPart]) -> list[bytes]:
    return [
        event
        for part in found
        for event in row_events(part.steps)
        if event[4] != EventType.TABLE_MAP_EVENT
    ]


def test_positions_past_4_gib(small: Small) -> None:
    description, _, *rest = raw_events(small.data)
    base = (1 << 32) - 1000
    placed = b""
    for event in rest[:-1]:
        placed += moved(event, base + len(placed), checksum=True)
    contents = LargeContents(description, base, placed)
    size = contents.size
    wanted = [(part.begin - len(small.data), part.gtid) for part in small.wanted]
    assert wanted

    def read(begin: int, end: int) -> list[GroupPart]:
        return list(RangeReader(contents, ByteRange(NAME, begin, end, size), NAME).parts())

    whole = read(base - 3000, size)
    assert [part.gtid for part in whole] == [part.gtid for part in small.wanted]
    assert whole[0].begin == base
    assert whole[-1].end == size > 1 << 32
    before = FIRST_EVENT + len(raw_events(small.data)[0]) + len(raw_events(small.data)[1])
    for cut in (base - 1, *(base - before + place for place in places(small.data))):
        if not base - 1 <= cut < size:
            continue
        assert declared(read(base - 3000, cut) + read(cut, size)) == declared(whole), cut


def in_use(data: bytes) -> bytes:
    return data[:21] + bytes((data[21] | IN_USE,)) + data[22:]


def test_a_file_in_use_may_be_cut_off_anywhere(small: Small) -> None:
    rng = random.Random(2)
    first = len(MAGIC + raw_events(small.data)[0])
    for size in (first, *(place for place in places(small.data) if place > first)):
        wanted = declared([part for part in small.wanted if part.end <= size])
        cuts = [size // 2, rng.randrange(FIRST_EVENT, size)]
        assert declared(parts(in_use(small.data)[:size], cuts)) == wanted, size


def test_a_file_without_checksums_may_be_cut_off_too(binlogs: list[Binlog]) -> None:
    data = next(
        binlog.data for binlog in binlogs if binlog.sequence is None and not binlog.checksums
    )
    rng = random.Random(5)
    wanted = parts(data)
    for size in rng.sample(range(200, len(data)), 150):
        cuts = rng.sample(range(FIRST_EVENT, size), 3)
        assert declared(parts(in_use(data)[:size], cuts)) == declared(
            [part for part in wanted if part.end <= size]
        ), (size, cuts)


def test_a_file_that_has_grown_since_it_was_planned(small: Small) -> None:
    for size in (place for place in places(small.data) if place > 200):
        wanted = declared([part for part in small.wanted if part.end <= size])
        assert declared(parts(small.data[:size], [size // 3], has_more=True)) == wanted, size


def test_a_file_that_is_not_in_use_may_not(small: Small) -> None:
    ends = {part.end for part in small.wanted}
    sound = {ends.pop() for _ in list(ends)}
    size = FIRST_EVENT
    for event in raw_events(small.data)[:2]:
        size += len(event)
        sound.add(size)
    for size in (1, 2, 3, 4, 5, *places(small.data)):
        if size in sound:
            parts(small.data[:size])
            continue
        with pytest.raises(BinlogError):
            parts(small.data[:size], [size // 2])


def test_a_large_half_group_in_a_file_in_use_gives_nothing(small: Small) -> None:
    ends = [part.end for part in small.wanted if part.group and len(part.group.rows) > 2]
    cut = ends[0] - 10
    found = parts(in_use(small.data)[:cut], hold_bytes=50)
    assert {part.end for part in found} == {part.end for part in small.wanted if part.end <= cut}


def test_damage_is_an_error_or_the_same_groups(small: Small) -> None:
    rng = random.Random(3)
    wanted = declared(small.wanted)
    messages = []
    raw = raw_events(small.data)
    events_at = [FIRST_EVENT + sum(map(len, raw[:n])) for n in range(len(raw) + 1)]
    headers = {at + n for at in events_at[:-1] for n in range(HEADER_SIZE)}
    checksums = {end - n for end in events_at[1:] for n in range(1, 5)}
    tried = sorted({*range(FIRST_EVENT), *headers, *checksums, *range(0, len(small.data), 11)})
    for at in tried:
        damaged = bytearray(small.data)
        damaged[at] ^= rng.randrange(1, 256)
        cuts = rng.sample(range(FIRST_EVENT, len(damaged)), 2)
        try:
            found = declared(parts(bytes(damaged), cuts))
        except (BinlogError, NotSupportedError) as error:
            messages.append(str(error))
        else:
            assert found == wanted, at
    assert len(messages) > len(tried) * 0.95
    assert all(NAME in message for message in messages)


@pytest.mark.long
def test_events_that_are_missing_or_come_twice(small: Small) -> None:
    raw = raw_events(small.data)
    rng = random.Random(4)
    for number in range(1, len(raw)):
        for kept in (
            [*raw[:number], *raw[number + 1 :]],
            [*raw[: number + 1], *raw[number:]],
            [*raw[: number - 1], raw[number], raw[number - 1], *raw[number + 1 :]],
        ):
            data = MAGIC + b"".join(kept)
            if kept == raw[:-1]:
                continue
            for _ in range(20):
                cut = rng.randrange(FIRST_EVENT, len(data))
                with pytest.raises(BinlogError):
                    parts(data, [cut])


def test_bytes_that_look_like_an_event_are_an_error(small: Small) -> None:
    """A row that contains the bytes of an event, for the very place that it lies at."""
    raw = raw_events(small.data)
    place = next(n for n, event in enumerate(raw) if event[4] == EventType.UPDATE_ROWS_EVENT)
    at = FIRST_EVENT + sum(map(len, raw[:place]))
    row_at = len(raw[place]) - 300
    xid = next(event for event in raw if event[4] == EventType.XID_EVENT)
    inside = moved(xid, at + row_at, checksum=True)
    forged = raw[place][:row_at] + inside + raw[place][row_at + len(inside) :]
    raw[place] = moved(forged, at, checksum=True)
    data = MAGIC + b"".join(raw)
    assert len(parts(data)) == len(small.wanted)
    assert len(parts(data, [at + row_at + 1])) == len(small.wanted)
    with pytest.raises(BinlogError, match="look like an event, and are within another one"):
        parts(data, [at + row_at - 5])


def test_what_is_no_binary_log_of_a_source(small: Small) -> None:
    with pytest.raises(BinlogError, match="it is empty"):
        parts_of(b"")
    with pytest.raises(BinlogError, match="magic number"):
        parts_of(b"\xfexin" + small.data[4:])
    with pytest.raises(NotSupportedError, match="is encrypted"):
        parts_of(b"\xfdbin" + small.data[4:])
    with pytest.raises(BinlogError, match="before its format description"):
        parts_of(small.data[:9])
    with pytest.raises(BinlogError, match="inside its format description"):
        parts_of(small.data[:99])
    relayed = chosen(small.data, lambda _: True, checksum=True)
    relayed = relayed[:21] + b"\x40" + relayed[22:]
    description = moved(raw_events(relayed)[0], FIRST_EVENT, checksum=True)
    with pytest.raises(NotSupportedError, match="is a relay log"):
        parts_of(MAGIC + description)
    assert parts(MAGIC + raw_events(small.data)[0]) == []


def parts_of(data: bytes) -> list[GroupPart]:
    bounds = ByteRange(NAME, min(4, len(data)), len(data), len(data))
    return list(RangeReader(Contents(data), bounds, NAME).parts())


def test_any_start_finds_the_next_event(small: Small) -> None:
    contents = Contents(small.data)
    starts = []
    at = FIRST_EVENT
    for event in raw_events(small.data):
        starts.append(at)
        at += len(event)
    for begin in range(FIRST_EVENT + 1, len(small.data)):
        wanted = next((start for start in starts if start >= begin), None)
        for checksums in (True, False):
            assert first_event(contents, begin, len(small.data), checksums=checksums) == wanted
            if wanted is not None:
                assert first_event(contents, begin, wanted, checksums=checksums) is None


def test_the_plan_needs_sizes_only() -> None:
    assert ranges_of("f", 100, 1000) == [ByteRange("f", 4, 100, 100)]
    assert ranges_of("f", 0, 1000) == [ByteRange("f", 0, 0, 0)]
    for size in range(5, 300):
        for most in (1, 7, 64, 296, 500):
            found = ranges_of("f", size, most)
            assert found[0].begin == FIRST_EVENT
            assert found[-1].end == size
            assert all(one.end == two.begin for one, two in pairwise(found))
            assert all(0 < one.end - one.begin <= most for one in found)
    tasks = planned(
        [whole_file(*file) for file in (("a", 1004), ("b", 34), ("c", 34), ("d", 34))], 500
    )
    assert [[(part.file, part.begin, part.end) for part in task] for task in tasks] == [
        [("a", 4, 504)],
        [("a", 504, 1004)],
        [("b", 4, 34), ("c", 4, 34), ("d", 4, 34)],
    ]
