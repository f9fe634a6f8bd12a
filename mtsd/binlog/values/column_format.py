"""How the values of a column are written in row images.

A value is of a fixed size, or a length of `prefix` bytes and as many bytes as it says; the length
and all else that varies within a type are the type's metadata in the table map. What a value means
may need more: the sign, the collation and the members are in the optional metadata since 8.0 as far
as binlog_row_metadata goes (MySQL documentation, `mysql::binlog::event::Table_map_event`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.bytes.character_sets import BINARY
from mtsd.binlog.bytes.packed_decimal import packed_size
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType, LoggedColumn, parse_columns
from mtsd.binlog.values.table_metadata import OptionalMetadata, parse_optional_metadata
from mtsd.model.errors import BinlogError, NotSupportedError

_T = ColumnType


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """One column of a table map.

    `prefix` is the number of bytes that the length of a value takes, 0 where each value has `size`
    bytes; with a prefix `size` is the most that the column holds, 0 where that is not told.
    `digits` are those of a DECIMAL or of the fraction of a second, `scale` those behind the point.
    `collation` and `unsigned` are None where nobody has told them; `members`, of an ENUM or SET,
    and `name` are empty then. `where` names the column in errors, `quoted` as well as it can be.
    `compressed` values have to be uncompressed first (`mtsd.binlog.events.mariadb_compressed`).
    """

    type: ColumnType
    prefix: int
    size: int
    where: str
    digits: int = 0
    scale: int = 0
    unsigned: bool | None = None
    collation: int | None = None
    members: tuple[bytes, ...] = ()
    name: str = ""
    compressed: bool = False

    @property
    def is_bytes(self) -> bool:
        """Whether the values are bytes rather than text; NotSupportedError where nobody knows."""
        if self.collation is None:
            raise NotSupportedError(
                f"{self.where}: the binary log does not tell its character set, and nothing else"
                " has told it"
            )
        return self.collation == BINARY


def column_formats(
    table: TableMap, declared: OptionalMetadata | None = None, *, for_rows: bool = True
) -> tuple[ColumnFormat, ...]:
    """Return the formats of a table map's columns.

    `declared` stands for what the table map does not say of them itself. Raises BinlogError where
    the table map does not agree with itself, and, unless it is not `for_rows`, NotSupportedError
    where nobody tells how many bytes a value has.
    """
    own = parse_optional_metadata(table)
    if declared is None:
        declared = _NOTHING
    columns = parse_columns(table)
    names = own.names or declared.names
    if names and len(names) != len(columns):
        raise BinlogError(
            f"`{table.database}`.`{table.table}` has {len(columns)} columns in the binary log and"
            f" {len(names)} in its definition"
        )
    formats = []
    for index, column in enumerate(columns):
        name = names[index] if names else ""
        label = f"column `{name}`" if name else f"column {index + 1}"
        prefix, size = _framing(column)
        if (
            for_rows
            and table.mariadb
            and column.type in _OLD
            and declared.fractions.get(index) != 0
        ):
            raise NotSupportedError(
                f"{label} of `{table.database}`.`{table.table}` is a {column.type.name} in the"
                " format of MariaDB 5.3, of which the binary log does not tell how many digits its"
                " fraction of a second has, so that the rows cannot be decoded; set"
                " mysql56_temporal_format = ON on the source, and ALTER TABLE … FORCE there"
            )
        decimal = column.type is _T.NEWDECIMAL
        formats.append(
            ColumnFormat(
                column.type,
                prefix,
                size,
                f"{label} of `{table.database}`.`{table.table}`",
                column.metadata[0] if decimal or column.type in _FRACTIONS else 0,
                column.metadata[1] if decimal else 0,
                own.unsigned.get(index, declared.unsigned.get(index)),
                own.collations.get(index, declared.collations.get(index)),
                _members(column.type, index, own) or _members(column.type, index, declared),
                name,
                column.compressed,
            )
        )
    return tuple(formats)


_NOTHING: Final = OptionalMetadata()


def _members(kind: ColumnType, index: int, declared: OptionalMetadata) -> tuple[bytes, ...]:
    values = declared.set_values if kind is _T.SET else declared.enum_values
    return values.get(index, ())


def _framing(column: LoggedColumn) -> tuple[int, int]:
    """Return a column's prefix and size."""
    data = column.metadata
    if column.array:
        raise NotSupportedError(
            "the array of a multi-valued index: servers have written none to a binary log so far"
        )
    match column.type:
        case kind if kind in _SIZES:
            return 0, _SIZES[kind]
        case _T.TIMESTAMP2 | _T.DATETIME2 | _T.TIME2:
            if data[0] > 6:
                raise BinlogError(f"Table_map event: {data[0]} digits of a fraction of a second")
            return 0, _FRACTIONS[column.type] + (data[0] + 1) // 2
        case _T.NEWDECIMAL:
            return 0, packed_size(data[0], data[1])
        case _T.BIT:
            return 0, data[1] + (data[0] > 0)
        case _T.ENUM | _T.SET:
            if data[1] not in ({1, 2} if column.type is _T.ENUM else {1, 2, 3, 4, 8}):
                raise BinlogError(f"Table_map event: an {column.type.name} of {data[1]} bytes")
            return 0, data[1]
        case _T.VARCHAR | _T.VAR_STRING:
            longest = int.from_bytes(data, "little")
            return 1 if longest < 256 else 2, longest
        case _T.STRING:
            # Two bits of the length are hidden, inverted, in the byte of the type.
            longest = data[1] | ((data[0] & 0x30) ^ 0x30) << 4
            return 1 if longest < 256 else 2, longest
        case _T.BLOB | _T.GEOMETRY | _T.JSON | _T.VECTOR:
            if data[0] not in {1, 2, 3, 4}:
                raise BinlogError(f"Table_map event: lengths of {data[0]} bytes")
            return data[0], 0
        case kind:
            raise NotSupportedError(
                f"columns of type {kind.name} are of servers before 5.6, which mtsd does not read"
            )


_SIZES: Final = {
    _T.TINY: 1,
    _T.SHORT: 2,
    _T.INT24: 3,
    _T.LONG: 4,
    _T.LONGLONG: 8,
    _T.FLOAT: 4,
    _T.DOUBLE: 8,
    _T.YEAR: 1,
    _T.DATE: 3,
    _T.NEWDATE: 3,
    _T.TIME: 3,
    _T.DATETIME: 8,
    _T.TIMESTAMP: 4,
    _T.NULL: 0,
}
_OLD: Final = frozenset({_T.TIME, _T.DATETIME, _T.TIMESTAMP})
"""Without a fraction on MySQL; on MariaDB, the size of a value depends on it."""
_FRACTIONS: Final = {_T.TIMESTAMP2: 4, _T.DATETIME2: 5, _T.TIME2: 3}
"""With the bytes before the fraction."""


def is_hidden(table: TableMap, column: ColumnFormat) -> bool:
    """Tell whether a column, if it is named, is none of the table's own.

    A MariaDB adds one with the hash of each unique key that is too long for an index, as that of a
    whole TEXT is. It accepts no other column with a name that begins so.
    """
    return table.mariadb and column.type is _T.LONGLONG and column.name.startswith(HASH)


HASH: Final = "DB_ROW_HASH_"
"""How the names of hidden columns begin."""


def json_columns(formats: Sequence[ColumnFormat]) -> list[int]:
    """Return the columns that have a bit in the bitmap of partial JSON updates."""
    return [index for index, column in enumerate(formats) if column.type is _T.JSON]
