"""TRANSACTION_PAYLOAD events: a transaction's events in one, most often compressed.

Body: fields of type, size and value, each a length-encoded integer: 1 size of the payload, 2
compression type (0 zstd, 255 none), 3 size uncompressed; type 0, with neither size nor value, ends
them. Then the payload to the event's end. The inner events carry no checksum (MySQL documentation,
`mysql::binlog::event::Transaction_payload_event`).
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from mtsd.binlog.cursor import Cursor
from mtsd.binlog.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

ZSTD = 0
NONE = 255
LARGEST_EVENT = 1 << 30
"""Bytes: servers write no larger event (max_allowed_packet ends there)."""
MOST_FRAMES = 1024
"""Servers write one zstd frame; what is behind a frame is copied for the next."""
_LARGEST_RATIO = 1 << 16
"""A zstd block is of 128 KiB at most, and takes 4 bytes at least (RFC 8878, 3.1.1.2)."""

_WHAT = "TRANSACTION_PAYLOAD event"
_FIELDS = {1: "size of the payload", 2: "compression type", 3: "size uncompressed"}


@dataclass(frozen=True, slots=True)
class PayloadHeader:
    """How the payload is kept; it begins `payload_at` bytes into the event."""

    compression: int
    uncompressed_size: int
    payload_size: int
    payload_at: int


def parse_payload_header(event: bytes) -> PayloadHeader:
    """Decode the fields before the payload.

    BinlogError where the event is cut off, a field is unknown, missing or does not agree with the
    event's size, and for a compression other than zstd or none.
    """
    cursor = Cursor(event, HEADER_SIZE, _WHAT)
    values: dict[int, int] = {}
    while field := cursor.net_int("field type"):
        name = _FIELDS.get(field)
        if name is None:
            raise BinlogError(f"{_WHAT}: field {field} is not known")
        if field in values:
            raise BinlogError(f"{_WHAT}: the {name} comes twice")
        size = cursor.net_int(f"size of the {name}")
        end = cursor.at + size
        values[field] = cursor.net_int(name)
        if cursor.at != end:
            raise BinlogError(f"{_WHAT}: {name} is not {size} bytes long")
    for field, name in _FIELDS.items():
        # Where nothing is compressed the size uncompressed says nothing new.
        if field not in values and not (field == 3 and values.get(2) == NONE):
            raise BinlogError(f"{_WHAT}: no {name}")
    if values[1] != cursor.left():
        raise BinlogError(f"{_WHAT}: a payload of {values[1]} bytes in {cursor.left()}")
    if values[2] not in {ZSTD, NONE}:
        raise BinlogError(f"{_WHAT}: compression type {values[2]} is not known")
    uncompressed = values.get(3, values[1])
    if uncompressed > values[1] * (_LARGEST_RATIO if values[2] == ZSTD else 1):
        raise BinlogError(f"{_WHAT}: {values[1]} bytes cannot hold the announced {uncompressed}")
    return PayloadHeader(values[2], uncompressed, values[1], cursor.at)


def payload_events(event: bytes, chunk: int = 1 << 20) -> Iterator[bytes]:
    """Yield the inner events in order, without checksums.

    Holds no more than one inner event and about `chunk` uncompressed bytes at a time. Raises
    BinlogError as parse_payload_header, for a payload that cannot be uncompressed or is not of
    the announced size, for an inner event that is cut off or larger than LARGEST_EVENT.
    """
    header = parse_payload_header(event)
    pieces: Iterator[bytes | memoryview]
    if header.compression == ZSTD:
        pieces = _uncompressed(event, header, chunk)
    else:
        pieces = _slices(memoryview(event)[header.payload_at :], chunk)
    pending = bytearray()
    needed = HEADER_SIZE
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > header.uncompressed_size:
            raise BinlogError(f"{_WHAT}: more than the announced {header.uncompressed_size} bytes")
        pending += piece
        at = 0
        while len(pending) - at >= needed:
            if needed == HEADER_SIZE:
                needed = int.from_bytes(pending[at + 9 : at + 13], "little")
                left = header.uncompressed_size - (total - len(pending) + at)
                if not HEADER_SIZE <= needed <= min(LARGEST_EVENT, left):
                    raise BinlogError(
                        f"{_WHAT}: an inner event of {needed} bytes, of which {left} are left"
                    )
                if len(pending) - at < needed:
                    break
            yield bytes(memoryview(pending)[at : at + needed])
            at += needed
            needed = HEADER_SIZE
        del pending[:at]
    if pending:
        raise BinlogError(f"{_WHAT}: its last inner event is cut off")
    if total != header.uncompressed_size:
        raise BinlogError(f"{_WHAT}: {total} bytes instead of {header.uncompressed_size}")


def _slices(data: memoryview, size: int) -> Iterator[memoryview]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def _uncompressed(event: bytes, header: PayloadHeader, chunk: int) -> Iterator[bytes]:
    """Yield pieces of at most `chunk` bytes; the payload is one zstd frame or several."""
    decompressor = ZstdDecompressor()
    frames = 1
    try:
        # The decompressor copies what it cannot use at once, so it gets small slices.
        for part in _slices(memoryview(event)[header.payload_at :], chunk):
            data = bytes(part)
            while data or not (decompressor.eof or decompressor.needs_input):
                if decompressor.eof:
                    frames += 1
                    if frames > MOST_FRAMES:
                        raise BinlogError(f"{_WHAT}: more than {MOST_FRAMES} zstd frames")
                    decompressor = ZstdDecompressor()
                piece = decompressor.decompress(data, max_length=chunk)
                data = decompressor.unused_data
                if piece:
                    yield piece
    except ZstdError as error:
        raise BinlogError(f"{_WHAT}: {error}") from error
    if not decompressor.eof:
        raise BinlogError(f"{_WHAT}: its compressed payload is cut off")
