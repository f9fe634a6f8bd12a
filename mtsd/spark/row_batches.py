"""Row events of one table as batches of Arrow columns, with no Python object for a value.

Events of one kind and with the same columns are one batch; `events` and `rows` say which row of
which event each one is, so that whoever needs the order of the stream has it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from mtsd.binlog.column_type import ColumnType
from mtsd.binlog.event_type import EventType
from mtsd.binlog.row_image import RowDecoder
from mtsd.binlog.rows import DUMMY_TABLE_ID, UPDATES, VERSION_2, parse_rows_header
from mtsd.binlog.table_map import TableMap
from mtsd.binlog.table_metadata import OptionalMetadata
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.column_arrays import Dates, arrow_type, column_array
from mtsd.spark.json_strings import TextTooLargeError
from mtsd.spark.lockstep import PADDING, Buffer, ImageLayout, Places, Step, walk
from mtsd.spark.partial_updates import PartialUpdates
from mtsd.spark.text_arrays import binary_array, checked

_UPDATES: Final = frozenset(kind.value for kind in UPDATES)
_PLAIN: Final = frozenset(kind.value for kind in VERSION_2)
_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_DELETES: Final = frozenset(
    {EventType.DELETE_ROWS_EVENT.value, EventType.DELETE_ROWS_EVENT_V1.value}
)
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


class DamagedEventError(BinlogError):
    """Row event number `event` of those that were given, from 0, is damaged."""

    def __init__(self, message: str, event: int) -> None:
        super().__init__(message)
        self.event = event


class UnsupportedEventError(NotSupportedError):
    """Row event number `event` of those that were given, from 0, has what cannot be read."""

    def __init__(self, message: str, event: int) -> None:
        super().__init__(message)
        self.event = event


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
        bitmap = (len(self.formats) + 7) >> 3
        self._plain_ends = {
            kind: 30 + bitmap * (1 + (kind in _UPDATES))
            for kind in (_PLAIN if len(self.formats) < 251 else ())
        }
        """Where rows begin in events of version 2 without extra data, by the type of event."""
        self._layouts: dict[bytes, ImageLayout] = {}

    def type_of(self, column: int) -> pa.DataType:
        """Return the type of a column's arrays; NotSupportedError as for `converter`."""
        return arrow_type(self.formats[column], self._dates)

    def batches(self, events: Sequence[bytes]) -> Iterator[RowBatch]:
        """Yield the rows of these events, which have no checksums.

        Raises DamagedEventError where one is damaged or not of the table map,
        UnsupportedEventError where the binary log does not tell enough of a wanted column, or a
        value has no place in its type.
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
            for part in _parts(group.members, events):
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
        """Return the group that an event belongs to, made if need be; None without rows."""
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
        before = self._layout(group.first) if kind in _UPDATES or kind in _DELETES else None
        after = None if kind in _DELETES else self._layout(group.second)
        chosen = [events[number] for number in members]
        is_partial = kind == _PARTIAL_UPDATE
        if is_partial and before is not None and after is not None:
            updates = PartialUpdates(self.formats, before.present, after.present, self.wanted)
            chosen = [updates.rewritten(event, group.rows_at) for event in chosen]
        buffer = Buffer(b"".join([*chosen, bytes(PADDING)]))
        sizes = np.fromiter(map(len, chosen), np.int64, len(chosen))
        ends = np.cumsum(sizes)
        found = walk(buffer, ends - sizes + group.rows_at, ends, before, after)
        return RowBatch(
            self._columns(before, buffer, found.before),
            self._columns(after, buffer, found.after, texts=is_partial),
            np.array(members)[found.events],
            found.rows,
        )

    def _first_failing(
        self, group: "_Group", members: Sequence[int], events: Sequence[bytes]
    ) -> int:
        """Return the first of these events without which the ones before it can be read."""
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


@dataclass(slots=True)
class _Group:
    """Events of one type whose heads are the same from the extra data on, by their number."""

    kind: int
    first: bytes
    second: bytes
    rows_at: int
    members: list[int] = field(default_factory=list)


def _parts(members: Sequence[int], events: Sequence[bytes]) -> Iterator[Sequence[int]]:
    """Split events so that a part has at most _LARGEST bytes, or is one event."""
    begin = size = 0
    for place, number in enumerate(members):
        more = len(events[number])
        if size and size + more > _LARGEST:
            yield members[begin:place]
            begin, size = place, 0
        size += more
    if members:
        yield members[begin:]
