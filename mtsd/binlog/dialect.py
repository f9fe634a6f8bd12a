"""What differs in the binary logs of a family of servers; the rest has its own modules.

Event types that both families share, with the same meaning, are not here: Query, Xid, Rotate, Stop,
format description, incident, Table_map. MariaDB's dialect will have its place next to MySQL's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mtsd.binlog.event_type import EventType
from mtsd.binlog.gtid_event import GtidEvent, parse_gtid
from mtsd.binlog.load_data import LOAD_DATA
from mtsd.binlog.rows import ROW_EVENTS
from mtsd.binlog.satellites import parse_intvar, parse_rand, parse_user_var
from mtsd.model.step import Satellite


@dataclass(frozen=True, slots=True)
class Dialect:
    """The events of a family of servers, by type number."""

    name: str
    heads: frozenset[int]
    """What a group begins with: its GTID, or an event saying that it has none."""
    parse_head: Callable[[bytes], GtidEvent]
    rows: frozenset[int]
    satellites: Mapping[int, Callable[[bytes], Satellite]]
    """They set up the statement that follows: the decoder of each."""
    load_data: Mapping[int, str]
    """LOAD DATA in statement format and its files: the name of each."""
    passed_over: frozenset[int]
    """They change no data."""
    never_inside: frozenset[int] = frozenset()
    """They never occur in a transaction payload."""
    compressed: Mapping[int, Callable[[bytes], bytes]] = field(default_factory=dict)
    """What turns a compressed event into one of a plain type."""


_HEADS = frozenset({
    EventType.GTID_LOG_EVENT.value,
    EventType.ANONYMOUS_GTID_LOG_EVENT.value,
    EventType.GTID_TAGGED_LOG_EVENT.value,
})  # fmt: skip

MYSQL = Dialect(
    name="MySQL",
    heads=_HEADS,
    parse_head=parse_gtid,
    # Plain ints: they are looked up for every event.
    rows=frozenset(kind.value for kind in ROW_EVENTS),
    satellites={
        EventType.INTVAR_EVENT.value: parse_intvar,
        EventType.RAND_EVENT.value: parse_rand,
        EventType.USER_VAR_EVENT.value: parse_user_var,
    },
    load_data={kind.value: name for kind, name in LOAD_DATA.items()},
    passed_over=frozenset({
        EventType.ROWS_QUERY_LOG_EVENT.value,  # the text of the statement, for human readers
        EventType.IGNORABLE_LOG_EVENT.value,
        EventType.HEARTBEAT_LOG_EVENT.value,
        EventType.HEARTBEAT_LOG_EVENT_V2.value,
        EventType.VIEW_CHANGE_EVENT.value,  # of group replication; changes no data
        EventType.TRANSACTION_CONTEXT_EVENT.value,
    }),
    never_inside=frozenset({
        EventType.TRANSACTION_PAYLOAD_EVENT.value,
        EventType.FORMAT_DESCRIPTION_EVENT.value,
        EventType.ROTATE_EVENT.value,
        EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
        EventType.STOP_EVENT.value,
        EventType.INCIDENT_EVENT.value,
        EventType.HEARTBEAT_LOG_EVENT.value,
        EventType.HEARTBEAT_LOG_EVENT_V2.value,
        *_HEADS,
    }),
)  # fmt: skip
