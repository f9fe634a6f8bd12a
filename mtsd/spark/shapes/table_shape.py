"""Shape `table`: the typed rows of one table, and the operations on them.

A row has the columns `_op`, `_file`, `_pos`, `_row`, `_gtid` and `_commit_time`, followed by the
table's columns. As in Delta Lake's change data feed, an update is two rows: `update_preimage` and
`update_postimage`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    StringType,
    StructField,
    StructType,
)

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, whole_files
from mtsd.binlog.values.column_format import ColumnFormat, column_formats, is_hidden
from mtsd.model.errors import NotSupportedError
from mtsd.model.position import Position
from mtsd.spark.arrays.column_arrays import arrow_type
from mtsd.spark.arrays.plain_groups import PlainGroups
from mtsd.spark.arrays.row_batches import ImageColumns
from mtsd.spark.arrays.row_keys import completed, key_texts
from mtsd.spark.logs.binlog_files import opened
from mtsd.spark.logs.table_maps import OpenRange, table_maps
from mtsd.spark.logs.whole_read import parts_within, stretch_of
from mtsd.spark.options.options import NULL, SKIP, UNION, OptionError, Options
from mtsd.spark.shapes.completed_groups import CompletedGroups
from mtsd.spark.shapes.declared_tables import DeclaredTables
from mtsd.spark.shapes.defined_formats import defined_formats
from mtsd.spark.shapes.evolution import shown_type, united
from mtsd.spark.shapes.garbage import collect_seldom
from mtsd.spark.shapes.marks import TRUNCATE, mark_rows, marks
from mtsd.spark.shapes.pending_rows import PendingRows, TableRows
from mtsd.spark.shapes.row_columns import DELETE, INSERT, UPDATE, Origins, event_types, in_order
from mtsd.spark.shapes.shape import FixedColumns, ShapeRequest
from mtsd.spark.shapes.table_definitions import (
    ABSENT,
    META,
    POSTIMAGE,
    PREIMAGE,
    TableDefinitions,
    named_like_ours,
    names_of_table,
    places_of,
    wanted_table,
)
from mtsd.spark.shapes.unseen_changes import UnseenChanges

_SEARCHED: Final = 512 << 20
"""How many bytes of the log are searched for the table's columns, at its beginning and end each."""
_SEARCHED_LIVE: Final = 64 << 20
"""The same at the beginning of a live source's log, whose present columns are known."""


class TableShape:
    """One row per change, two per update; `_pos` and `_row` are as in the shape `changes`."""

    def schema(
        self, options: Options, files: Sequence[tuple[str, int]], open_range: OpenRange = opened
    ) -> StructType:
        """Return the columns that the table's first rows describe, or else its definition.

        If they evolve, return those of all rows, of types that hold the values of all. Raises
        OptionError if there are none, NotSupportedError if the columns are not named.
        """
        database, name = wanted_table(options)
        declared = DeclaredTables(options.ddl, database, options.loaded)
        definitions = [
            tuple(
                column
                for column in column_formats(table, declared.of(table))
                if not is_hidden(table, column)
            )
            for table in _described(options, files, open_range)
        ]
        defined = declared.definition(database, name)
        if defined is not None and (options.loaded is not None or not definitions):
            definitions.append(defined_formats(defined))
        if not definitions:
            raise OptionError(_unknown(options, database, name))
        for formats in definitions:
            _check_columns(formats, options, f"`{database}`.`{name}`")
        found = united({one.name: _type(one, options) for one in each} for each in definitions)
        columns = [StructField(name, from_arrow_type(kind)) for name, kind in found.items()]
        ours = [StructField(*column) for column in META.items()]
        if options.absent == NULL:
            ours.append(StructField(ABSENT, ArrayType(StringType())))
        return StructType([*ours, *columns])

    def check(self, request: ShapeRequest) -> None:
        """Raise OptionError if a column that describes the change has another type."""
        meta = StructType([one for one in request.schema.fields if one.name in META])
        FixedColumns(META).check("table", meta)
        if any(not one.nullable for one in request.schema.fields):
            raise OptionError("NOT NULL columns are not supported")

    def read(
        self, request: ShapeRequest, reader: RangeReader, file: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the table's rows in a range."""
        collect_seldom()
        definitions = TableDefinitions(request)
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
        for part in groups.parts(
            reader, lambda part: request.keeps(part, file), lambda some: request.kept(some, file)
        ):
            if isinstance(part, PlainGroups):
                definitions.be_at(Position(file, int(part.begins[0])))
                pending.add_all(part)
                definitions.check()
                if pending.is_full:
                    yield from _batches(request, pending, file)
                continue
            definitions.learn(part, file)
            found = marks(part, definitions.may_be)
            if any(mark.op == TRUNCATE for mark in found) and request.filters.keeps("op", TRUNCATE):
                yield from _batches(request, pending, file)
                ended = [mark for mark in found if mark.op == TRUNCATE]
                yield mark_rows(ended, part, file, request, "_")
            pending.add(part)
            definitions.check()
            unseen.check(part, found)
            if pending.is_full:
                yield from _batches(request, pending, file)
        definitions.check(at_end=True)
        yield from _batches(request, pending, file)


def _described(
    options: Options, files: Sequence[tuple[str, int]], open_range: OpenRange
) -> list[TableMap]:
    """Return the description of the first rows that are to be read, or all if they evolve.

    Planning would take as long as reading if all of a long log were searched.
    """
    stretch = stretch_of(whole_files(files), options.start, options.end)
    if stretch is None:
        return []
    most = _SEARCHED if options.live is None else _SEARCHED_LIVE
    searched: list[ByteRange] = []
    parts = list(parts_within(stretch, files))
    left = most
    for part in parts:
        if left <= 0:
            break
        searched.append(replace(part, end=min(part.end, part.begin + left)))
        left -= part.end - part.begin
    if left < 0 and options.live is None:
        last = parts[-1]
        searched.append(replace(last, begin=max(last.begin, last.end - most)))
    wanted = wanted_table(options)
    found: dict[bytes, TableMap] = {}
    for table in table_maps(searched, open_range):
        if (table.database, table.table) == wanted:
            found.setdefault(table.optional + bytes(table.column_types), table)
            if options.evolve != UNION:
                break
    return list(found.values())


def _check_columns(formats: Sequence[ColumnFormat], options: Options, table: str) -> None:
    if not all(column.name for column in formats):
        raise NotSupportedError(
            f"the binary log does not name the columns of {table} (binlog_row_metadata is not"
            " FULL): give its CREATE TABLE statement as option 'ddl', or its columns by .schema(…)"
        )
    twice = named_like_ours(formats, options.columns or tuple(META))
    if twice:
        raise OptionError(f"{table}: {twice}")


def _type(column: ColumnFormat, options: Options) -> pa.DataType:
    """Return a column's type; one that is left out may be of any, which need not be known."""
    if options.columns and column.name not in options.columns:
        return pa.null()
    return arrow_type(column, options.dates)


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


def _batches(request: ShapeRequest, pending: PendingRows, file: str) -> Iterator[pa.RecordBatch]:
    """Yield the pending rows, in the order of the stream."""
    taken = pending.take()
    origins = Origins(taken, file, request.epoch)
    batches = []
    keys = []
    for rows in taken.tables:
        before, after = rows.batch.before, rows.batch.after
        images = (
            (DELETE if after is None else PREIMAGE, before, 0),
            (INSERT if before is None else POSTIMAGE, completed(before, after), 1),
        )
        for op, image, place in images:
            if image is not None and request.filters.keeps("op", op):
                begin = taken.parts.begins[int(rows.groups[0])] if len(rows.groups) else 0
                order = 2 * rows.rows + place
                columns = origins.columns(rows, order)
                batches.append(_batch(request, columns, rows, image, op, f"{file}:{begin}"))
                keys.append((rows.events, order))
    if batches:
        yield from in_order(batches, keys)


def _batch(
    request: ShapeRequest,
    columns: Mapping[str, Callable[[], pa.Array]],
    rows: TableRows,
    image: ImageColumns,
    op: str,
    where: str,
) -> pa.RecordBatch:
    schema = request.arrow_schema
    count = len(rows.rows)
    places = places_of(names_of_table(request.schema), rows.decoder.formats)
    logged = dict(zip(image.columns, image.arrays, strict=True))
    absent = [name for name, place in places.items() if place not in logged]
    table = f"`{rows.table.database}`.`{rows.table.table}`"
    if absent and request.options.absent != NULL:
        raise NotSupportedError(
            f"column `{absent[0]}` of {table} is not in every image (binlog_row_image is not FULL):"
            " read with option absent=null, leave it out by option 'columns', or read the shape"
            f" 'changes' (after {where})"
        )
    arrays = []
    for field in schema:
        if field.name == "_op":
            arrays.append(pa.repeat(op, count))
        elif field.name == "_key":
            arrays.append(key_texts(rows.decoder, image, count))
        elif field.name in META:
            arrays.append(columns[field.name[1:]]())
        elif field.name == ABSENT:
            arrays.append(pa.array([absent] * count, field.type))
        elif places.get(field.name) not in logged:
            # Not logged, or not there yet, or not any more (evolve=union).
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(_cast(logged[places[field.name]], field, table, where))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(found: pa.Array, field: pa.Field, table: str, where: str) -> pa.Array:
    try:
        return found.cast(field.type)
    except pa.ArrowInvalid as error:
        raise NotSupportedError(
            f"column `{field.name}` of {table} is {shown_type(found.type)} in the binary log, and a"
            f" value does not fit into {shown_type(field.type)}: {error} (after {where})"
        ) from error
