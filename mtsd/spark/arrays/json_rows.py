"""Rows as JSON objects of their columns by name, converted to text many at once.

Numbers are JSON numbers, with all digits of a DECIMAL that has at most 38; dates, times and texts
are strings as a SELECT shows them, JSON is embedded unchanged, bytes are in base64, and a VECTOR is
an array. A column that is absent from the binary log is absent here, too.
"""

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pybase64 import b64encode_as_string

from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.spark.arrays.json_strings import escaped
from mtsd.spark.arrays.row_batches import ImageColumns, RowBatches

_SMALL_SCALE: Final = 6
"""The largest scale for which Arrow always writes decimals without an exponent."""


def json_rows(decoder: RowBatches, image: ImageColumns | None, count: int) -> pa.Array:
    """Return a text for each of `count` rows; NULLs if there is no image."""
    if image is None:
        return pa.nulls(count, pa.string())
    pieces: list[pa.Array | pa.Scalar] = []
    for index, array in zip(image.columns, image.arrays, strict=True):
        column = decoder.formats[index]
        name = json.dumps(column.name or f"@{index + 1}", ensure_ascii=False)
        pieces += [pa.scalar(f"{',' if pieces else '{'}{name}:"), _texts(column, array)]
    if not pieces:
        return pa.repeat("{}", count)
    return pc.binary_join_element_wise(
        *pieces, pa.scalar("}"), pa.scalar(""), null_handling="replace", null_replacement="null"
    )


def _texts(column: ColumnFormat, array: pa.Array) -> pa.Array:
    """Return values as JSON text; NULL stays NULL."""
    kind = array.type
    if column.type is ColumnType.JSON:
        return array
    if pa.types.is_string(kind):
        return _quoted(array if _is_plain(column) else escaped(array))
    if pa.types.is_duration(kind):
        return array.cast(pa.int64()).cast(pa.string())
    if pa.types.is_temporal(kind):
        return _quoted(array.cast(pa.string()))
    if pa.types.is_binary(kind):
        return _quoted(
            pa.array(
                [None if raw is None else b64encode_as_string(raw) for raw in array.to_pylist()],
                pa.string(),
            )
        )
    if pa.types.is_list(kind):
        # Each number as the shortest text that yields the same single-precision value.
        numbers = array.flatten().cast(pa.string())
        texts = pa.ListArray.from_arrays(array.offsets, numbers, mask=_mask(array))
        return pc.binary_join_element_wise(
            pa.scalar("["), pc.binary_join(texts, ","), pa.scalar("]"), pa.scalar("")
        )
    if pa.types.is_decimal(kind) and kind.scale > _SMALL_SCALE:
        return pa.array(
            [None if value is None else f"{value:f}" for value in array.to_pylist()], pa.string()
        )
    return array.cast(pa.string())


def _is_plain(column: ColumnFormat) -> bool:
    """Tell whether texts of the type never contain anything that JSON requires to be escaped."""
    return column.type in _PLAIN


_PLAIN: Final = frozenset({
    ColumnType.NEWDECIMAL, ColumnType.DATE, ColumnType.NEWDATE, ColumnType.TIME, ColumnType.TIME2,
    ColumnType.DATETIME, ColumnType.DATETIME2, ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2,
})  # fmt: skip


def _quoted(array: pa.Array) -> pa.Array:
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, array, quote, pa.scalar(""))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
