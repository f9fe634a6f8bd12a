"""MariaDB's compressed Query and row events, turned into plain ones, and values of columns.

What is compressed is a Query event's statement, and a row event's rows: all that comes before them
is as in the plain event. It is a byte of the flag 0x80, the algorithm in bits 4 to 6 (0 zlib) and
the number of bytes of the length after it in bits 0 to 2; the uncompressed length, big-endian; the
data (MariaDB documentation, "Compressing Events to Reduce Size of the Binary Log"; the setting is
log_bin_compress).

A value of a COMPRESSED column, unless it is empty, is a byte of the method in its upper half (0 not
compressed, 8 zlib), bit 3 (deflate without zlib's header) and in bits 0 to 2 the number of bytes of
the length after it; the uncompressed length, big-endian; the data (MariaDB documentation,
"Storage-Engine Independent Column Compression").
"""

import zlib
from collections.abc import Mapping
from typing import Final

from mtsd.binlog.bytes.event_type import EventType, type_name
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.payload import LARGEST_EVENT
from mtsd.binlog.events.rows import parse_rows_header
from mtsd.model.errors import BinlogError

PLAIN_TYPES: Final[Mapping[int, int]] = {
    EventType.MARIADB_QUERY_COMPRESSED_EVENT.value: EventType.QUERY_EVENT.value,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1.value: EventType.WRITE_ROWS_EVENT_V1.value,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1.value: EventType.UPDATE_ROWS_EVENT_V1.value,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1.value: EventType.DELETE_ROWS_EVENT_V1.value,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT.value: EventType.WRITE_ROWS_EVENT.value,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT.value: EventType.UPDATE_ROWS_EVENT.value,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT.value: EventType.DELETE_ROWS_EVENT.value,
}
"""By compressed type."""

_QUERY_HEAD: Final = HEADER_SIZE + 13
_LONGEST_LENGTH: Final = 4
_ZLIB_COLUMN: Final = 8
_WITHOUT_HEADER: Final = 0x08
_LARGEST_RATIO: Final = 1032
"""Of deflate: a match of 258 bytes takes at least 2 bits (RFC 1951, 3.2.5)."""


def uncompressed(event: bytes) -> bytes:
    """Return the plain event; its header says its type and its own length.

    Raises BinlogError if it is truncated or cannot be decompressed.
    """
    code = event[4]
    plain = event[:4] + bytes((PLAIN_TYPES[code],)) + event[5:]
    at = _query_at(plain) if code == EventType.MARIADB_QUERY_COMPRESSED_EVENT else _rows_at(plain)
    data = _inflated(event[at:], type_name(code))
    size = at + len(data)
    return plain[:9] + size.to_bytes(4, "little") + plain[13:at] + data


def uncompressed_value(raw: bytes) -> bytes:
    """Return the plain value of a COMPRESSED column; BinlogError if it cannot be decompressed."""
    if not raw or raw[0] >> 4 == 0:
        return raw[1:]
    size = raw[0] & 0x07
    if raw[0] >> 4 != _ZLIB_COLUMN or not 0 < size <= _LONGEST_LENGTH or len(raw) <= size:
        raise BinlogError(f"a compressed value begins with an unknown byte {raw[0]:#04x}")
    length = int.from_bytes(raw[1 : 1 + size], "big")
    bits = -zlib.MAX_WBITS if raw[0] & _WITHOUT_HEADER else zlib.MAX_WBITS
    return _decompressed(raw[1 + size :], length, bits, "a compressed value")


def _query_at(event: bytes) -> int:
    if len(event) < _QUERY_HEAD:
        raise BinlogError(f"compressed Query event: cut off after {len(event)} bytes")
    status_size = int.from_bytes(event[_QUERY_HEAD - 2 : _QUERY_HEAD], "little")
    return _QUERY_HEAD + status_size + event[HEADER_SIZE + 8] + 1


def _rows_at(event: bytes) -> int:
    return parse_rows_header(event).rows_at


def _inflated(data: bytes, what: str) -> bytes:
    head = data[0] if data else 0
    size = head & 0x07
    if head & 0xF8 != 0x80 or not 0 < size <= _LONGEST_LENGTH or len(data) <= size:
        raise BinlogError(f"{what}: its compressed part begins with an unknown byte {head:#04x}")
    length = int.from_bytes(data[1 : 1 + size], "big")
    return _decompressed(data[1 + size :], length, zlib.MAX_WBITS, what)


def _decompressed(packed: bytes, length: int, bits: int, what: str) -> bytes:
    if length > min(LARGEST_EVENT, len(packed) * _LARGEST_RATIO):
        raise BinlogError(f"{what}: {len(packed)} bytes cannot hold the announced {length}")
    inflate = zlib.decompressobj(bits)
    try:
        # One byte more would be returned if there were one.
        contents = inflate.decompress(packed, length + 1)
    except zlib.error as error:
        raise BinlogError(f"{what}: {error}") from error
    if len(contents) != length or not inflate.eof or inflate.unused_data:
        raise BinlogError(f"{what}: its compressed part does not have the announced {length} bytes")
    return contents
