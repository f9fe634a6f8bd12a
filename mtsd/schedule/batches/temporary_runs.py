"""How many transactions of statements may share one although they use temporary tables.

No ROLLBACK brings a temporary table back, so a run leaves those alone that were there before it.
What it creates itself it may also drop: if it fails, what is left of that is dropped, and created
again. A table that was there before is dropped behind the commit. Until then nothing of its session
may name it, but for a statement that creates it as it was: it is emptied for that, which a ROLLBACK
undoes.

    1  session 7: CREATE TEMPORARY TABLE t …   as it says
    2  session 8: DROP TEMPORARY TABLE u       behind the commit: it was there before
    3  session 7: INSERT INTO x SELECT … t     as it says
    4  session 7: DROP TEMPORARY TABLE t       as it says
    5  session 8: UPDATE y …                   as it says: it does not name u
    6  session 8: CREATE TEMPORARY TABLE u …   as it was: DELETE FROM u, and no drop any more
                                               another one: it begins the next run
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from mtsd.binlog.sql.qualifiers import names
from mtsd.model.group import Group
from mtsd.model.step import Statement, StatementKind
from mtsd.model.temporary_tables import SourceThread, TableName

CreatedAlike = Callable[[SourceThread, TableName, Statement], bool]
"""Whether a statement creates a table of a thread that is there, empty, as it was created."""
_NONE: Final[frozenset[TableName]] = frozenset()


@dataclass(frozen=True, slots=True)
class TemporaryRun:
    """The first `groups` of those that were asked about; 0: the first one is applied by itself."""

    groups: int
    drops: Mapping[SourceThread, AbstractSet[TableName]] = field(default_factory=dict)
    """What is dropped behind the commit."""
    behind: frozenset[int] = frozenset()
    """The numbers of the groups of which nothing is sent: they only drop what was there before."""
    emptied: Mapping[int, TableName] = field(default_factory=dict)
    """By the number of a group that only creates a table: it is emptied instead."""


def temporary_run(groups: Sequence[Group], alike: CreatedAlike) -> TemporaryRun:
    """Return the longest run of groups, each one that `is_of_statements`, from the first one on."""
    created: dict[SourceThread, frozenset[TableName]] = {}
    gone: dict[SourceThread, set[TableName]] = {}
    behind: set[int] = set()
    emptied: dict[int, TableName] = {}
    count = 0
    for group in groups:
        use = group.uses_temporary
        statements = [step for step in group.steps if isinstance(step, Statement)]
        one = statements[0] if len(statements) == 1 else None
        drops = any(each.kind is StatementKind.DROP_TEMPORARY for each in statements)
        dropped = earlier = _NONE
        if use is not None and drops:
            dropped = (use.before - use.left) | (use.before & use.created)
            earlier = dropped - created.get(use.thread, _NONE)
        if earlier and use is not None and one is not None:
            # All that one statement drops goes together.
            gone.setdefault(use.thread, set()).update(dropped)
            behind.add(group.number)
        elif earlier:
            break
        elif gone and (named := _named(statements, gone)):
            if use is None or one is None or use.created != named or len(named) != 1:
                break
            (table,) = named
            if not alike(use.thread, table, one):
                break
            gone[use.thread].discard(table)
            emptied[group.number] = table
        elif use is not None and use.created:
            created[use.thread] = created.get(use.thread, _NONE) | use.created
        count += 1
    return TemporaryRun(
        count, {each: some for each, some in gone.items() if some}, frozenset(behind), emptied
    )


def _named(
    statements: Sequence[Statement], gone: Mapping[SourceThread, AbstractSet[TableName]]
) -> set[TableName]:
    """Return those of the tables that statements of their threads name."""
    found: set[TableName] = set()
    for statement in statements:
        for thread, tables in gone.items():
            if tables and thread[1] == statement.query.thread_id:
                words = names(statement.query.text)
                found |= {each for each in tables if each[1].upper() in words}
    return found
