"""Tables of the target from whose rows it computes something that may depend on the session.

A generated column, a CHECK constraint and a functional key are expressions over the columns of a
row, and the server evaluates them under the session's sql_mode, time_zone and lc_time_names
(measured with MySQL 9.7: a DATETIME generated from a TIMESTAMP, the name of a month, a difference
of unsigned numbers). So is the one that partitions a table.

What changes the rows of another table, by a foreign key's cascade, changes its keys on such columns
under the same state: a key that is computed otherwise than when the row was written keeps the
former entry.

The default of a column that only the target has may be such an expression, too.
"""

from collections.abc import Iterator

from mtsd.apply.session.family import TARGETS
from mtsd.apply.tables.facts import TableFacts
from mtsd.apply.tables.independent_expressions import is_independent
from mtsd.model.server import Flavour


def is_computed(facts: TableFacts, logged: int, flavour: Flavour) -> bool:
    """Return whether something that may depend on the session is computed from a table's rows.

    `logged` is how many columns the rows of the source have: others get their defaults.
    """
    if any(_computes(each, flavour) for each in (facts, *facts.reached)):
        return True
    defaults = any(column.computes_default for column in facts.columns)
    return defaults and len(facts.columns) > logged


def _computes(facts: TableFacts, flavour: Flavour) -> bool:
    types = {column.name: column.type for column in facts.columns}
    return not all(is_independent(text, types) for text in _expressions(facts, flavour))


def _expressions(facts: TableFacts, flavour: Flavour) -> Iterator[str]:
    for column in facts.columns:
        if column.generated:
            yield column.generated
    yield from facts.checks
    yield from facts.key_parts
    if TARGETS[flavour].partitions_by_session:
        # Only a difference may depend on the session, among what MySQL accepts to partition by.
        yield from (each for each in facts.partitioning if "-" in each)
