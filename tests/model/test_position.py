"""Positions of one source are ordered by the file's number, then by the offset."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.position import NOWHERE, Position

positions = st.builds(
    lambda number, width, offset: Position(f"binlog.{number:0{width}}", offset),
    number=st.integers(0, 2_000_000),
    width=st.just(6),
    offset=st.integers(4, 1 << 32),
)


def test_files_order_by_number_and_not_by_name() -> None:
    ordered = [
        Position("binlog.000009", 4),
        Position("binlog.000009", 5),
        Position("binlog.000010", 4),
        Position("binlog.999999", 1 << 40),
        Position("binlog.1000000", 4),
    ]
    for (i, first), (j, second) in product(enumerate(ordered), repeat=2):
        assert (first < second) == (i < j)
        assert (first <= second) == (i <= j)
        assert (first > second) == (i > j)
        assert (first >= second) == (i >= j)
        assert (first == second) == (i == j)


def test_a_base_name_may_hold_dots_and_digits() -> None:
    assert Position("host.1.example-bin.000002", 900) < Position("host.1.example-bin.000010", 4)


def test_text() -> None:
    assert str(Position("binlog.000009", 157)) == "binlog.000009:157"
    assert Position("binlog.000009", 157).as_ending == ", ending at binlog.000009:157"
    assert (str(NOWHERE), NOWHERE.as_ending) == ("by GTID set", "")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(positions, positions)
def test_one_order(first: Position, second: Position) -> None:
    by_number = [(int(p.file.partition(".")[2]), p.offset) for p in (first, second)]
    assert (first < second) == (by_number[0] < by_number[1])
    assert (first <= second) == (by_number[0] <= by_number[1])
    assert (first < second) + (second < first) + (first == second) == 1
