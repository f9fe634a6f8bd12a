"""Keys of the rows that a row event changes, as numbers: rows with a key in common have one, too.

Only the columns of keys are looked at, and as bytes: what a server may hold to be equal gets the
same number, and what is different mostly does not. The layout is that of
`mtsd.binlog.values.row_image`.
"""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import (
    DELETE_KINDS,
    DUMMY_TABLE_ID,
    UPDATE_KINDS,
    VERSION_1_KINDS,
    parse_rows_header,
    without_a_column,
)
from mtsd.binlog.values.column_format import ColumnFormat, json_columns
from mtsd.binlog.values.key_images import Images
from mtsd.model.errors import BinlogError

_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_PARTIAL_JSON: Final = 1
_WIDE: Final = 251
"""From so many columns on, their number takes more than one byte."""
_MAX_PLANS: Final = 256
"""With row images that are not full, any set of columns may come."""
_AFTER_TABLE_ID: Final = HEADER_SIZE + 6
_PLAIN: Final = bytes(range(0x20, 0x7F))
"""The printable characters of ASCII."""


class Equality(enum.Enum):
    """Which values of a column a server holds to be equal."""

    BYTES = "bytes"
    """Those of the same bytes."""
    NUMBERS = "numbers"
    """FLOAT and DOUBLE: 0.0 and -0.0, too."""
    PADDED = "padded"
    """Those that differ only in spaces or zeros at their end."""
    LETTERS = "letters"
    """Of printable ASCII, those that differ at most in case and in spaces at their end.

    Other characters may be equal to any.
    """


class KeyPart(NamedTuple):
    """A column of a key, by its index from 0; of a prefix, the number of its `characters`, else 0.

    Where it is not `nullable` the target does not hold NULL, whatever the source says.
    """

    column: int
    equality: Equality
    nullable: bool = False
    characters: int = 0


class RowKey(NamedTuple):
    """A key whose values matter: a unique one, one that is referred to, or a foreign key.

    `number` tells it from others; a foreign key has that of the key that it `refers` to, and its
    parts in the same order. It counts `always`, or only in rows where it is inserted, deleted or
    changed. With `cascades_deletes` or `cascades_updates`, the target changes other rows together
    with one that is deleted, or whose value of the key changes.
    """

    number: int
    parts: tuple[KeyPart, ...]
    always: bool = False
    refers: bool = False
    cascades_deletes: bool = False
    cascades_updates: bool = False


class PlannedKey:
    """What is to be done with a key in the rows of an event."""

    __slots__ = ("always", "cascades", "number", "parts", "refers", "single", "slot")

    def __init__(self, key: RowKey, slots: dict[int, int], *, always: bool) -> None:
        self.number = key.number
        self.always = always
        self.refers = key.refers
        self.cascades = key.cascades_updates
        self.parts: list[tuple[int, Equality, bool, int]] = [
            (slots[part.column], part.equality, part.nullable, part.characters)
            for part in key.parts
        ]
        first = self.parts[0]
        self.slot = first[0]
        self.single = len(self.parts) == 1 and first[1] is Equality.BYTES and not first[3]
        """Whether its value is that of one slot, as it is."""


class RowPlan:
    """How the rows of events with the same bitmaps are read.

    `is_known` is False if they do not show all that matters; nothing is read then. Of the last such
    event, `head` is what is between its flags and its rows, which begin at `rows_at`. `before` and
    `after` are for the values of one row, by slot; they are the same unless it `is_update`.
    """

    __slots__ = (
        "after", "before", "copied", "first", "head", "is_known", "is_update", "keys", "rows_at",
        "second",
    )  # fmt: skip

    def __init__(
        self, formats: Sequence[ColumnFormat], keys: Sequence[RowKey], kind: int, bitmaps: bytes
    ) -> None:
        self.head = b""
        self.rows_at = 0
        size = (len(formats) + 7) >> 3
        self.is_update = is_update = kind in UPDATE_KINDS
        before = _columns(bitmaps[:size])
        after = _columns(bitmaps[size:]) if is_update else before
        used: list[RowKey] = []
        self.is_known = True
        for key in keys:
            columns = {part.column for part in key.parts}
            if is_update and not key.always and columns.isdisjoint(after):
                # It remains as it is.
                continue
            if not columns <= before or (kind in DELETE_KINDS and key.cascades_deletes):
                self.is_known = False
            used.append(key)
        wanted = sorted({part.column for key in used for part in key.parts})
        slots = {column: slot for slot, column in enumerate(wanted)}
        self.before: list[bytes | None] = [None] * len(slots)
        self.after: list[bytes | None] = [None] * len(slots) if is_update else self.before
        self.first = Images(formats, bitmaps[:size], slots)
        self.second = Images(formats, bitmaps[size:], slots) if is_update else self.first
        self.copied = [slot for column, slot in slots.items() if column not in after]
        """Slots of columns that the image after leaves out: they have not changed."""
        self.keys = (
            [PlannedKey(key, slots, always=key.always or not is_update) for key in used]
            if self.is_known
            else []
        )


def table_id_of(event: bytes) -> int:
    """Return the table id of a Table_map or row event; BinlogError if it is cut off before it."""
    if len(event) < _AFTER_TABLE_ID:
        raise BinlogError(f"row event: cut off at byte {len(event)}, within its table id")
    return (
        event[19]
        | event[20] << 8
        | event[21] << 16
        | event[22] << 24
        | event[23] << 32
        | event[24] << 40
    )


def _columns(bitmap: bytes) -> frozenset[int]:
    bits = int.from_bytes(bitmap, "little")
    return frozenset(index for index in range(bits.bit_length()) if bits >> index & 1)


class KeyReader:
    """Reads the keys of the row events of one table map, whose columns have these `formats`."""

    __slots__ = ("_formats", "_json_bytes", "_keys", "_latest", "_plans")

    def __init__(self, formats: Sequence[ColumnFormat], keys: Sequence[RowKey]) -> None:
        self._formats = formats
        self._keys = keys
        self._json_bytes = (len(json_columns(formats)) + 7) >> 3
        self._plans: dict[tuple[int, bytes], RowPlan] = {}
        self._latest: dict[int, RowPlan] = {}
        """By event type."""

    def collect(
        self, event: bytes, rows: list[int], references: list[int], most: int = 1 << 30
    ) -> bool:
        """Add the keys of a row event, given without its checksum; return whether these are all.

        A key is added once for each row that has it. If these are not all, its rows may have other
        keys in common with others: the event does not show some values, or nobody knows what they
        are equal to, or other rows change together with these, or it has more than `most` keys.
        Raises BinlogError where it is damaged.
        """
        plan = self._planned(event)
        if plan is None:
            return True
        if not plan.is_known:
            return False
        keys = plan.keys
        at = plan.rows_at
        end = len(event)
        is_update = plan.is_update
        before = plan.before
        after = plan.after
        while at < end:
            start = at
            at = plan.first.read(event, at, before)
            if is_update:
                at = self._read_after(event, at, plan)
            if at == start:
                raise without_a_column(end - at)
            for key in keys:
                into = references if key.refers else rows
                if not add_key(key, before, after, into, is_update):
                    return False
            if len(rows) + len(references) > most:
                return False
        return True

    def _read_after(self, event: bytes, at: int, plan: RowPlan) -> int:
        """Read the image after an update, and return where it ends."""
        if event[4] == _PARTIAL_UPDATE:
            at = self._after_options(event, at)
        after = plan.after
        at = plan.second.read(event, at, after)
        for slot in plan.copied:
            after[slot] = plan.before[slot]
        return at

    def _planned(self, event: bytes) -> RowPlan | None:
        """Return how the rows of an event are read; None if it has none."""
        kind = event[4]
        plan = self._latest.get(kind)
        if plan is not None and event[27 : plan.rows_at] == plan.head:
            return plan
        at, bitmaps = self._head(event, kind)
        if at < 0:
            return None
        plan = self._plans.get((kind, bitmaps))
        if plan is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = RowPlan(self._formats, self._keys, kind, bitmaps)
            self._plans[kind, bitmaps] = plan
        plan.head = event[27:at]
        plan.rows_at = at
        self._latest[kind] = plan
        return plan

    def _head(self, event: bytes, kind: int) -> tuple[int, bytes]:
        """Return where the rows begin, and the bitmaps; a negative offset if there are none."""
        end = len(event)
        width = -1
        at = 27
        if end > 29 and kind not in VERSION_1_KINDS:
            at += event[27] | event[28] << 8
        if at < end:
            width = event[at]
        if width != len(self._formats) or width >= _WIDE:
            # Mostly damaged; then it says how.
            header = parse_rows_header(event)
            if header.table_id == DUMMY_TABLE_ID and not header.width:
                return -1, b""
            if header.width != len(self._formats):
                raise BinlogError(
                    f"row event: {header.width} columns, and {len(self._formats)} in the table map"
                )
            return header.rows_at, event[header.bitmaps_at : header.rows_at]
        size = (width + 7) >> 3
        if kind in UPDATE_KINDS:
            size += size
        rows_at = at + 1 + size
        if rows_at > end:
            raise BinlogError(f"row event: {width} columns do not fit into {end} bytes")
        return rows_at, event[at + 1 : rows_at]

    def _after_options(self, event: bytes, at: int) -> int:
        """Return where the image after a partial update begins, behind its options."""
        cursor = Cursor(event, at, "row event")
        if cursor.net_int("options of an image") & _PARTIAL_JSON:
            cursor.skip(self._json_bytes, "partial bits")
        return cursor.at


def add_key(
    key: PlannedKey,
    before: list[bytes | None],
    after: list[bytes | None],
    into: list[int],
    is_update: bool,
) -> bool:
    """Add the values of a key before and after a change; return whether they tell everything."""
    if is_update:
        changed = before[key.slot] != after[key.slot]
        if not changed and not key.single:
            changed = any(before[slot] != after[slot] for slot, _, _, _ in key.parts)
        if changed:
            if key.cascades or not _add_value(key, after, into):
                return False
        elif not key.always:
            return True
    return _add_value(key, before, into)


def _add_value(key: PlannedKey, values: list[bytes | None], into: list[int]) -> bool:
    if key.single:
        only = values[key.slot]
        if only is None:
            return key.parts[0][2]
        into.append(key.number ^ hash(only))
        return True
    parts: list[bytes] = []
    has_null = False
    for slot, equality, nullable, characters in key.parts:
        value = values[slot]
        if value is None:
            if not nullable:
                return False
            has_null = True
            continue
        if characters:
            # So many characters have at least so many bytes.
            value = value[:characters]
        if equality is Equality.PADDED:
            value = value.rstrip(b"\0 ")
        elif equality is Equality.LETTERS:
            if value.translate(None, _PLAIN):
                return False
            value = value.rstrip(b" ").lower()
        elif equality is Equality.NUMBERS and value[-1:] == b"\x80" and not any(value[:-1]):
            value = bytes(len(value))
        parts.append(value)
    if not has_null:
        into.append(key.number ^ hash(parts[0] if len(parts) == 1 else tuple(parts)))
    return True
