"""The values of row images as literals, which mean the same in every sql_mode and character set.

Strings are hexadecimal, with the character set they have in the image; ENUM and SET are numbers;
dates and times are text of digits, for a session whose time zone is UTC.
"""

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from mtsd.apply.sql import literals
from mtsd.apply.sql.json_literal import double_literal, json_literal
from mtsd.binlog.bytes.character_sets import BINARY, character_set
from mtsd.binlog.events.mariadb_compressed import uncompressed_value
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import converter
from mtsd.binlog.values.json_binary import json_text

MakeLiteral: TypeAlias = Callable[[bytes], bytes]
"""From the bytes of a value, which is not NULL, to its literal; raises BinlogError."""

_T = ColumnType
_unpack_single = struct.Struct("<f").unpack
_unpack_double = struct.Struct("<d").unpack
_NUMBERS: Final = frozenset({
    _T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG, _T.YEAR, _T.BIT, _T.NEWDECIMAL,
})  # fmt: skip
_TIMES: Final = frozenset({
    _T.DATE, _T.NEWDATE, _T.TIME, _T.TIME2, _T.DATETIME, _T.DATETIME2, _T.TIMESTAMP, _T.TIMESTAMP2,
})  # fmt: skip
_TEXTS: Final = frozenset({_T.STRING, _T.VARCHAR, _T.VAR_STRING, _T.BLOB})


def literal_maker(column: ColumnFormat) -> MakeLiteral:
    """Return what makes literals of a column's values.

    Raises NotSupportedError if something is needed that nobody has told: whether an integer is
    signed, the character set of a text.
    """
    if column.compressed:
        return partial(_uncompressed, literal_maker(replace(column, compressed=False)))
    match column.type:
        case kind if kind in _NUMBERS:
            return partial(_number, converter(column))
        case kind if kind in _TIMES:
            return partial(_quoted, converter(column))
        case _T.ENUM | _T.SET:
            return _bits
        case _T.FLOAT:
            return _single
        case _T.DOUBLE:
            return _double
        case _T.JSON:
            return json_literal
        case _T.STRING if column.is_bytes:
            return partial(_padded, column.size)
        case kind if kind in _TEXTS and not column.is_bytes:
            name = character_set(column.collation or BINARY).encode()
            return partial(_text, b"_%b X'" % name)
    return _bytes


def _uncompressed(make: MakeLiteral, raw: bytes) -> bytes:
    return make(uncompressed_value(raw))


def _number(convert: Callable[[bytes], object], raw: bytes) -> bytes:
    value = convert(raw)
    return (f"{value:d}" if isinstance(value, int) else f"{value:f}").encode()


def _quoted(convert: Callable[[bytes], object], raw: bytes) -> bytes:
    return b"'%b'" % str(convert(raw)).encode()


def _bits(raw: bytes) -> bytes:
    return b"%d" % int.from_bytes(raw, "little")


def _single(raw: bytes) -> bytes:
    value: float = _unpack_single(raw)[0]
    return double_literal(value)


def _double(raw: bytes) -> bytes:
    value: float = _unpack_double(raw)[0]
    return double_literal(value)


def _padded(size: int, raw: bytes) -> bytes:
    # A BINARY is logged without the zeros at its end.
    return _bytes(raw.ljust(size, b"\0"))


def _text(prefix: bytes, raw: bytes) -> bytes:
    return b"%b%b'" % (prefix, raw.hex().encode())


def _bytes(raw: bytes) -> bytes:
    return b"X'%b'" % raw.hex().encode()


def with_offset(make: MakeLiteral) -> MakeLiteral:
    """Return what makes TIMESTAMPs that are the same in every time zone of the session."""

    def of_utc(raw: bytes) -> bytes:
        literal = make(raw)
        # The zero is not a time.
        return literal if literal.startswith(b"'0000") else literal[:-1] + b"+00:00'"

    return of_utc


def json_as_text(raw: bytes) -> bytes:
    """Return the text of a JSON document in binary form as a literal; BinlogError if damaged."""
    return literals.utf8(json_text(raw) if raw else "null")


def text_as_json(make: MakeLiteral) -> MakeLiteral:
    """Return what makes JSON documents of texts."""

    def document(raw: bytes) -> bytes:
        return b"CAST(%b AS JSON)" % make(raw)

    return document


def is_text(column: ColumnFormat) -> bool:
    """Return whether the values are text, which a server compares by a collation."""
    return column.type in _TEXTS and not column.is_bytes
