"""Table_map events as they are on the target: most come again and again."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from mtsd.binlog.events.table_map import (
    REFERRED_BY_FOREIGN_KEY_OF_OTHER_DATABASE,
    TableMap,
    parse_table_map,
)
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.rewrite import with_database
from mtsd.filter.filter import Filter

_SYSTEM_ROWS: Final = (
    "rows of {table}, a table of the server's own: this target would apply them without asking for"
    ' a grant ([filter] system_schemas = "replicate" lets it, ignore_table leaves the table out)'
)
_MOST: Final = 4096
_MAX_BYTES: Final = 8 << 20


class ReplicatedTableMaps:
    """The table maps of one run of the source that have been seen.

    `referred_in` is as for Grouper; what is learned of databases that become one is `merged`.
    """

    __slots__ = ("_known", "_merged", "_referred_in", "_replicated", "_size")

    def __init__(
        self,
        replicated: Filter,
        merged: MergedDatabases,
        referred_in: Mapping[str, AbstractSet[str]] | None,
    ) -> None:
        self._replicated = replicated
        self._merged = merged
        self._referred_in = referred_in
        self._known: dict[bytes, tuple[TableMap, bytes | None]] = {}
        self._size = 0

    def of(self, body: bytes, event: bytes) -> tuple[TableMap, bytes | None]:
        """Return the contents, and the event; None if its rows are left out.

        Both have the database's name on the target. The first event with these bytes after the
        header, its `body`, stands for all of them: their headers contain nothing useful.
        """
        known = self._known.get(body)
        if known is None:
            self._size += len(body)
            if len(self._known) >= _MOST or self._size > _MAX_BYTES:
                self._known.clear()
                self._size = len(body)
            known = self._known[body] = self._on_target(event)
        return known

    def refusal(self, table: TableMap) -> str:
        """Return why rows that are left out have to be refused; "" if they have not."""
        if not self._replicated.refuses_rows(table.database, table.table):
            return ""
        return _SYSTEM_ROWS.format(table=f"{table.database}.{table.table}")

    def forget(self) -> None:
        """Forget them all: the source numbers its tables anew."""
        self._known.clear()
        self._size = 0

    def _on_target(self, event: bytes) -> tuple[TableMap, bytes | None]:
        table = parse_table_map(event)
        name = self._replicated.row_database(table.database, table.table)
        if name is None:
            return table, None
        if self._referred_in is not None and self._replicated.folded(name) not in self._referred_in:
            table = replace(table, flags=table.flags & ~REFERRED_BY_FOREIGN_KEY_OF_OTHER_DATABASE)
        if self._replicated.rules.rewrite_db:
            self._merged.learn(table.database, name, self._replicated.folded(name))
        if name == table.database:
            return table, event
        return replace(table, database=name), with_database(event, name)
