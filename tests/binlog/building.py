"""Events built by hand, for what a server would not write."""

import struct

from mtsd.binlog.bytes.event_type import EventType

# What MySQL 8.0 announces, type by type.
LENGTHS = bytes.fromhex(
    "000d0008000000000400040000006200041a08000000080808020000000a0a0a2a2a001234000a280000"
)


def event(kind: int, body: bytes, *, flags: int = 0, timestamp: int = 0, log_pos: int = 0) -> bytes:
    """Return an event of server 1 with that body, without a checksum."""
    size = 19 + len(body)
    return struct.pack("<IBIIIH", timestamp, kind, 1, size, log_pos, flags) + body


def query(
    statement: bytes,
    *,
    status: bytes = b"",
    database: bytes = b"",
    error_code: int = 0,
    **header: int,
) -> bytes:
    """Return a Query event."""
    fixed = struct.pack("<IIBHH", 7, 0, len(database), error_code, len(status))
    return event(EventType.QUERY_EVENT, fixed + status + database + b"\0" + statement, **header)


def net_int(number: int) -> bytes:
    """Return a length-encoded integer."""
    if number < 251:
        return bytes((number,))
    for first, size in ((252, 2), (253, 3), (254, 8)):
        if number < 1 << 8 * size:
            return bytes((first,)) + number.to_bytes(size, "little")
    raise AssertionError(number)


def varlen(number: int) -> bytes:
    """Return an integer whose lowest bits tell how many bytes it has."""
    for size in range(1, 9):
        if number < 1 << 7 * size:
            shifted = number << size | (1 << size - 1) - 1
            return shifted.to_bytes(size, "little")
    return b"\xff" + number.to_bytes(8, "little")


def description(
    *,
    version: int = 4,
    server: bytes = b"8.0.41",
    header: int = 19,
    lengths: bytes = LENGTHS,
    algorithm: int = 1,
    created: int = 0,
) -> bytes:
    """Return a Format_description event."""
    body = version.to_bytes(2, "little") + server.ljust(50, b"\0")
    body += created.to_bytes(4, "little") + bytes((header,))
    return event(
        EventType.FORMAT_DESCRIPTION_EVENT, body + lengths + bytes((algorithm,)) + b"\1\2\3\4"
    )
