"""Which branch each row goes to: connected ones to one, in any order, and the others spread."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.schedule.batches.row_branches import JoinedRows, NotSplitError, RowBranches

Row = tuple[Sequence[int], Sequence[int]]
"""The keys that it changes, and those that it refers to."""
ROWS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 12), min_size=1, max_size=3, unique=True),
        st.lists(st.integers(0, 12), max_size=2, unique=True),
    ),
    max_size=14,
)


def may_conflict(one: Row, other: Row) -> bool:
    return not (
        set(one[0]).isdisjoint(other[0])
        and set(one[0]).isdisjoint(other[1])
        and set(one[1]).isdisjoint(other[0])
    )


def assert_apart(rows: Sequence[Row], branches: Sequence[int]) -> None:
    for at, one in enumerate(rows):
        for before in range(at):
            assert branches[at] == branches[before] or not may_conflict(one, rows[before])


@given(rows=ROWS, count=st.integers(1, 4))
def test_a_transaction_in_memory_can_always_be_split(rows: list[Row], count: int) -> None:
    joined = JoinedRows()
    for row in rows:
        joined.add(*row)
    joined.connect_references()
    chosen = RowBranches(count, joined)
    assert_apart(rows, [chosen.place(*row) for row in rows])


@given(rows=ROWS, count=st.integers(1, 4))
def test_as_it_arrives_it_is_split_without_conflicts_or_not_at_all(
    rows: list[Row], count: int
) -> None:
    chosen = RowBranches(count)
    branches: list[int] = []
    try:
        branches.extend(chosen.place(*row) for row in rows)
    except NotSplitError:
        assert count > 1
        joins = rows[len(branches)]
        before = {at for place, at in enumerate(branches) if may_conflict(rows[place], joins)}
        assert len(before) > 1
    assert_apart(rows, branches)


@given(keys=st.lists(st.lists(st.integers(), min_size=1, max_size=2), max_size=20))
def test_rows_with_a_single_key(keys: list[list[int]]) -> None:
    joined = JoinedRows()
    for each in keys:
        if len(each) > 1:
            joined.add(each)
    chosen = RowBranches(3, joined)
    assert_apart([(each, ()) for each in keys], [chosen.place_by_key(each) for each in keys])


def test_an_update_of_the_only_key_that_connects_branches() -> None:
    chosen = RowBranches(2)
    assert chosen.place_by_key([4, 6]) == 0
    with pytest.raises(NotSplitError, match="update of a key"):
        chosen.place_by_key([4, 7])


def test_they_are_equally_large() -> None:
    chosen = RowBranches(3)
    assert [chosen.place([key], size=size) for key, size in enumerate([5, 1, 1, 1, 1, 3])] == [
        0, 1, 2, 1, 2, 1,
    ]  # fmt: skip
    assert chosen.sizes == [5, 5, 2]
    assert chosen.place([1], size=100) == 1


def test_what_only_refers_to_the_same_is_not_connected() -> None:
    rows = [((1,), (9,)), ((2,), (9,))]
    joined = JoinedRows()
    for row in rows:
        joined.add(*row)
    joined.connect_references()
    for chosen in (RowBranches(2), RowBranches(2, joined)):
        assert [chosen.place(*row, size=1) for row in rows] == [0, 1]
    chosen = RowBranches(2)
    for row in rows:
        chosen.place(*row, size=1)
    with pytest.raises(NotSplitError):
        chosen.place([9])


def test_what_is_remembered_is_bounded() -> None:
    joined = JoinedRows(most=6)
    chosen = RowBranches(2, max_keys=6)
    for key in range(1000):
        joined.add((key, key + 1000))
        chosen.place((key, key + 1000), (key + 2000,), size=1)
    assert joined.is_full
    joined.connect_references()
    assert joined.root(0) == joined.root(1000)
    assert joined.root(999) == 999


def test_what_is_not_remembered_goes_to_the_smallest_branch() -> None:
    chosen = RowBranches(2, max_keys=2)
    assert [chosen.place([key], size=1) for key in (1, 2, 3, 3)] == [0, 1, 0, 1]
    # What was there in time still is.
    assert [chosen.place([key], size=1) for key in (1, 1, 2)] == [0, 0, 1]


def test_where_nothing_may_be_forgotten_more_keys_are_not_split() -> None:
    """A branch that changes or deletes a row which another one has yet to insert waits for none."""
    chosen = RowBranches(2, max_keys=2, forgets=False)
    assert [chosen.place([key], size=1) for key in (1, 2)] == [0, 1]
    with pytest.raises(NotSplitError, match="more keys"):
        chosen.place([3])
    joined = JoinedRows(most=2)
    RowBranches(2, joined, forgets=False)
    joined.add((1, 2))
    with pytest.raises(NotSplitError, match="more keys"):
        RowBranches(2, joined, forgets=False)
