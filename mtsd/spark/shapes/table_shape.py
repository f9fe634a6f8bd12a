"""Shape `table`: the typed rows of one table, and the operations on them.

A row has the columns `_op`, `_file`, `_pos`, `_row`, `_gtid` and `_commit_time`, followed by the
table's columns. As in Delta Lake's change data feed, an update is two rows: `update_preimage` and
`update_postimage`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    DataType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, whole_files
from mtsd.binlog.values.column_format import ColumnFormat, column_formats, is_hidden
from mtsd.binlog.values.table_metadata import OptionalMetadata, parse_optional_metadata
from mtsd.model.errors import NotSupportedError
from mtsd.model.position import Position
from mtsd.spark.arrays.column_arrays import arrow_type
from mtsd.spark.arrays.row_batches import ImageColumns, RowBatches
from mtsd.spark.logs.table_maps import table_maps
from mtsd.spark.logs.whole_read import parts_within, stretch_of
from mtsd.spark.options.options import SKIP, OptionError, Options
from mtsd.spark.shapes.completed_groups import CompletedGroups
from mtsd.spark.shapes.defined_formats import defined_formats
from mtsd.spark.shapes.garbage import collect_seldom
from mtsd.spark.shapes.last_definition import definition_before, definition_in
from mtsd.spark.shapes.marks import TRUNCATE, mark_rows, marks
from mtsd.spark.shapes.pending_rows import PendingRows, TableRows
from mtsd.spark.shapes.redefinitions import Redefinitions
from mtsd.spark.shapes.row_columns import DELETE, INSERT, UPDATE, Origins, event_types, in_order
from mtsd.spark.shapes.shape import FixedColumns, ShapeRequest
from mtsd.spark.shapes.told_tables import ToldTables
from mtsd.spark.shapes.unseen_changes import UnseenChanges

_IN_PARTS: Final = (
    "; leave the column out by option 'columns', or read what is before and after the statement"
    " that made the difference each on its own (options 'end' and 'start')"
)
PREIMAGE: Final = "update_preimage"
POSTIMAGE: Final = "update_postimage"
_SEARCHED: Final = 512 << 20
"""How many bytes of the log are searched for the table's columns, at its beginning and end each."""
_META: Final[dict[str, DataType]] = {
    "_op": StringType(),
    "_file": StringType(),
    "_pos": LongType(),
    "_row": LongType(),
    "_gtid": StringType(),
    "_commit_time": TimestampType(),
}


class TableShape:
    """One row per change, two per update; `_pos` and `_row` are as in the shape `changes`."""

    def schema(self, options: Options, files: Sequence[tuple[str, int]]) -> StructType:
        """Return the columns that the table's first rows describe, or else its definition.

        Raises NotSupportedError if neither these nor the option `ddl` name the columns.
        """
        database, name = _wanted(options)
        told = ToldTables(options.ddl, database, options.loaded)
        table = _first_described(options, files)
        if table is None:
            definition = told.definition(database, name)
            if definition is None:
                raise OptionError(_unknown(options, database, name))
            formats = defined_formats(definition)
        else:
            found = column_formats(table, told.of(table))
            formats = tuple(column for column in found if not is_hidden(table, column))
        if not all(column.name for column in formats):
            raise NotSupportedError(
                f"the binary log does not name the columns of `{database}`.`{name}`"
                " (binlog_row_metadata is not FULL): give its CREATE TABLE statement as option"
                " 'ddl', or its columns by .schema(…)"
            )
        twice = _twice(formats, options.columns or tuple(_META))
        if twice:
            raise OptionError(f"`{database}`.`{name}`: {twice}")
        columns = [StructField(column.name, _type(column, options)) for column in formats]
        return StructType([*(StructField(*column) for column in _META.items()), *columns])

    def check(self, request: ShapeRequest) -> None:
        """Raise OptionError if a column that describes the change has another type."""
        meta = StructType([one for one in request.schema.fields if one.name in _META])
        FixedColumns(_META).check("table", meta)
        if any(not one.nullable for one in request.schema.fields):
            raise OptionError("NOT NULL columns are not supported")

    def read(
        self, request: ShapeRequest, reader: RangeReader, file: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the table's rows in a range."""
        collect_seldom()
        definitions = _Definitions(request)
        operations = {INSERT: (INSERT,), UPDATE: (PREIMAGE, POSTIMAGE), DELETE: (DELETE,)}
        kinds = event_types(
            one
            for one, ops in operations.items()
            if any(request.filters.keeps("op", op) for op in ops)
        )
        pending = PendingRows(definitions.choose, file, mariadb=reader.mariadb, kinds=kinds)
        skips = request.options.unseen_changes == SKIP
        unseen = UnseenChanges(definitions.may_be, file, (TRUNCATE,), skips=skips)
        groups = CompletedGroups(file, request.whole, skips=skips)
        for part in groups.parts(reader, lambda part: request.keeps(part, file)):
            definitions.learn(part, file)
            found = marks(part, definitions.may_be)
            if any(mark.op == TRUNCATE for mark in found) and request.filters.keeps("op", TRUNCATE):
                yield from _batches(request, pending, file)
                ended = [mark for mark in found if mark.op == TRUNCATE]
                yield mark_rows(ended, part, file, request.arrow_schema, "_")
            pending.add(part)
            definitions.check()
            unseen.check(part, found)
            if pending.is_full:
                yield from _batches(request, pending, file)
        definitions.check(at_end=True)
        yield from _batches(request, pending, file)


def _wanted(options: Options) -> tuple[str, str]:
    if options.table is None:
        raise OptionError("shape 'table' needs the option 'table': \"database.table\"")
    return options.table


def _first_described(options: Options, files: Sequence[tuple[str, int]]) -> TableMap | None:
    """Return the description of the first rows that are to be read; None if none are found.

    Planning would take as long as reading if all of a long log were searched.
    """
    stretch = stretch_of(whole_files(files), options.start, options.end)
    if stretch is None:
        return None
    parts = list(parts_within(stretch, files))
    searched: list[ByteRange] = []
    left = _SEARCHED
    for part in parts:
        if left <= 0:
            break
        searched.append(replace(part, end=min(part.end, part.begin + left)))
        left -= part.end - part.begin
    if left < 0:
        last = parts[-1]
        searched.append(replace(last, begin=max(last.begin, last.end - _SEARCHED)))
    wanted = _wanted(options)
    return next((one for one in table_maps(searched) if (one.database, one.table) == wanted), None)


def _type(column: ColumnFormat, options: Options) -> DataType:
    """Return a column's type; one that is left out may be of any, which need not be known."""
    if options.columns and column.name not in options.columns:
        return NullType()
    return from_arrow_type(arrow_type(column, options.dates))


def _unknown(options: Options, database: str, name: str) -> str:
    if options.live is not None:
        return (
            f"the source {options.live} shows no table `{database}`.`{name}`: grant SELECT on it to"
            f" {options.live.user!r}, or give its columns by .schema(…)"
        )
    return (
        f"there are no rows of `{database}`.`{name}` (of a long log, only the first and the last"
        f" {_SEARCHED >> 20} MB are searched): give its CREATE TABLE statement as option 'ddl', or"
        " its columns by .schema(…)"
    )


class _Definitions:
    """Finds the wanted columns by name in the table's metadata from the stream."""

    def __init__(self, request: ShapeRequest) -> None:
        self._request = request
        self._table = _wanted(request.options)
        self._told = ToldTables(request.options.ddl, self._table[0], request.options.loaded)
        self._names = [name for name in request.schema.names if name not in _META]
        self._place: Position | None = None
        """Where the group begins that is being read."""
        self._last_ddl = ""
        told = self._told.definition(*self._table)
        self._redefinitions = (
            Redefinitions(self._table, told, request.whole) if self._names else None
        )

    def learn(self, part: GroupPart, file: str) -> None:
        """Keep the last statement that may have changed the table, to name it in errors."""
        if self._redefinitions is not None:
            self._redefinitions.learn(part, file)
        self._place = Position(file, part.begin)
        self._last_ddl = definition_in(part, file, *self._table) or self._last_ddl

    def check(self, *, at_end: bool = False) -> None:
        """Raise NotSupportedError if rows may belong to another definition than the one told."""
        if self._redefinitions is not None:
            self._redefinitions.check(at_end=at_end)

    def may_be(self, database: str, table: str | None) -> bool:
        """Tell whether a table is the wanted one, or in a database, however names are spelled."""
        of, name = self._table
        return database.lower() == of.lower() and (table is None or table.lower() == name.lower())

    def choose(self, table: TableMap) -> RowBatches | None:
        """Return the decoder of the wanted columns; NotSupportedError if one does not fit."""
        if self._redefinitions is not None:
            self._redefinitions.look_at(table)
        if (table.database, table.table) != self._table:
            return None
        told = self._told.of(table) or self._by_place(table)
        formats = column_formats(table, told)
        twice = _twice(formats, self._request.schema.names)
        if twice:
            raise self._misfit(twice)
        places = _places(self._names, formats)
        missing = [name for name in self._names if name not in places]
        if missing:
            raise self._misfit(f"there is no column `{missing[0]}`", _IN_PARTS)
        if self._names and not self._request.options.columns:
            known = set(places.values())
            for place, column in enumerate(formats):
                if place not in known and not is_hidden(table, column):
                    raise self._misfit(
                        f"there is a column `{column.name}` that is not one of this read", _IN_PARTS
                    )
        filters = self._request.filters
        decoder = RowBatches(
            table,
            told,
            tuple(places.values()),
            self._request.options.dates,
            (filters.keeps("op", PREIMAGE), filters.keeps("op", POSTIMAGE)),
        )
        arrow = self._request.arrow_schema
        for name, place in places.items():
            found, asked = decoder.type_of(place), arrow.field(name).type
            if not _may_become(found, asked):
                raise self._misfit(f"column `{name}` is {found} in the binary log, not {asked}")
        return decoder

    def _by_place(self, table: TableMap) -> OptionalMetadata | None:
        """Return the schema's names, in order, for columns that the binary log does not name."""
        own = parse_optional_metadata(table)
        if own.names or not self._names:
            return None
        count = len(table.column_types)
        if self._request.options.columns or count != len(self._names):
            raise self._misfit(
                f"the binary log does not name its {count} columns (binlog_row_metadata is not"
                " FULL): give its CREATE TABLE statement as option 'ddl', or all columns, in their"
                " order, by .schema(…)"
            )
        return OptionalMetadata(names=tuple(self._names))

    def _misfit(self, what: str, remedy: str = "") -> NotSupportedError:
        database, name = self._table
        statement, whole = self._last_ddl, self._request.whole
        if not statement and whole is not None and self._place is not None:
            statement = definition_before(whole.logs.aside(), self._place, database, name)
        since = f", since the statement at {statement}" if statement else ""
        return NotSupportedError(f"`{database}`.`{name}`: {what}{since}{remedy}")


def _twice(formats: Sequence[ColumnFormat], requested: Sequence[str]) -> str:
    """Return what is wrong if a requested column may be the table's or ours."""
    for column in formats:
        if column.name in _META and column.name in requested:
            return (
                f"it has a column `{column.name}` of its own, and shape 'table' has one for each"
                " change: leave it out by option 'columns', or read the shape 'changes'"
            )
    return ""


def _places(names: Sequence[str], formats: Sequence[ColumnFormat]) -> dict[str, int]:
    """Return the place of each name's column: spelled the same, or else the only one like it."""
    exact = {column.name: place for place, column in enumerate(formats)}
    found: dict[str, int] = {}
    for name in names:
        alike = [exact[name]] if name in exact else [
            place
            for place, column in enumerate(formats)
            if column.name.casefold() == name.casefold()
        ]  # fmt: skip
        if len(alike) == 1:
            found[name] = alike[0]
    return found


def _may_become(found: pa.DataType, asked: pa.DataType) -> bool:
    """Tell whether values of one type can be converted to another, range permitting."""
    whole = pa.types.is_integer
    exact = pa.types.is_decimal
    return bool(
        found == asked
        or (whole(found) and (whole(asked) or exact(asked)))
        or (exact(found) and exact(asked))
        or (exact(found) and found.scale == 0 and whole(asked))
        or (pa.types.is_floating(found) and asked == pa.float64())
        or (pa.types.is_list(found) and pa.types.is_list(asked))
    )


def _batches(request: ShapeRequest, pending: PendingRows, file: str) -> Iterator[pa.RecordBatch]:
    """Yield the pending rows, in the order of the stream."""
    taken = pending.take()
    origins = Origins(taken, file)
    batches = []
    keys = []
    for rows in taken.tables:
        before, after = rows.batch.before, rows.batch.after
        images = (
            (DELETE if after is None else PREIMAGE, before, 0),
            (INSERT if before is None else POSTIMAGE, after, 1),
        )
        for op, image, place in images:
            if image is not None and request.filters.keeps("op", op):
                begin = taken.parts[int(rows.groups[0])].begin if len(rows.groups) else 0
                where = f"{file}:{begin}"
                batches.append(_batch(request, origins, rows, image, op, where))
                keys.append((rows.events, 2 * rows.rows + place))
    if batches:
        yield from in_order(batches, keys)


def _batch(
    request: ShapeRequest,
    origins: Origins,
    rows: TableRows,
    image: ImageColumns,
    op: str,
    where: str,
) -> pa.RecordBatch:
    schema = request.arrow_schema
    meta = origins.columns(rows)
    places = _places([name for name in schema.names if name not in _META], rows.decoder.formats)
    logged = dict(zip(image.columns, image.arrays, strict=True))
    arrays = []
    for field in schema:
        if field.name == "_op":
            arrays.append(pa.repeat(op, len(rows.rows)))
        elif field.name in _META:
            arrays.append(meta[field.name[1:]]())
        else:
            found = logged.get(places[field.name])
            label = f"column `{field.name}` of `{rows.table.database}`.`{rows.table.table}`"
            if found is None:
                raise NotSupportedError(
                    f"{label} is not in every image (binlog_row_image is not FULL): leave it out"
                    f" by option 'columns', or read the shape 'changes' (after {where})"
                )
            try:
                arrays.append(found.cast(field.type))
            except pa.ArrowInvalid as error:
                raise NotSupportedError(
                    f"{label} is {found.type} in the binary log, and a value does not fit into"
                    f" {field.type}: {error} (after {where})"
                ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
