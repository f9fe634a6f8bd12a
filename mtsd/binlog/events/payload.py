"""TRANSACTION_PAYLOAD events: a transaction's events in one event, usually compressed.

Body: fields of type, size and value, each a length-encoded integer: 1 payload size, 2
compression type (0 zstd, 255 none), 3 uncompressed size; type 0, which has neither size nor value,
ends them. The payload follows up to the event's end. The inner events have no checksum (MySQL
documentation, `mysql::binlog::event::Transaction_payload_event`).
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

ZSTD = 0
NONE = 255
LARGEST_EVENT = 1 << 30
"""Bytes: servers write no larger event (the maximum of max_allowed_packet).

That setting of the source is no limit: it is one of values, and a row event has a row's values,
before and after a change (measured on MySQL 9.7: 1 MiB, an event of 6 MB in a payload).
"""
MAX_FRAMES = 1024
"""Servers write one zstd frame; the data after a frame is copied for the next one."""
_LARGEST_RATIO = 1 << 16
"""A zstd block has at most 128 KiB and takes at least 4 bytes (RFC 8878, 3.1.1.2)."""

_WHAT = "TRANSACTION_PAYLOAD event"
_FIELDS = {1: "payload size", 2: "compression type", 3: "uncompressed size"}


@dataclass(frozen=True, slots=True)
class PayloadHeader:
    """How the payload is stored; it begins `payload_at` bytes into the event."""

    compression: int
    uncompressed_size: int
    payload_size: int
    payload_at: int


def parse_payload_header(event: bytes) -> PayloadHeader:
    """Decode the fields before the payload.

    Raises BinlogError if the event is truncated, a field is unknown, missing or inconsistent with
    the event's size, and for a compression other than zstd or none.
    """
    cursor = Cursor(event, HEADER_SIZE, _WHAT)
    values: dict[int, int] = {}
    while field := cursor.net_int("field type"):
        name = _FIELDS.get(field)
        if name is None:
            raise BinlogError(f"{_WHAT}: unknown field {field}")
        if field in values:
            raise BinlogError(f"{_WHAT}: the {name} occurs twice")
        size = cursor.net_int(f"length of the {name}")
        end = cursor.at + size
        values[field] = cursor.net_int(name)
        if cursor.at != end:
            raise BinlogError(f"{_WHAT}: {name} does not have {size} bytes")
    for field, name in _FIELDS.items():
        # If nothing is compressed, the uncompressed size adds nothing.
        if field not in values and not (field == 3 and values.get(2) == NONE):
            raise BinlogError(f"{_WHAT}: the {name} is missing")
    if values[1] != cursor.left():
        raise BinlogError(f"{_WHAT}: a payload of {values[1]} bytes, but {cursor.left()} are there")
    if values[2] not in {ZSTD, NONE}:
        raise BinlogError(f"{_WHAT}: unknown compression type {values[2]}")
    uncompressed = values.get(3, values[1])
    if uncompressed > values[1] * (_LARGEST_RATIO if values[2] == ZSTD else 1):
        raise BinlogError(f"{_WHAT}: {values[1]} bytes cannot hold the announced {uncompressed}")
    return PayloadHeader(values[2], uncompressed, values[1], cursor.at)


def payload_events(payload: bytes, chunk: int = 1 << 20) -> Iterator[bytes]:
    """Yield the inner events in order, without checksums.

    Holds at most one inner event and about `chunk` uncompressed bytes at a time. Raises
    BinlogError as parse_payload_header does, for a payload that cannot be decompressed or does not
    have the announced size, and for an inner event that is truncated or exceeds LARGEST_EVENT.
    """
    header = parse_payload_header(payload)
    pieces: Iterator[bytes | memoryview]
    if header.compression == ZSTD:
        pieces = _uncompressed(payload, header, chunk)
    else:
        pieces = _slices(memoryview(payload)[header.payload_at :], chunk)
    pending = bytearray()
    large: BytesIO | None = None
    """The beginning of an event of several pieces: unlike a bytearray, it gives away what it has
    without a copy, which would double the memory of an event that was compressed to a few KiB."""
    needed = HEADER_SIZE
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > header.uncompressed_size:
            raise BinlogError(f"{_WHAT}: more than the announced {header.uncompressed_size} bytes")
        if large is not None:
            missing = needed - large.tell()
            large.write(piece[:missing])
            if len(piece) < missing:
                continue
            rest = piece[missing:]
            event, large = large.getvalue(), None
            yield event
            del event
            needed = HEADER_SIZE
            pending += rest
        else:
            pending += piece
        at = 0
        while len(pending) - at >= needed:
            if needed == HEADER_SIZE:
                needed = int.from_bytes(pending[at + 9 : at + 13], "little")
                left = header.uncompressed_size - (total - len(pending) + at)
                if not HEADER_SIZE <= needed <= min(LARGEST_EVENT, left):
                    raise BinlogError(
                        f"{_WHAT}: an inner event of {needed} bytes, but only {left} are left"
                    )
                if len(pending) - at < needed:
                    break
            yield bytes(memoryview(pending)[at : at + needed])
            at += needed
            needed = HEADER_SIZE
        del pending[:at]
        if needed > max(HEADER_SIZE, len(pending) + chunk):
            large = BytesIO()
            large.write(pending)
            pending.clear()
    if pending or large is not None:
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
        # The decompressor copies what it cannot use immediately, so it gets small slices.
        for part in _slices(memoryview(event)[header.payload_at :], chunk):
            data = bytes(part)
            while data or not (decompressor.eof or decompressor.needs_input):
                if decompressor.eof:
                    frames += 1
                    if frames > MAX_FRAMES:
                        raise BinlogError(f"{_WHAT}: more than {MAX_FRAMES} zstd frames")
                    decompressor = ZstdDecompressor()
                piece = decompressor.decompress(data, max_length=chunk)
                data = decompressor.unused_data
                if piece:
                    yield piece
    except ZstdError as error:
        raise BinlogError(f"{_WHAT}: {error}") from error
    if not decompressor.eof:
        raise BinlogError(f"{_WHAT}: its compressed payload is cut off")
