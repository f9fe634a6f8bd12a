"""Events as the BINLOG statement wants them: without checksums, lengths mended, merged.

Row events: post-header u48 table id, u16 flags at byte 25 (all of v1, v2 and partial; format
descriptions with the old 6-byte post-header are refused). Table maps: u48 table id at byte 19.
"""

from collections.abc import Iterable

from mtsd.binlog.framing import HEADER_SIZE

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


def concatenated(events: Iterable[bytes]) -> bytes:
    """Return the events in their order for one BINLOG statement, as they are but for lengths."""
    return b"".join(map(mended, events))


def merged(events: Iterable[bytes]) -> list[bytes]:
    """Return row events of equal flags, with their table maps, as few statements as can be.

    In each, every table map goes first, once; then all row events, of which only the last ends
    the statement. A new statement begins where a table id comes to stand for another definition
    (the source was restarted).
    """
    statements: list[bytes] = []
    maps: dict[bytes, bytes] = {}
    rows: list[bytes | bytearray] = []
    for event in events:
        if event[4] == _TABLE_MAP:
            table_id = event[19:25]
            known = maps.get(table_id)
            if known is None:
                maps[table_id] = mended(event)
            elif known[25:] != event[25:]:
                if rows:
                    statements.append(_joined(maps, rows))
                    rows = []
                maps[table_id] = mended(event)
        else:
            row = bytearray(event)
            row[9:13] = len(event).to_bytes(4, "little")
            row[25] &= ~_STMT_END & 0xFF
            rows.append(row)
    if rows:
        statements.append(_joined(maps, rows))
    return statements


def _joined(maps: dict[bytes, bytes], rows: list[bytes | bytearray]) -> bytes:
    last = bytearray(rows[-1])
    last[25] |= _STMT_END
    return b"".join([*maps.values(), *rows[:-1], last])
