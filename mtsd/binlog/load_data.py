"""The events of LOAD DATA in statement format, by name: their contents are not read.

Servers since 5.0.3 write Begin_load_query and Append_block, which hold the file, and then
Execute_load_query; the other types are older.
"""

from dataclasses import dataclass

from mtsd.binlog.event_type import EventType, type_name
from mtsd.binlog.header import parse_header
from mtsd.model.errors import BinlogError

LOAD_DATA: dict[EventType, str] = {
    EventType.LOAD_EVENT: "Load",
    EventType.CREATE_FILE_EVENT: "Create_file",
    EventType.APPEND_BLOCK_EVENT: "Append_block",
    EventType.EXEC_LOAD_EVENT: "Exec_load",
    EventType.DELETE_FILE_EVENT: "Delete_file",
    EventType.NEW_LOAD_EVENT: "New_load",
    EventType.BEGIN_LOAD_QUERY_EVENT: "Begin_load_query",
    EventType.EXECUTE_LOAD_QUERY_EVENT: "Execute_load_query",
}
"""The types, with their names in MySQL's documentation."""


@dataclass(frozen=True, slots=True)
class LoadData:
    """A part of a LOAD DATA statement."""

    type: EventType


def parse_load_data(event: bytes) -> LoadData:
    """Return the event's name; raises BinlogError if it does not belong to LOAD DATA."""
    kind = parse_header(event).type
    if kind not in LOAD_DATA:
        raise BinlogError(f"{type_name(kind)} is not an event of LOAD DATA")
    return LoadData(EventType(kind))
