"""Events as the BINLOG statement wants them: without checksums, lengths mended, merged.

Row events: post-header u48 table id, u16 flags at byte 25 (all of v1, v2 and partial; format
descriptions with the old 6-byte post-header are refused). Table maps: u48 table id at byte 19.
"""

from collections.abc import Iterable, Iterator

from mtsd.binlog.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

_TABLE_MAP = 19
_STMT_END = 0x01


def plain_format_description(event: bytes) -> bytes:
    """Return a format description for an applier session: no checksums, nothing of its moment.

    Creation time and header timestamp, position and flags are 0, so that the descriptions of one
    server version are equal, file after file.
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


def mended(event: bytes) -> bytes:
    """Return the event with the length of its header set to its own length."""
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def statements_of(events: Iterable[bytes], limit: int, *, merge: bool) -> Iterator[bytes]:
    """Yield row events with their table maps as statements of `limit` bytes at most.

    Only a single row event that is larger, with its table map, makes a larger one. In each
    statement the maps of its tables go first, then the row events, of which only the last ends it.
    With `merge`, a statement takes in as many statements of the source as fit: all row events must
    bear equal flags. Without it, the source's statements are cut only where they are larger than
    `limit`. A new one begins where a table id comes to stand for another definition. Raises
    BinlogError where a row event has no table map before it.
    """
    known: dict[bytes, bytes] = {}
    maps: dict[bytes, bytes] = {}
    rows: list[bytes] = []
    size = 0
    for event in events:
        table_id = event[19:25]
        table = known.get(table_id)
        if event[4] == _TABLE_MAP:
            if table is None or table[25:] != event[25:]:
                known[table_id] = mended(event)
            continue
        if table is None:
            number = int.from_bytes(table_id, "little")
            raise BinlogError(f"a row event of table {number}, which no table map describes")
        used = maps.get(table_id)
        more = len(event) if used else len(event) + len(table)
        other = used is not None and used is not table and used[25:] != table[25:]
        if rows and (other or size + more > limit):
            yield _joined(maps, rows)
            maps = {}
            rows = []
            size = 0
            more = len(event) + len(table)
        maps[table_id] = table
        rows.append(event)
        size += more
        if not merge and event[25] & _STMT_END:
            yield _joined(maps, rows)
            known = {}
            maps = {}
            rows = []
            size = 0
    if rows:
        yield _joined(maps, rows)


def _joined(maps: dict[bytes, bytes], rows: list[bytes]) -> bytes:
    parts: list[bytes | bytearray] = [*maps.values()]
    for row in rows:
        part = bytearray(row)
        part[9:13] = len(row).to_bytes(4, "little")
        part[25] &= ~_STMT_END & 0xFF
        parts.append(part)
    last = bytearray(parts[-1])
    last[25] |= _STMT_END
    parts[-1] = last
    return b"".join(parts)
