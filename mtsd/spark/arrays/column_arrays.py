"""A column of rows as an Arrow array: its type, and the function that builds it.

Arrow has a type for every MySQL type, but Spark has no unsigned integers and accepts no time zone
but UTC, so unsigned integers are widened. The text of a value is the same as for a single row
(`mtsd.binlog.values.column_values`); dates that are not in the calendar can only be represented as
text.
"""

import enum
from typing import Final

import numpy as np
import pyarrow as pa

from mtsd.binlog.events.mariadb_compressed import uncompressed_value
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import is_unsigned
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.arrays.json_arrays import json_array
from mtsd.spark.arrays.lockstep import PADDING, Buffer, Slots
from mtsd.spark.arrays.number_arrays import (
    WIDEST_DECIMAL,
    bit_array,
    decimal_array,
    decimal_text_array,
    integer_array,
    real_array,
    year_array,
)
from mtsd.spark.arrays.temporal_arrays import shown_array, typed_array
from mtsd.spark.arrays.text_arrays import (
    binary_array,
    enum_array,
    padded_array,
    set_array,
    text_array,
    vector_array,
)

_T = ColumnType
_INTEGERS = {
    _T.TINY: (pa.int8(), pa.int16()),
    _T.SHORT: (pa.int16(), pa.int32()),
    _T.INT24: (pa.int32(), pa.int32()),
    _T.LONG: (pa.int32(), pa.int64()),
    _T.LONGLONG: (pa.int64(), pa.decimal128(20, 0)),
}
"""Signed and unsigned."""
_MOST: Final = (1 << 31) - 1 - PADDING
"""The most bytes of values that an array can hold."""
_TEMPORAL = {
    _T.DATE: pa.date32(),
    _T.NEWDATE: pa.date32(),
    _T.TIME: pa.duration("us"),
    _T.TIME2: pa.duration("us"),
    _T.DATETIME: pa.timestamp("us"),
    _T.DATETIME2: pa.timestamp("us"),
    _T.TIMESTAMP: pa.timestamp("us", "UTC"),
    _T.TIMESTAMP2: pa.timestamp("us", "UTC"),
}


class Dates(enum.Enum):
    """How to represent dates and times, some of which are not in the calendar (0000-00-00)."""

    STRICT = enum.auto()
    """Typed; such a date is an error."""
    NULLS = enum.auto()
    """Typed; such a date becomes NULL."""
    TEXT = enum.auto()
    """All are text, as a SELECT shows them."""


def arrow_type(column: ColumnFormat, dates: Dates = Dates.STRICT) -> pa.DataType:
    """Return the type of a column's arrays.

    Raises NotSupportedError if the column's metadata is incomplete, as for `converter`.
    """
    match column.type:
        case kind if kind in _INTEGERS:
            return _INTEGERS[kind][is_unsigned(column)]
        case kind if kind in _TEMPORAL:
            return pa.string() if dates is Dates.TEXT else _TEMPORAL[kind]
        case _T.YEAR:
            return pa.int16()
        case _T.FLOAT:
            return pa.float32()
        case _T.DOUBLE:
            return pa.float64()
        case _T.NEWDECIMAL if column.digits <= WIDEST_DECIMAL:
            return pa.decimal128(column.digits, column.scale)
        case _T.NEWDECIMAL | _T.JSON:
            return pa.string()
        case _T.BIT:
            return pa.decimal128(20, 0) if column.size == 8 else pa.int64()
        case _T.ENUM | _T.SET if column.members:
            return pa.string()
        case _T.ENUM | _T.SET:
            return pa.decimal128(20, 0) if column.size == 8 else pa.int64()
        case _T.GEOMETRY:
            return pa.binary()
        case _T.VECTOR:
            return pa.list_(pa.float32())
        case _T.STRING | _T.VARCHAR | _T.VAR_STRING | _T.BLOB:
            return pa.binary() if column.is_bytes else pa.string()
        case kind:
            raise NotSupportedError(f"{column.where}: values of type {kind.name} are not decoded")


def column_array(
    buffer: Buffer, slots: Slots, column: ColumnFormat, dates: Dates = Dates.STRICT
) -> pa.Array:
    """Return a column's values as an array of `arrow_type`.

    Raises BinlogError for a value that is invalid for its type, NotSupportedError for a date
    that the array's type cannot hold.
    """
    if column.compressed:
        buffer, slots = _uncompressed(buffer, slots, column)
    kind = arrow_type(column, dates)
    match column.type:
        case found if found in _INTEGERS:
            return integer_array(buffer, slots, kind, unsigned=is_unsigned(column))
        case found if found in _TEMPORAL:
            if dates is Dates.TEXT:
                return shown_array(buffer, slots, column)
            return typed_array(buffer, slots, column, kind, nulls=dates is Dates.NULLS)
        case _T.YEAR:
            return year_array(buffer, slots, kind)
        case _T.FLOAT | _T.DOUBLE:
            return real_array(buffer, slots, kind)
        case _T.NEWDECIMAL if column.digits <= WIDEST_DECIMAL:
            return decimal_array(buffer, slots, column)
        case _T.NEWDECIMAL:
            return decimal_text_array(buffer, slots, column)
        case _T.JSON:
            return json_array(buffer, slots, column)
        case _T.BIT:
            return bit_array(buffer, slots, kind)
        case _T.ENUM if column.members:
            return enum_array(buffer, slots, column)
        case _T.SET if column.members:
            return set_array(buffer, slots, column)
        case _T.ENUM | _T.SET:
            return integer_array(buffer, slots, kind, unsigned=True)
        case _T.VECTOR:
            return vector_array(buffer, slots, column)
        case _T.STRING if column.is_bytes:
            return padded_array(buffer, slots, column.size)
        case _ if kind == pa.string():
            return text_array(buffer, slots, column)
        case _:
            return binary_array(buffer, slots.starts, slots.sizes, slots.valid)


def _uncompressed(buffer: Buffer, slots: Slots, column: ColumnFormat) -> tuple[Buffer, Slots]:
    """Return the plain values of a COMPRESSED column of MariaDB, and where each is."""
    packed = binary_array(buffer, slots.starts, slots.sizes, slots.valid)
    try:
        # One by one: each was compressed on its own.
        values = [uncompressed_value(raw or b"") for raw in packed.to_pylist()]
    except BinlogError as error:
        raise BinlogError(f"{column.where}: {error}") from error
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    ends = np.cumsum(sizes)
    if len(ends) and int(ends[-1]) > _MOST:
        raise NotSupportedError(
            f"{column.where}: more than 2 GB of uncompressed values in {len(values)} rows"
        )
    plain = Buffer(b"".join([*values, bytes(PADDING)]))
    return plain, Slots(ends - sizes, 0, sizes, slots.valid)
