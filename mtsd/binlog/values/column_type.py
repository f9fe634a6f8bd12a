"""The column types of a table map and their metadata.

Each column has a type byte and, depending on its type, 0 to 2 bytes of metadata; the column of a
multi-valued index (type 20) wraps another type, whose metadata follows (MySQL documentation,
"""

import enum
from dataclasses import dataclass

from pymysqlreplication.constants import FIELD_TYPE

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.events.table_map import TableMap
from mtsd.model.errors import BinlogError

_WHAT = "Table_map event"


class ColumnType(enum.IntEnum):
    """Column types in binlogs: those of python-mysql-replication, and two that it lacks."""

    DECIMAL = FIELD_TYPE.DECIMAL
    TINY = FIELD_TYPE.TINY
    SHORT = FIELD_TYPE.SHORT
    LONG = FIELD_TYPE.LONG
    FLOAT = FIELD_TYPE.FLOAT
    DOUBLE = FIELD_TYPE.DOUBLE
    NULL = FIELD_TYPE.NULL
    TIMESTAMP = FIELD_TYPE.TIMESTAMP
    LONGLONG = FIELD_TYPE.LONGLONG
    INT24 = FIELD_TYPE.INT24
    DATE = FIELD_TYPE.DATE
    TIME = FIELD_TYPE.TIME
    DATETIME = FIELD_TYPE.DATETIME
    YEAR = FIELD_TYPE.YEAR
    NEWDATE = FIELD_TYPE.NEWDATE
    VARCHAR = FIELD_TYPE.VARCHAR
    BIT = FIELD_TYPE.BIT
    TIMESTAMP2 = FIELD_TYPE.TIMESTAMP2
    DATETIME2 = FIELD_TYPE.DATETIME2
    TIME2 = FIELD_TYPE.TIME2
    TYPED_ARRAY = 20
    VECTOR = 242
    JSON = FIELD_TYPE.JSON
    NEWDECIMAL = FIELD_TYPE.NEWDECIMAL
    ENUM = FIELD_TYPE.ENUM
    SET = FIELD_TYPE.SET
    TINY_BLOB = FIELD_TYPE.TINY_BLOB
    MEDIUM_BLOB = FIELD_TYPE.MEDIUM_BLOB
    LONG_BLOB = FIELD_TYPE.LONG_BLOB
    BLOB = FIELD_TYPE.BLOB
    VAR_STRING = FIELD_TYPE.VAR_STRING
    STRING = FIELD_TYPE.STRING
    GEOMETRY = FIELD_TYPE.GEOMETRY


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


_COMPRESSED = {140: ColumnType.BLOB, 141: ColumnType.VARCHAR}
"""MariaDB's COMPRESSED columns, and the types that they are otherwise as."""


@dataclass(frozen=True, slots=True)
class LoggedColumn:
    """A column's type, with ENUM and SET distinguished from the STRING that they are written as.

    `metadata` is the type's metadata bytes; `array` means that `type` is the element type of a
    multi-valued index. The values of a `compressed` one are as in
    `mtsd.binlog.events.mariadb_compressed`.
    """

    type: ColumnType
    metadata: bytes
    array: bool = False
    compressed: bool = False


def parse_columns(table: TableMap) -> tuple[LoggedColumn, ...]:
    """Split a table map's types and metadata by column.

    Raises BinlogError for an unknown type, and if the metadata is too short or too long.
    """
    cursor = Cursor(table.metadata, 0, _WHAT)
    columns = tuple(_column(cursor, number) for number in table.column_types)
    cursor.finish()
    return columns


def _column(cursor: Cursor, number: int, *, array: bool = False) -> LoggedColumn:
    compressed = number in _COMPRESSED
    try:
        kind = _COMPRESSED[number] if compressed else ColumnType(number)
    except ValueError:
        raise BinlogError(f"{_WHAT}: unknown column type {number}") from None
    if kind is ColumnType.TYPED_ARRAY:
        if array:
            raise BinlogError(f"{_WHAT}: an array of arrays")
        return _column(cursor, cursor.uint(1, "element type"), array=True)
    metadata = cursor.take(_METADATA_SIZES[kind], "column metadata")
    if kind is ColumnType.STRING and metadata[0] in {ColumnType.ENUM, ColumnType.SET}:
        kind = ColumnType(metadata[0])
    return LoggedColumn(kind, metadata, array, compressed)
