"""Compares rows decoded as Arrow columns with the same rows decoded one by one."""

import struct
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_values import Value
from mtsd.binlog.values.row_image import RowDecoder, RowImage
from mtsd.binlog.values.table_metadata import OptionalMetadata
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.arrays.row_batches import ImageColumns, RowBatches

Place = tuple[int, int, str]
"""Event, row and "before" or "after"."""


def one_by_one(
    table: TableMap, events: Sequence[bytes], declared: OptionalMetadata | None = None
) -> dict[Place, RowImage]:
    decoder = RowDecoder(table, declared)
    found: dict[Place, RowImage] = {}
    for number, event in enumerate(events):
        for row, change in enumerate(decoder.changes(event)):
            if change.before is not None:
                found[number, row, "before"] = change.before
            if change.after is not None:
                found[number, row, "after"] = change.after
    return found


def as_columns(
    table: TableMap,
    events: Sequence[bytes],
    declared: OptionalMetadata | None = None,
    dates: Dates = Dates.TEXT,
) -> dict[Place, RowImage]:
    """Return the rows of the batches, with values in the form of the row-by-row decoder."""
    batches = RowBatches(table, declared, dates=dates)
    found: dict[Place, RowImage] = {}
    for batch in batches.batches(events):
        for side, image in (("before", batch.before), ("after", batch.after)):
            if image is None:
                continue
            columns = _values(batches, image)
            rows = zip(*columns, strict=True) if columns else [()] * len(batch.rows)
            places = zip(batch.events.tolist(), batch.rows.tolist(), strict=True)
            for (event, row), values in zip(places, rows, strict=True):
                assert (event, row, side) not in found
                found[event, row, side] = RowImage(image.columns, values)
    return found


def _values(batches: RowBatches, image: ImageColumns) -> list[list[Value]]:
    columns = []
    for index, array in zip(image.columns, image.arrays, strict=True):
        array.validate(full=True)
        assert array.type == batches.type_of(index)
        columns.append([_plain(value, batches.formats[index]) for value in array.to_pylist()])
    return columns


def _plain(value: object, column: ColumnFormat) -> Value:
    if isinstance(value, list):
        return struct.pack(f"<{len(value)}f", *value)
    if isinstance(value, Decimal) and not column.digits:
        return int(value)
    if isinstance(value, str) and column.digits > 38:
        return Decimal(value)
    assert value is None or isinstance(value, int | float | str | bytes | Decimal)
    return value


def assert_same(
    table: TableMap, events: Sequence[bytes], declared: OptionalMetadata | None = None
) -> int:
    """Check that both decoders return the same rows; return the number of images."""
    wanted = one_by_one(table, events, declared)
    found = as_columns(table, events, declared)
    assert found.keys() == wanted.keys()
    for place, image in wanted.items():
        assert found[place].columns == image.columns
        for index, ours, theirs in zip(
            image.columns, found[place].values, image.values, strict=True
        ):
            assert repr(ours) == repr(theirs), (place, index)
    return len(wanted)


def type_names(batches: RowBatches) -> dict[str, pa.DataType]:
    return {column.name: batches.type_of(n) for n, column in enumerate(batches.formats)}
