"""Query events: a statement and the session state that it ran under.

Body, little-endian: thread id u32, execution time u32 (s), database length u8, error code u16,
length of the status variables u16, the status variables (code u8 and value each), database, NUL,
the statement up to the event's end (MySQL documentation, `mysql::binlog::event::Query_event`).
MariaDB's own status variables have codes from 128 (its documentation, "QUERY_EVENT").
"""

import struct
from dataclasses import dataclass
from struct import Struct

from mtsd.binlog.cursor import Cursor
from mtsd.binlog.statement_prefix import without_prefix
from mtsd.binlog.tokenizer import as_executed
from mtsd.model.errors import BinlogError
from mtsd.model.session import SessionContext
from mtsd.model.step import AlterPhase, QueryEvent

OPTION_AUTO_IS_NULL = 0x4000
OPTION_NO_FOREIGN_KEY_CHECKS = 0x4000000
OPTION_RELAXED_UNIQUE_CHECKS = 0x8000000
OPTION_NO_CHECK_CONSTRAINT_CHECKS = 0x8000
"""MariaDB's, as are the next ones."""
OPTION_EXPLICIT_DEFAULTS_FOR_TIMESTAMP = 0x1000000
OPTION_IF_EXISTS = 0x10000000
OPTION_INSERT_HISTORY = 0x40000000

MAX_DBS_IN_EVENT_MTS = 16
"""The servers' constant: a statement that updates more databases names none of them."""
OVER_MAX_DBS_IN_EVENT_MTS = 254
"""What the servers then write instead of their number."""

INTERRUPTIONS = frozenset({1053, 1158, 1160, 1184, 1317, 1927})
"""Errors of a statement that was killed or lost its connection: what it has left is not known.

Shutdown, network read and write errors, aborted connection, KILL QUERY, and MariaDB's KILL.
"""
_FIXED = Struct("<IBIIIHIIBHH")
_FIXED_SIZE = _FIXED.size
_WHAT = "Query event"
_NO_PREFIX = frozenset(bytes((code,)) for code in b"BCDEFGHIJKLMNOPQRTUVWXYZ")
"""What most statements begin with, and none with a SET STATEMENT or ANALYZE."""

_STARTS = 0x2
_COMMITS = 0x4
_ROLLS_BACK = 0x8
_PHASES = _STARTS | _COMMITS | _ROLLS_BACK
_ALTER_PHASES = {
    _STARTS: AlterPhase.START,
    _COMMITS: AlterPhase.COMMIT,
    _ROLLS_BACK: AlterPhase.ROLLBACK,
}
"""By the extra flags of MariaDB's GTID event, which the Query event repeats."""

# Status variables repeat from event to event, so their decoded form is cached.
_MOST_REMEMBERED = 2048
_MOST_REMEMBERED_SIZE = 1024
_MICROSECONDS_SIZE = 3


@dataclass(frozen=True, slots=True)
class StatusVariables:
    """The decoded status variables of one event; see QueryEvent."""

    context: SessionContext
    microseconds: int | None
    updated_databases: tuple[str, ...] | None
    over_max: bool
    invoker: tuple[bytes, bytes] | None
    ddl_xid: int | None
    table_map_for_update: int | None
    alter_phase: AlterPhase | None = None
    microseconds_at: int = 0
    """The offset of the microseconds' value, 0 without one: it differs from event to event."""


_Key = tuple[bytes, int, bool]
_remembered: dict[_Key, StatusVariables] = {}
"""By the status variables without the value of the microseconds, its offset, and the family."""
_microseconds_at: dict[int, int] = {}
"""Where that value was in the last status variables of a size."""


def parse_mysql_query(event: bytes) -> QueryEvent:
    """Decode a Query event of MySQL, with what it has executed; BinlogError as for parse_query."""
    return _as_executed(parse_query(event), mariadb=False)


def parse_mariadb_query(event: bytes) -> QueryEvent:
    """Decode one of MariaDB, with what it has executed; BinlogError as for parse_query."""
    query = _as_executed(parse_query(event, mariadb=True), mariadb=True)
    if query.statement[:1] in _NO_PREFIX:
        return query
    return query._replace(statement=without_prefix(query.statement, query.context))


def _as_executed(query: QueryEvent, *, mariadb: bool) -> QueryEvent:
    statement = as_executed(query.statement, query.context, mariadb=mariadb)
    return query if statement is query.statement else query._replace(statement=statement)


def parse_query(event: bytes, *, mariadb: bool = False) -> QueryEvent:
    """Decode a Query event.

    In those of MariaDB the first status variable has more flags. Raises BinlogError if it is
    truncated, and for an unknown status variable: servers ignore the rest in that case, and would
    run the statement with wrong session state.
    """
    try:
        (
            timestamp,
            _type,
            _server_id,
            _size,
            _log_pos,
            _flags,
            thread_id,
            exec_time,
            database_size,
            error_code,
            status_size,
        ) = _FIXED.unpack_from(event)
    except struct.error as error:
        raise BinlogError(f"{_WHAT}: {len(event)} bytes, fewer than its fixed part") from error
    database_at = _FIXED_SIZE + status_size
    database_end = database_at + database_size
    if database_end >= len(event):
        raise BinlogError(
            f"{_WHAT}: status variables of {status_size} bytes and a database of {database_size}"
            f" do not fit into {len(event)} bytes"
        )
    if event[database_end]:
        raise BinlogError(f"{_WHAT}: no NUL after the database")
    raw = event[database_at:database_end]
    if b"\0" in raw:
        raise BinlogError(f"{_WHAT}: the name of database {raw!r} contains NUL")
    try:
        database = raw.decode()
    except UnicodeDecodeError as error:
        raise BinlogError(f"{_WHAT}: database {raw!r} is not UTF-8") from error
    variables, microseconds = _status_variables(event[_FIXED_SIZE:database_at], mariadb=mariadb)
    return QueryEvent(
        thread_id,
        exec_time,
        error_code,
        variables.context,
        microseconds,
        database,
        event[database_end + 1 :],
        variables.updated_databases,
        variables.over_max,
        variables.invoker,
        variables.ddl_xid,
        timestamp,
        variables.table_map_for_update,
        variables.alter_phase,
    )


def _status_variables(status: bytes, *, mariadb: bool) -> tuple[StatusVariables, int | None]:
    """Return the status variables, decoded or from the cache, and this event's microseconds.

    Those are the same as before if all but the microseconds is: they are read from the left, and
    where the same bytes and the microseconds' code came before, the value is at the same place.
    """
    at = _microseconds_at.get(len(status), 0)
    variables = _remembered.get(_key(status, at, mariadb))
    if variables is None and at:
        at = 0
        variables = _remembered.get(_key(status, at, mariadb))
    if variables is not None:
        end = at + _MICROSECONDS_SIZE
        return variables, int.from_bytes(status[at:end], "little") if at else None
    variables = parse_status_variables(status, mariadb=mariadb)
    if len(status) <= _MOST_REMEMBERED_SIZE:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
            _microseconds_at.clear()
        at = variables.microseconds_at
        if at:
            _microseconds_at[len(status)] = at
        _remembered[_key(status, at, mariadb)] = variables
    return variables, variables.microseconds


def _key(status: bytes, microseconds_at: int, mariadb: bool) -> _Key:
    if not microseconds_at:
        return status, 0, mariadb
    rest = status[:microseconds_at] + status[microseconds_at + _MICROSECONDS_SIZE :]
    return rest, microseconds_at, mariadb


def parse_status_variables(status: bytes, *, mariadb: bool = False) -> StatusVariables:
    """Decode the status variables of a Query event; BinlogError as for parse_query."""
    cursor = Cursor(status, 0, f"{_WHAT}, status variables")
    context: dict[str, int | bool | bytes | tuple[tuple[int, int], ...]] = {}
    alter_phase: AlterPhase | None = None
    microseconds: int | None = None
    microseconds_at = 0
    updated: tuple[str, ...] | None = None
    over_max = False
    invoker: tuple[bytes, bytes] | None = None
    ddl_xid: int | None = None
    table_map_for_update: int | None = None
    while cursor.left():
        code = cursor.uint(1, "code")
        name = _NAMES.get(code)
        if name is None:
            raise BinlogError(
                f"{_WHAT}: unknown status variable {code};"
                " without it the statement may behave differently than on the source"
            )
        match code:
            case 0:
                flags = cursor.uint(4, name)
                context["auto_is_null"] = bool(flags & OPTION_AUTO_IS_NULL)
                context["foreign_key_checks"] = not flags & OPTION_NO_FOREIGN_KEY_CHECKS
                context["unique_checks"] = not flags & OPTION_RELAXED_UNIQUE_CHECKS
                if mariadb:
                    explicit = bool(flags & OPTION_EXPLICIT_DEFAULTS_FOR_TIMESTAMP)
                    context["explicit_defaults_for_timestamp"] = explicit
                    context["sql_if_exists"] = bool(flags & OPTION_IF_EXISTS)
                    unchecked = bool(flags & OPTION_NO_CHECK_CONSTRAINT_CHECKS)
                    context["check_constraint_checks"] = not unchecked
                    history = bool(flags & OPTION_INSERT_HISTORY)
                    context["system_versioning_insert_history"] = history
            case 2:
                cursor.skip(cursor.uint(1, name) + 1, name)
            case 3:
                context["auto_increment_increment"] = cursor.uint(2, name)
                context["auto_increment_offset"] = cursor.uint(2, name)
            case 4:
                context["character_set_client"] = cursor.uint(2, name)
                context["collation_connection"] = cursor.uint(2, name)
                context["collation_server"] = cursor.uint(2, name)
            case 5:
                context["time_zone"] = cursor.take(cursor.uint(1, name), name)
            case 6:
                cursor.skip(cursor.uint(1, name), name)
            case 9:
                table_map_for_update = cursor.uint(8, name)
            case 10:
                cursor.skip(4, name)
            case 11:
                user = cursor.take(cursor.uint(1, name), name)
                invoker = user, cursor.take(cursor.uint(1, name), name)
            case 12:
                count = cursor.uint(1, name)
                over_max = count == OVER_MAX_DBS_IN_EVENT_MTS
                updated = () if over_max else tuple(_name(cursor, name) for _ in range(count))
            case 13 | 128:
                microseconds_at = cursor.at
                microseconds = cursor.uint(_MICROSECONDS_SIZE, name)
            case 17:
                ddl_xid = cursor.uint(8, name)
            case 129:
                # Unlike MySQL's, definitions of temporary tables have it too.
                cursor.skip(8, name)
            case 130:
                flags = cursor.uint(1, name)
                alter_phase = _ALTER_PHASES.get(flags & _PHASES)
                if flags & (_COMMITS | _ROLLS_BACK):
                    cursor.skip(8, "number of the ALTER that it completes")
            case 131:
                context[name] = tuple(
                    (cursor.uint(2, name), cursor.uint(2, name))
                    for _ in range(cursor.uint(1, name))
                )
            case 16 | 19 | 20 | 21:
                context[name] = bool(cursor.uint(1, name))
            case _:
                context[name] = cursor.uint(8 if code == 1 else 2, name)
    return StatusVariables(
        SessionContext(**context),  # type: ignore[arg-type] # each name got its own type above
        microseconds,
        updated,
        over_max,
        invoker,
        ddl_xid,
        table_map_for_update,
        alter_phase,
        microseconds_at,
    )


def _name(cursor: Cursor, field: str) -> str:
    end = cursor.data.find(b"\0", cursor.at)
    if end < 0:
        raise BinlogError(f"{cursor.what}: {field}: a name without its NUL")
    name = cursor.text(end - cursor.at, field)
    cursor.at = end + 1
    return name


_NAMES = {
    0: "flags2",
    1: "sql_mode",
    2: "catalog with NUL",
    3: "auto_increment",
    4: "character sets",
    5: "time_zone",
    6: "catalog",
    7: "lc_time_names",
    8: "collation_database",
    9: "table_map_for_update",
    10: "master_data_written",
    11: "invoker",
    12: "updated databases",
    13: "microseconds",
    16: "explicit_defaults_for_timestamp",
    17: "ddl_xid",
    18: "default_collation_for_utf8mb4",
    19: "sql_require_primary_key",
    20: "default_table_encryption",
    21: "enable_cascade_triggers",
    128: "microseconds",
    129: "xid",
    130: "extra flags of the GTID",
    131: "character_set_collations",
}
