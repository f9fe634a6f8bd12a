"""Takes row events apart: into events that are each a statement, and these into their rows."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import DUMMY_TABLE_ID, STMT_END, parse_rows_header
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.values.row_image import RowDecoder
from mtsd.model.errors import BinlogError

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_DUMMY: Final = DUMMY_TABLE_ID.to_bytes(6, "little")


class MappedRows(NamedTuple):
    """A row event with STMT_END, and its table map: together they are a statement."""

    table_map: bytes
    event: bytes


def mapped_rows(events: Iterable[bytes]) -> Iterator[MappedRows]:
    """Yield the row events among events. Raises BinlogError if one has no table map before it."""
    maps: dict[bytes, bytes] = {}
    for event in events:
        table_id = event[19:25]
        if event[4] == _TABLE_MAP:
            maps[table_id] = event
        elif table_id != _DUMMY:
            if table_id not in maps:
                number = int.from_bytes(table_id, "little")
                raise BinlogError(f"a row event of table id {number}, which has no table map")
            flags = event[25] | STMT_END
            yield MappedRows(maps[table_id], event[:25] + bytes((flags,)) + event[26:])


def single_rows(rows: MappedRows, *, mariadb: bool) -> Iterator[MappedRows]:
    """Yield the rows of an event, each as an event. Raises BinlogError, NotSupportedError."""
    table = parse_table_map(rows.table_map, mariadb=mariadb)
    event = rows.event
    at = parse_rows_header(event).rows_at
    head = event[:at]
    for end in RowDecoder(table, wanted=()).ends(event):
        yield MappedRows(rows.table_map, head + event[at:end])
        at = end
