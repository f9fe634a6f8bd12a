"""Previous_gtids events, and the binary form of a GTID set that COM_BINLOG_DUMP_GTID takes too.

Form, little-endian: a header u64, then for each UUID and tag: UUID 16 bytes, [tag], number of
intervals u64, and for each its first number i64 and its last + 1 i64. Without tags the header is
the number of entries. With tags its lowest and its highest byte are 1 and the 48 bits between them
are the number of entries, and after each UUID comes the tag: its length as an integer of MySQL's
serialization library, and its bytes (MySQL documentation, `Gtid_set::encode`).
"""

import re
from struct import Struct

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.gtid_event import uuid_text
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import GtidSet

_WHAT = "Previous_gtids event"
_TAGGED = 1
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_U64 = Struct("<Q")
_INTERVAL = Struct("<qq")


def parse_previous_gtids(event: bytes) -> GtidSet:
    """Decode a Previous_gtids event: what was executed before its file began.

    Raises BinlogError if it is truncated or inconsistent.
    """
    return decode_gtid_set(event, HEADER_SIZE)


def decode_gtid_set(data: bytes, at: int = 0) -> GtidSet:
    """Decode the binary form, from `at` to the end; BinlogError as for the event."""
    cursor = Cursor(data, at, _WHAT)
    head = cursor.uint(8, "number of entries")
    form = head >> 56
    if form not in {0, _TAGGED}:
        raise BinlogError(f"{_WHAT}: a GTID set of unknown format {form}")
    if form == _TAGGED and head & 0xFF != _TAGGED:
        raise BinlogError(f"{_WHAT}: a GTID set begins with format {head & 0xFF}, ends with {form}")
    entries = head >> 8 & (1 << 48) - 1 if form else head
    result = GtidSet()
    seen: set[tuple[str, str]] = set()
    for _ in range(entries):
        uuid = uuid_text(cursor.take(16, "UUID"))
        tag = ""
        if form:
            tag = cursor.text(cursor.varlen_uint("tag length"), "tag")
            if tag and not _TAG.fullmatch(tag):
                raise BinlogError(f"{_WHAT}: {tag[:80]!r} is not a tag")
        if (uuid, tag) in seen:
            raise BinlogError(f"{_WHAT}: {uuid} with the tag {tag!r} occurs twice")
        seen.add((uuid, tag))
        count = cursor.uint(8, "number of intervals")
        if count > cursor.left() // _INTERVAL.size:
            raise BinlogError(f"{_WHAT}: {count} intervals do not fit into {cursor.left()} bytes")
        before = 0
        for _ in range(count):
            first, end = _INTERVAL.unpack(cursor.take(_INTERVAL.size, "interval"))
            if not before < first < end:
                raise BinlogError(f"{_WHAT}: interval {first} to {end} after {before}")
            before = end
            result.add_interval(uuid, tag, first, end)
    cursor.finish()
    return result


def encode_gtid_set(gtids: GtidSet) -> bytes:
    """Encode a GTID set; the format with tags is used only if there is a tag."""
    entries: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for uuid, tag, first, end in gtids.intervals():
        entries.setdefault((uuid, tag), []).append((first, end))
    tagged = any(tag for _, tag in entries)
    head = _TAGGED << 56 | len(entries) << 8 | _TAGGED if tagged else len(entries)
    parts = [_U64.pack(head)]
    for (uuid, tag), intervals in entries.items():
        parts.append(bytes.fromhex(uuid.replace("-", "")))
        if tagged:
            # A varlen integer under 128 is one byte whose lowest bit is 0; tags have at most 32.
            parts.append(bytes((len(tag) << 1,)) + tag.encode())
        parts.append(_U64.pack(len(intervals)))
        parts.extend(_INTERVAL.pack(first, end) for first, end in intervals)
    return b"".join(parts)
