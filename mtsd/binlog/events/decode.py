"""From an event's type to its decoder, for readers that need every event."""

from collections.abc import Callable
from dataclasses import dataclass

from mtsd.binlog.bytes.event_type import IGNORABLE, EventType, type_name
from mtsd.binlog.bytes.header import parse_header
from mtsd.binlog.events.format_description import FormatDescription, parse_format_description
from mtsd.binlog.events.gtid_event import GtidEvent, parse_gtid
from mtsd.binlog.events.heartbeat import Heartbeat, parse_heartbeat
from mtsd.binlog.events.incident import Incident, parse_incident
from mtsd.binlog.events.load_data import LOAD_DATA, LoadData, parse_load_data
from mtsd.binlog.events.mariadb_gtid_event import parse_gtid_list, parse_mariadb_gtid
from mtsd.binlog.events.mariadb_notes import (
    BinlogCheckpoint,
    parse_annotate_rows,
    parse_binlog_checkpoint,
)
from mtsd.binlog.events.payload import PayloadHeader, parse_payload_header
from mtsd.binlog.events.previous_gtids import parse_previous_gtids
from mtsd.binlog.events.query import parse_query
from mtsd.binlog.events.rotate import Rotate, parse_rotate
from mtsd.binlog.events.rows import ROW_EVENTS, RowsHeader, parse_rows_header
from mtsd.binlog.events.rows_query import RowsQuery, parse_rows_query
from mtsd.binlog.events.satellites import parse_intvar, parse_rand, parse_user_var
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.events.xa_prepare import XaPrepare, parse_xa_prepare
from mtsd.binlog.events.xid import Xid, parse_xid
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import GtidSet
from mtsd.model.step import Intvar, QueryEvent, Rand, UserVar


@dataclass(frozen=True, slots=True)
class Stop:
    """The source was shut down gracefully."""


@dataclass(frozen=True, slots=True)
class Undecoded:
    """An event whose contents are not decoded: its type has a name, or may be ignored."""

    type: int


Decoded = (
    BinlogCheckpoint
    | FormatDescription
    | GtidEvent
    | GtidSet
    | Heartbeat
    | Incident
    | Intvar
    | LoadData
    | PayloadHeader
    | QueryEvent
    | Rand
    | Rotate
    | RowsHeader
    | RowsQuery
    | Stop
    | TableMap
    | Undecoded
    | UserVar
    | XaPrepare
    | Xid
)


def _stop(_event: bytes) -> Stop:
    return Stop()


_DECODERS: dict[int, Callable[[bytes], Decoded]] = {
    EventType.QUERY_EVENT: parse_query,
    EventType.STOP_EVENT: _stop,
    EventType.ROTATE_EVENT: parse_rotate,
    EventType.INTVAR_EVENT: parse_intvar,
    EventType.RAND_EVENT: parse_rand,
    EventType.USER_VAR_EVENT: parse_user_var,
    EventType.FORMAT_DESCRIPTION_EVENT: parse_format_description,
    EventType.XID_EVENT: parse_xid,
    EventType.TABLE_MAP_EVENT: parse_table_map,
    EventType.INCIDENT_EVENT: parse_incident,
    EventType.HEARTBEAT_LOG_EVENT: parse_heartbeat,
    EventType.ROWS_QUERY_LOG_EVENT: parse_rows_query,
    EventType.GTID_LOG_EVENT: parse_gtid,
    EventType.ANONYMOUS_GTID_LOG_EVENT: parse_gtid,
    EventType.PREVIOUS_GTIDS_LOG_EVENT: parse_previous_gtids,
    EventType.XA_PREPARE_LOG_EVENT: parse_xa_prepare,
    EventType.TRANSACTION_PAYLOAD_EVENT: parse_payload_header,
    EventType.HEARTBEAT_LOG_EVENT_V2: parse_heartbeat,
    EventType.GTID_TAGGED_LOG_EVENT: parse_gtid,
    EventType.MARIADB_ANNOTATE_ROWS_EVENT: parse_annotate_rows,
    EventType.MARIADB_BINLOG_CHECKPOINT_EVENT: parse_binlog_checkpoint,
    EventType.MARIADB_GTID_EVENT: parse_mariadb_gtid,
    EventType.MARIADB_GTID_LIST_EVENT: parse_gtid_list,
    **dict.fromkeys(ROW_EVENTS, parse_rows_header),
    **dict.fromkeys(LOAD_DATA, parse_load_data),
}
_BY_NAME_ONLY = frozenset(EventType) - {EventType.UNKNOWN_EVENT}


def decode(event: bytes) -> Decoded:
    """Decode an event, without its checksum; but a format description with it (see its module).

    Raises BinlogError as the type's decoder does, and for an unknown type, unless its header says
    that it may be ignored.
    """
    header = parse_header(event)
    decoder = _DECODERS.get(header.type)
    if decoder is not None:
        return decoder(event)
    if header.type in _BY_NAME_ONLY or header.flags & IGNORABLE:
        return Undecoded(header.type)
    raise BinlogError(f"{type_name(header.type)}: unknown event type")
