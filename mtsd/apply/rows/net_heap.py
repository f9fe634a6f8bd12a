"""What the rows of one table without any index come to (`mtsd.apply.rows.net_rows`)."""

from typing import Final

from mtsd.apply.rows.net_table import DELETED, INSERTED, UPDATED, LaidOut, NetRow, RowsHead
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import DELETE_KINDS, INSERT_KINDS, UPDATE_KINDS, without_a_column

_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value


class NetHeap:
    """The rows of one table without any index, where the same bytes are the same row."""

    __slots__ = ("_count", "_heads", "_latest", "flags", "layout", "rows", "time")

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self.flags = -1
        self.time = b""
        self.rows: dict[int, NetRow] = {}
        """By number, in their order."""
        self._count = 0
        self._latest: dict[bytes, list[int]] = {}
        """By the last image: rows that have it now because of what was added."""
        self._heads: dict[int, RowsHead] = {}
        """By what is to be done."""

    def add(self, event: bytes) -> bool:
        """Add the rows of an event; return False, and add nothing, if they are to stay apart.

        Raises BinlogError.
        """
        kind = event[4]
        if kind == _PARTIAL_UPDATE:
            return False
        head = RowsHead(event, self.layout, {})
        columns = (1 << len(self.layout.formats)) - 1
        for bitmap in (head.bitmaps, head.second):
            if int.from_bytes(bitmap, "little") & columns != columns:
                return False
        nothing: list[bytes | None] = []
        at = head.rows_at
        end = len(event)
        while at < end:
            start = at
            at = head.before.read(event, at, nothing)
            image = event[start:at]
            if kind in INSERT_KINDS:
                self._insert(image)
            elif kind in DELETE_KINDS:
                self._delete(image)
            else:
                middle = at
                at = head.after.read(event, at, nothing)
                self._update(image, event[middle:at])
            if at == start:
                raise without_a_column(end - at)
        state = UPDATED
        if kind not in UPDATE_KINDS:
            state = INSERTED if kind in INSERT_KINDS else DELETED
        self._heads[state] = head
        return True

    def take(self) -> list[list[LaidOut]]:
        """Return the events of what the rows have come to, and forget them.

        As `PHASES`, but updates are right behind deletes, and before inserts: none may find a row
        that has only become what it looks for.
        """
        images: dict[int, list[bytes]] = {DELETED: [], UPDATED: [], INSERTED: []}
        for row in self.rows.values():
            if row.state != INSERTED:
                images[row.state].append(row.before)
            if row.state != DELETED:
                images[row.state].append(row.after)
        events = {
            state: [(self._heads[state].start + b"".join(found), self.layout)] if found else []
            for state, found in images.items()
        }
        self.rows.clear()
        self._latest.clear()
        self._heads.clear()
        return [events[DELETED] + events[UPDATED], events[INSERTED], [], []]

    def _insert(self, image: bytes) -> None:
        self._new(NetRow(INSERTED, image, image))

    def _update(self, before: bytes, after: bytes) -> None:
        number = self._known(before)
        if number is None:
            self._new(NetRow(UPDATED, before, after))
            return
        self.rows[number].after = after
        self._latest.setdefault(after, []).append(number)

    def _delete(self, image: bytes) -> None:
        number = self._known(image)
        if number is None:
            self._add(NetRow(DELETED, image, image))
        elif self.rows[number].state == INSERTED:
            del self.rows[number]
        else:
            self.rows[number].state = DELETED

    def _new(self, row: NetRow) -> None:
        self._latest.setdefault(row.after, []).append(self._add(row))

    def _add(self, row: NetRow) -> int:
        self._count += 1
        self.rows[self._count] = row
        return self._count

    def _known(self, image: bytes) -> int | None:
        """Take a row that has this image now; None if only the table may have one."""
        found = self._latest.get(image)
        return found.pop() if found else None
