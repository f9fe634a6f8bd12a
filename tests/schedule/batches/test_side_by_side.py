"""Batches side by side: only what the source's clock says to be independent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.model.group import Group
from mtsd.model.position import Position
from mtsd.schedule.batches.side_by_side import are_independent, are_long, size_within
from tests.schedule.worlds.streams import START, Shape, group_of

PAGE = ((8, 11), (8, 12), (10, 13), (12, 14))
"""The example of the module: last_committed and sequence_number."""


def groups(*clocks: tuple[int, int], file: str = START.file) -> tuple[Group, ...]:
    return tuple(
        group_of(Shape(("a",), clock=clock), number, Position(file, 100 * number))
        for number, clock in enumerate(clocks, 1)
    )


@pytest.mark.parametrize(
    ("earlier", "later", "independent"),
    [
        (PAGE[:2], PAGE[2:3], True),
        (PAGE[2:3], PAGE[3:], True),
        (PAGE[1:2], PAGE[3:], False),
        (PAGE[:2], PAGE[2:], False),
        (((0, 0),), ((0, 0),), False),
        (((0, 0),), ((1, 3),), False),
        (((1, 2),), ((0, 3),), False),
        (((1, 2),), ((1, 0),), False),
        (((1, 5),), ((1, 5),), False),
        (((1, 5),), ((1, 4),), False),
        (((1, 5), (1, 4)), ((1, 6),), False),
        (((1, 5),), ((1, 7), (1, 6)), False),
    ],
)
def test_what_the_clock_says(
    earlier: tuple[tuple[int, int], ...], later: tuple[tuple[int, int], ...], independent: bool
) -> None:
    assert are_independent(groups(*earlier), groups(*later)) is independent


def test_the_clock_begins_again_with_each_file() -> None:
    assert not are_independent(groups((1, 5)), groups((1, 6), file="binlog.000002"))


@pytest.mark.parametrize(("seconds", "size"), [(0.01, 150_000), (0.0, 1_500_000), (10.0, 128_000)])
def test_how_large_the_next_one_may_be(seconds: float, size: int) -> None:
    batch = (group_of(Shape(("a",), size=60_000), 1, START),)
    assert size_within(0.025, batch, seconds, at_least=128_000) == size


@pytest.mark.parametrize(
    ("size", "each_s", "long"),
    [(20_000, 0.0, True), (3_000, 0.0003, False), (3_000, 0.0004, True)],
)
def test_what_takes_long_is_long_however_few_bytes_it_is(
    size: int, each_s: float, long: bool
) -> None:
    batch = (group_of(Shape(("a",), size=size), 1, START),)
    assert are_long(batch, each_s) is long


@given(
    keys=st.lists(st.sets(st.integers(0, 4), max_size=2), min_size=2, max_size=8),
    first=st.integers(1, 5),
    more=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    data=st.data(),
)
def test_independent_ones_share_no_key(
    keys: list[set[int]], first: int, more: list[int], data: st.DataObject
) -> None:
    clocks = []
    for at, own in enumerate(keys):
        conflicts = [first + j for j in range(at) if keys[j] & own]
        # A source may say more than it has to, and it begins at 0.
        clocks.append((min(first + at - 1, max(conflicts, default=0) + more[at]), first + at))
    middle = data.draw(st.integers(1, len(keys) - 1))
    end = data.draw(st.integers(middle + 1, len(keys)))
    whole = groups(*clocks)
    if are_independent(whole[:middle], whole[middle:end]):
        assert not set[int]().union(*keys[:middle]) & set[int]().union(*keys[middle:end])
