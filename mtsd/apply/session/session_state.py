"""The SET statements that give a target session the state that a statement needs, and reset it.

A session has a pinned state of its own (`PINNED`), in which rows and mtsd's own SQL run; a Query
event's state is applied on top of it for that one statement.
"""

from collections.abc import Iterator, Sequence

from mtsd.apply.sql.literals import blob, text
from mtsd.binlog.bytes.character_sets import character_set
from mtsd.model.server import Flavour, ServerVersion, Version
from mtsd.model.session import SessionContext
from mtsd.model.step import QueryEvent

LOCK_WAIT_S = 50
"""How long a statement waits for a lock of a row."""
NO_THREAD = 0xFFFF_FFFF
"""A thread id that is in no event of a source, unless its client has chosen it.

It is not 0: a MariaDB logs what it completes when it recovers from a crash under that.
"""
THREAD_ID = b"pseudo_thread_id"
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
    b"timestamp": b"DEFAULT",
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
    # By it a server finds temporary tables: with the session's own id, rows as SQL could find one
    # of a thread of the source with the same id. No thread has this one.
    THREAD_ID: b"%d" % NO_THREAD,
}
"""Variables of a session between statements; those of `_NEWER` if the server has them.

Texts are hex literals, as the session's character set may be UTF-16 when they are set.
"""

_NEWER: dict[bytes, tuple[tuple[int, int, int], bytes]] = {
    # Under IDEMPOTENT, a BINLOG statement passes over a row that is missing or there already.
    b"rbr_exec_mode": ((0, 0, 0), text("STRICT")),
    b"max_execution_time": ((5, 7, 8), b"0"),
    b"transaction_isolation": ((5, 7, 20), text("READ-COMMITTED")),
    b"transaction_read_only": ((5, 7, 20), b"0"),
    b"default_collation_for_utf8mb4": ((8, 0, 11), b"DEFAULT"),
    b"sql_require_primary_key": ((8, 0, 13), b"0"),
    # Not known. From a version before 8.3, REVOKE of what somebody does not have is no error.
    b"original_server_version": ((8, 0, 14), b"999999"),
    b"default_table_encryption": ((8, 0, 16), b"DEFAULT"),
    b"xa_detach_on_prepare": ((8, 0, 29), b"1"),
    b"sql_generate_invisible_primary_key": ((8, 0, 30), b"0"),
    # Otherwise it is not seen where columns are looked up.
    b"show_gipk_in_create_table_and_information_schema": ((8, 0, 30), b"1"),
    b"restrict_fk_on_non_standard_key": ((8, 4, 0), b"0"),
    b"enable_cascade_triggers": ((9, 7, 0), b"0"),
}
"""These have the values that a server's own replica sets regardless of the global value:
restrict_fk_on_non_standard_key, enable_cascade_triggers, sql_generate_invisible_primary_key, and
of `PINNED` sql_big_selects (performance_schema.variables_by_thread shows them)."""


_MARIADB: dict[bytes, tuple[Version, bytes]] = {
    # utf8mb4_general_ci: it has no utf8mb4_0900_ai_ci, at least not in every version.
    b"character_set_client": ((0, 0, 0), b"45"),
    b"collation_connection": ((0, 0, 0), b"45"),
    b"tx_isolation": ((0, 0, 0), text("READ-COMMITTED")),
    b"tx_read_only": ((0, 0, 0), b"0"),
    b"check_constraint_checks": ((0, 0, 0), b"1"),
    b"sql_if_exists": ((0, 0, 0), b"0"),
    b"system_versioning_insert_history": ((10, 11, 0), b"0"),
    # As in the server's own replica: the setting of the source is not in its binlog.
    b"system_versioning_alter_history": ((0, 0, 0), text("KEEP")),
    # Limits for clients: they would end a large transaction.
    b"max_statement_time": ((0, 0, 0), b"0"),
    b"idle_transaction_timeout": ((0, 0, 0), b"0"),
    b"idle_write_transaction_timeout": ((0, 0, 0), b"0"),
    # Logged twice, a definition that was interrupted would look as if it had been applied.
    b"binlog_alter_two_phase": ((10, 8, 1), b"0"),
    # An empty text would be NULL under sql_mode = EMPTY_STRING_IS_NULL.
    b"character_set_collations": ((11, 2, 0), b"X''"),
}
"""What a MariaDB has in place of `_NEWER`, and since which version."""


_COLLATIONS = frozenset({b"collation_connection", b"collation_server"})
_ONLY_BY_NAME = 2048
"""Numbers of MariaDB's collations from here on (since 10.10) are not accepted by SET."""
_ISOLATION = (b"transaction_isolation", b"tx_isolation")
"""Its names in MySQL and MariaDB."""


def pinned(server: ServerVersion) -> dict[bytes, bytes]:
    """Return the pinned state for a server of this version."""
    more, version = _NEWER, server.number
    if server.flavour is Flavour.MARIADB:
        more = _MARIADB
    added = {name: value for name, (since, value) in more.items() if version >= since}
    state = PINNED | added
    if not sets_timestamp_defaults(server):
        del state[TIMESTAMP_DEFAULTS]
    return state


def sets_timestamp_defaults(server: ServerVersion) -> bool:
    """Return whether a session can set explicit_defaults_for_timestamp.

    In earlier versions of MariaDB it is an option of the server (error 1238), and not in its
    binlog (MDEV-28632, MDEV-29078).
    """
    if server.flavour is not Flavour.MARIADB:
        return True
    return server.number[2] >= _TIMESTAMP_DEFAULTS_SINCE.get(server.number[:2], 0)


def of_query(
    query: QueryEvent, state: dict[bytes, bytes], server: ServerVersion
) -> dict[bytes, bytes]:
    """Return the state of a statement, of which `state` is what its context says.

    It has the thread id only if `state` has one.
    """
    timestamp = b"%d.%06d" % (query.timestamp, query.microseconds or 0)
    if server.flavour is Flavour.MARIADB:
        # It cuts off what is less than a microsecond, of a number that may be a little too small.
        timestamp += b"5"
    wanted = {**state, b"timestamp": timestamp}
    if THREAD_ID in wanted:
        wanted[THREAD_ID] = b"%d" % query.thread_id
    return wanted


def context_state(
    context: SessionContext, server: ServerVersion, pinned_state: dict[bytes, bytes]
) -> dict[bytes, bytes]:
    """Return the pinned state, overridden by everything that the context of a statement says.

    Outside of a transaction a statement reads under REPEATABLE READ: otherwise it could read
    different rows than it did on the source.
    """
    state = dict(pinned_state)
    for name in _ISOLATION:
        if name in state:
            state[name] = text("REPEATABLE-READ")
    said: list[tuple[bytes, int | bool | None]] = [
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
    for name, value in said:
        if value is not None and name in state:
            state[name] = collation(value) if name in _COLLATIONS else b"%d" % value
    client = context.character_set_client
    if client is not None and server.flavour is Flavour.MARIADB:
        # By number it accepts only the default collation of each set.
        state[b"character_set_client"] = text(character_set(client))
    if context.sql_mode is not None:
        state[b"sql_mode"] = b"%d" % (context.sql_mode & ~_gone_modes(server))
    if context.character_set_collations and b"character_set_collations" in state:
        state[b"character_set_collations"] = _default_collations(context.character_set_collations)
    if context.time_zone is not None:
        state[b"time_zone"] = blob(context.time_zone)
    return state


def without_settled(state: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return what can be set at any time, and by the functions that a statement calls."""
    return {name: value for name, value in state.items() if name not in _SETTLED}


def only_settled(state: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return what cannot be set inside a transaction (error 1766); only definitions need it."""
    return {name: state[name] for name in _SETTLED if name in state}


TIMESTAMP_DEFAULTS = b"explicit_defaults_for_timestamp"
_TIMESTAMP_DEFAULTS_SINCE = {(10, 5): 17, (10, 6): 9, (10, 7): 5, (10, 8): 4, (10, 9): 2}
_SETTLED = frozenset({TIMESTAMP_DEFAULTS, b"xa_detach_on_prepare"})


def collation(number: int) -> bytes:
    """Return what to set a variable to for a collation by its number."""
    return b"%d" % number if number < _ONLY_BY_NAME else _column(b"full_collation_name", [number])


def changes(now: dict[bytes, bytes], wanted: dict[bytes, bytes]) -> bytes:
    """Return the SET statement that changes one state into another, b"" if they are equal."""
    return b",".join(_differing(now, wanted))


def _differing(now: dict[bytes, bytes], wanted: dict[bytes, bytes]) -> Iterator[bytes]:
    first = True
    for name, value in wanted.items():
        if now.get(name) != value:
            yield (b"SET @@session." if first else b"@@session.") + name + b"=" + value
            first = False


def _default_collations(pairs: tuple[tuple[int, int], ...]) -> bytes:
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
