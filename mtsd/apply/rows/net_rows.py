"""Row events of a transaction as fewer ones that leave the same rows: for rows as SQL.

Of each row only what it comes to counts, because nobody sees a transaction before it has committed:
a row that is inserted and then changed twice is inserted as it is at the end. A row is known by its
key, so rows of one table are brought together however far apart they are, and each table becomes
one event of its deletes, one of its inserts, and one of its updates. For example, `+1a 1a>1b +2a
3a>3b 3b>3c -4a` becomes `-4a`, `+1b +2a` and `3a>3c`.

Of a table without any index, rows of the same bytes are the same, so what an update makes of a row
is what the next one finds by its bytes.

What is changed must have been there, and what is inserted must not, as before: a row that is
inserted and deleted again is still inserted first, and deleted at the end. What this order does not
keep is noticed, never passed over: a target on which such events fail gets the events in their own
order. So two things are left where they are, because they do not fail in another order: rows from
which foreign keys cascade, and updates that give a row another value of a unique key.
"""

from collections.abc import Iterable
from typing import Final

from mtsd.apply.rows.net_heap import NetHeap
from mtsd.apply.rows.net_table import FLAGS_AT, PHASES, LaidOut, NetTable
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.events.rows import (
    DUMMY_TABLE_ID,
    INSERT_KINDS,
    NO_FOREIGN_KEY_CHECKS,
    STMT_END,
    USE_SQL_FOREIGN_KEY,
)

_CASCADES_NOT: Final = NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY
_DUMMY: Final = DUMMY_TABLE_ID.to_bytes(6, "little")


class NetRows:
    """Brings together the rows of one transaction, event by event."""

    __slots__ = ("_into", "_tables")

    def __init__(self) -> None:
        self._tables: dict[bytes, NetTable | NetHeap] = {}
        """By name."""
        self._into: list[LaidOut] = []

    def add(self, event: bytes, layout: TableLayout) -> None:
        """Add a row event. Raises BinlogError."""
        if event[19:25] == _DUMMY:
            return
        flags = event[FLAGS_AT] | event[FLAGS_AT + 1] << 8
        flags &= ~STMT_END
        if layout.cascades and event[4] not in INSERT_KINDS and not flags & _CASCADES_NOT:
            self._take_all()
            self._into.append((event, layout))
            return
        table = self._tables.get(layout.name)
        if not layout.heap and (layout.others is None or not layout.keys):
            if table is not None:
                self._take(table)
            self._into.append((event, layout))
            return
        if table is None or table.layout is not layout:
            if table is not None:
                self._take(table)
            table = NetHeap(layout) if layout.heap else NetTable(layout)
            self._tables[layout.name] = table
        time = event[:4] if layout.takes_time else b""
        if flags != table.flags or time != table.time:
            self._take(table)
            table.flags = flags
            table.time = time
        if not table.add(event):
            self._take(table)
            if not table.add(event):
                self._into.append((event, layout))

    def take(self) -> list[LaidOut]:
        """Return the events of everything that was added, in their order."""
        self._take_all()
        found = self._into
        self._into = []
        return found

    def _take(self, table: NetTable | NetHeap) -> None:
        """Go on behind what was added to a table."""
        if not table.rows:
            return
        if table.layout.parents:
            # What it refers to may be among what was added.
            self._take_all()
            return
        for phase in table.take():
            self._into += phase

    def _take_all(self) -> None:
        """Go on behind all that was added: children come after their parents, and go before."""
        parents_first: dict[bytes, NetTable | NetHeap] = {}
        for name in self._tables:
            self._put(name, parents_first, set())
        taken = [table.take() for table in parents_first.values()]
        for phase in range(PHASES):
            deletes = phase in {0, PHASES - 1}
            for phases in reversed(taken) if deletes else taken:
                self._into += phases[phase]

    def _put(
        self, name: bytes, into: dict[bytes, NetTable | NetHeap], children: set[bytes]
    ) -> None:
        """Put a table behind those that it refers to; `children` have led here."""
        table = self._tables.get(name)
        if table is None or name in into or name in children:
            return
        for parent in table.layout.parents:
            self._put(parent, into, children | {name})
        into[name] = table


def net_events(events: Iterable[LaidOut]) -> list[LaidOut]:
    """Return events with the effect of those of a transaction; see above. Raises BinlogError."""
    rows = NetRows()
    for event, layout in events:
        rows.add(event, layout)
    return rows.take()
