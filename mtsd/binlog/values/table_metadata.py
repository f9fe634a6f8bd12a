"""The optional metadata of a table map: what binlog_row_metadata adds about its columns.

Fields of type u8, size as a length-encoded integer, and value; all integers in the values are
length-encoded, all bitmaps begin with the highest bit. Some lists cover only the columns of certain
types, in their order (MySQL documentation, `mysql::binlog::event::Table_map_event`). MariaDB counts
GEOMETRY among the types that have a character set.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType, LoggedColumn, parse_columns
from mtsd.model.errors import BinlogError

_WHAT = "Table_map event, optional metadata"


class Field(enum.IntEnum):
    """The field types."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_VALUES = 5
    ENUM_VALUES = 6
    GEOMETRY_TYPE = 7
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    COLUMN_VISIBILITY = 12
    VECTOR_DIMENSIONALITY = 13


_NUMERIC = frozenset(
    {
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.NEWDECIMAL,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.YEAR,
    }
)
_CHARACTER = frozenset(
    {
        ColumnType.STRING,
        ColumnType.VAR_STRING,
        ColumnType.VARCHAR,
        ColumnType.BLOB,
        ColumnType.VECTOR,
    }
)
_ENUM_OR_SET = frozenset({ColumnType.ENUM, ColumnType.SET})


@dataclass(frozen=True, slots=True)
class OptionalMetadata:
    """What the source says about the columns; mappings are by column index.

    `primary_key` holds (column, prefix length, or 0 for the whole column), or None if not given.
    `names` and `visible` hold every column or nothing. Values of ENUM and SET are bytes in the
    column's own character set.
    """

    unsigned: Mapping[int, bool] = field(default_factory=dict)
    collations: Mapping[int, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    set_values: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    enum_values: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    geometry_types: Mapping[int, int] = field(default_factory=dict)
    primary_key: tuple[tuple[int, int], ...] | None = None
    visible: tuple[bool, ...] = ()
    vector_dimensions: Mapping[int, int] = field(default_factory=dict)
    fractions: Mapping[int, int] = field(default_factory=dict)
    """Digits of the fraction of TIME, DATETIME and TIMESTAMP: only a definition tells these."""


def parse_optional_metadata(table: TableMap) -> OptionalMetadata:
    """Decode a table map's optional metadata.

    Raises BinlogError if it is truncated, does not match the columns, or has an unknown field.
    """
    columns = parse_columns(table)
    numeric = _of(columns, _NUMERIC)
    character = _of(columns, _CHARACTER)
    with_geometry = _of(columns, _CHARACTER | {ColumnType.GEOMETRY})
    enum_or_set = _of(columns, _ENUM_OR_SET)
    unsigned: dict[int, bool] = {}
    collations: dict[int, int] = {}
    names: tuple[str, ...] = ()
    set_values: dict[int, tuple[bytes, ...]] = {}
    enum_values: dict[int, tuple[bytes, ...]] = {}
    geometry_types: dict[int, int] = {}
    primary_key: tuple[tuple[int, int], ...] | None = None
    visible: tuple[bool, ...] = ()
    vector_dimensions: dict[int, int] = {}
    fields = Cursor(table.optional, 0, _WHAT)
    while fields.left():
        number = fields.uint(1, "field type")
        size = fields.net_int("field size")
        cursor = Cursor(table.optional, fields.at, _WHAT, fields.at + size)
        fields.skip(size, "field")
        match number:
            case Field.SIGNEDNESS:
                unsigned = dict(zip(numeric, _bits(cursor, len(numeric)), strict=True))
            case Field.DEFAULT_CHARSET:
                collations |= _default_collations(
                    cursor, with_geometry if table.mariadb else character
                )
            case Field.COLUMN_CHARSET:
                # Their number tells which columns they are of.
                numbers = _all_numbers(cursor)
                of = with_geometry if len(numbers) == len(with_geometry) else character
                if len(numbers) != len(of):
                    raise BinlogError(f"{_WHAT}: {len(numbers)} collations of {len(of)} columns")
                collations |= dict(zip(of, numbers, strict=True))
            case Field.COLUMN_NAME:
                names = tuple(
                    cursor.as_text(_string(cursor, "column name"), "column name") for _ in columns
                )
            case Field.SET_VALUES:
                set_values = _values(cursor, _of(columns, {ColumnType.SET}))
            case Field.ENUM_VALUES:
                enum_values = _values(cursor, _of(columns, {ColumnType.ENUM}))
            case Field.GEOMETRY_TYPE:
                geometry_types = _numbers(cursor, _of(columns, {ColumnType.GEOMETRY}))
            case Field.SIMPLE_PRIMARY_KEY:
                primary_key = _primary_key(cursor, columns, prefixes=False)
            case Field.PRIMARY_KEY_WITH_PREFIX:
                primary_key = _primary_key(cursor, columns, prefixes=True)
            case Field.ENUM_AND_SET_DEFAULT_CHARSET:
                collations |= _default_collations(cursor, enum_or_set)
            case Field.ENUM_AND_SET_COLUMN_CHARSET:
                collations |= _numbers(cursor, enum_or_set)
            case Field.COLUMN_VISIBILITY:
                visible = _bits(cursor, len(columns))
            case Field.VECTOR_DIMENSIONALITY:
                vector_dimensions = _numbers(cursor, _of(columns, {ColumnType.VECTOR}))
            case _:
                raise BinlogError(f"{_WHAT}: unknown field {number}")
        cursor.finish()
    return OptionalMetadata(
        unsigned,
        collations,
        names,
        set_values,
        enum_values,
        geometry_types,
        primary_key,
        visible,
        vector_dimensions,
    )


def _of(
    columns: Sequence[LoggedColumn], types: frozenset[ColumnType] | set[ColumnType]
) -> list[int]:
    return [
        index for index, column in enumerate(columns) if column.type in types and not column.array
    ]


def _bits(cursor: Cursor, count: int) -> tuple[bool, ...]:
    raw = cursor.take((count + 7) // 8, "bits")
    return tuple(bool(raw[index >> 3] & 0x80 >> (index & 7)) for index in range(count))


def _string(cursor: Cursor, what: str) -> bytes:
    return cursor.take(cursor.net_int(what), what)


def _numbers(cursor: Cursor, columns: Sequence[int]) -> dict[int, int]:
    return {column: cursor.net_int("number") for column in columns}


def _all_numbers(cursor: Cursor) -> list[int]:
    numbers: list[int] = []
    while cursor.left():
        numbers.append(cursor.net_int("number"))
    return numbers


def _default_collations(cursor: Cursor, columns: Sequence[int]) -> dict[int, int]:
    """Read the most frequent collation, then the others: (place among `columns`, collation)."""
    default = cursor.net_int("default collation")
    collations = dict.fromkeys(columns, default)
    while cursor.left():
        place = cursor.net_int("column place")
        if place >= len(columns):
            raise BinlogError(f"{_WHAT}: column {place} of {len(columns)} with a character set")
        collations[columns[place]] = cursor.net_int("collation")
    return collations


def _values(cursor: Cursor, columns: Sequence[int]) -> dict[int, tuple[bytes, ...]]:
    values = {}
    for column in columns:
        count = cursor.net_int("number of values")
        if count > cursor.left():
            raise BinlogError(f"{_WHAT}: {count} values in {cursor.left()} bytes")
        values[column] = tuple(_string(cursor, "value") for _ in range(count))
    return values


def _primary_key(
    cursor: Cursor, columns: Sequence[LoggedColumn], *, prefixes: bool
) -> tuple[tuple[int, int], ...]:
    parts = []
    while cursor.left():
        column = cursor.net_int("key column")
        if column >= len(columns):
            raise BinlogError(f"{_WHAT}: key column {column} of {len(columns)}")
        parts.append((column, cursor.net_int("prefix") if prefixes else 0))
    return tuple(parts)
