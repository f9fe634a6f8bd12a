"""Rotate events: the stream continues in another file.

Body: the offset there u64, little-endian, and the file's name up to the event's end. An artificial
one (header flag 0x20, log_pos 0) only tells the reader which file it is reading.
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError
from mtsd.model.position import FIRST_EVENT, Position

_LONGEST_NAME = 512


@dataclass(frozen=True, slots=True)
class Rotate:
    """Where the stream continues."""

    position: Position


def parse_rotate(event: bytes) -> Rotate:
    """Decode a Rotate event; raises BinlogError if it is truncated or names no place in a file."""
    cursor = Cursor(event, HEADER_SIZE, "Rotate event")
    offset = cursor.uint(8, "offset")
    if not FIRST_EVENT <= offset < 1 << 63:
        raise BinlogError(f"Rotate event: {offset} is not a position in a file")
    size = cursor.left()
    if not 0 < size <= _LONGEST_NAME:
        raise BinlogError(f"Rotate event: a file name of {size} bytes")
    name = cursor.text(size, "file name")
    if not name.isprintable():
        raise BinlogError(f"Rotate event: {name[:80]!r} is not a file name")
    return Rotate(Position(name, offset))
