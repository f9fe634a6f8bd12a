"""Filters never leave out anything that Spark would keep."""

import datetime as dt

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from mtsd.spark.pushed_filters import pushed_filters


@pytest.mark.parametrize(
    ("one", "kept", "left_out"),
    [
        (EqualTo(("a",), 5), [5], [4, 6]),
        (EqualNullSafe(("a",), "x"), ["x"], ["y", ""]),
        (In(("a",), (1, 2)), [1, 2], [0, 3]),
        (LessThan(("a",), 5), [4], [5, 6]),
        (LessThanOrEqual(("a",), 5), [4, 5], [6]),
        (GreaterThan(("a",), 5), [6], [5, 4]),
        (GreaterThanOrEqual(("a",), 5), [5, 6], [4]),
        (GreaterThan(("a",), "binlog.000002"), ["binlog.000003", "z"], ["binlog.000002", "a"]),
        (LessThan(("a",), "é"), ["z", "a"], ["é", "漢"]),
        (StringStartsWith(("a",), "ab"), ["ab", "abc"], ["a", "b"]),
        (
            LessThan(("a",), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
            [999_999],
            [1_000_000],
        ),
        # Filters that are not understood leave nothing out.
        (Not(EqualTo(("a",), 5)), [5, 4], []),
        (IsNotNull(("a",)), [5], []),
        (StringContains(("a",), "x"), ["y"], []),
        (EqualTo(("a", "b"), 5), [4], []),
        (EqualTo(("a",), None), [4], []),
        (EqualTo(("a",), 5.0), [4], []),
        (EqualTo(("a",), True), [0], []),
    ],
)
def test_what_is_kept(one: Filter, kept: list[int | str], left_out: list[int | str]) -> None:
    filters = pushed_filters([one])
    for value in kept:
        assert filters.keeps("a", value)
    for value in left_out:
        assert not filters.keeps("a", value)
        assert filters.keeps("b", value)


def test_all_have_to_hold() -> None:
    filters = pushed_filters([GreaterThan(("a",), 2), LessThan(("a",), 5), EqualTo(("b",), "x")])
    assert [value for value in range(8) if filters.keeps("a", value)] == [3, 4]


def test_what_has_passed() -> None:
    for one, values in (
        (LessThan(("pos",), 5), {5, 6, 7}),
        (LessThanOrEqual(("pos",), 5), {6, 7}),
        (EqualTo(("pos",), 5), {6, 7}),
        (In(("pos",), (1, 5)), {6, 7}),
        (GreaterThan(("pos",), 5), set()),
    ):
        filters = pushed_filters([one])
        assert {value for value in range(8) if filters.ends_before("pos", value)} == values


def test_columns_behind_a_prefix() -> None:
    filters = pushed_filters([EqualTo(("_pos",), 5), EqualTo(("pos",), 7)]).behind_prefix("_")
    assert filters.keeps("pos", 5)
    assert not filters.keeps("pos", 7)
