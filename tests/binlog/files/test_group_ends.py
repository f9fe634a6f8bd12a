"""How far a file can be read: any beginning of a file is what a reader may see of it."""

from dataclasses import dataclass
from itertools import pairwise

import pytest

from mtsd.binlog.files.group_ends import end_behind, end_within, last_end
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.model.errors import BinlogError
from mtsd.model.position import FIRST_EVENT
from tests.binlog.range_cases import (
    NAME,
    Contents,
    LargeContents,
    Small,
    declared,
    events,
    moved,
    parts,
    places,
    raw_events,
    without_gtids,
)


def read_between(data: bytes, first: int, end: int, cut: int | None = None) -> list[object]:
    """Return the groups from one end to another, in one range or in two."""
    cuts = [first, end] if cut is None else [first, cut, end]
    found: list[object] = []
    for begin, stop in pairwise(cuts):
        bounds = ByteRange(NAME, begin, stop, end, first, Tail.WHOLE)
        found += declared(list(RangeReader(Contents(data[:end]), bounds, NAME).parts()))
    return found


@pytest.fixture(params=["gtids", "none"])
def data(small: Small, request: pytest.FixtureRequest) -> bytes:
    return small.data if request.param == "gtids" else without_gtids(small.data, checksum=True)


def ends_of(data: bytes) -> list[int]:
    """Return where groups end, or events outside of them."""
    groups = [(part.begin, part.end) for part in parts(data)]
    inside = {place for begin, end in groups for place in range(begin + 1, end)}
    return sorted({end for end, _, _ in events(data)} - inside)


def test_a_growing_file_is_read_up_to_its_last_whole_group(data: bytes) -> None:
    ends = ends_of(data)
    assert len(ends) > 9
    for size in (0, 1, FIRST_EVENT, *places(data), len(data)):
        known = max((end for end in ends if FIRST_EVENT < end <= size), default=None)
        found = last_end(Contents(data[:size]), NAME, FIRST_EVENT, tail=Tail.GROWING)
        assert found == known, size
    begin = ends[4]
    for size in (*(place for place in places(data) if place >= begin), len(data)):
        known = max((end for end in ends if begin < end <= size), default=None)
        assert last_end(Contents(data[:size]), NAME, begin, tail=Tail.GROWING) == known


@pytest.mark.parametrize("window", [64, 500])
def test_only_the_surroundings_are_read(
    data: bytes, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtsd.binlog.files.group_ends._WINDOW", window)
    test_a_growing_file_is_read_up_to_its_last_whole_group(data)


def test_a_limited_amount_is_whole_groups(data: bytes) -> None:
    ends = ends_of(data)
    for first in ends[:6]:
        for most in (*(place - first for place in places(data) if place > first), len(data)):
            known = [end for end in ends if first < end <= first + most]
            contents = Contents(data)
            found = end_within(contents, NAME, first, most, tail=Tail.AS_FLAGGED)
            assert found == (known[-1] if known else None), (first, most)
            behind = end_behind(contents, NAME, first, most, tail=Tail.AS_FLAGGED)
            assert behind in ends
            assert behind is not None
            if first + most < ends[-1]:
                assert behind > first + most


def test_ends_lead_from_one_to_the_next(data: bytes) -> None:
    wanted = declared(parts(data))
    for most in (1, 300, 1000, 5000):
        contents = Contents(data)
        place = FIRST_EVENT
        found: list[object] = []
        while place < len(data):
            end = end_within(contents, NAME, place, most, tail=Tail.AS_FLAGGED) or end_behind(
                contents, NAME, place, most, tail=Tail.AS_FLAGGED
            )
            assert end is not None
            found += read_between(data, place, end)
            place = end
        assert found == wanted


def test_what_is_between_two_ends_may_be_cut_anywhere(data: bytes) -> None:
    ends = ends_of(data)
    begin, end = ends[3], ends[8]
    wanted = read_between(data, begin, end)
    assert len(wanted) == 5
    for cut in (place for place in places(data) if begin < place < end):
        assert read_between(data, begin, end, cut) == wanted


def test_nothing_may_be_missing_before_an_end(data: bytes) -> None:
    ends = set(ends_of(data))
    begin = min(ends)
    for end in places(data):
        if end > begin and end not in ends:
            with pytest.raises(BinlogError, match=r"ends inside an event|without its end"):
                read_between(data, begin, end)


def test_what_is_no_binary_log_is_an_error() -> None:
    for data in (b"x", b"\xfexin" + bytes(40), b"\xfebin" + b"\xff" * 40):
        with pytest.raises(BinlogError):
            last_end(Contents(data), NAME, FIRST_EVENT - 4, tail=Tail.GROWING)


@dataclass
class Counted(LargeContents):
    """Counts what is read of a large file."""

    count: int = 0

    def read(self, at: int, count: int) -> bytes:
        data = super().read(at, count)
        self.count += len(data)
        return data


def test_the_size_of_a_file_does_not_matter(small: Small) -> None:
    """Of a file of 20 GB, its end is found in the last megabyte or so."""
    base = 20 << 30
    description, _, *rest = raw_events(small.data)
    placed = b""
    for event in rest[:-1]:
        placed += moved(event, base + len(placed), checksum=True)
    contents = Counted(description, base, placed)
    found = last_end(contents, NAME, FIRST_EVENT, tail=Tail.GROWING)
    assert found == base + len(placed)
    most = base - FIRST_EVENT + 3000
    within = end_within(contents, NAME, FIRST_EVENT, most, tail=Tail.AS_FLAGGED)
    assert within is not None
    assert base < within <= FIRST_EVENT + most
    assert contents.count < 10 << 20
