import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.framing import MAGIC, MAX_EVENT_SIZE, FileFramer
from mtsd.model.errors import BinlogError
from tests.binlog.building import event

EVENTS = [event(2, bytes(size)) for size in (0, 1, 0, 300, 17, 5000)]
FILE = MAGIC + b"".join(EVENTS)


def framed(data: bytes, cuts: list[int], *, at_start: bool = True) -> list[bytes]:
    framer = FileFramer(at_start=at_start)
    found: list[bytes] = []
    for begin, end in pairwise([0, *sorted(cuts), len(data)]):
        found += framer.feed(data[begin:end])
    framer.finish()
    return found


def claiming(size: int) -> bytes:
    return bytes(9) + size.to_bytes(4, "little") + bytes(6)


@given(st.lists(st.integers(0, len(FILE)), max_size=30))
@settings(deadline=None)
def test_any_split_gives_the_same_events(cuts: list[int]) -> None:
    assert framed(FILE, cuts) == EVENTS


def test_byte_by_byte() -> None:
    assert framed(FILE, list(range(len(FILE)))) == EVENTS


@given(st.lists(st.integers(0, len(FILE) - 4), max_size=10))
@settings(deadline=None)
def test_from_the_middle_of_a_file(cuts: list[int]) -> None:
    assert framed(FILE[4:], cuts, at_start=False) == EVENTS


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return framed(data, list(range(0, len(data), size)))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_magic_number_is_asked_for(size: int) -> None:
    for data in (b"\xfcbin" + FILE[4:], b"not a binlog", FILE[1:]):
        with pytest.raises(BinlogError, match="magic number"):
            in_pieces(data, size)


@pytest.mark.parametrize("size", [0, 18, MAX_EVENT_SIZE + 1, 0xFFFFFFFF])
def test_an_impossible_length(size: int) -> None:
    framer = FileFramer()
    found = framer.feed(MAGIC + EVENTS[0] + claiming(size))
    assert next(found) == EVENTS[0]
    with pytest.raises(
        BinlogError, match=f"at byte {4 + len(EVENTS[0])} claims a length of {size}"
    ):
        next(found)


@pytest.mark.parametrize("kept", [1, 3, 5, 22, 24, len(FILE) - 1])
def test_a_file_that_ends_inside_an_event(kept: int) -> None:
    with pytest.raises(BinlogError, match="ends inside an event"):
        framed(FILE[:kept], [])


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"", "not a binary log: it is empty"),
        (b"\x1f\x8b\x08\x00", "not a binary log: it does not begin with the magic number"),
        (b"\xfdbin\x01", r"it is encrypted \(binlog_encryption\): only its server can read it"),
    ],
)
def test_a_file_that_is_no_binary_log(head: bytes, why: str) -> None:
    with pytest.raises(BinlogError, match=why):
        framed(head, [])


def test_a_file_of_nothing_but_the_magic_number() -> None:
    assert framed(MAGIC, [2]) == []


def test_a_large_event_in_small_pieces_costs_its_size_once_or_twice() -> None:
    size, piece = 8 << 20, bytes(1 << 16)
    framer = FileFramer(at_start=False)
    assert list(framer.feed(claiming(19 + size))) == []
    tracemalloc.start()
    try:
        found = [one for _ in range(size // len(piece)) for one in framer.feed(piece)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (large,) = found
    assert len(large) == 19 + size
    assert peak < 2.2 * size
