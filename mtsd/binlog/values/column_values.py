"""One value of a row: from its bytes to what a SELECT on the server shows.

Integers, BIT, YEAR: int. FLOAT, DOUBLE: float, a FLOAT as exactly as it is kept. DECIMAL: Decimal
with all its digits. Text, dates and times (`mtsd.binlog.values.temporal`), JSON: str. ENUM and SET:
str, or the number where the members are not told. BINARY, BLOB, GEOMETRY (SRID u32 and WKB), VECTOR
(its numbers as little-endian singles): bytes.
"""

import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TypeAlias

from mtsd.binlog.bytes.character_sets import BINARY, text_decoder
from mtsd.binlog.bytes.packed_decimal import unpack_decimal
from mtsd.binlog.events.mariadb_compressed import uncompressed_value
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.json_binary import json_text
from mtsd.binlog.values.json_diff import JsonDiffs
from mtsd.binlog.values.temporal import (
    date_text,
    datetime2_text,
    datetime_text,
    time2_text,
    time_text,
    timestamp2_text,
    timestamp_text,
    year_value,
)
from mtsd.model.errors import BinlogError, NotSupportedError

Value: TypeAlias = int | float | str | bytes | Decimal | JsonDiffs | None
"""None is NULL; diffs are a partial update of a document that the event does not hold."""
Convert: TypeAlias = Callable[[bytes], Value]

_T = ColumnType
_unpack_single = struct.Struct("<f").unpack
_unpack_double = struct.Struct("<d").unpack


def converter(column: ColumnFormat) -> Convert:
    """Return what makes values of a column's bytes; it raises BinlogError.

    NotSupportedError where something is needed that the table map does not tell: whether an
    integer is signed, the character set of a text.
    """
    if column.compressed:
        return partial(_uncompressed, converter(replace(column, compressed=False)))
    match column.type:
        case _T.TINY | _T.SHORT | _T.INT24 | _T.LONG | _T.LONGLONG:
            return _unsigned if is_unsigned(column) else _signed
        case _T.YEAR:
            return year_value
        case _T.FLOAT:
            return _single
        case _T.DOUBLE:
            return _double
        case _T.NEWDECIMAL:
            return partial(unpack_decimal, digits=column.digits, scale=column.scale)
        case _T.BIT:
            return _big_endian
        case _T.ENUM:
            return (
                partial(_enum, member_names(column), column.where) if column.members else _unsigned
            )
        case _T.SET:
            return (
                partial(_set, member_names(column), column.where) if column.members else _unsigned
            )
        case _T.DATE | _T.NEWDATE:
            return date_text
        case _T.TIME:
            return time_text
        case _T.DATETIME:
            return datetime_text
        case _T.TIMESTAMP:
            return timestamp_text
        case _T.TIME2:
            return partial(time2_text, digits=column.digits)
        case _T.DATETIME2:
            return partial(datetime2_text, digits=column.digits)
        case _T.TIMESTAMP2:
            return partial(timestamp2_text, digits=column.digits)
        case _T.JSON:
            return json_text
        case _T.GEOMETRY | _T.VECTOR:
            return bytes
        case _T.STRING if column.is_bytes:
            return partial(_padded, size=column.size)
        case _T.STRING | _T.VARCHAR | _T.VAR_STRING | _T.BLOB:
            return bytes if column.is_bytes else text_decoder(column.collation or BINARY)
        case kind:
            raise NotSupportedError(f"{column.where}: values of type {kind.name} are not decoded")


def is_unsigned(column: ColumnFormat) -> bool:
    """Tell whether an integer has no sign; NotSupportedError where nobody knows."""
    if column.unsigned is None:
        raise NotSupportedError(
            f"{column.where}: the binary log does not tell whether it is UNSIGNED, and nothing else"
            " has told it"
        )
    return column.unsigned


def member_names(column: ColumnFormat) -> tuple[str, ...]:
    """Return the members of an ENUM or SET; NotSupportedError without their character set."""
    if column.is_bytes:
        # Of CHARACTER SET binary; there is no other text for them.
        return tuple(member.decode("latin-1") for member in column.members)
    decode = text_decoder(column.collation or BINARY)
    return tuple(map(decode, column.members))


def _uncompressed(convert: Convert, raw: bytes) -> Value:
    return convert(uncompressed_value(raw))


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _unsigned(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _big_endian(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _single(raw: bytes) -> float:
    value: float = _unpack_single(raw)[0]
    return value


def _double(raw: bytes) -> float:
    value: float = _unpack_double(raw)[0]
    return value


def _padded(raw: bytes, size: int) -> bytes:
    """Give a BINARY the zeros at its end back, which are not logged."""
    return raw.ljust(size, b"\0")


def _enum(members: tuple[str, ...], where: str, raw: bytes) -> str:
    number = int.from_bytes(raw, "little")
    # 0 is what a server without strict mode keeps of a value that is no member.
    if number > len(members):
        raise BinlogError(f"{where}: member {number} of {len(members)}")
    return members[number - 1] if number else ""


def _set(members: tuple[str, ...], where: str, raw: bytes) -> str:
    bits = int.from_bytes(raw, "little")
    if bits >> len(members):
        raise BinlogError(f"{where}: members {bits:#x} of {len(members)}")
    return set_text(members, bits)


def set_text(members: tuple[str, ...], bits: int) -> str:
    """Return a SET as a SELECT shows it: no comma follows an empty member at the beginning."""
    text = ""
    for place, member in enumerate(members):
        if bits >> place & 1:
            text = f"{text},{member}" if text else member
    return text
