"""The events of LOAD DATA as a statement, by name: their contents are not read.

Servers since 5.0.3 write Begin_load_query and Append_block, which hold the file, then
Execute_load_query; the other types are older.
"""

from dataclasses import dataclass

from mtsd.binlog.event_type import EventType, type_name
from mtsd.binlog.header import parse_header
from mtsd.model.errors import BinlogError

LOAD_DATA_EVENTS = frozenset(
    {
        EventType.LOAD_EVENT,
        EventType.CREATE_FILE_EVENT,
        EventType.APPEND_BLOCK_EVENT,
        EventType.EXEC_LOAD_EVENT,
        EventType.DELETE_FILE_EVENT,
        EventType.NEW_LOAD_EVENT,
        EventType.BEGIN_LOAD_QUERY_EVENT,
        EventType.EXECUTE_LOAD_QUERY_EVENT,
    }
)


@dataclass(frozen=True, slots=True)
class LoadData:
    """A part of a LOAD DATA statement."""

    type: EventType


def parse_load_data(event: bytes) -> LoadData:
    """Name the event; BinlogError where it is none of LOAD DATA."""
    kind = parse_header(event).type
    if kind not in LOAD_DATA_EVENTS:
        raise BinlogError(f"{type_name(kind)} is no event of LOAD DATA")
    return LoadData(EventType(kind))
