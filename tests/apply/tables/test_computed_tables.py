"""Whether the target computes something from a table's rows that may depend on the session."""

import pytest

from mtsd.apply.tables.computed_tables import is_computed
from mtsd.apply.tables.facts import ColumnFacts, TableFacts
from mtsd.model.server import Flavour

A = ColumnFacts("a", "int")
DIFFERENCE = "(`a` - 1)"
PLAIN = TableFacts(("d", "t"), "innodb", (A,), checks=("(`a` > 1)",))
CHILD = TableFacts(("other", "child"), "innodb", (A,), checks=(DIFFERENCE,))


@pytest.mark.parametrize(
    ("facts", "logged", "flavour", "expected"),
    [
        (PLAIN, 1, Flavour.MYSQL, False),
        (CHILD, 1, Flavour.MARIADB, True),
        (TableFacts(("d", "t"), "innodb", (A,), reached=(PLAIN, CHILD)), 1, Flavour.MYSQL, True),
        (TableFacts(("d", "t"), "innodb", (A,), reached=(PLAIN,)), 1, Flavour.MYSQL, False),
        (TableFacts(("d", "t"), "innodb", (A,), key_parts=(DIFFERENCE,)), 1, Flavour.MYSQL, True),
        (TableFacts(("d", "t"), "innodb", (A,), partitioning=("(`a`)",)), 1, Flavour.MYSQL, False),
        (TableFacts(("d", "t"), "x", (A,), partitioning=(DIFFERENCE,)), 1, Flavour.MYSQL, True),
        (TableFacts(("d", "t"), "x", (A,), partitioning=(DIFFERENCE,)), 1, Flavour.MARIADB, False),
    ],
)
def test_expressions(facts: TableFacts, logged: int, flavour: Flavour, *, expected: bool) -> None:
    assert is_computed(facts, logged, flavour) is expected


def test_a_default_counts_only_where_the_source_has_no_such_column() -> None:
    columns = (A, ColumnFacts("b", "int", computes_default=True))
    facts = TableFacts(("d", "t"), "innodb", columns)
    assert [is_computed(facts, logged, Flavour.MYSQL) for logged in (1, 2)] == [True, False]
