"""Updates that concern no foreign key, apart from the other rows: the server need not check them.

A MySQL that checks foreign keys above its engines (9.7) opens, for each updated row, every table
that a foreign key joins to the row's, whether or not a key has changed: 25 us each (measured), of
TPC-C's transactions half of the target's processor time. An UPDATE that leaves all its table's keys
as they are is `free`: no foreign key can tell, so it may say that none is to be checked. The flags
are the same for a whole statement, so the free ones make one of their own, behind the others:

    in order    update stock, insert line, update stock, insert line, update line
    then        insert line, insert line | update stock + update stock, update line

That has the same effect. A free update changes no key, so whatever comes before it instead of
after it finds the same keys in all tables; unless it deletes, or changes, the very row. So a
DELETE, or an UPDATE that is not free, stays behind the free ones of its table, and begins anew. An
INSERT does not: the row that it inserts is not there yet to be updated. Free updates of a table
keep their order, and follow each other as one event (see `row_joining`).

A statement costs the server as much as checking a few rows. So this is done where it pays.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mtsd.apply.rows.row_joining import AlikeRows, MappedTable, join_alike
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import (
    INSERT_KINDS,
    NO_FOREIGN_KEY_CHECKS,
    UPDATE_KINDS,
    USE_SQL_FOREIGN_KEY,
)
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.values.column_format import column_formats
from mtsd.binlog.values.row_keys import Equality, KeyPart, KeyReader, RowKey, table_id_of
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.names import folded

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
WORTH: Final = 6
"""Free updates, at least, for each statement more."""
_MOST: Final = 4096
"""Table maps that are remembered, at most."""


class _Table:
    """A table by its table map: `reader` finds whether keys change; None if none can be free."""

    __slots__ = ("keyed", "mapped", "name", "reader")

    def __init__(self, event: bytes, keyed: tuple[int, ...]) -> None:
        table = parse_table_map(event)
        self.mapped = MappedTable(event, table.table_id)
        self.name = folded(table.database), folded(table.table)
        self.keyed = keyed
        self.reader: KeyReader | None = None
        if keyed:
            parts = tuple(KeyPart(column, Equality.BYTES) for column in keyed)
            try:
                self.reader = KeyReader(column_formats(table), [RowKey(1, parts)])
            except (BinlogError, NotSupportedError):
                # Whoever applies its rows says so.
                self.reader = None

    def is_free(self, event: bytes) -> bool:
        """Return whether a row event is an UPDATE that leaves all keys of the table as they are."""
        if self.reader is None or event[4] not in UPDATE_KINDS:
            return False
        changed: list[int] = []
        try:
            return self.reader.collect(event, changed, changed, 0)
        except BinlogError:
            return False


class UncheckedUpdates:
    """Sets them apart, for one session; `keyed`: see `KnownTables.keyed`.

    It does so if there are `worth` of them for each statement more.
    """

    __slots__ = ("_keyed", "_tables", "_worth")

    def __init__(self, keyed: Mapping[bytes, tuple[int, ...]], worth: int = WORTH) -> None:
        self._keyed = keyed
        self._worth = worth
        self._tables: dict[bytes, _Table] = {}

    def apart(
        self, events: list[bytes], flags: int, largest: int
    ) -> Sequence[tuple[int, list[bytes]]]:
        """Return events of rows, all with these flags, as runs in an order with the same effect.

        Each has the flags that its row events are to have besides, and a table map before each of
        them. No event is joined to one of more than `largest` bytes.
        """
        if not self._keyed or flags & (NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY) != (
            USE_SQL_FOREIGN_KEY
        ):
            return [(0, events)]
        runs: list[tuple[int, list[bytes]]] = []
        checked: list[bytes] = []
        free: dict[tuple[str, str], list[tuple[AlikeRows, list[bytes]]]] = {}
        tables: dict[int, _Table] = {}
        count = 0
        for event in events:
            if event[4] == _TABLE_MAP:
                tables[table_id_of(event)] = self._table(event)
                continue
            table = tables.get(table_id_of(event))
            if table is None:
                # Whoever makes a statement of it says so.
                checked.append(event)
                continue
            head = table.mapped.head(event) if table.is_free(event) else None
            if head is not None:
                alike = free.setdefault(table.name, [])
                if not alike or alike[-1][0] is not head:
                    alike.append((head, []))
                alike[-1][1].append(event)
                count += 1
                continue
            if table.name in free and event[4] not in INSERT_KINDS:
                _close(runs, checked, free, largest)
                checked = []
                free = {}
            checked.append(table.mapped.event)
            checked.append(event)
        _close(runs, checked, free, largest)
        if not count or count < self._worth * (len(runs) - 1):
            return [(0, events)]
        return runs

    def _table(self, event: bytes) -> _Table:
        keyed = self._keyed.get(event, ())
        table = self._tables.get(event)
        if table is None or table.keyed != keyed:
            if len(self._tables) >= _MOST:
                self._tables.clear()
            table = self._tables[event] = _Table(event, keyed)
        return table


def _close(
    runs: list[tuple[int, list[bytes]]],
    checked: list[bytes],
    free: Mapping[tuple[str, str], list[tuple[AlikeRows, list[bytes]]]],
    largest: int,
) -> None:
    """Add the run of what is checked, and that of the free ones behind it."""
    if checked:
        runs.append((0, checked))
    if free:
        unchecked: list[bytes] = []
        for alike in free.values():
            for head, events in alike:
                join_alike(head, events, largest, unchecked)
        runs.append((NO_FOREIGN_KEY_CHECKS, unchecked))
