"""Shape `changes`: every inserted, updated or deleted row, as JSON text."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.values.column_format import column_formats, is_hidden
from mtsd.model.errors import NotSupportedError
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.arrays.json_rows import json_rows
from mtsd.spark.arrays.json_strings import TextTooLargeError
from mtsd.spark.arrays.plain_groups import PlainGroups
from mtsd.spark.arrays.row_batches import RowBatches
from mtsd.spark.arrays.row_keys import completed, key_texts, primary_key
from mtsd.spark.logs.binlog_files import opened
from mtsd.spark.logs.table_maps import OpenRange
from mtsd.spark.options.option_filters import FULL_NAME
from mtsd.spark.options.options import SKIP, Options
from mtsd.spark.options.row_filters import RowFilters
from mtsd.spark.shapes.completed_groups import CompletedGroups
from mtsd.spark.shapes.declared_tables import DeclaredTables
from mtsd.spark.shapes.garbage import collect_seldom
from mtsd.spark.shapes.marks import DDL, TRUNCATE, Wants, mark_rows, marks
from mtsd.spark.shapes.pending_rows import PendingRows, TableRows
from mtsd.spark.shapes.row_columns import (
    DELETE,
    INSERT,
    UPDATE,
    Origins,
    event_types,
    in_order,
    operation,
)
from mtsd.spark.shapes.shape import FixedColumns, ShapeRequest
from mtsd.spark.shapes.unseen_changes import UnseenChanges

_COLUMNS: Final = FixedColumns({
    "op": StringType(),
    "schema": StringType(),
    "table": StringType(),
    "before": StringType(),
    "after": StringType(),
    "file": StringType(),
    "pos": LongType(),
    "row": LongType(),
    "gtid": StringType(),
    "commit_time": TimestampType(),
    "statement": StringType(),
    "key": StringType(),
    "old_key": StringType(),
    "seq": StringType(),
})  # fmt: skip


class ChangeShape:
    """One row per changed row: `pos` is its group's end, `row` its index in the group."""

    def schema(
        self, _options: Options, _files: Sequence[tuple[str, int]], _open_range: OpenRange = opened
    ) -> StructType:
        """Return the columns."""
        return _COLUMNS.struct()

    def check(self, request: ShapeRequest) -> None:
        """Raise OptionError if the request has other columns."""
        _COLUMNS.check("changes", request.schema)

    def read(
        self, request: ShapeRequest, reader: RangeReader, file: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a range."""
        collect_seldom()
        declared = DeclaredTables(request.options.ddl)
        filters = request.filters
        # Without a document to build, no value needs to be decoded.
        wanted: Sequence[int] | None = (
            None if {"before", "after"} & set(request.schema.names) else ()
        )
        has_key = bool({"key", "old_key"} & set(request.schema.names))

        def choose(table: TableMap) -> RowBatches | None:
            database, name = table.database, table.table
            if not (
                filters.keeps("schema", database)
                and filters.keeps("table", name)
                and filters.keeps(FULL_NAME, f"{database}.{name}")
            ):
                return None
            definition = declared.of(table)
            own = wanted
            if own is None and table.mariadb:
                formats = column_formats(table, definition)
                own = [n for n, one in enumerate(formats) if not is_hidden(table, one)]
            return RowBatches(
                table, definition, own, Dates.TEXT, key=primary_key(table) if has_key else ()
            )

        kinds = event_types(op for op in (INSERT, UPDATE, DELETE) if filters.keeps("op", op))
        pending = PendingRows(choose, file, mariadb=reader.mariadb, kinds=kinds)
        skips = request.options.unseen_changes == SKIP
        wants = _wants(filters)
        unseen = UnseenChanges(wants, file, (TRUNCATE, DDL), skips=skips)
        groups = CompletedGroups(file, request.whole, skips=skips)
        for part in groups.parts(
            reader, lambda part: request.keeps(part, file), lambda some: request.kept(some, file)
        ):
            if isinstance(part, PlainGroups):
                pending.add_all(part)
                if pending.is_full:
                    yield from _batches(request, pending, file)
                continue
            found = marks(part, wants)
            unseen.check(part, found)
            found = [mark for mark in found if filters.keeps("op", mark.op)]
            if found:
                yield from _batches(request, pending, file)
                yield mark_rows(found, part, file, request)
            pending.add(part)
            if pending.is_full:
                yield from _batches(request, pending, file)
        yield from _batches(request, pending, file)


def _wants(filters: RowFilters) -> Wants:
    """Return what tells whether a table, or any of a database, is wanted, however it is spelled."""
    folded = filters.folded()

    def wants(database: str, table: str | None) -> bool:
        database = database.lower()
        if table is None:
            return folded.keeps("schema", database)
        return (
            folded.keeps("schema", database)
            and folded.keeps("table", table.lower())
            and folded.keeps(FULL_NAME, f"{database}.{table.lower()}")
        )

    return wants


def _batches(request: ShapeRequest, pending: PendingRows, file: str) -> Iterator[pa.RecordBatch]:
    """Yield the pending rows, in the order of the stream."""
    taken = pending.take()
    origins = Origins(taken, file, request.epoch)
    if taken.tables:
        batches = []
        for rows in taken.tables:
            try:
                batches.append(_batch(request, origins, rows))
            except (TextTooLargeError, pa.ArrowCapacityError) as error:
                begin = taken.parts.begins[int(rows.groups[0])]
                raise NotSupportedError(
                    f"a row of `{rows.table.database}`.`{rows.table.table}` is larger than 2 GB as"
                    " JSON, which Spark has no place for: leave the table out by a filter, or read"
                    f" it in the shape 'table' (in a group from {file}:{begin} on)"
                ) from error
        yield from in_order(batches, [(rows.events, rows.rows) for rows in taken.tables])


def _batch(request: ShapeRequest, origins: Origins, rows: TableRows) -> pa.RecordBatch:
    count = len(rows.rows)
    columns = origins.columns(rows) | {
        "op": lambda: pa.repeat(operation(rows), count),
        "schema": lambda: pa.repeat(rows.table.database, count),
        "table": lambda: pa.repeat(rows.table.table, count),
        "before": lambda: json_rows(rows.decoder, rows.batch.before, count),
        "after": lambda: json_rows(rows.decoder, rows.batch.after, count),
        "statement": lambda: pa.nulls(count, pa.string()),
        "key": lambda: _keys(rows, count),
        "old_key": lambda: _old_keys(rows, count),
    }
    schema = request.arrow_schema
    return pa.RecordBatch.from_arrays([columns[name]() for name in schema.names], schema=schema)


def _keys(rows: TableRows, count: int) -> pa.Array:
    """Return the keys that rows have now, or had if they were deleted."""
    batch = rows.batch
    return key_texts(rows.decoder, completed(batch.before, batch.after) or batch.before, count)


def _old_keys(rows: TableRows, count: int) -> pa.Array:
    """Return the keys that rows had, where an update has changed them."""
    if rows.batch.before is None or rows.batch.after is None:
        return pa.nulls(count, pa.string())
    before = key_texts(rows.decoder, rows.batch.before, count)
    return pc.if_else(pc.equal(before, _keys(rows, count)), pa.scalar(None, pa.string()), before)
