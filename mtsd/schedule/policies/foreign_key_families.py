"""Tables that foreign keys join, directly or through others: to a schedule they are one table.

A change of a table that others refer to may change those, too, or depend on what they contain,
without the group saying so. Where a schedule goes by databases, those that foreign keys join are
one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Statement

_DEFINITIONS: Final = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})
_NAMED: Final = 3
"""So many tables are in a family's name."""


@dataclass(frozen=True, slots=True)
class ForeignKeys:
    """Those of the target: tables that they join, "database.table" each, and databases.

    The tables are in pairs: the one that refers to the other, and the other.
    """

    tables: tuple[tuple[str, str], ...] = ()
    databases: tuple[frozenset[str], ...] = ()


NO_FOREIGN_KEYS: Final = ForeignKeys()


def may_change_foreign_keys(group: Group) -> bool:
    """Return whether a group may add foreign keys, or give others to a table's name.

    Its databases then include those of the tables that they refer to.
    """
    if group.kind not in _DEFINITIONS:
        return False
    texts = [step.query.statement for step in group.steps if isinstance(step, Statement)]
    if any(len(text) > LONGEST_READ for text in texts):
        return True
    return any(b"REFERENCES" in text or b"RENAME" in text for text in map(bytes.upper, texts))


def disjoint(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return sets of databases in which those are one that have any in common."""
    families: list[frozenset[str]] = []
    for each in sets:
        families = joined_with(families, each)
    return families


def joined_with(sets: Iterable[frozenset[str]], databases: frozenset[str]) -> list[frozenset[str]]:
    """Return disjoint sets of databases with one more, which may join some of them."""
    disjoint: list[frozenset[str]] = []
    for each in sets:
        if each.isdisjoint(databases):
            disjoint.append(each)
        else:
            databases |= each
    return [*disjoint, databases]


def families(foreign_keys: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return the family of each table that a foreign key joins to another one, by its name.

    A family is named after its first tables, in the order of their names.
    """
    joined: dict[str, str] = {}

    def root(table: str) -> str:
        while (above := joined.setdefault(table, table)) != table:
            joined[table] = joined[above]
            table = above
        return table

    for child, parent in foreign_keys:
        if child != parent:
            joined[root(child)] = root(parent)
    members: defaultdict[str, list[str]] = defaultdict(list)
    for table in sorted(joined):
        members[root(table)].append(table)
    return {table: _name(tables) for tables in members.values() for table in tables}


def _name(tables: list[str]) -> str:
    name = "+".join(tables[:_NAMED])
    return name if len(tables) <= _NAMED else f"{name}+{len(tables) - _NAMED} more"
