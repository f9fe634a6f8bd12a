"""What differs in the binary logs of a family of servers; the rest has its own modules.

Event types that both families share, with the same meaning, are not here: Query, Xid, Rotate, Stop,
format description, incident, Table_map. A log's format description tells which family it is of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.gtid_event import GtidEvent, parse_gtid
from mtsd.binlog.events.load_data import LOAD_DATA
from mtsd.binlog.events.mariadb_compressed import PLAIN_TYPES, uncompressed
from mtsd.binlog.events.mariadb_gtid_event import parse_gtid_list, parse_mariadb_gtid
from mtsd.binlog.events.previous_gtids import parse_previous_gtids
from mtsd.binlog.events.query import parse_mariadb_query, parse_mysql_query
from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.events.satellites import parse_intvar, parse_rand, parse_user_var
from mtsd.model.gtid import GtidSet
from mtsd.model.step import QueryEvent, Satellite


@dataclass(frozen=True, slots=True)
class Dialect:
    """The events of a family of servers, by type number."""

    name: str
    heads: frozenset[int]
    """What a group begins with: its GTID, or an event saying that it has none."""
    parse_head: Callable[[bytes], GtidEvent]
    parse_query: Callable[[bytes], QueryEvent]
    rows: frozenset[int]
    satellites: Mapping[int, Callable[[bytes], Satellite]]
    """They set up the statement that follows: the decoder of each."""
    load_data: Mapping[int, str]
    """LOAD DATA in statement format and its files: the name of each."""
    passed_over: frozenset[int]
    """They change no data."""
    between_groups: frozenset[int]
    """Those of `passed_over` that are in a file, and outside of its groups."""
    previous_gtids: Mapping[int, Callable[[bytes], GtidSet]]
    """At the beginning of a file: everything executed before it."""
    payloads: frozenset[int] = frozenset()
    """A transaction's events in one event."""
    never_inside: frozenset[int] = frozenset()
    """They never occur in a transaction payload."""
    compressed: Mapping[int, Callable[[bytes], bytes]] = field(default_factory=dict)
    """What turns a compressed event into one of a plain type."""
    fragments: frozenset[int] = frozenset()
    """Pieces of a large row event, which are not joined."""
    encrypted: frozenset[int] = frozenset()
    """What comes after such an event is encrypted."""
    all_have_gtids: bool = False
    """Every group has a GTID: a file before which there are none is the first one."""
    renames_temporary: bool = False
    """RENAME TABLE renames temporary tables too, without the flag THREAD_SPECIFIC."""
    lists_databases: bool = True
    """With a statement it says which databases that concerns."""
    after_gaps: frozenset[int] = frozenset()
    """What a dump by GTID may go on with after groups that it has left out, without saying so."""
    tables_of_mariadb: bool = False
    """What its Table_map events say beyond the types differs: see `TableMap`."""
    unplaced: bool = False
    """Events inside a group need not say where they end, only its last one does."""


_HEADS = frozenset({
    EventType.GTID_LOG_EVENT.value,
    EventType.ANONYMOUS_GTID_LOG_EVENT.value,
    EventType.GTID_TAGGED_LOG_EVENT.value,
})  # fmt: skip

_SATELLITES: Mapping[int, Callable[[bytes], Satellite]] = {
    EventType.INTVAR_EVENT.value: parse_intvar,
    EventType.RAND_EVENT.value: parse_rand,
    EventType.USER_VAR_EVENT.value: parse_user_var,
}

MYSQL = Dialect(
    name="MySQL",
    heads=_HEADS,
    parse_head=parse_gtid,
    parse_query=parse_mysql_query,
    # Plain ints: they are looked up for every event.
    rows=frozenset(kind.value for kind in ROW_EVENTS),
    satellites=_SATELLITES,
    load_data={kind.value: name for kind, name in LOAD_DATA.items()},
    passed_over=frozenset({
        EventType.ROWS_QUERY_LOG_EVENT.value,  # the text of the statement, for human readers
        EventType.IGNORABLE_LOG_EVENT.value,
        EventType.HEARTBEAT_LOG_EVENT.value,
        EventType.HEARTBEAT_LOG_EVENT_V2.value,
        EventType.VIEW_CHANGE_EVENT.value,  # of group replication; changes no data
        EventType.TRANSACTION_CONTEXT_EVENT.value,
    }),
    between_groups=frozenset(),
    previous_gtids={EventType.PREVIOUS_GTIDS_LOG_EVENT.value: parse_previous_gtids},
    payloads=frozenset({EventType.TRANSACTION_PAYLOAD_EVENT.value}),
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

MARIADB = Dialect(
    name="MariaDB",
    heads=frozenset({EventType.MARIADB_GTID_EVENT.value}),
    parse_head=parse_mariadb_gtid,
    parse_query=parse_mariadb_query,
    rows=frozenset(kind.value for kind in ROW_EVENTS - {EventType.PARTIAL_UPDATE_ROWS_EVENT}),
    satellites=_SATELLITES,
    load_data={kind.value: name for kind, name in LOAD_DATA.items()},
    passed_over=frozenset({
        EventType.MARIADB_ANNOTATE_ROWS_EVENT.value,  # the text of the statement
        EventType.MARIADB_BINLOG_CHECKPOINT_EVENT.value,  # for the server's own recovery
        EventType.HEARTBEAT_LOG_EVENT.value,
    }),
    between_groups=frozenset({EventType.MARIADB_BINLOG_CHECKPOINT_EVENT.value}),
    previous_gtids={EventType.MARIADB_GTID_LIST_EVENT.value: parse_gtid_list},
    all_have_gtids=True,
    compressed=dict.fromkeys(PLAIN_TYPES, uncompressed),
    fragments=frozenset({EventType.MARIADB_PARTIAL_ROW_DATA_EVENT.value}),
    encrypted=frozenset({EventType.MARIADB_START_ENCRYPTION_EVENT.value}),
    renames_temporary=True,
    lists_databases=False,
    after_gaps=frozenset({
        EventType.MARIADB_GTID_EVENT.value,
        EventType.MARIADB_BINLOG_CHECKPOINT_EVENT.value,
        EventType.ROTATE_EVENT.value,
        EventType.STOP_EVENT.value,
        EventType.INCIDENT_EVENT.value,
    }),
    tables_of_mariadb=True,
    unplaced=True,  # since 11.8
)  # fmt: skip


def dialect_of(server_version: str) -> Dialect:
    """Return the dialect of the server whose version a format description has."""
    return MARIADB if "mariadb" in server_version.lower() else MYSQL
