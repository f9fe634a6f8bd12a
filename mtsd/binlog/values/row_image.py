"""Row images: the columns of a row before or after its change.

An image begins with one null bit for each column that it holds, then the values of those that are
not NULL; which columns these are is the bitmap in the head of the row event. In the image after a
partial update there stand before that the options as a length-encoded integer and, where bit 0 is
set, one bit for each JSON column of the table: those that hold diffs. All bitmaps begin at the
lowest bit (MySQL documentation, `mysql::binlog::event::Rows_event`).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import (
    DELETE_KINDS,
    DUMMY_TABLE_ID,
    UPDATE_KINDS,
    RowsHeader,
    is_row_of_no_bytes,
    parse_rows_header,
    without_a_column,
)
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_format import ColumnFormat, column_formats, json_columns
from mtsd.binlog.values.column_values import Convert, Value, converter
from mtsd.binlog.values.json_binary import json_text
from mtsd.binlog.values.json_diff import changed_json, parse_json_diffs
from mtsd.binlog.values.table_metadata import OptionalMetadata
from mtsd.model.errors import BinlogError

_PARTIAL_UPDATE: Final[int] = EventType.PARTIAL_UPDATE_ROWS_EVENT.value
_PARTIAL_JSON: Final = 1
_NO_COLUMNS: Final = frozenset[int]()


class RowImage(NamedTuple):
    """Values of a row, and the columns that they are of, by index from 0.

    A column that is not among them is absent: the source has not logged it (binlog_row_image), or
    it was not asked for. That is not NULL.
    """

    columns: tuple[int, ...]
    values: tuple[Value, ...]


class RowChange(NamedTuple):
    """One row: an insert has nothing before, a delete nothing after."""

    before: RowImage | None
    after: RowImage | None


class PlacedRow(NamedTuple):
    """One row of an event, which ends at byte `end`, as it is there.

    After a partial update, the JSON columns with these `diffs` do not hold a whole document.
    """

    before: RowImage | None
    after: RowImage | None
    diffs: frozenset[int]
    end: int


class ImageDecoder:
    """Reads the images that one table map and one bitmap of columns describe."""

    __slots__ = ("_null_bytes", "_plan", "columns")

    def __init__(
        self,
        formats: Sequence[ColumnFormat],
        present: Sequence[int],
        converters: Sequence[Convert | None],
    ) -> None:
        """`present` are the columns of the images; values are wanted of those with a converter."""
        self.columns = tuple(index for index in present if converters[index] is not None)
        """Those that the values are of."""
        self._null_bytes = (len(present) + 7) >> 3
        self._plan: tuple[tuple[int, int, Convert | None, ColumnFormat], ...] = tuple(
            (formats[index].prefix, formats[index].size, converters[index], formats[index])
            for index in present
        )

    def read(self, event: bytes, at: int) -> tuple[RowImage, int]:
        """Return the image that begins at `at`, and where it ends.

        Raises BinlogError where it is cut off, or a value is none of its type.
        """
        end = len(event)
        nulls = int.from_bytes(event[at : at + self._null_bytes], "little")
        at += self._null_bytes
        if at > end:
            raise _cut_off(end)
        values: list[Value] = []
        for prefix, size, convert, column in self._plan:
            if nulls & 1:
                if convert is not None:
                    values.append(None)
            else:
                if prefix:
                    start = at + prefix
                    at = start + int.from_bytes(event[at:start], "little")
                else:
                    start = at
                    at += size
                if at > end:
                    raise _passes_end(column, start, end)
                if convert is not None:
                    try:
                        values.append(convert(event[start:at]))
                    except BinlogError as error:
                        raise _placed(error, column, start) from error
            nulls >>= 1
        return RowImage(self.columns, tuple(values)), at


class ChangedRow(NamedTuple):
    """An update: bytes of the values before, by column, and the values that it changes."""

    before: list[bytes | None]
    """None is NULL; it is only to be asked for columns that the image before has."""
    changed: RowImage
    end: int


class ChangeDecoder:
    """Reads updates of one table map with the columns `first` before and `second` after.

    Values are wanted of those columns with a converter that have other bytes than before, or that
    the image before does not have.
    """

    __slots__ = ("_absent", "_after", "_before", "_null_bytes")

    def __init__(
        self,
        formats: Sequence[ColumnFormat],
        first: Sequence[int],
        second: Sequence[int],
        converters: Sequence[Convert | None],
    ) -> None:
        self._absent: list[bytes | None] = [_ABSENT] * len(formats)
        self._null_bytes = (len(first) + 7) >> 3, (len(second) + 7) >> 3
        self._before = tuple((index, formats[index].prefix, formats[index].size) for index in first)
        self._after = tuple(
            (index, formats[index].prefix, formats[index].size, converters[index], formats[index])
            for index in second
        )

    def read(self, event: bytes, at: int) -> ChangedRow:
        """Return the update that begins at `at`. Raises BinlogError as `ImageDecoder.read`."""
        end = len(event)
        before = self._absent.copy()
        null_bytes, later_null_bytes = self._null_bytes
        nulls = int.from_bytes(event[at : at + null_bytes], "little")
        at += null_bytes
        for index, prefix, size in self._before:
            if nulls & 1:
                before[index] = None
            else:
                start = at + prefix
                length = int.from_bytes(event[at:start], "little") if prefix else size
                at = start + length
                before[index] = event[start:at]
            nulls >>= 1
        nulls = int.from_bytes(event[at : at + later_null_bytes], "little")
        at += later_null_bytes
        if at > end:
            raise _cut_off(end)
        columns: list[int] = []
        values: list[Value] = []
        for index, prefix, size, convert, column in self._after:
            was = before[index]
            if nulls & 1:
                if convert is not None and was is not None:
                    columns.append(index)
                    values.append(None)
            else:
                start = at + prefix
                length = int.from_bytes(event[at:start], "little") if prefix else size
                at = start + length
                if at > end:
                    raise _passes_end(column, start, end)
                raw = event[start:at]
                if convert is not None and (was is _ABSENT or was != raw):
                    columns.append(index)
                    try:
                        values.append(convert(raw))
                    except BinlogError as error:
                        raise _placed(error, column, start) from error
            nulls >>= 1
        return ChangedRow(before, RowImage(tuple(columns), tuple(values)), at)


_ABSENT: Final = b"absent"
"""Stands for a value that an image does not have: itself, not what is equal to it."""


def _cut_off(end: int) -> BinlogError:
    return BinlogError(f"row event: an image is cut off at byte {end}")


def _passes_end(column: ColumnFormat, start: int, end: int) -> BinlogError:
    return BinlogError(f"{column.where}: a value at byte {start} passes the event's end {end}")


def _placed(error: BinlogError, column: ColumnFormat, at: int) -> BinlogError:
    text = str(error)
    if text.startswith(column.where):
        return error
    return BinlogError(f"{column.where}: {text} (byte {at} of the event)")


class RowDecoder:
    """Reads the row events of one table map.

    `declared` is what the table map itself does not say (`mtsd.binlog.values.column_format`);
    `wanted` are the columns whose values are, by index, None for all. Values stay bytes if they are
    to be `raw`: one that is no value of its type does not stop the others then.
    """

    def __init__(
        self,
        table: TableMap,
        declared: OptionalMetadata | None = None,
        wanted: Collection[int] | None = None,
        *,
        raw: bool = False,
    ) -> None:
        self.table = table
        self._raw = raw
        self.formats = column_formats(table, declared)
        self._wanted = frozenset(range(len(self.formats)) if wanted is None else wanted)
        self._json = json_columns(self.formats)
        self._converters: dict[int, Convert] = {}
        self._decoders: dict[tuple[bytes, int], ImageDecoder] = {}

    def changes(self, event: bytes) -> Iterator[RowChange]:
        """Yield the rows of a row event, given without its checksum.

        Raises BinlogError where it is damaged or not of the table map, NotSupportedError where
        the binary log does not tell enough of a wanted column.
        """
        header = parse_rows_header(event)
        if header.table_id == DUMMY_TABLE_ID and not header.width:
            return
        first, second = self.bitmaps(event, header)
        kind = event[4]
        if kind == _PARTIAL_UPDATE:
            for row in self.rows(event, header):
                if row.before is not None and row.after is not None:
                    yield RowChange(
                        self._read_before(row.before), self._applied(row.before, row.after)
                    )
            return
        decoder = self._decoder(first)
        later = self._decoder(second) if kind in UPDATE_KINDS else decoder
        is_update = kind in UPDATE_KINDS
        is_delete = kind in DELETE_KINDS
        at = header.rows_at
        end = len(event)
        if is_row_of_no_bytes(event, header):
            yield RowChange(None, decoder.read(event, at)[0])
        while at < end:
            start = at
            image, at = decoder.read(event, at)
            if is_update:
                after, at = later.read(event, at)
                yield RowChange(image, after)
            elif is_delete:
                yield RowChange(image, None)
            else:
                yield RowChange(None, image)
            if at == start:
                raise without_a_column(end - at)

    def ends(self, event: bytes) -> list[int]:
        """Return where each row of a row event ends; no values have to be `wanted`.

        Raises as `changes` does.
        """
        return [row.end for row in self.rows(event, parse_rows_header(event))]

    def rows(self, event: bytes, header: RowsHeader) -> Iterator[PlacedRow]:
        """Yield the rows of a row event as they are in it. Raises as `changes` does."""
        first, second = self.bitmaps(event, header)
        kind = event[4]
        # Documents before are kept as they are: diffs are applied to their binary form.
        decoder = self._decoder(first, _KEEP_JSON if kind == _PARTIAL_UPDATE else 0)
        at = header.rows_at
        end = len(event)
        if is_row_of_no_bytes(event, header):
            yield PlacedRow(None, decoder.read(event, at)[0], self._columns_of(0), at)
        while at < end:
            start = at
            diffs = 0
            image, at = decoder.read(event, at)
            before: RowImage | None = None
            after: RowImage | None = None
            if kind in UPDATE_KINDS:
                before = image
                if kind == _PARTIAL_UPDATE:
                    diffs, at = self._partial(event, at)
                after, at = self._decoder(second, diffs).read(event, at)
            elif kind in DELETE_KINDS:
                before = image
            else:
                after = image
            if at == start:
                raise without_a_column(end - at)
            yield PlacedRow(before, after, self._columns_of(diffs), at)

    def bitmaps(self, event: bytes, header: RowsHeader) -> tuple[bytes, bytes]:
        """Return the bitmaps of the columns before and after, the same but for updates.

        Raises BinlogError where the event is not of the table map.
        """
        width = len(self.formats)
        if header.width != width:
            raise BinlogError(
                f"row event: {header.width} columns, and {width} in the table map of"
                f" `{self.table.database}`.`{self.table.table}`"
            )
        size = (width + 7) >> 3
        first = event[header.bitmaps_at : header.bitmaps_at + size]
        if event[4] not in UPDATE_KINDS:
            return first, first
        return first, event[header.bitmaps_at + size : header.rows_at]

    def present(self, bitmap: bytes) -> list[int]:
        """Return the columns of a bitmap, by index."""
        bits = int.from_bytes(bitmap, "little")
        return [index for index in range(len(self.formats)) if bits >> index & 1]

    def _columns_of(self, diffs: int) -> frozenset[int]:
        """Return the JSON columns whose bits are set, by index."""
        if not diffs:
            return _NO_COLUMNS
        return frozenset(index for at, index in enumerate(self._json) if diffs >> at & 1)

    def _partial(self, event: bytes, at: int) -> tuple[int, int]:
        """Return the bits of the JSON columns of which there are diffs only, and where they end."""
        cursor = Cursor(event, at, "row event")
        partial = 0
        if cursor.net_int("options of an image") & _PARTIAL_JSON:
            partial = cursor.uint((len(self._json) + 7) >> 3, "partial bits")
        return partial, cursor.at

    def _read_before(self, image: RowImage) -> RowImage:
        values = tuple(
            json_text(value) if index in self._json and isinstance(value, bytes) else value
            for index, value in zip(image.columns, image.values, strict=True)
        )
        return RowImage(image.columns, values)

    def _applied(self, before: RowImage, after: RowImage) -> RowImage:
        """Return the image with whole documents, as far as the one before holds them."""
        documents = dict(zip(before.columns, before.values, strict=True))
        values: list[Value] = []
        for index, value in zip(after.columns, after.values, strict=True):
            document = documents.get(index)
            if isinstance(value, tuple) and isinstance(document, bytes):
                try:
                    values.append(changed_json(document, value))
                except BinlogError as error:
                    raise BinlogError(f"{self.formats[index].where}: {error}") from error
            else:
                values.append(value)
        return RowImage(after.columns, tuple(values))

    def _decoder(self, bitmap: bytes, partial: int = 0) -> ImageDecoder:
        """Return the decoder of a bitmap's columns; `partial` has the bits of those with diffs."""
        known = self._decoders.get((bitmap, partial))
        if known is None:
            present = self.present(bitmap)
            converters: list[Convert | None] = [None] * len(self.formats)
            for index in self._wanted.intersection(present):
                converters[index] = self._converter(index, partial)
            known = ImageDecoder(self.formats, present, converters)
            self._decoders[bitmap, partial] = known
        return known

    def _converter(self, index: int, partial: int) -> Convert:
        if self._raw:
            return bytes
        if partial and index in self._json:
            if partial == _KEEP_JSON:
                return bytes
            if partial >> self._json.index(index) & 1:
                return parse_json_diffs
        known = self._converters.get(index)
        if known is None:
            known = self._converters[index] = converter(self.formats[index])
        return known


_KEEP_JSON: Final = -1
