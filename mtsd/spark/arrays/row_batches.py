"""Row events of one table as batches of Arrow columns, without a Python object per value.

Events of one kind with the same columns form one batch; `events` and `rows` identify the event and
the row of each, so that a caller can restore the order of the stream.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import (
    DELETE_KINDS,
    DUMMY_TABLE_ID,
    UPDATE_KINDS,
    VERSION_2,
    parse_rows_header,
)
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_image import RowDecoder
from mtsd.binlog.values.table_metadata import OptionalMetadata
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.arrays.column_arrays import Dates, arrow_type, column_array
from mtsd.spark.arrays.json_strings import TextTooLargeError
from mtsd.spark.arrays.lockstep import PADDING, Buffer, ImageLayout, Places, Step, walk
from mtsd.spark.arrays.partial_updates import PartialUpdates
from mtsd.spark.arrays.text_arrays import binary_array, checked

_PLAIN: Final = frozenset(kind.value for kind in VERSION_2)
_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_LARGEST: Final = 64 << 20
"""The most bytes of events in a batch, unless it is a single event."""
_LARGEST_COMPRESSED: Final = 1 << 20
"""The same where columns are COMPRESSED, so that plain values stay under 2 GB: zlib packs 1032."""


@dataclass(frozen=True, slots=True)
class ImageColumns:
    """Images as columns: the indexes of the columns, from 0, and an array for each.

    A missing column is absent rather than NULL: the source did not log it, or it was not requested.
    """

    columns: tuple[int, ...]
    arrays: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows of one kind; inserts have no before images, deletes no after images.

    Row n is row `rows[n]` of event `events[n]`, both counted from 0.
    """

    before: ImageColumns | None
    after: ImageColumns | None
    events: Places
    rows: Places


class DamagedEventError(BinlogError):
    """Row event number `event` of those given, from 0, is damaged."""

    def __init__(self, message: str, event: int) -> None:
        super().__init__(message)
        self.event = event


class UnsupportedEventError(NotSupportedError):
    """Row event number `event` of those given, from 0, contains something unsupported."""

    def __init__(self, message: str, event: int) -> None:
        super().__init__(message)
        self.event = event


class RowBatches:
    """Reads the row events of one table map; `declared` and `wanted` are as for `RowDecoder`.

    `of_updates`: whether the columns before, and those after an update are wanted. Columns of the
    `key` are, too. Of what is not wanted before an update, what the image after it lacks is read.
    """

    def __init__(
        self,
        table: TableMap,
        declared: OptionalMetadata | None = None,
        wanted: Collection[int] | None = None,
        dates: Dates = Dates.STRICT,
        of_updates: tuple[bool, bool] = (True, True),
        key: tuple[int, ...] = (),
    ) -> None:
        self._of_updates = of_updates
        self.key = key
        if wanted is not None:
            wanted = {*wanted, *key}
        self._rows = RowDecoder(table, declared, wanted)
        self.formats = self._rows.formats
        self.wanted = frozenset(range(len(self.formats)) if wanted is None else wanted)
        self._dates = dates
        bitmap = (len(self.formats) + 7) >> 3
        self._plain_ends = {
            kind: 30 + bitmap * (1 + (kind in UPDATE_KINDS))
            for kind in (_PLAIN if len(self.formats) < 251 else ())
        }
        """Where rows begin in version 2 events without extra data, by event type."""
        self._largest = _LARGEST
        if any(self.formats[column].compressed for column in self.wanted):
            self._largest = _LARGEST_COMPRESSED
        self._layouts: dict[bytes, ImageLayout] = {}

    def type_of(self, column: int) -> pa.DataType:
        """Return the type of a column's arrays; raises NotSupportedError as `converter` does."""
        return arrow_type(self.formats[column], self._dates)

    def batches(self, events: Sequence[bytes]) -> Iterator[RowBatch]:
        """Yield the rows of these events, which have no checksums.

        Raises DamagedEventError if one is damaged or does not match the table map,
        UnsupportedEventError if the binary log says too little about a wanted column, or a
        value does not fit its type.
        """
        groups: dict[tuple[int, bytes], _Group] = {}
        plain_ends = self._plain_ends
        for number, event in enumerate(events):
            kind = event[4]
            group = groups.get((kind, event[27 : plain_ends.get(kind, 27)]))
            if group is None:
                try:
                    group = self._group(event, groups)
                except BinlogError as error:
                    raise DamagedEventError(error.message, number) from error
            if group is not None:
                group.members.append(number)
        for group in groups.values():
            for part in _parts(group.members, events, self._largest):
                try:
                    batch = self._batch(group, part, events)
                except BinlogError as error:
                    place = self._first_failing(group, part, events)
                    raise DamagedEventError(error.message, place) from error
                except NotSupportedError as error:
                    place = self._first_failing(group, part, events)
                    raise UnsupportedEventError(str(error), place) from error
                if len(batch.rows):
                    yield batch

    def _group(self, event: bytes, groups: dict[tuple[int, bytes], "_Group"]) -> "_Group | None":
        """Return the group of an event, created if needed; None if the event has no rows."""
        header = parse_rows_header(event)
        if header.table_id == DUMMY_TABLE_ID and not header.width:
            return None
        key = (event[4], event[27 : header.rows_at])
        group = groups.get(key)
        if group is None:
            first, second = self._rows.bitmaps(event, header)
            group = groups[key] = _Group(event[4], first, second, header.rows_at)
        return group

    def _batch(self, group: "_Group", members: Sequence[int], events: Sequence[bytes]) -> RowBatch:
        try:
            return self._decoded(group, members, events)
        except pa.ArrowCapacityError as error:
            raise TextTooLargeError from error

    def _decoded(
        self, group: "_Group", members: Sequence[int], events: Sequence[bytes]
    ) -> RowBatch:
        kind = group.kind
        before = self._layout(group.first) if kind in UPDATE_KINDS or kind in DELETE_KINDS else None
        after = None if kind in DELETE_KINDS else self._layout(group.second)
        chosen = [events[number] for number in members]
        is_partial = kind == _PARTIAL_UPDATE
        if is_partial and before is not None and after is not None:
            updates = PartialUpdates(self.formats, before.present, after.present, self.wanted)
            chosen = [updates.rewritten(event, group.rows_at) for event in chosen]
        buffer = Buffer(b"".join([*chosen, bytes(PADDING)]))
        sizes = np.fromiter(map(len, chosen), np.int64, len(chosen))
        ends = np.cumsum(sizes)
        found = walk(buffer, ends - sizes + group.rows_at, ends, before, after)
        wants_before, wants_after = self._of_updates if kind in UPDATE_KINDS else (True, True)
        of_before: Collection[int] = self.wanted
        if not wants_before:
            of_before = self.wanted.difference(() if after is None else after.present)
        return RowBatch(
            self._columns(before, buffer, found.before, of_before),
            self._columns(
                after, buffer, found.after, self.wanted if wants_after else (), texts=is_partial
            ),
            np.array(members)[found.events],
            found.rows,
        )

    def _first_failing(
        self, group: "_Group", members: Sequence[int], events: Sequence[bytes]
    ) -> int:
        """Return the first of these events that cannot be read, by bisection."""
        sound, failing = 0, len(members)
        while failing - sound > 1:
            middle = (sound + failing) // 2
            try:
                self._batch(group, members[sound:middle], events)
                sound = middle
            except (BinlogError, NotSupportedError):
                failing = middle
        return members[sound]

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
        wanted: Collection[int],
        *,
        texts: bool = False,
    ) -> ImageColumns | None:
        """Return the wanted columns of some images; with `texts`, their documents are text."""
        if layout is None or images is None:
            return None
        columns: list[int] = []
        arrays: list[pa.Array] = []
        for number, index in enumerate(layout.present):
            if index not in wanted:
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


@dataclass(slots=True)
class _Group:
    """Events of one type whose headers are equal from the extra data on, by index."""

    kind: int
    first: bytes
    second: bytes
    rows_at: int
    members: list[int] = field(default_factory=list)


def _parts(
    members: Sequence[int], events: Sequence[bytes], largest: int
) -> Iterator[Sequence[int]]:
    """Split events into parts of at most `largest` bytes or a single event."""
    begin = size = 0
    for place, number in enumerate(members):
        more = len(events[number])
        if size and size + more > largest:
            yield members[begin:place]
            begin, size = place, 0
        size += more
    if members:
        yield members[begin:]
