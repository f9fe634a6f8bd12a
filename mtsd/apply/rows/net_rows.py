"""Row events of a transaction as fewer ones that leave the same rows: for rows as SQL.

Of each row only what it comes to counts, because nobody sees a transaction before it has committed:
a row that is inserted and then changed twice is inserted as it is at the end. A row is known by its
key, so rows of one table are brought together however far apart they are, and each table becomes
one event of its deletes, one of its updates, and one of its inserts. For example, `+1a 1a>1b +2a
3a>3b 3b>3c -4a` becomes `-4a`, `3a>3c` and `+1b +2a`.

What is changed must have been there, and what is inserted must not, as before: a row that is
inserted and deleted again is still inserted first, and deleted at the end. What this order does not
keep is noticed, never passed over: a target on which such events fail gets the events in their own
order. So two things are left where they are, because they do not fail in another order: rows from
which foreign keys cascade, and updates that give a row another value of a unique key.
"""

from collections.abc import Iterable
from typing import Final

from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import (
    DELETES,
    DUMMY_TABLE_ID,
    INSERTS,
    NO_FOREIGN_KEY_CHECKS,
    STMT_END,
    UPDATES,
    USE_SQL_FOREIGN_KEY,
    parse_rows_header,
)
from mtsd.binlog.values.key_images import Images
from mtsd.model.errors import BinlogError

Key = tuple[bytes | None, ...]
"""The bytes of the columns of a row's key."""
LaidOut = tuple[bytes, TableLayout]
"""A row event, and how the rows of its table are written."""
_Read = tuple[Key, bytes, bytes]
"""A row of an event, by its key: its first image, and its last one."""
_INSERTS: Final = frozenset(kind.value for kind in INSERTS)
_UPDATES: Final = frozenset(kind.value for kind in UPDATES)
_DELETES: Final = frozenset(kind.value for kind in DELETES)
_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_CASCADES_NOT: Final = NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY
_FLAGS_AT: Final = HEADER_SIZE + 6
_INSERTED: Final = 0
_UPDATED: Final = 1
_DELETED: Final = 2
_REPLACED: Final = 3
"""Deleted, and inserted again."""
_PASSED: Final = 4
"""Inserted, and deleted again."""
_FAILS: Final = -1
_AFTER_INSERT: Final = (_FAILS, _FAILS, _REPLACED, _FAILS, _INSERTED)
"""By what a row has come to: what it comes to with an insert, which finds it there or not."""
_AFTER_UPDATE: Final = (_INSERTED, _UPDATED, _FAILS, _REPLACED, _FAILS)
_AFTER_DELETE: Final = (_PASSED, _DELETED, _FAILS, _DELETED, _FAILS)


class _Head:
    """What is before the rows of events that can be one: up to the bitmaps, and how to read them.

    `bitmaps` are one after another. `before` reads the image before an update, `after` that after
    it, and both are the same otherwise.
    """

    __slots__ = ("after", "before", "bitmaps", "known", "rest", "rows_at", "second", "start")

    def __init__(self, event: bytes, layout: TableLayout, slots: dict[int, int]) -> None:
        header = parse_rows_header(event)
        formats = layout.formats
        if header.width != len(formats):
            raise BinlogError(
                f"row event: {header.width} columns, and {len(formats)} in the table map of"
                f" {layout.label}"
            )
        self.rows_at = header.rows_at
        self.start = event[: header.rows_at]
        self.rest = event[_FLAGS_AT + 2 : header.rows_at]
        size = (header.width + 7) >> 3
        self.bitmaps = event[header.bitmaps_at : header.bitmaps_at + size]
        self.second = event[header.rows_at - size : header.rows_at]
        self.before = Images(formats, self.bitmaps, slots)
        self.after = Images(formats, self.second, slots)
        present = int.from_bytes(self.bitmaps, "little")
        self.known = all(present >> index & 1 for index in layout.keys[0])
        """Whether the images show the key of each row."""


class _Row:
    """What a row has come to: its first image `before` and the last one `after`."""

    __slots__ = ("after", "before", "state")

    def __init__(self, state: int, before: bytes, after: bytes) -> None:
        self.state = state
        self.before = before
        self.after = after


class _Table:
    """The rows of one table, by key, and the heads of the events that they go into."""

    __slots__ = (
        "_by_rest",
        "_deletes",
        "_inserts",
        "_key",
        "_latest",
        "_slots",
        "_updates",
        "_values",
        "flags",
        "layout",
        "rows",
        "time",
    )  # fmt: skip

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        key = layout.keys[0]
        wanted = sorted({*key, *(layout.others or ())})
        self._slots = {column: slot for slot, column in enumerate(wanted)}
        self._key = [self._slots[column] for column in key]
        self._values: list[bytes | None] = [None] * len(self._slots)
        self._by_rest: dict[tuple[int, bytes], _Head] = {}
        """By event type, and by what is between its flags and its rows."""
        self._latest: dict[int, _Head] = {}
        """By event type."""
        self.rows: dict[Key, _Row] = {}
        self.flags = -1
        self.time = b""
        self._inserts: _Head | None = None
        self._updates: _Head | None = None
        self._deletes: _Head | None = None

    def add(self, event: bytes) -> bool:
        """Add the rows of an event; return False, and add nothing, if they are to stay apart.

        Raises BinlogError.
        """
        kind = event[4]
        if kind == _PARTIAL_UPDATE:
            return False
        head = self._head(event)
        if not head.known:
            return False
        is_update = kind in _UPDATES
        if not self._fits(head, kind):
            return False
        # Flags and time of the event that it becomes are those that the table has now.
        head.start = event[: head.rows_at]
        is_insert = kind in _INSERTS
        read = self._read_updates(event, head) if is_update else self._read(event, head)
        if read is None:
            return False
        next_states, fresh = _AFTER_DELETE, _DELETED
        if is_update:
            next_states, fresh = _AFTER_UPDATE, _UPDATED
        elif is_insert:
            next_states, fresh = _AFTER_INSERT, _INSERTED
        rows = self.rows
        seen = set[Key]()
        for key, _, _ in read:
            row = rows.get(key)
            if key in seen or (row is not None and next_states[row.state] == _FAILS):
                return False
            seen.add(key)
        for key, before, after in read:
            row = rows.get(key)
            if row is None:
                rows[key] = _Row(fresh, before, after)
                continue
            was = row.state
            row.state = next_states[was]
            if is_insert or is_update:
                row.after = after
            elif was == _INSERTED:
                # Deleted at the end, by the image that it has then.
                row.before = before
        if is_update:
            self._updates = head
        elif is_insert:
            self._inserts = head
        else:
            self._deletes = head
        return True

    def take(self, into: list[LaidOut]) -> None:
        """Append the events of what the rows have come to, and forget them."""
        if not self.rows:
            return
        deleted: list[bytes] = []
        updated: list[bytes] = []
        inserted: list[bytes] = []
        passed: list[bytes] = []
        for row in self.rows.values():
            state = row.state
            if state == _INSERTED:
                inserted.append(row.after)
            elif state == _UPDATED:
                updated.append(row.before)
                updated.append(row.after)
            elif state == _DELETED:
                deleted.append(row.before)
            elif state == _REPLACED:
                deleted.append(row.before)
                inserted.append(row.after)
            else:
                inserted.append(row.after)
                passed.append(row.before)
        layout = self.layout
        for head, images in (
            (self._deletes, deleted),
            (self._updates, updated),
            (self._inserts, inserted),
            (self._deletes, passed),
        ):
            if images and head is not None:
                into.append((head.start + b"".join(images), layout))
        self.rows.clear()
        self._inserts = self._updates = self._deletes = None

    def _head(self, event: bytes) -> _Head:
        kind = event[4]
        latest = self._latest.get(kind)
        if latest is not None and event[_FLAGS_AT + 2 : latest.rows_at] == latest.rest:
            return latest
        at = parse_rows_header(event).rows_at
        found = self._by_rest.get((kind, event[_FLAGS_AT + 2 : at]))
        if found is None:
            found = _Head(event, self.layout, self._slots)
            self._by_rest[kind, found.rest] = found
        self._latest[kind] = found
        return found

    def _fits(self, head: _Head, kind: int) -> bool:
        """Return whether images like these can take the place of those that rows have.

        They have to have the same columns.
        """
        if kind not in _DELETES:
            for other in (self._inserts, self._updates):
                if other is not None and other.second != head.second:
                    return False
        if kind not in _INSERTS:
            for other in (self._deletes, self._updates):
                if other is not None and other.bitmaps != head.bitmaps:
                    return False
        return True

    def _read(self, event: bytes, head: _Head) -> list[_Read]:
        found: list[_Read] = []
        values = self._values
        at = head.rows_at
        end = len(event)
        slots = self._key
        while at < end:
            start = at
            at = head.before.read(event, at, values)
            if at == start:
                raise BinlogError(f"row event: {end - at} bytes of rows without a column")
            image = event[start:at]
            found.append((tuple([values[slot] for slot in slots]), image, image))
        return found

    def _read_updates(self, event: bytes, head: _Head) -> list[_Read] | None:
        """Return the rows of updates; None if one gets another value of a unique key."""
        found: list[_Read] = []
        values = self._values
        at = head.rows_at
        end = len(event)
        slots = self._key
        while at < end:
            start = at
            # A value that is not in the image before may be changed by the one after.
            for slot in range(len(values)):
                values[slot] = None
            at = head.before.read(event, at, values)
            before = event[start:at]
            held = list(values)
            middle = at
            at = head.after.read(event, at, values)
            if at == start:
                raise BinlogError(f"row event: {end - at} bytes of rows without a column")
            if values != held:
                return None
            found.append((tuple([held[slot] for slot in slots]), before, event[middle:at]))
        return found


class NetRows:
    """Brings together the rows of one transaction, event by event."""

    __slots__ = ("_into", "_tables")

    def __init__(self) -> None:
        self._tables: dict[bytes, _Table] = {}
        """By name."""
        self._into: list[LaidOut] = []

    def add(self, event: bytes, layout: TableLayout) -> None:
        """Add a row event. Raises BinlogError."""
        if event[19:25] == _DUMMY:
            return
        flags = event[_FLAGS_AT] | event[_FLAGS_AT + 1] << 8
        flags &= ~STMT_END
        if layout.cascades and not flags & _CASCADES_NOT:
            self._take_all()
            self._into.append((event, layout))
            return
        table = self._tables.get(layout.name)
        if layout.others is None or not layout.keys:
            if table is not None:
                table.take(self._into)
            self._into.append((event, layout))
            return
        if table is None or table.layout is not layout:
            if table is not None:
                table.take(self._into)
            table = self._tables[layout.name] = _Table(layout)
        time = event[:4] if layout.takes_time else b""
        if flags != table.flags or time != table.time:
            table.take(self._into)
            table.flags = flags
            table.time = time
        if not table.add(event):
            table.take(self._into)
            if not table.add(event):
                self._into.append((event, layout))

    def take(self) -> list[LaidOut]:
        """Return the events of everything that was added, in their order."""
        self._take_all()
        found = self._into
        self._into = []
        return found

    def _take_all(self) -> None:
        for table in self._tables.values():
            table.take(self._into)


_DUMMY: Final = DUMMY_TABLE_ID.to_bytes(6, "little")


def net_events(events: Iterable[LaidOut]) -> list[LaidOut]:
    """Return events with the effect of those of a transaction; see above. Raises BinlogError."""
    rows = NetRows()
    for event, layout in events:
        rows.add(event, layout)
    return rows.take()
