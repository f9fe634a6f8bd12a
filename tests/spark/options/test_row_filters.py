"""Filters keep what passes all tests of a column."""

import pytest

from mtsd.spark.options.row_filters import NO_FILTERS, ColumnTest, RowFilters


@pytest.mark.parametrize(
    ("test", "kept", "left_out"),
    [
        (ColumnTest("a", "=", ("x", "y")), ["x", "y"], ["z", ""]),
        (ColumnTest("a", "<", (5,)), [4], [5, 6]),
        (ColumnTest("a", ">=", (5,)), [5, 6], [4]),
    ],
)
def test_what_is_kept(test: ColumnTest, kept: list[int | str], left_out: list[int | str]) -> None:
    filters = RowFilters((test,))
    for value in kept:
        assert filters.keeps("a", value)
    for value in left_out:
        assert not filters.keeps("a", value)
        assert filters.keeps("b", value)
        assert NO_FILTERS.keeps("a", value)


def test_all_have_to_hold() -> None:
    filters = RowFilters((ColumnTest("a", ">=", (3,)), ColumnTest("a", "<", (5,))))
    assert [value for value in range(8) if filters.keeps("a", value)] == [3, 4]
