"""Which events and statements have which part in a group, beside its rows."""

from collections.abc import Callable

from mtsd.binlog.event_type import EventType
from mtsd.binlog.satellites import parse_intvar, parse_rand, parse_user_var
from mtsd.model.step import Satellite, StatementKind

ROWS = frozenset({20, 21, 22, 23, 24, 25, 30, 31, 32, 39})
"""Row events: of 5.1, version 1, version 2, partial."""
GTIDS = frozenset({33, 34, 42})
"""What a group begins with: GTID, anonymous, tagged."""

SATELLITES: dict[int, tuple[str, Callable[[bytes], Satellite]]] = {
    5: ("Intvar", parse_intvar), 13: ("Rand", parse_rand), 14: ("User_var", parse_user_var),
}  # fmt: skip
"""They prepare the statement that follows: the name and the decoder of each."""
LOAD_DATA = {
    6: "Load", 8: "Create_file", 9: "Append_block", 10: "Exec_load", 11: "Delete_file",
    12: "New_load", 17: "Begin_load_query", 18: "Execute_load_query",
}  # fmt: skip
"""LOAD DATA in statement format, and its files."""
PASSED_OVER = frozenset({
    EventType.ROWS_QUERY_LOG_EVENT.value,  # the text of the statement, for a reader
    EventType.IGNORABLE_LOG_EVENT.value,
    EventType.HEARTBEAT_LOG_EVENT.value,
    EventType.HEARTBEAT_LOG_EVENT_V2.value,
    EventType.VIEW_CHANGE_EVENT.value,  # group replication's own, changes no data
    EventType.TRANSACTION_CONTEXT_EVENT.value,
})  # fmt: skip
"""They change no data."""
NEVER_INSIDE = frozenset({
    EventType.TRANSACTION_PAYLOAD_EVENT.value,
    EventType.FORMAT_DESCRIPTION_EVENT.value,
    EventType.ROTATE_EVENT.value,
    EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
    EventType.STOP_EVENT.value,
    EventType.INCIDENT_EVENT.value,
    EventType.HEARTBEAT_LOG_EVENT.value,
    EventType.HEARTBEAT_LOG_EVENT_V2.value,
    *GTIDS,
})  # fmt: skip
"""They cannot be in a transaction payload."""
SAVEPOINTS = frozenset({
    StatementKind.SAVEPOINT, StatementKind.RELEASE_SAVEPOINT, StatementKind.ROLLBACK_TO,
})  # fmt: skip
"""They stand inside a transaction and name no database."""
XA_BY_ITSELF = frozenset({
    StatementKind.XA_COMMIT, StatementKind.XA_COMMIT_ONE_PHASE, StatementKind.XA_ROLLBACK,
    StatementKind.XA_PREPARE,
})  # fmt: skip
"""They are a group of their own."""
