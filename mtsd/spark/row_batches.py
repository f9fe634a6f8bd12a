"""Row events of one table as batches of Arrow columns, with no Python object for a value.

Events of one kind and with the same columns are one batch; `events` and `rows` say which row of
which event each one is, so that whoever needs the order of the stream has it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa

from mtsd.binlog.column_type import ColumnType
from mtsd.binlog.event_type import EventType
from mtsd.binlog.row_image import RowDecoder
from mtsd.binlog.rows import DUMMY_TABLE_ID, UPDATES, VERSION_2, parse_rows_header
from mtsd.binlog.table_map import TableMap
from mtsd.binlog.table_metadata import OptionalMetadata
from mtsd.spark.column_arrays import Dates, arrow_type, column_array
from mtsd.spark.lockstep import PADDING, Buffer, ImageLayout, Places, Step, walk
from mtsd.spark.partial_updates import PartialUpdates
from mtsd.spark.text_arrays import binary_array, checked

_UPDATES: Final = frozenset(kind.value for kind in UPDATES)
_PLAIN: Final = frozenset(kind.value for kind in VERSION_2)
_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_DELETES: Final = frozenset(
    {EventType.DELETE_ROWS_EVENT.value, EventType.DELETE_ROWS_EVENT_V1.value}
)
_NO_EXTRA: Final = b"\x02\x00"
_LARGEST: Final = 64 << 20
"""Bytes of events in a batch, unless it is one event."""


@dataclass(frozen=True, slots=True)
class ImageColumns:
    """Images as columns: which these are, by index from 0, and an array of each.

    A column that is not among them is absent, which is not NULL: the source has not logged it, or
    it was not asked for.
    """

    columns: tuple[int, ...]
    arrays: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows of one kind: inserts have nothing before, deletes nothing after.

    Row n is row `rows[n]` of the event `events[n]`, both from 0.
    """

    before: ImageColumns | None
    after: ImageColumns | None
    events: Places
    rows: Places


class RowBatches:
    """Reads the row events of one table map; `told` and `wanted` are as for `RowDecoder`."""

    def __init__(
        self,
        table: TableMap,
        told: OptionalMetadata | None = None,
        wanted: Collection[int] | None = None,
        dates: Dates = Dates.STRICT,
    ) -> None:
        self._rows = RowDecoder(table, told, wanted)
        self.formats = self._rows.formats
        self.wanted = frozenset(range(len(self.formats)) if wanted is None else wanted)
        self._dates = dates
        self._width = len(self.formats)
        self._bitmap = (self._width + 7) >> 3
        self._layouts: dict[bytes, ImageLayout] = {}

    def type_of(self, column: int) -> pa.DataType:
        """Return the type of a column's arrays; NotSupportedError as for `converter`."""
        return arrow_type(self.formats[column], self._dates)

    def batches(self, events: Sequence[bytes]) -> Iterator[RowBatch]:
        """Yield the rows of these events, which have no checksums.

        Raises BinlogError where one is damaged or not of the table map, NotSupportedError where
        the binary log does not tell enough of a wanted column, or a value has no place in its type.
        """
        groups: dict[tuple[int, bytes, bytes], list[tuple[int, int]]] = {}
        for number, event in enumerate(events):
            key, rows_at = self._kind(event)
            if rows_at:
                groups.setdefault(key, []).append((number, rows_at))
        for (kind, first, second), members in groups.items():
            for part in _parts(members, events):
                batch = self._batch(kind, first, second, part, events)
                if len(batch.rows):
                    yield batch

    def _kind(self, event: bytes) -> tuple[tuple[int, bytes, bytes], int]:
        """Return an event's type and bitmaps, and where its rows begin; 0 where it has none."""
        kind = event[4]
        if (
            kind in _PLAIN
            and event[27:30] == _NO_EXTRA + bytes((self._width & 0xFF,))
            and (self._width < 251)
        ):
            middle = 30 + self._bitmap
            first = event[30:middle]
            if kind not in _UPDATES and middle <= len(event):
                return (kind, first, first), middle
            end = middle + self._bitmap
            if end <= len(event):
                return (kind, first, event[middle:end]), end
        header = parse_rows_header(event)
        if header.table_id == DUMMY_TABLE_ID and not header.width:
            return (kind, b"", b""), 0
        first, second = self._rows.bitmaps(event, header)
        return (kind, first, second), header.rows_at

    def _batch(
        self,
        kind: int,
        first: bytes,
        second: bytes,
        members: Sequence[tuple[int, int]],
        events: Sequence[bytes],
    ) -> RowBatch:
        before = self._layout(first) if kind in _UPDATES or kind in _DELETES else None
        after = None if kind in _DELETES else self._layout(second)
        chosen = [events[number] for number, _ in members]
        is_partial = kind == _PARTIAL_UPDATE
        if is_partial and before is not None and after is not None:
            updates = PartialUpdates(self.formats, before.present, after.present, self.wanted)
            chosen = [updates.rewritten(events[number], at) for number, at in members]
        raw = b"".join([*chosen, bytes(PADDING)])
        ends = np.fromiter(accumulate(map(len, chosen)), np.int64, len(chosen))
        sizes = np.fromiter(map(len, chosen), np.int64, len(chosen))
        rows_at = np.fromiter((at for _, at in members), np.int64, len(members))
        buffer = Buffer(raw)
        found = walk(buffer, ends - sizes + rows_at, ends, before, after)
        numbers = np.fromiter((number for number, _ in members), np.int64, len(members))
        return RowBatch(
            self._columns(before, buffer, found.before),
            self._columns(after, buffer, found.after, texts=is_partial),
            numbers[found.events],
            found.rows,
        )

    def _layout(self, bitmap: bytes) -> ImageLayout:
        found = self._layouts.get(bitmap)
        if found is None:
            found = ImageLayout(self.formats, self._rows.present(bitmap))
            self._layouts[bitmap] = found
        return found

    def _columns(
        self,
        layout: ImageLayout | None,
        buffer: Buffer,
        images: Step | None,
        *,
        texts: bool = False,
    ) -> ImageColumns | None:
        """Return the columns of some images; `texts`: their documents are texts."""
        if layout is None or images is None:
            return None
        columns: list[int] = []
        arrays: list[pa.Array] = []
        for number, index in enumerate(layout.present):
            if index not in self.wanted:
                continue
            column = self.formats[index]
            lie_in, slots = layout.values(buffer, images, number)
            columns.append(index)
            if texts and column.type is ColumnType.JSON:
                found = binary_array(lie_in, slots.starts, slots.sizes, slots.valid)
                arrays.append(checked(found, column.where))
            else:
                arrays.append(column_array(lie_in, slots, column, self._dates))
        return ImageColumns(tuple(columns), tuple(arrays))


def _parts(
    members: Sequence[tuple[int, int]], events: Sequence[bytes]
) -> Iterator[Sequence[tuple[int, int]]]:
    """Split events so that a part has at most _LARGEST bytes, or is one event."""
    begin = size = 0
    for place, (number, _) in enumerate(members):
        more = len(events[number])
        if size and size + more > _LARGEST:
            yield members[begin:place]
            begin, size = place, 0
        size += more
    if members:
        yield members[begin:]
