"""The bitmap of slave_worker_info, against plain sets of numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.schedule.done.executed_groups import ExecutedGroups, recovered

BASES = st.integers(1, 60)
NUMBERS = st.frozensets(st.integers(1, 90))
ordinary = settings(max_examples=200, deadline=None, derandomize=True)


def executed(base: int, numbers: frozenset[int]) -> ExecutedGroups:
    return ExecutedGroups(base).with_numbers(n for n in numbers if n >= base)


def as_set(groups: ExecutedGroups) -> frozenset[int]:
    return frozenset(number for number in range(200) if number in groups)


def test_layout() -> None:
    groups = ExecutedGroups(100).with_numbers([100, 103, 109])
    assert groups.bitmap() == bytes([0b0000_1001, 0b0000_0010])
    assert ExecutedGroups(5).bitmap() == b""
    assert ExecutedGroups.from_bitmap(7, b"\x01\x00\x80") == ExecutedGroups(7).with_numbers([7, 30])


@ordinary
@given(BASES, NUMBERS)
def test_bitmap_there_and_back(base: int, numbers: frozenset[int]) -> None:
    groups = executed(base, numbers)
    bitmap = groups.bitmap()
    assert ExecutedGroups.from_bitmap(base, bitmap) == groups
    assert ExecutedGroups.from_bitmap(base, bitmap + b"\0\0") == groups
    assert not bitmap.endswith(b"\0")


@ordinary
@given(BASES, NUMBERS)
def test_set(base: int, numbers: frozenset[int]) -> None:
    groups = executed(base, numbers)
    expected = frozenset(n for n in numbers if n >= base)
    assert as_set(groups) == expected
    assert len(groups) == len(expected)
    assert groups.highest == max(expected, default=base - 1)


@ordinary
@given(BASES, BASES, NUMBERS)
def test_rebasing_forgets_what_is_below(base: int, other: int, numbers: frozenset[int]) -> None:
    groups = executed(base, numbers)
    moved = groups.rebased(other)
    assert moved.base == other
    assert as_set(moved) == frozenset(n for n in as_set(groups) if n >= other)
    if other <= base:
        assert moved.rebased(base) == groups


@ordinary
@given(BASES, NUMBERS, BASES, NUMBERS)
def test_union_from_the_first_base_on(
    base: int, numbers: frozenset[int], other_base: int, others: frozenset[int]
) -> None:
    first = executed(base, numbers)
    second = executed(other_base, others)
    union = first.union(second)
    assert union.base == base
    assert as_set(union) == as_set(first) | frozenset(n for n in as_set(second) if n >= base)


@ordinary
@given(BASES, st.lists(st.tuples(BASES, NUMBERS), max_size=6))
def test_recovered_is_what_any_row_proves_past_the_mark(
    mark: int, rows: list[tuple[int, frozenset[int]]]
) -> None:
    result = recovered(mark, (executed(base, numbers) for base, numbers in rows))
    assert result.base == mark + 1
    assert as_set(result) == frozenset(
        n for base, numbers in rows for n in numbers if n >= base and n > mark
    )


def test_a_number_below_the_base_cannot_be_added() -> None:
    with pytest.raises(ValueError, match="negative shift"):
        ExecutedGroups(10).with_numbers([9])
