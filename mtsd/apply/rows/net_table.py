"""What the rows of one table come to, by their key (`mtsd.apply.rows.net_rows`)."""

from typing import Final

from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import (
    DELETE_KINDS,
    INSERT_KINDS,
    UPDATE_KINDS,
    parse_rows_header,
    without_a_column,
)
from mtsd.binlog.values.key_images import Images
from mtsd.model.errors import BinlogError

Key = tuple[bytes | None, ...]
"""The bytes of the columns of a row's key."""
LaidOut = tuple[bytes, TableLayout]
"""A row event, and how the rows of its table are written."""
_Read = tuple[Key, bytes, bytes]
"""A row of an event, by its key: its first image, and its last one."""
_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
FLAGS_AT: Final = HEADER_SIZE + 6
INSERTED: Final = 0
UPDATED: Final = 1
DELETED: Final = 2
_REPLACED: Final = 3
"""Deleted, and inserted again."""
_PASSED: Final = 4
"""Inserted, and deleted again."""
_FAILS: Final = -1
_AFTER_INSERT: Final = (_FAILS, _FAILS, _REPLACED, _FAILS, INSERTED)
"""By what a row has come to: what it comes to with an insert, which finds it there or not."""
_AFTER_UPDATE: Final = (INSERTED, UPDATED, _FAILS, _REPLACED, _FAILS)
_AFTER_DELETE: Final = (_PASSED, DELETED, _FAILS, DELETED, _FAILS)


PHASES: Final = 4
"""Deletes, inserts, updates, and deletes of what was inserted."""


class RowsHead:
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
        self.rest = event[FLAGS_AT + 2 : header.rows_at]
        size = (header.width + 7) >> 3
        self.bitmaps = event[header.bitmaps_at : header.bitmaps_at + size]
        self.second = event[header.rows_at - size : header.rows_at]
        self.before = Images(formats, self.bitmaps, slots)
        self.after = Images(formats, self.second, slots)
        present = int.from_bytes(self.bitmaps, "little")
        self.known = all(present >> index & 1 for key in layout.keys[:1] for index in key)
        """Whether the images show the key of each row."""


class NetRow:
    """What a row has come to: its first image `before` and the last one `after`."""

    __slots__ = ("after", "before", "state")

    def __init__(self, state: int, before: bytes, after: bytes) -> None:
        self.state = state
        self.before = before
        self.after = after


class NetTable:
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
        self._by_rest: dict[tuple[int, bytes], RowsHead] = {}
        """By event type, and by what is between its flags and its rows."""
        self._latest: dict[int, RowsHead] = {}
        """By event type."""
        self.rows: dict[Key, NetRow] = {}
        self.flags = -1
        self.time = b""
        self._inserts: RowsHead | None = None
        self._updates: RowsHead | None = None
        self._deletes: RowsHead | None = None

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
        is_update = kind in UPDATE_KINDS
        if not self._fits(head, kind):
            return False
        # Flags and time of the event that it becomes are those that the table has now.
        head.start = event[: head.rows_at]
        is_insert = kind in INSERT_KINDS
        read = self._read_updates(event, head) if is_update else self._read(event, head)
        if read is None:
            return False
        next_states, fresh = _AFTER_DELETE, DELETED
        if is_update:
            next_states, fresh = _AFTER_UPDATE, UPDATED
        elif is_insert:
            next_states, fresh = _AFTER_INSERT, INSERTED
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
                rows[key] = NetRow(fresh, before, after)
                continue
            was = row.state
            row.state = next_states[was]
            if is_insert or is_update:
                row.after = after
            elif was == INSERTED:
                # Deleted at the end, by the image that it has then.
                row.before = before
        if is_update:
            self._updates = head
        elif is_insert:
            self._inserts = head
        else:
            self._deletes = head
        return True

    def take(self) -> list[list[LaidOut]]:
        """Return the events of what the rows have come to, and forget them.

        As `PHASES`.
        """
        deleted: list[bytes] = []
        updated: list[bytes] = []
        inserted: list[bytes] = []
        passed: list[bytes] = []
        for row in self.rows.values():
            state = row.state
            if state == INSERTED:
                inserted.append(row.after)
            elif state == UPDATED:
                updated.append(row.before)
                updated.append(row.after)
            elif state == DELETED:
                deleted.append(row.before)
            elif state == _REPLACED:
                deleted.append(row.before)
                inserted.append(row.after)
            else:
                inserted.append(row.after)
                passed.append(row.before)
        layout = self.layout
        found = [
            [(head.start + b"".join(images), layout)] if images and head is not None else []
            for head, images in (
                (self._deletes, deleted),
                (self._inserts, inserted),
                (self._updates, updated),
                (self._deletes, passed),
            )
        ]
        self.rows.clear()
        self._inserts = self._updates = self._deletes = None
        return found

    def _head(self, event: bytes) -> RowsHead:
        kind = event[4]
        latest = self._latest.get(kind)
        if latest is not None and event[FLAGS_AT + 2 : latest.rows_at] == latest.rest:
            return latest
        at = parse_rows_header(event).rows_at
        found = self._by_rest.get((kind, event[FLAGS_AT + 2 : at]))
        if found is None:
            found = RowsHead(event, self.layout, self._slots)
            self._by_rest[kind, found.rest] = found
        self._latest[kind] = found
        return found

    def _fits(self, head: RowsHead, kind: int) -> bool:
        """Return whether images like these can take the place of those that rows have.

        They have to have the same columns.
        """
        if kind not in DELETE_KINDS:
            for other in (self._inserts, self._updates):
                if other is not None and other.second != head.second:
                    return False
        if kind not in INSERT_KINDS:
            for other in (self._deletes, self._updates):
                if other is not None and other.bitmaps != head.bitmaps:
                    return False
        return True

    def _read(self, event: bytes, head: RowsHead) -> list[_Read]:
        found: list[_Read] = []
        values = self._values
        at = head.rows_at
        end = len(event)
        slots = self._key
        while at < end:
            start = at
            at = head.before.read(event, at, values)
            if at == start:
                raise without_a_column(end - at)
            image = event[start:at]
            found.append((tuple([values[slot] for slot in slots]), image, image))
        return found

    def _read_updates(self, event: bytes, head: RowsHead) -> list[_Read] | None:
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
                raise without_a_column(end - at)
            if values != held:
                return None
            found.append((tuple([held[slot] for slot in slots]), before, event[middle:at]))
        return found
