"""The CRC32 at the end of an event.

The last 4 bytes of each event, if the format description names algorithm 1 (CRC32, WL#2540).
"""

from typing import Final

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.bytes.event_type import IN_USE
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

_CRC32 = 1

RESIDUE: Final = 0x2144DF1C
"""The CRC32 of any data followed by its own CRC32 in little-endian order."""


def strip_checksum(event: bytes) -> bytes:
    """Verify the checksum and return the event without it; the header's length is not changed.

    Raises BinlogError on a mismatch.
    """
    if len(event) < HEADER_SIZE + 4:
        raise BinlogError(f"an event of {len(event)} bytes is too short for its checksum")
    if crc32(event) != RESIDUE:
        raise BinlogError(f"checksum mismatch in an event of type {event[4]}, {len(event)} bytes")
    return event[:-4]


def verify_format_description(event: bytes) -> None:
    """Verify a format description event's own checksum, if its algorithm byte says CRC32.

    The flag IN_USE is set after the checksum was computed, so it is
    ignored. With another algorithm the checksum may be wrong in a dump, but it is never a valid
    CRC32: if it is, the algorithm byte itself is damaged. Raises BinlogError on a mismatch.
    """
    if len(event) < HEADER_SIZE + 5:
        raise BinlogError(
            f"a format description of {len(event)} bytes is too short for its checksum"
        )
    written = bytearray(event)
    written[17] &= ~IN_USE & 0xFF
    written[-5] = _CRC32
    if (crc32(written) == RESIDUE) != (event[-5] == _CRC32):
        raise BinlogError("checksum mismatch in a format description event")
