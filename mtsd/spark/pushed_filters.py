"""Filters that Spark pushes down, used to skip what need not be read.

Spark still applies all of them, so reading too much only costs time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_Value = str | int


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A test of a column's value; the operator is `=`, `<`, `<=`, `>`, `>=` or `starts`."""

    column: str
    operator: str
    values: tuple[_Value, ...]

    def holds(self, value: _Value) -> bool:
        """Tell whether a value passes."""
        match self.operator:
            case "=":
                return value in self.values
            case "starts":
                return str(value).startswith(str(self.values[0]))
            case operator:
                return _compares(operator, value, self.values[0])


def _compares(operator: str, value: _Value, other: _Value) -> bool:
    if isinstance(value, str) != isinstance(other, str):
        return True
    # Spark compares strings by their bytes in UTF-8.
    one = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    two = other.encode("utf-8", "surrogateescape") if isinstance(other, str) else other
    match operator:
        case "<":
            return one < two  # type: ignore[operator]
        case "<=":
            return one <= two  # type: ignore[operator]
        case ">":
            return one > two  # type: ignore[operator]
        case _:
            return one >= two  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """Tests by column, all of which have to hold."""

    tests: tuple[ColumnTest, ...] = ()

    def behind_prefix(self, prefix: str) -> "PushedFilters":
        """Return the tests of columns whose names have the prefix, with the prefix removed."""
        return PushedFilters(
            tuple(
                replace(test, column=test.column.removeprefix(prefix))
                for test in self.tests
                if test.column.startswith(prefix)
            )
        )

    def keeps(self, column: str, value: _Value) -> bool:
        """Tell whether rows with this value in this column may be wanted."""
        # Called for each transaction, so the common case is fast.
        if not self.tests:
            return True
        return all(test.holds(value) for test in self.tests if test.column == column)

    def ends_before(self, column: str, value: _Value) -> bool:
        """Tell whether this value and all larger ones are too large to be wanted."""
        return any(
            test.column == column
            and (
                (test.operator in {"<", "<="} and not test.holds(value))
                or (test.operator == "=" and all(_compares(">", value, one) for one in test.values))
            )
            for test in self.tests
        )

    def and_also(self, other: "PushedFilters") -> "PushedFilters":
        """Return these tests combined with others."""
        return PushedFilters((*self.tests, *other.tests))


NO_FILTERS: Final = PushedFilters()

_OPERATORS: Final = {
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    StringStartsWith: "starts",
}


def pushed_filters(filters: Iterable[Filter]) -> PushedFilters:
    """Return the filters that test a single column; others are left out."""
    tests: list[ColumnTest] = []
    for one in filters:
        operator = _OPERATORS.get(type(one))
        if isinstance(one, EqualTo | EqualNullSafe):
            values = (one.value,)
            operator = "="
        elif isinstance(one, In):
            values = tuple(one.value)
            operator = "="
        elif operator is not None:
            values = (one.value,)  # type: ignore[attr-defined]
        else:
            continue
        plain = tuple(_plain(value) for value in values)
        if len(one.attribute) == 1 and all(value is not None for value in plain):  # type: ignore[attr-defined]
            tests.append(ColumnTest(one.attribute[0], operator, plain))  # type: ignore[attr-defined, arg-type]
    return PushedFilters(tuple(tests))


def microseconds(moment: datetime) -> int:
    """Return a time that has a time zone as microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def _plain(value: object) -> _Value | None:
    """Return a value in comparable form; times become microseconds since 1970."""
    if isinstance(value, datetime):
        return microseconds(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return value
