"""Whether the rows of a source's column can be applied to the corresponding column of the target.

The rules are the server's own for row events (MySQL manual, "Replication with Differing Table
Definitions on Source and Replica"): columns correspond by position, not by name; a column with
another type or size is converted only as the target's replica_type_conversions allows; and columns
that only one of the two tables has are not a problem at its end.
"""

import enum
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType, LoggedColumn, parse_columns
from mtsd.binlog.values.table_metadata import parse_optional_metadata

NON_LOSSY = "ALL_NON_LOSSY"
LOSSY = "ALL_LOSSY"


class Fit(enum.Enum):
    """What a conversion requires."""

    EXACT = enum.auto()
    NON_LOSSY = enum.auto()
    """It keeps every value: ALL_NON_LOSSY."""
    LOSSY = enum.auto()
    """It may truncate or round values: ALL_LOSSY."""
    NEVER = enum.auto()

    def allowed(self, conversions: Collection[str]) -> bool:
        """Return whether a server with these replica_type_conversions applies such rows."""
        return self is Fit.EXACT or _NEEDS.get(self) in conversions


_NEEDS = {Fit.NON_LOSSY: NON_LOSSY, Fit.LOSSY: LOSSY}


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """A column as row events describe it.

    `size`: bytes of a string, of the length prefix of a BLOB, of an ENUM or SET and of a number;
    digits of a decimal; bits of a BIT; digits of fractional seconds. `scale`: digits of a decimal
    after its point; dimensions of a VECTOR, 0 if unknown; bytes of the longest character of a text.
    """

    type: ColumnType
    size: int = 0
    scale: int = 0
    array: bool = False

    def __str__(self) -> str:
        name = _NAMES.get(self.type, self.type.name.lower())
        if self.type is ColumnType.NEWDECIMAL:
            return f"decimal({self.size},{self.scale})"
        if self.type is ColumnType.BLOB:
            return f"{('tiny', '', 'medium', 'long')[self.size - 1]}blob or text"
        if self.type in _STRINGS:
            return f"{name} of {self.size} bytes"
        if self.type in {ColumnType.ENUM, ColumnType.SET}:
            return f"{name} in {self.size} bytes"
        if self.type is ColumnType.VECTOR and self.scale:
            return f"vector({self.scale})"
        if self.type is ColumnType.BIT or (self.type in _TIMES and self.size):
            return f"{name}({self.size})"
        return name


def shapes_of_event(table: TableMap) -> list[ColumnShape]:
    """Return the shapes of a table map's columns. Raises BinlogError."""
    dimensions = parse_optional_metadata(table).vector_dimensions
    return [
        replace(_shape(column), scale=dimensions[place]) if place in dimensions else _shape(column)
        for place, column in enumerate(parse_columns(table))
    ]


def _shape(column: LoggedColumn) -> ColumnShape:
    data = column.metadata
    size = scale = 0
    match column.type:
        case ColumnType.VARCHAR | ColumnType.VAR_STRING:
            # A compressed value has a byte more.
            size = int.from_bytes(data, "little") - column.compressed
        case ColumnType.STRING:
            # Two bits of the length are hidden, inverted, in the type byte.
            size = data[1] | ((data[0] & 0x30) ^ 0x30) << 4
        case ColumnType.ENUM | ColumnType.SET:
            size = data[1]
        case ColumnType.NEWDECIMAL:
            size, scale = data
        case ColumnType.BIT:
            size = data[0] + 8 * data[1]
        case kind if kind in _INTEGERS:
            size = _INTEGERS[kind]
        case _ if data:
            size = data[0]
    return ColumnShape(column.type, size, scale, column.array)


def shape_of_definition(
    data_type: str,
    column_type: str,
    octets: int,
    precision: int,
    scale: int,
    fraction: int,
    collation: str = "",
) -> ColumnShape | None:
    """Return the shape of a row of information_schema.columns; None for an unknown type.

    Its columns are DATA_TYPE, COLUMN_TYPE, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION,
    NUMERIC_SCALE, DATETIME_PRECISION, 0 for NULL, COLLATION_NAME.
    """
    kind = _DATA_TYPES.get(data_type.lower())
    if data_type.lower() in _FIXED_BYTES:
        return ColumnShape(ColumnType.STRING, _FIXED_BYTES[data_type.lower()])
    match kind:
        case None:
            return None
        case ColumnType.VARCHAR | ColumnType.STRING:
            return ColumnShape(kind, octets)
        case ColumnType.BLOB:
            longest = _LONGEST_CHARACTERS.get(collation.partition("_")[0], 1)
            return ColumnShape(kind, _LENGTH_BYTES[data_type.lower()], longest)
        case ColumnType.NEWDECIMAL:
            return ColumnShape(kind, precision, scale)
        case ColumnType.BIT:
            return ColumnShape(kind, precision)
        case ColumnType.ENUM:
            return ColumnShape(kind, 1 if len(members(column_type)) < 256 else 2)
        case ColumnType.SET:
            size = (len(members(column_type)) + 7) // 8
            return ColumnShape(kind, 8 if size > 4 else size)
        case ColumnType.TIMESTAMP2 | ColumnType.DATETIME2 | ColumnType.TIME2:
            return ColumnShape(kind, fraction)
        case ColumnType.VECTOR:
            return ColumnShape(kind, 4, int("".join(filter(str.isdecimal, column_type)) or 0))
        case ColumnType.JSON | ColumnType.GEOMETRY | ColumnType.FLOAT:
            return ColumnShape(kind, 4)
        case ColumnType.DOUBLE:
            return ColumnShape(kind, 8)
        case _:
            return ColumnShape(kind, _INTEGERS.get(kind, 0))


def members(column_type: str) -> tuple[str, ...]:
    """Return the values of an ENUM or SET as quoted in its COLUMN_TYPE."""
    return tuple(_MEMBER.findall(column_type))


def fit(source: ColumnShape, target: ColumnShape) -> Fit:
    """Return what the target needs in order to apply the source's values."""
    if source.array or target.array:
        return Fit.EXACT if source == target else Fit.NEVER
    before, after = (_of_two_formats(shape.type) for shape in (source, target))
    if before == after == ColumnType.VECTOR:
        known = source.scale and target.scale
        return Fit.NEVER if known and source.scale != target.scale else Fit.EXACT
    if before == after == ColumnType.BLOB:
        return _by_order(source.size, target.size)
    if before == after:
        # Without fraction digits it is taken for an old-format time without metadata: the server
        # accepts the table and then reads the row with the fraction that it does not have.
        if before in _TIMES and not source.size and target.size:
            return Fit.NEVER
        return _by_order((source.size, source.scale), (target.size, target.scale))
    if before in _INTEGERS and after in _INTEGERS:
        return _by_order(source.size, target.size)
    if before in _REALS and after in _REALS:
        if ColumnType.NEWDECIMAL in {before, after}:
            return Fit.LOSSY
        return _by_order(source.size, target.size)
    if before in _TEXTS and after in _TEXTS:
        misfit = _by_order(_longest(source), _longest(target))
        return Fit.NON_LOSSY if misfit is Fit.EXACT else misfit
    return Fit.NEVER


def fit_as_sql(source: ColumnShape, target: ColumnShape) -> Fit:
    """Return what the target needs in order to hold the source's values as SQL.

    That converts more than a row event: JSON is text in MariaDB, and a VECTOR is bytes.
    """
    kinds = (_of_two_formats(source.type), target.type)
    if kinds[0] is ColumnType.JSON and target.type is ColumnType.BLOB:
        return Fit.NON_LOSSY if target.size == source.size else Fit.LOSSY
    if kinds[0] in _TEXTS and target.type is ColumnType.JSON:
        return Fit.NON_LOSSY
    if kinds[0] is ColumnType.VARCHAR and target.type is ColumnType.VECTOR:
        return Fit.NON_LOSSY if source.size == 4 * target.scale else Fit.NEVER
    return fit(source, target)


def misfits(
    source: Sequence[ColumnShape],
    target: Sequence[ColumnShape | None],
    conversions: Collection[str],
) -> list[tuple[int, Fit]]:
    """Return the indexes, from 0, of columns that the target refuses, and what each would need."""
    pairs = zip(source, target, strict=False)
    fits = [(place, fit(a, b)) for place, (a, b) in enumerate(pairs) if b is not None]
    return [(place, each) for place, each in fits if not each.allowed(conversions)]


def _by_order(source: object, target: object) -> Fit:
    if source == target:
        return Fit.EXACT
    return Fit.NON_LOSSY if source < target else Fit.LOSSY  # type: ignore[operator]


def _longest(shape: ColumnShape) -> int:
    if shape.type not in _BLOBS:
        return shape.size
    # Here the server treats the bytes of a text as characters.
    return ((1 << 8 * shape.size) - 1) * (shape.scale or 1)


def _of_two_formats(kind: ColumnType) -> ColumnType:
    """Return the current one of two types that differ only in their format."""
    return _FORMER.get(kind, kind)


_FORMER = {
    ColumnType.DECIMAL: ColumnType.NEWDECIMAL,
    ColumnType.NEWDATE: ColumnType.DATE,
    ColumnType.TIMESTAMP: ColumnType.TIMESTAMP2,
    ColumnType.DATETIME: ColumnType.DATETIME2,
    ColumnType.TIME: ColumnType.TIME2,
    ColumnType.VAR_STRING: ColumnType.VARCHAR,
}
INTEGERS = {
    ColumnType.TINY: "tinyint",
    ColumnType.SHORT: "smallint",
    ColumnType.INT24: "mediumint",
    ColumnType.LONG: "int",
    ColumnType.LONGLONG: "bigint",
}
"""With their names."""
_INTEGERS = dict(zip(INTEGERS, (1, 2, 3, 4, 8), strict=True))
"""With their sizes in bytes."""
_REALS = frozenset({ColumnType.FLOAT, ColumnType.DOUBLE, ColumnType.NEWDECIMAL})
_BLOBS = frozenset({ColumnType.BLOB})
_STRINGS = frozenset({ColumnType.VARCHAR, ColumnType.STRING})
_TEXTS = _BLOBS | _STRINGS
_TIMES = frozenset({ColumnType.TIMESTAMP2, ColumnType.DATETIME2, ColumnType.TIME2})
_MEMBER = re.compile(r"'(?:[^']|'')*'")
_LENGTH_BYTES = {
    f"{size}{kind}": number
    for number, size in enumerate(("tiny", "", "medium", "long"), start=1)
    for kind in ("blob", "text")
}
_LONGEST_CHARACTERS = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "utf8", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "gbk", "big5", "sjis", "cp932", "euckr", "gb2312"), 2),
}
"""Bytes of the longest character, by character set; 1 in all others."""
_FIXED_BYTES = {"inet4": 4, "inet6": 16, "uuid": 16}
"""Types of MariaDB that are logged as BINARY, with their sizes."""
_GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geomcollection", "geometrycollection",
)  # fmt: skip
_DATA_TYPES = {
    "tinyint": ColumnType.TINY,
    "smallint": ColumnType.SHORT,
    "mediumint": ColumnType.INT24,
    "int": ColumnType.LONG,
    "bigint": ColumnType.LONGLONG,
    "decimal": ColumnType.NEWDECIMAL,
    "float": ColumnType.FLOAT,
    "double": ColumnType.DOUBLE,
    "bit": ColumnType.BIT,
    "year": ColumnType.YEAR,
    "date": ColumnType.DATE,
    "time": ColumnType.TIME2,
    "datetime": ColumnType.DATETIME2,
    "timestamp": ColumnType.TIMESTAMP2,
    "char": ColumnType.STRING,
    "binary": ColumnType.STRING,
    "varchar": ColumnType.VARCHAR,
    "varbinary": ColumnType.VARCHAR,
    "enum": ColumnType.ENUM,
    "set": ColumnType.SET,
    "json": ColumnType.JSON,
    "vector": ColumnType.VECTOR,
    **dict.fromkeys(_LENGTH_BYTES, ColumnType.BLOB),
    **dict.fromkeys(_GEOMETRIES, ColumnType.GEOMETRY),
}
_NAMES = {
    kind: name
    for name, kind in reversed(_DATA_TYPES.items())
    if kind not in {ColumnType.BLOB, ColumnType.GEOMETRY}
} | {ColumnType.GEOMETRY: "geometry"}
