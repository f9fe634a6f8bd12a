"""Filters, used to skip what need not be read."""

from dataclasses import dataclass, replace
from typing import Final

_Value = str | int


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A test of a column's value: it is one of `values` (`=`), or `<` or `>=` the only one."""

    column: str
    operator: str
    values: tuple[_Value, ...]

    def holds(self, value: _Value) -> bool:
        """Tell whether a value passes."""
        if self.operator == "=":
            return value in self.values
        (limit,) = self.values
        if not (isinstance(value, int) and isinstance(limit, int)):
            return True
        return value < limit if self.operator == "<" else value >= limit


@dataclass(frozen=True, slots=True)
class RowFilters:
    """Tests by column, all of which have to hold."""

    tests: tuple[ColumnTest, ...] = ()

    def keeps(self, column: str, value: _Value) -> bool:
        """Tell whether rows with this value in this column are wanted."""
        # Called for each transaction, so the common case is fast.
        if not self.tests:
            return True
        return all(test.holds(value) for test in self.tests if test.column == column)

    def folded(self) -> "RowFilters":
        """Return the same filters for values in lower case, however those of the tests are."""
        return RowFilters(tuple(replace(test, values=_folded(test.values)) for test in self.tests))


def _folded(values: tuple[_Value, ...]) -> tuple[_Value, ...]:
    return tuple(value.lower() if isinstance(value, str) else value for value in values)


NO_FILTERS: Final = RowFilters()
