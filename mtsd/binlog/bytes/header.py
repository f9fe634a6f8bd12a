"""The common header: the first 19 bytes of every event.

Layout, little-endian: timestamp u32 (s), type u8, server id u32, size u32, end position u32,
flags u16 (MySQL internals manual, "Binlog Event Header").
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from mtsd.model.errors import BinlogError

HEADER_SIZE: Final = 19
HEADER = Struct("<IBIIIH")


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The fields that every event begins with.

    `timestamp` is in seconds since 1970. `size` includes the checksum if the stream has one.
    `log_pos` is where the event ends in the source's file, modulo 2**32, and 0 for events that
    are in no file.
    """

    timestamp: int
    type: int
    server_id: int
    size: int
    log_pos: int
    flags: int


def parse_header(event: bytes) -> EventHeader:
    """Decode the common header; raises BinlogError if there are fewer than 19 bytes."""
    if len(event) < HEADER_SIZE:
        raise BinlogError(f"an event of {len(event)} bytes is shorter than a header, {HEADER_SIZE}")
    return EventHeader(*HEADER.unpack_from(event))
