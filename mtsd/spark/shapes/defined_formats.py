"""The binary log formats of a table's columns, derived from its definition.

They contain only what the type of a column's values depends on.
"""

import re
from typing import Final

from mtsd.binlog.bytes.character_sets import BINARY, any_collation
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.catalog.definition import BYTES, ColumnDefinition, TableDefinition
from mtsd.model.errors import NotSupportedError

_T = ColumnType
_NUMBERS: Final = re.compile(r"[a-z ]+\((\d+)(?:,(\d+))?\)")
_PLAIN: Final = {
    "tinyint": _T.TINY, "bool": _T.TINY, "boolean": _T.TINY, "smallint": _T.SHORT,
    "mediumint": _T.INT24, "int": _T.LONG, "integer": _T.LONG, "bigint": _T.LONGLONG,
    "serial": _T.LONGLONG, "float": _T.FLOAT, "double": _T.DOUBLE, "year": _T.YEAR,
    "date": _T.DATE, "time": _T.TIME2, "datetime": _T.DATETIME2, "timestamp": _T.TIMESTAMP2,
    "json": _T.JSON, "vector": _T.VECTOR,
    **dict.fromkeys(("decimal", "numeric"), _T.NEWDECIMAL),
    **dict.fromkeys(
        ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
         "multipolygon", "geometrycollection", "geomcollection"),
        _T.GEOMETRY,
    ),
    **dict.fromkeys(("binary", "varbinary", "uuid", "inet6", "inet4"), _T.VARCHAR),
    **dict.fromkeys(("char", "varchar"), _T.VARCHAR),
    **dict.fromkeys(
        (f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("blob", "text")),
        _T.BLOB,
    ),
}  # fmt: skip
_DEFAULT_DIGITS: Final = 10
"""Of a DECIMAL."""


def defined_formats(definition: TableDefinition) -> tuple[ColumnFormat, ...]:
    """Return the formats; raises NotSupportedError for an unknown type."""
    return tuple(_format(definition, column) for column in definition.columns)


def _format(definition: TableDefinition, column: ColumnDefinition) -> ColumnFormat:
    where = f"column `{column.name}` of {definition}"
    numbers = _NUMBERS.match(column.type)
    first, second = (int(number or 0) for number in numbers.groups()) if numbers else (0, 0)
    kind = column.kind
    size = digits = scale = 0
    collation: int | None = None
    found = _PLAIN.get(kind)
    if kind == "bit":
        found, size = _T.BIT, (max(first, 1) + 7) // 8
    elif kind == "enum":
        found = _T.ENUM
    elif kind == "set":
        found, size = _T.SET, 8
    elif found is _T.NEWDECIMAL:
        digits, scale = first or _DEFAULT_DIGITS, second
    elif kind in BYTES:
        collation = BINARY
    elif found in {_T.VARCHAR, _T.BLOB} and column.character_set:
        collation = any_collation(column.character_set)
    elif found in {_T.TIME2, _T.DATETIME2, _T.TIMESTAMP2}:
        digits = first
    if found is None:
        raise NotSupportedError(f"{where}: type {column.type or 'not known'}")
    return ColumnFormat(
        found,
        0,
        size,
        where,
        digits,
        scale,
        unsigned=column.unsigned,
        collation=collation,
        members=tuple(member.encode() for member in column.members),
        name=column.name,
    )
