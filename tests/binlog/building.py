"""Events built by hand, for what a server would not write."""

import struct

from mtsd.binlog.bytes.event_type import EventType


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
