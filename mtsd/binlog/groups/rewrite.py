"""Events as the BINLOG statement needs them: without checksums, with their own lengths, merged.

Row events: post-header u48 table id, u16 flags at byte 25 (all of v1, v2 and partial; format
descriptions with the old 6-byte post-header are refused). Table maps: u48 table id at byte 19.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import STMT_END
from mtsd.model.errors import BinlogError

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_LENGTH: Final = Struct("<I")
_NOT_STMT_END: Final = 0xFF & ~STMT_END
_LONGEST_NAME: Final = 255
_FLAGS_END: Final = 27
_LARGE: Final = 4096
"""Bytes of an event of which only the beginning is copied before its statement is joined."""


def plain_format_description(event: bytes) -> bytes:
    """Return a format description for an applier session: no checksums, nothing time-dependent.

    Creation time and the header's timestamp, position and flags are 0, so that the descriptions of
    one server version are equal, file after file.
    """
    plain = bytearray(event[:-4])
    plain[-1] = 0
    plain[0:4] = b"\0\0\0\0"
    plain[13:19] = b"\0\0\0\0\0\0"
    # Fixed layout: u16 version, 50 bytes of server version, u32 creation time.
    plain[HEADER_SIZE + 52 : HEADER_SIZE + 56] = b"\0\0\0\0"
    plain += b"\0\0\0\0"
    plain[9:13] = len(plain).to_bytes(4, "little")
    return bytes(plain)


def of_own_length(event: bytes) -> bytes:
    """Return the event with the length in its header set to its actual length."""
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def with_database(event: bytes, database: str) -> bytes:
    """Return a Table_map event with another database name; raises BinlogError if it is too long."""
    name = database.encode()
    if len(name) > _LONGEST_NAME:
        raise BinlogError(f"the database name {database!r} does not fit into a Table_map event")
    at = HEADER_SIZE + 8
    former = event[at]
    size = int.from_bytes(event[9:13], "little") + len(name) - former
    return b"".join((
        event[:9], size.to_bytes(4, "little"), event[13:at], bytes((len(name),)), name,
        event[at + 1 + former :],
    ))  # fmt: skip


def statements_of(
    events: Iterable[bytes],
    limit: int,
    *,
    merge: bool,
    table_maps: set[bytes] | None = None,
    more_flags: int = 0,
) -> Iterator[bytes]:
    """Yield row events with their table maps as statements of at most `limit` bytes.

    Only a single row event that is larger, together with its table map, makes a larger one. In
    each statement the maps of its tables come first, then the row events, of which only the last
    has STMT_END. With `merge`, a statement combines as many statements of the source as fit: all
    row events must have equal flags, unless they are of one. Without it, the source's statements
    are split only if they exceed `limit`. A new one begins where a table id is reused for another
    definition. The distinct table maps found are added to `table_maps`. Row events get
    `more_flags`. Raises BinlogError if a row event has no table map before it.
    """
    put_length = _LENGTH.pack_into
    known: dict[bytes, bytes] = {}
    described: dict[bytes, bytes] = {}
    redefined = False
    maps: dict[bytes, bytes] = {}
    rows: list[bytearray | memoryview] = []
    last = bytearray()
    size = 0
    for event in events:
        table_id = event[19:25]
        if event[4] == _TABLE_MAP:
            before = described.get(table_id)
            # Usually it is the very same object.
            if before is event or (before is not None and before[25:] == event[25:]):
                continue
            described[table_id] = event
            if table_maps is not None:
                table_maps.add(event)
            known[table_id] = of_own_length(event)
            redefined = redefined or table_id in maps
            continue
        length = len(event)
        more = length
        other = redefined and table_id in maps and maps[table_id][25:] != known[table_id][25:]
        if table_id not in maps:
            if table_id not in known:
                number = int.from_bytes(table_id, "little")
                raise BinlogError(f"a row event of table id {number}, which has no table map")
            more += len(known[table_id])
        if rows and (other or size + more > limit):
            yield _joined(maps, rows, last)
            maps = {}
            rows = []
            size = 0
            more = length + len(known[table_id])
        if more != length:
            maps[table_id] = known[table_id]
        if length < _LARGE:
            last = bytearray(event)
            rows.append(last)
        else:
            last = bytearray(event[:_FLAGS_END])
            rows += (last, memoryview(event)[_FLAGS_END:])
        put_length(last, 9, length)
        last[25] = last[25] & _NOT_STMT_END | more_flags
        size += more
        if not merge and event[25] & STMT_END:
            yield _joined(maps, rows, last)
            known = {}
            described = {}
            maps = {}
            rows = []
            size = 0
    if rows:
        yield _joined(maps, rows, last)


def _joined(maps: dict[bytes, bytes], rows: list[bytearray | memoryview], last: bytearray) -> bytes:
    """Return a statement; `last` is the beginning of its last row event."""
    last[25] |= STMT_END
    return b"".join((*maps.values(), *rows))
