"""Tables that foreign keys join, directly or through others: to a schedule they are one table.

A change of a table that others refer to may change those, too, or depend on what they contain,
without the group saying so.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

ForeignKeys = Iterable[tuple[str, str]]
"""Pairs of tables, "database.table" each: the one that refers to the other, and the other."""

_NAMED: Final = 3
"""So many tables are in a family's name."""


def families(foreign_keys: ForeignKeys) -> Mapping[str, str]:
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
