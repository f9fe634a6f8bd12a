"""Format description events: the first event of a file, which says how to read the others.

Body, little-endian: binlog version u16 (4), server version 50 bytes padded with NUL, created u32,
length of the common header u8 (19), the length of each event type's post-header u8 starting with
type 1; then, regardless of the algorithm and of where the event comes from, checksum algorithm u8
(0 none, 1 CRC32) and 4 checksum bytes (MySQL documentation,
`mysql::binlog::event::Format_description_event`).
"""

import re
from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.event_type import RELAY_LOG, EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

CHECKSUM_OFF = 0
CHECKSUM_CRC32 = 1
_WHAT = "Format description event"
_TAIL = 5
_OLDEST = (5, 6)
_OLDEST_MARIADB = (10, 5)
_VERSION = re.compile(r"(\d+)\.(\d+)")
_OF_OLD_REPLICAS = "5.5.5-"
"""Before a MariaDB's version: older replicas would not connect to a server of version 10."""

# The post-headers that the decoders of this package rely on. A type that is not in the event's
# list, or has length 0 there (the first row events since 9.x), does not occur in its file.
_POST_HEADERS = {
    EventType.QUERY_EVENT: {13},
    EventType.ROTATE_EVENT: {8},
    EventType.TABLE_MAP_EVENT: {8},
    EventType.WRITE_ROWS_EVENT_V1: {8},
    EventType.UPDATE_ROWS_EVENT_V1: {8},
    EventType.DELETE_ROWS_EVENT_V1: {8},
    EventType.WRITE_ROWS_EVENT: {10},
    EventType.UPDATE_ROWS_EVENT: {10},
    EventType.DELETE_ROWS_EVENT: {10},
    EventType.PARTIAL_UPDATE_ROWS_EVENT: {10},
    EventType.GTID_LOG_EVENT: {25, 42},
    EventType.ANONYMOUS_GTID_LOG_EVENT: {25, 42},
}


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """How to read the events after it.

    `checksum_algorithm` (0 none, 1 CRC32) applies to these events. `created` is in seconds since
    1970, and 0 unless the server started with this file. `post_header_lengths[0]` is type 1's.
    """

    binlog_version: int
    server_version: str
    checksum_algorithm: int
    header_length: int
    post_header_lengths: bytes
    created: int


def is_of_relay_log(event: bytes) -> bool:
    """Return whether a replica has written this event, the first one of its relay log.

    Most of what follows are its source's events, which keep the positions that they had there.
    """
    return bool(int.from_bytes(event[17:19], "little") & RELAY_LOG)


def parse_format_description(event: bytes) -> FormatDescription:
    """Decode a format description event, given **whole**: with its 4 checksum bytes at the end.

    It always has them, even if the algorithm is "none", so nothing may be stripped. The checksum
    itself is not verified here. Raises BinlogError if the event is truncated, for a binlog version
    other than 4, a common header other than 19 bytes, a MySQL before 5.6, a MariaDB before 10.5, an
    unknown checksum algorithm, and post-headers that the decoders do not expect.
    """
    cursor = Cursor(event, HEADER_SIZE, _WHAT)
    binlog_version = cursor.uint(2, "binlog version")
    if binlog_version != 4:
        raise BinlogError(f"{_WHAT}: binlog version {binlog_version} is not supported, only 4 is")
    raw_version = cursor.take(50, "server version").rstrip(b"\0")
    server_version = cursor.as_text(raw_version, "server version")
    number = _VERSION.match(server_version.removeprefix(_OF_OLD_REPLICAS))
    if not number:
        raise BinlogError(f"{_WHAT}: {server_version!r} is not a server version")
    oldest = _OLDEST_MARIADB if "mariadb" in server_version.lower() else _OLDEST
    if (int(number[1]), int(number[2])) < oldest:
        raise BinlogError(
            f"{_WHAT}: the source is {server_version}, but {oldest[0]}.{oldest[1]} or later is"
            " needed"
        )
    created = cursor.uint(4, "creation time")
    header_length = cursor.uint(1, "header length")
    if header_length != HEADER_SIZE:
        raise BinlogError(f"{_WHAT}: headers of {header_length} bytes are not supported")
    if cursor.left() < _TAIL:
        raise BinlogError(f"{_WHAT}: cut off before its checksum algorithm")
    post_header_lengths = cursor.take(cursor.left() - _TAIL, "post-header lengths")
    algorithm = cursor.uint(1, "checksum algorithm")
    if algorithm not in {CHECKSUM_OFF, CHECKSUM_CRC32}:
        raise BinlogError(f"{_WHAT}: unknown checksum algorithm {algorithm}")
    if len(post_header_lengths) < EventType.FORMAT_DESCRIPTION_EVENT:
        raise BinlogError(f"{_WHAT}: post-header lengths of {len(post_header_lengths)} types only")
    for kind, expected in _POST_HEADERS.items():
        length = post_header_lengths[kind - 1] if kind <= len(post_header_lengths) else 0
        if length and length not in expected:
            raise BinlogError(f"{_WHAT}: unexpected post-header of {length} bytes for {kind.name}")
    return FormatDescription(
        binlog_version,
        server_version,
        algorithm,
        header_length,
        post_header_lengths,
        created,
    )
