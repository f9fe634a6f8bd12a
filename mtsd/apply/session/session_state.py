"""The SET statements that give a target session the state that a statement needs, and reset it.

A session has a pinned state of its own (`PINNED`), in which rows and mtsd's own SQL run; a Query
event's state is applied on top of it for that one statement.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence

from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.satellites import Collation
from mtsd.apply.sql.literals import blob, text
from mtsd.binlog.bytes.character_sets import character_set
from mtsd.model.server import ServerVersion
from mtsd.model.session import SessionContext
from mtsd.model.step import QueryEvent

LOCK_WAIT_S = 50
"""How long a statement waits for a lock of a row."""
_NO_THREADS = range(0x8000_0000, 0x1_0000_0000)
"""Thread ids that are in no event of a source, unless its client has chosen one: servers count
their sessions from 1.

0 is not among them: a MariaDB logs what it completes when it recovers from a crash under that.
"""
THREAD_ID = b"pseudo_thread_id"
TIMESTAMP = b"timestamp"
PINNED: dict[bytes, bytes] = {
    b"sql_mode": b"0",
    b"time_zone": b"X'2b30303a3030'",
    b"foreign_key_checks": b"1",
    b"unique_checks": b"1",
    b"sql_auto_is_null": b"0",
    b"auto_increment_increment": b"1",
    b"auto_increment_offset": b"1",
    b"character_set_client": b"255",
    b"collation_connection": b"255",
    b"collation_server": b"DEFAULT",
    b"lc_time_names": b"0",
    b"explicit_defaults_for_timestamp": b"1",
    b"sql_big_selects": b"1",
    TIMESTAMP: b"DEFAULT",
    b"wait_timeout": b"31536000",
    b"net_write_timeout": b"3600",
    b"net_read_timeout": b"3600",
    b"innodb_lock_wait_timeout": b"%d" % LOCK_WAIT_S,
    b"lock_wait_timeout": b"3600",
    b"completion_type": b"0",
    b"sql_safe_updates": b"0",
    b"sql_select_limit": b"18446744073709551615",
    # A ROLLBACK tells only by a warning that not everything could be rolled back.
    b"max_error_count": b"1024",
    b"sql_notes": b"1",
    # Otherwise names that SHOW CREATE TABLE shows look like words.
    b"sql_quote_show_create": b"1",
    # By it a server finds temporary tables: with the session's own id, rows as SQL could find one
    # of a thread of the source with the same id. No thread has this one (`thread_of_nobody`).
    THREAD_ID: b"%d" % _NO_THREADS[-1],
}
"""Variables of a session between statements; a family has others, too.

Texts are hex literals, as the session's character set may be UTF-16 when they are set.
"""


_COLLATIONS = frozenset({b"collation_connection", b"collation_server"})
_ONLY_BY_NAME = 2048
"""Numbers of MariaDB's collations from here on (since 10.10) are not accepted by SET."""
_ISOLATION = (b"transaction_isolation", b"tx_isolation")
"""Its names in MySQL and MariaDB."""


def thread_of_nobody() -> int:
    """Return a thread id that neither a source nor another session of mtsd has in a binlog."""
    return secrets.choice(_NO_THREADS)


def pinned(server: ServerVersion) -> dict[bytes, bytes]:
    """Return the pinned state for a server of this version."""
    more = TARGETS[server.flavour].session_values
    added = {name: value for name, (since, value) in more.items() if server.number >= since}
    state = PINNED | added
    if not sets_timestamp_defaults(server):
        del state[TIMESTAMP_DEFAULTS]
    return state


def sets_timestamp_defaults(server: ServerVersion) -> bool:
    """Return whether a session can set explicit_defaults_for_timestamp."""
    since = TARGETS[server.flavour].timestamp_defaults_since
    return server.number[2] >= since.get(server.number[:2], 0)


def time_of(query: QueryEvent, server: ServerVersion) -> bytes:
    """Return the `TIMESTAMP` that a statement runs at."""
    more = TARGETS[server.flavour].after_timestamp
    return b"%d.%06d%b" % (query.timestamp, query.microseconds or 0, more)


def of_query(
    query: QueryEvent, state: dict[bytes, bytes], server: ServerVersion
) -> dict[bytes, bytes]:
    """Return the state of a statement, of which `state` is what its context says.

    It has the thread id only if `state` has one.
    """
    wanted = {**state, TIMESTAMP: time_of(query, server)}
    if THREAD_ID in wanted:
        wanted[THREAD_ID] = b"%d" % query.thread_id
    return wanted


def context_state(
    context: SessionContext,
    server: ServerVersion,
    pinned_state: dict[bytes, bytes],
    collations: Mapping[int, Collation],
) -> dict[bytes, bytes]:
    """Return the pinned state, overridden by everything that the context of a statement says.

    `collations` are as for `collation`.
    Outside of a transaction a statement reads under REPEATABLE READ: otherwise it could read
    different rows than it did on the source.
    """
    state = dict(pinned_state)
    for name in _ISOLATION:
        if name in state:
            state[name] = text("REPEATABLE-READ")
    settings: list[tuple[bytes, int | bool | None]] = [
        (b"sql_mode", context.sql_mode),
        (b"foreign_key_checks", context.foreign_key_checks),
        (b"unique_checks", context.unique_checks),
        (b"sql_auto_is_null", context.auto_is_null),
        (b"auto_increment_increment", context.auto_increment_increment),
        (b"auto_increment_offset", context.auto_increment_offset),
        (b"character_set_client", context.character_set_client),
        (b"collation_connection", context.collation_connection),
        (b"collation_server", context.collation_server),
        (b"lc_time_names", context.lc_time_names),
        (b"explicit_defaults_for_timestamp", context.explicit_defaults_for_timestamp),
        (b"default_collation_for_utf8mb4", context.default_collation_for_utf8mb4),
        (b"sql_require_primary_key", context.sql_require_primary_key),
        (b"default_table_encryption", context.default_table_encryption),
        (b"enable_cascade_triggers", context.enable_cascade_triggers),
        (b"original_server_version", context.original_server_version),
        (b"sql_if_exists", context.sql_if_exists),
        (b"check_constraint_checks", context.check_constraint_checks),
        (b"system_versioning_insert_history", context.system_versioning_insert_history),
    ]
    for name, value in settings:
        if value is not None and name in state:
            is_collation = name in _COLLATIONS
            state[name] = collation(value, collations) if is_collation else b"%d" % value
    client = context.character_set_client
    if client is not None and not TARGETS[server.flavour].sets_client_by_number:
        state[b"character_set_client"] = text(character_set(client))
    if context.sql_mode is not None:
        state[b"sql_mode"] = b"%d" % (context.sql_mode & ~_gone_modes(server))
    if context.character_set_collations and b"character_set_collations" in state:
        state[b"character_set_collations"] = _default_collations(
            context.character_set_collations, collations
        )
    if context.time_zone is not None:
        state[b"time_zone"] = blob(context.time_zone)
    return state


def settable_anywhere(state: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return what can be set at any time, and by the functions that a statement calls."""
    return {name: value for name, value in state.items() if name not in _OUTSIDE_ONLY}


def settable_outside(state: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return what cannot be set inside a transaction (error 1766); only definitions need it."""
    return {name: state[name] for name in _OUTSIDE_ONLY if name in state}


TIMESTAMP_DEFAULTS = b"explicit_defaults_for_timestamp"
_OUTSIDE_ONLY = frozenset({TIMESTAMP_DEFAULTS, b"xa_detach_on_prepare"})


def collation(number: int, collations: Mapping[int, Collation]) -> bytes:
    """Return what to set a variable to for a collation by its number.

    `collations` are those of the target, as far as they have been read: a MariaDB takes 0.3 ms to
    look one up in a statement (measured with 11.8).
    """
    if number < _ONLY_BY_NAME:
        return b"%d" % number
    found = collations.get(number)
    if found is None:
        return _column(b"full_collation_name", [number])
    return text(found.name.decode())


def names_collations(context: SessionContext) -> bool:
    """Return whether the state of a statement has collations by name: see `collation`."""
    return bool(context.character_set_collations) or (
        max(
            context.collation_connection or 0,
            context.collation_server or 0,
            context.collation_database or 0,
        )
        >= _ONLY_BY_NAME
    )


def changes(now: dict[bytes, bytes], wanted: dict[bytes, bytes]) -> bytes:
    """Return the SET statement that changes one state into another, b"" if they are equal."""
    return b",".join(_differing(now, wanted))


def _differing(now: dict[bytes, bytes], wanted: dict[bytes, bytes]) -> Iterator[bytes]:
    first = True
    for name, value in wanted.items():
        if now.get(name) != value:
            yield (b"SET @@session." if first else b"@@session.") + name + b"=" + value
            first = False


def _default_collations(
    pairs: tuple[tuple[int, int], ...], collations: Mapping[int, Collation]
) -> bytes:
    known = [collations[to] for _, to in pairs if to in collations]
    if len(known) == len(pairs):
        named = (each.character_set + b"=" + each.name for each in known)
        return text(b",".join(named).decode())
    return _column(
        b"GROUP_CONCAT(character_set_name,'=',full_collation_name)", [to for _, to in pairs]
    )


def _column(column: bytes, collations: Sequence[int]) -> bytes:
    """Return an expression for what MariaDB calls collations, given by number."""
    return (
        b"(SELECT %b FROM information_schema.collation_character_set_applicability"
        b" WHERE id IN (%b))" % (column, b",".join(b"%d" % each for each in collations))
    )


def _gone_modes(server: ServerVersion) -> int:
    # Removed in 8.0 (manual, "Server SQL modes"); setting one of these bits is error 3899 there.
    # POSTGRESQL, ORACLE, MSSQL, DB2, MAXDB, NO_KEY_OPTIONS, NO_TABLE_OPTIONS, NO_FIELD_OPTIONS,
    # MYSQL323, MYSQL40, NO_AUTO_CREATE_USER.
    if server.mysql < (8, 0, 0):
        return 0
    return 0x3FF00 | 0x10000000
