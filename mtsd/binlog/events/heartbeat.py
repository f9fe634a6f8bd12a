"""Heartbeat events: the source is alive and has sent everything up to a position.

They are in no file. Body of type 27: the file's name; the position is in the header, modulo 2**32.
Body of type 41: fields of type, size and value, each a length-encoded integer: 1 the file's name,
2 the position as a length-encoded integer; type 0, which has neither size nor value, ends them
(MySQL documentation, `mysql::binlog::event::Heartbeat_event_v2`).
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.model.errors import BinlogError
from mtsd.model.position import Position

_FILE = 1
_OFFSET = 2


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The position up to which the source has sent everything."""

    position: Position


def parse_heartbeat(event: bytes) -> Heartbeat:
    """Decode a heartbeat of either type; raises BinlogError if truncated or a field is unknown."""
    header = parse_header(event)
    if header.type == EventType.HEARTBEAT_LOG_EVENT:
        cursor = Cursor(event, HEADER_SIZE, "heartbeat")
        return Heartbeat(Position(_file(cursor, cursor.left()), header.log_pos))
    what = "heartbeat of type 41"
    cursor = Cursor(event, HEADER_SIZE, what)
    file: str | None = None
    offset: int | None = None
    while field := cursor.net_int("field type"):
        size = cursor.net_int("field size")
        end = cursor.at + size
        if field == _FILE:
            file = _file(cursor, size)
        elif field == _OFFSET:
            offset = cursor.net_int("position")
        else:
            raise BinlogError(f"{what}: unknown field {field}")
        if cursor.at != end:
            raise BinlogError(f"{what}: field {field} does not have {size} bytes")
    cursor.finish()
    if file is None or offset is None:
        raise BinlogError(f"{what}: file or position is missing")
    return Heartbeat(Position(file, offset))


def _file(cursor: Cursor, size: int) -> str:
    name = cursor.text(size, "file name")
    if not name or not name.isprintable():
        raise BinlogError(f"{cursor.what}: {name[:80]!r} is not a file name")
    return name
