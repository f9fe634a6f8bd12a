"""JSON documents in their binary form, to the text that a SELECT shows.

A type byte, then a value. Objects and arrays: number of elements, size of the whole; for an object
the offset and length u16 of each key; the type of each value and its offset, or the value itself
where it fits in there; then keys and values. Numbers and offsets take 2 bytes in the small form,
4 in the large one, and offsets count from the number of elements. All integers are little-endian
(MySQL documentation, json_binary.h: "JSON binary representation").
"""

import struct
from base64 import encodebytes
from json.encoder import encode_basestring
from typing import Final

from pymysqlreplication import json_binary as codes

from mtsd.binlog.bytes.packed_decimal import packed_size, unpack_decimal
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.json_number import double_text
from mtsd.binlog.values.temporal import packed_date_text, packed_datetime_text, packed_time_text
from mtsd.model.errors import BinlogError

SMALL_OBJECT: Final[int] = codes.JSONB_TYPE_SMALL_OBJECT
LARGE_OBJECT: Final[int] = codes.JSONB_TYPE_LARGE_OBJECT
SMALL_ARRAY: Final[int] = codes.JSONB_TYPE_SMALL_ARRAY
LARGE_ARRAY: Final[int] = codes.JSONB_TYPE_LARGE_ARRAY
LITERAL: Final[int] = codes.JSONB_TYPE_LITERAL
INT16: Final[int] = codes.JSONB_TYPE_INT16
UINT16: Final[int] = codes.JSONB_TYPE_UINT16
INT32: Final[int] = codes.JSONB_TYPE_INT32
UINT32: Final[int] = codes.JSONB_TYPE_UINT32
INT64: Final[int] = codes.JSONB_TYPE_INT64
UINT64: Final[int] = codes.JSONB_TYPE_UINT64
DOUBLE: Final[int] = codes.JSONB_TYPE_DOUBLE
STRING: Final[int] = codes.JSONB_TYPE_STRING
OPAQUE: Final[int] = codes.JSONB_TYPE_OPAQUE

LITERALS: Final = ("null", "true", "false")
DEEPEST: Final = 100
"""Levels of a document; a server takes no more."""

_NULL: Final = "null"
_DECIMAL: Final[int] = ColumnType.NEWDECIMAL.value
_DATE: Final[int] = ColumnType.DATE.value
_TIME: Final[int] = ColumnType.TIME.value
_TIMES: Final = frozenset({_DATE, _TIME, ColumnType.DATETIME.value, ColumnType.TIMESTAMP.value})
_unpack_double = struct.Struct("<d").unpack_from
_MAX_KEYS: Final = 4096


def json_text(raw: bytes) -> str:
    """Return the text of a document; BinlogError where it is cut off or not of this form.

    No bytes at all are the null that ALTER TABLE gives to the rows of a new column NOT NULL.
    """
    if not raw:
        return _NULL
    document = JsonDocument(raw)
    document.write(raw[0], 1, 0)
    return "".join(document.parts)


class JsonDocument:
    """A document that is being read: the parts of its text so far, in order."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.parts: list[str] = []
        self._left = len(raw)
        """Bytes that no value has claimed: in a sound document each belongs to one only."""

    def write(self, kind: int, at: int, depth: int) -> None:
        """Write the value of type `kind` whose bytes begin at `at`."""
        if kind <= LARGE_ARRAY:
            self._container(kind, at, depth)
        else:
            self.parts.append(self.scalar(kind, at))

    def scalar(self, kind: int, at: int) -> str:
        """Return the text of a value that is neither an object nor an array."""
        if kind == STRING:
            return self._string(at)
        if kind == DOUBLE:
            return self._double(at)
        if kind == OPAQUE:
            return self._opaque(at)
        return self._number(kind, at, 8)

    def entries(self, kind: int, at: int, depth: int) -> tuple[int, int, int]:
        """Return an object's or array's number of elements and where keys and values begin."""
        width = 4 if kind & 1 else 2
        count = self._uint(at, width)
        size = self._uint(at + width, width)
        keys = at + 2 * width
        values = keys + count * (width + 2) if kind <= LARGE_OBJECT else keys
        header = values + count * (1 + width) - at
        self._claim(header)
        if header > size or at + size > len(self.raw):
            raise BinlogError(
                f"JSON: an object or array of {size} bytes at byte {at} of {len(self.raw)}"
            )
        if depth > DEEPEST:
            raise BinlogError(f"JSON: more than {DEEPEST} levels")
        return count, keys, values

    def key(self, entry: int, at: int, width: int) -> bytes:
        """Return the key whose entry is given, of the object at `at`."""
        start = at + self._uint(entry, width)
        end = start + self._uint(entry + width, 2)
        if end > len(self.raw):
            raise BinlogError(f"JSON: a key of an object at byte {at} ends at byte {end}")
        self._claim(end - start)
        return self.raw[start:end]

    def element(self, entry: int, at: int, width: int) -> tuple[int, int]:
        """Return the type of a value and where its bytes begin, given its entry.

        A value that stands in the entry itself is told by a place behind the type.
        """
        kind = self.raw[entry]
        if is_inlined(kind, width):
            return kind, entry + 1
        return kind, at + self._uint(entry + 1, width)

    def _container(self, kind: int, at: int, depth: int) -> None:
        raw = self.raw
        parts = self.parts
        width = 4 if kind & 1 else 2
        is_object = kind <= LARGE_OBJECT
        count, keys, values = self.entries(kind, at, depth)
        if not count:
            parts.append("{}" if is_object else "[]")
            return
        separator = "{" if is_object else "["
        for index in range(count):
            parts.append(separator)
            separator = ", "
            if is_object:
                parts.append(_key_text(self.key(keys + index * (width + 2), at, width)))
            entry = values + index * (1 + width)
            kind = raw[entry]
            if is_inlined(kind, width):
                parts.append(self._number(kind, entry + 1, width))
                continue
            place = at + self._uint(entry + 1, width)
            if kind == STRING:
                parts.append(self._string(place))
            elif kind <= LARGE_ARRAY:
                self._container(kind, place, depth + 1)
            else:
                parts.append(self.scalar(kind, place))
        parts.append("}" if is_object else "]")

    def _number(self, kind: int, at: int, room: int) -> str:
        """Return a literal or an integer that has `room` bytes at most."""
        raw = self.raw
        if kind == LITERAL:
            if at >= len(raw) or raw[at] > 2:
                raise BinlogError(f"JSON: no literal at byte {at}")
            return LITERALS[raw[at]]
        if not INT16 <= kind <= UINT64:
            raise BinlogError(f"JSON: type {kind} at byte {at} is not known")
        size = 2 << ((kind - INT16) >> 1)
        if size > room or at + size > len(raw):
            raise BinlogError(f"JSON: a number of {size} bytes at byte {at} of {len(raw)}")
        return str(int.from_bytes(raw[at : at + size], "little", signed=bool(kind & 1)))

    def _double(self, at: int) -> str:
        if at + 8 > len(self.raw):
            raise BinlogError(f"JSON: a number of 8 bytes at byte {at} of {len(self.raw)}")
        number: float = _unpack_double(self.raw, at)[0]
        return double_text(number)

    def _string(self, at: int) -> str:
        raw = self.raw
        if at < len(raw) and raw[at] < 0x80:
            start = at + 1
            end = start + raw[at]
            if end > len(raw):
                raise BinlogError(f"JSON: a string at byte {at} ends at byte {end} of {len(raw)}")
            self._claim(end - at)
        else:
            start, end = self.sized(at)
        return _quoted(raw[start:end])

    def _opaque(self, at: int) -> str:
        start, end = self.sized(at + 1)
        return _opaque_text(self.raw[at], self.raw[start:end])

    def sized(self, at: int) -> tuple[int, int]:
        """Return where bytes begin and end whose length is given at `at`, 7 bits a byte."""
        raw = self.raw
        size = shift = 0
        place = at
        while True:
            if place >= len(raw) or shift > 28:
                raise BinlogError(f"JSON: no length at byte {at} of {len(raw)}")
            byte = raw[place]
            place += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        end = place + size
        if end > len(raw):
            raise BinlogError(f"JSON: {size} bytes at byte {place} of {len(raw)}")
        self._claim(end - at)
        return place, end

    def _uint(self, at: int, width: int) -> int:
        raw = self.raw
        if at + width > len(raw):
            raise BinlogError(f"JSON: cut off at byte {len(raw)}")
        if width == 2:
            return raw[at] | raw[at + 1] << 8
        return int.from_bytes(raw[at : at + 4], "little")

    def _claim(self, size: int) -> None:
        """Count bytes as used: damage may have values share them, and grow without bounds."""
        self._left -= size
        if self._left < 0:
            raise BinlogError(f"JSON: the values take more than {len(self.raw)} bytes")


def is_inlined(kind: int, width: int) -> bool:
    """Tell whether values of the type stand in their entries, of `width` bytes besides the type."""
    return LITERAL <= kind <= UINT16 or (width == 4 and INT32 <= kind <= UINT32)


def _quoted(raw: bytes) -> str:
    try:
        return encode_basestring(raw.decode())
    except UnicodeDecodeError as error:
        raise BinlogError(f"JSON: {raw[:80]!r} is not UTF-8") from error


_key_texts: dict[bytes, str] = {}


def _key_text(raw: bytes) -> str:
    known = _key_texts.get(raw)
    if known is None:
        known = _quoted(raw) + ": "
        if len(_key_texts) >= _MAX_KEYS:
            _key_texts.clear()
        _key_texts[raw] = known
    return known


def _opaque_text(kind: int, raw: bytes) -> str:
    """Return the text of a value of a type that JSON does not have."""
    if kind == _DECIMAL:
        if len(raw) < 3 or len(raw) != 2 + packed_size(raw[0], raw[1]):
            raise BinlogError(f"JSON: {raw.hex()} is no decimal number")
        return f"{unpack_decimal(raw[2:], raw[0], raw[1]):f}"
    if kind in _TIMES:
        if len(raw) != 8:
            raise BinlogError(f"JSON: {raw.hex()} is no date or time")
        packed = int.from_bytes(raw, "little", signed=True)
        if kind == _DATE:
            text = packed_date_text(packed)
        elif kind == _TIME:
            text = packed_time_text(packed)
        else:
            text = packed_datetime_text(packed)
        return f'"{text}"'
    # In lines of 76, as the server encodes anything.
    return encode_basestring(f"base64:type{kind}:{encodebytes(raw).decode().rstrip()}")
