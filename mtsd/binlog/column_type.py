"""The column types of a table map and their metadata.

Each column has a type byte, and, by its type, 0 to 2 bytes of metadata; a multi-valued index's
column (type 20) wraps another type, whose metadata follows (MySQL documentation,
`mysql::binlog::event::Table_map_event`).
"""

import enum
from dataclasses import dataclass

from mtsd.binlog.cursor import Cursor
from mtsd.binlog.table_map import TableMap
from mtsd.model.errors import BinlogError

_WHAT = "Table_map event"


class ColumnType(enum.IntEnum):
    """Types of columns as binlogs number them."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    TYPED_ARRAY = 20
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_METADATA_SIZES = dict.fromkeys(ColumnType, 0) | {
    ColumnType.FLOAT: 1,
    ColumnType.DOUBLE: 1,
    ColumnType.TIMESTAMP2: 1,
    ColumnType.DATETIME2: 1,
    ColumnType.TIME2: 1,
    ColumnType.BLOB: 1,
    ColumnType.GEOMETRY: 1,
    ColumnType.JSON: 1,
    ColumnType.VECTOR: 1,
    ColumnType.VARCHAR: 2,
    ColumnType.BIT: 2,
    ColumnType.NEWDECIMAL: 2,
    ColumnType.ENUM: 2,
    ColumnType.SET: 2,
    ColumnType.VAR_STRING: 2,
    ColumnType.STRING: 2,
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column's type: ENUM and SET are told from the STRING that they are written as.

    `metadata` are the bytes that the type has there; `array` says that `type` is the element's
    of a multi-valued index.
    """

    type: ColumnType
    metadata: bytes
    array: bool = False


def parse_columns(table: TableMap) -> tuple[Column, ...]:
    """Split a table map's types and metadata by column.

    BinlogError for a type that is not known, and where the metadata are too short or too long.
    """
    cursor = Cursor(table.metadata, 0, _WHAT)
    columns = tuple(_column(cursor, number) for number in table.column_types)
    cursor.finish()
    return columns


def _column(cursor: Cursor, number: int, *, array: bool = False) -> Column:
    try:
        kind = ColumnType(number)
    except ValueError:
        raise BinlogError(f"{_WHAT}: column type {number} is not known") from None
    if kind is ColumnType.TYPED_ARRAY:
        if array:
            raise BinlogError(f"{_WHAT}: an array of arrays")
        return _column(cursor, cursor.uint(1, "element type"), array=True)
    metadata = cursor.take(_METADATA_SIZES[kind], "column metadata")
    if kind is ColumnType.STRING and metadata[0] in {ColumnType.ENUM, ColumnType.SET}:
        kind = ColumnType(metadata[0])
    return Column(kind, metadata, array)
