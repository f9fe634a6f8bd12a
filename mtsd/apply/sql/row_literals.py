"""The values of row images as literals, which mean the same in every sql_mode and character set.

Strings are hexadecimal, with the character set they have in the image; ENUM and SET are numbers;
dates and times are text of digits, for a session whose time zone is UTC.

The most frequent types are written without a value in between, because a row may have hundreds of
columns: what is none of their values is left to those who decode values, and say what is wrong. The
formats are described in `mtsd.binlog.bytes.packed_decimal` and `mtsd.binlog.values.temporal`.
"""

import struct
from binascii import hexlify
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from mtsd.apply.sql import literals
from mtsd.apply.sql.json_literal import double_literal, json_literal
from mtsd.binlog.bytes.character_sets import BINARY, character_set
from mtsd.binlog.bytes.packed_decimal import groups, unpack_decimal
from mtsd.binlog.events.mariadb_compressed import uncompressed_value
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import converter, is_unsigned
from mtsd.binlog.values.json_binary import json_text
from mtsd.binlog.values.temporal import datetime2_text, timestamp2_text

MakeLiteral: TypeAlias = Callable[[bytes], bytes]
"""From the bytes of a value, which is not NULL, to its literal; raises BinlogError."""

_T = ColumnType
_unpack_single = struct.Struct("<f").unpack
_unpack_double = struct.Struct("<d").unpack
_INTEGERS: Final = frozenset({_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG})
_NUMBERS: Final = frozenset({_T.YEAR, _T.BIT})
_TIMES: Final = frozenset({_T.DATE, _T.NEWDATE, _T.TIME, _T.TIME2, _T.DATETIME, _T.TIMESTAMP})
_TEXTS: Final = frozenset({_T.STRING, _T.VARCHAR, _T.VAR_STRING, _T.BLOB})


def literal_maker(column: ColumnFormat) -> MakeLiteral:
    """Return what makes literals of a column's values.

    Raises NotSupportedError if something is needed that nobody has told: whether an integer is
    signed, the character set of a text.
    """
    if column.compressed:
        return partial(_uncompressed, literal_maker(replace(column, compressed=False)))
    match column.type:
        case kind if kind in _INTEGERS:
            return _bits if is_unsigned(column) else _signed
        case kind if kind in _NUMBERS:
            return partial(_number, converter(column))
        case _T.NEWDECIMAL:
            return DecimalLiterals(column.digits, column.scale).of
        case _T.DATETIME2:
            return MomentLiterals(column.digits).of_datetime
        case _T.TIMESTAMP2:
            return MomentLiterals(column.digits).of_timestamp
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


def _signed(raw: bytes) -> bytes:
    return str(int.from_bytes(raw, "little", signed=True)).encode()


def _bits(raw: bytes) -> bytes:
    return str(int.from_bytes(raw, "little")).encode()


def _number(convert: Callable[[bytes], object], raw: bytes) -> bytes:
    return str(convert(raw)).encode()


def _quoted(convert: Callable[[bytes], object], raw: bytes) -> bytes:
    return b"'%b'" % str(convert(raw)).encode()


class DecimalLiterals:
    """Literals of a DECIMAL of so many digits, with all those behind the point.

    For example, of DECIMAL(4,2) the bytes 8C 22 are `12.34`.
    """

    __slots__ = ("_digits", "_flips", "_fraction", "_negative", "_scale", "_sign", "_whole")

    def __init__(self, digits: int, scale: int) -> None:
        self._digits = digits
        self._scale = scale
        # From its end: how far to shift, what to take, and what is too much.
        parts: list[tuple[int, int, int, int]] = []
        shift = behind = 0
        for size, count in reversed(groups(digits, scale)):
            parts.append((shift, (1 << 8 * size) - 1, 10**count, behind))
            shift += 8 * size
            behind += count
        parts.reverse()
        self._whole = [each[:3] for each in parts if each[3] >= scale]
        self._fraction = [each[:3] for each in parts if each[3] < scale]
        self._sign = 1 << (shift - 1)
        self._negative = (1 << shift) - 1

    def of(self, raw: bytes) -> bytes:
        """Return the literal of a value. Raises BinlogError."""
        bits = int.from_bytes(raw, "big") ^ self._sign
        sign = ""
        if bits & self._sign:
            bits ^= self._negative
            sign = "-"
        whole = 0
        for shift, mask, limit in self._whole:
            group = bits >> shift & mask
            if group >= limit:
                return self._other(raw)
            whole = whole * limit + group
        if not self._scale:
            return f"{sign}{whole}".encode()
        fraction = 0
        for shift, mask, limit in self._fraction:
            group = bits >> shift & mask
            if group >= limit:
                return self._other(raw)
            fraction = fraction * limit + group
        behind = str(fraction)
        if len(behind) < self._scale:
            behind = behind.zfill(self._scale)
        return f"{sign}{whole}.{behind}".encode()

    def _other(self, raw: bytes) -> bytes:
        """Say what is wrong with bytes that are none."""
        return f"{unpack_decimal(raw, self._digits, self._scale):f}".encode()


_TWO_DIGITS: Final = [f"{number:02d}" for number in range(100)]
_DAY_S: Final = 86_400
_MAX_DAYS: Final = 4096
"""How many days are remembered: most times of a table are of few days."""
_DATETIME2: Final = 1 << 39


class MomentLiterals:
    """Literals of a DATETIME or TIMESTAMP with so many digits of a fraction of a second."""

    __slots__ = ("_days", "_digits", "_width")

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._width = digits + digits % 2
        """Digits that are stored."""
        self._days: dict[int, str] = {}
        """The dates of days, in front of a time of day, by a number of the format."""

    def of_datetime(self, raw: bytes) -> bytes:
        """Return the literal of a DATETIME. Raises BinlogError."""
        bits = int.from_bytes(raw[:5], "big") - _DATETIME2
        hour, minute, second = bits >> 12 & 31, bits >> 6 & 63, bits & 63
        day = self._days.get(bits >> 17)
        fraction = self._fraction(raw, 5)
        if day is None or hour > 23 or minute > 59 or second > 59 or fraction is None:
            text = datetime2_text(raw, self._digits)
            self._remember(bits >> 17, text)
            return b"'%b'" % text.encode()
        two = _TWO_DIGITS
        return f"'{day}{two[hour]}:{two[minute]}:{two[second]}{fraction}'".encode()

    def of_timestamp(self, raw: bytes) -> bytes:
        """Return the literal of a TIMESTAMP. Raises BinlogError."""
        seconds = int.from_bytes(raw[:4], "big")
        number = seconds // _DAY_S
        day = self._days.get(number)
        fraction = self._fraction(raw, 4)
        # 0 is no instant, and looks otherwise.
        if day is None or seconds == 0 or fraction is None:
            text = timestamp2_text(raw, self._digits)
            if seconds:
                self._remember(number, text)
            return b"'%b'" % text.encode()
        minutes, second = divmod(seconds - number * _DAY_S, 60)
        hour, minute = divmod(minutes, 60)
        two = _TWO_DIGITS
        return f"'{day}{two[hour]}:{two[minute]}:{two[second]}{fraction}'".encode()

    def _fraction(self, raw: bytes, at: int) -> str | None:
        """Return the point and digits that begin there; None if these are too many."""
        if not self._digits:
            return ""
        text = str(int.from_bytes(raw[at:], "big"))
        if len(text) != self._width:
            if len(text) > self._width:
                return None
            text = text.zfill(self._width)
        return "." + text[: self._digits]

    def _remember(self, number: int, text: str) -> None:
        if len(self._days) >= _MAX_DAYS:
            self._days.clear()
        self._days[number] = text[:11]


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
    return b"".join((prefix, hexlify(raw), b"'"))


def _bytes(raw: bytes) -> bytes:
    return b"".join((b"X'", hexlify(raw), b"'"))


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
