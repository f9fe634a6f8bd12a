"""Which databases a group concerns, and whether it runs alone: what a policy goes by."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from mtsd.binlog.events.query import MAX_DBS_IN_EVENT_MTS
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.sql.changed_tables import Extent, changed
from mtsd.binlog.sql.qualifiers import qualifiers
from mtsd.filter.filter import Filter
from mtsd.model.step import QueryEvent

_MAX_NAMED: Final = 1 << 16
"""Databases of a group: one with more runs alone, and the rest need not be known."""


class GroupScope:
    """The databases of a group while it is read, in the order in which they occur.

    `referred_in` is as for Grouper.
    """

    __slots__ = ("_merged", "_referred_in", "_replicated", "alone", "databases")

    def __init__(
        self,
        replicated: Filter,
        merged: MergedDatabases,
        referred_in: Mapping[str, AbstractSet[str]] | None,
    ) -> None:
        self._replicated = replicated
        self._merged = merged
        self._referred_in = referred_in
        self.databases: dict[str, None] = {}
        self.alone = False

    def has_rows_of(self, table: TableMap) -> None:
        """Note the database of a table, under its name on the target."""
        if len(self.databases) < _MAX_NAMED:
            self.databases[table.database] = None
        else:
            self.alone = True
        if table.referred_by_foreign_key_of_other_database:
            self._has_referred(table.database)

    def _has_referred(self, database: str) -> None:
        """Note that others may refer to a table of that database: theirs may change as well."""
        if self._referred_in is None:
            self.alone = True
            return
        for name in sorted(self._referred_in.get(self._replicated.folded(database), ())):
            self.databases[name] = None

    def has_statement(
        self, names: tuple[str, ...] | None, query: QueryEvent, *, loads: bool, defines: bool
    ) -> None:
        """Note the databases of a statement; `names` are those that it lists on the source.

        `loads`: it is a LOAD DATA; `defines`: it is a group by itself, or the definition in one.
        """
        if not names or query.over_max or names == ("",):
            self.alone = True
            names = (query.database,) if query.database else ()
        used = dict.fromkeys(names)
        if self._replicated.rules.rewrite_db:
            # Only the default database is renamed, and which of the names stand for it is unknown.
            for name in names:
                for each in (name, self._replicated.target_name(name)):
                    used[each] = None
                    if not self.alone:
                        self._merged.learn(name, each, self._replicated.folded(each))
        if loads and query.database:
            # Its character set is that of the file.
            used[query.database] = None
        if defines:
            used |= dict.fromkeys(qualifiers(query.text))
            if query.database:
                used[query.database] = None
            if len(used) > MAX_DBS_IN_EVENT_MTS:
                self.alone = True
        for name in used:
            if len(self.databases) >= _MAX_NAMED:
                self.alone = True
            elif not self._replicated.is_position_schema(name):
                self.databases[name] = None


def databases_of_definition(query: QueryEvent) -> tuple[str, ...] | None:
    """Return the databases of the tables that a definition names, for a source that lists none.

    That is a MariaDB. `ALTER TABLE b.t ADD i INT` under `a` is one of `b`. None if its text does
    not tell: routines, databases and accounts may concern others than those in it.
    """
    definition = changed(query.text)
    if definition.extent is not Extent.TABLES:
        return None
    names = dict.fromkeys(database or query.database for database, _ in definition.tables)
    return None if "" in names else tuple(names)
