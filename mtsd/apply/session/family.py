"""What differs between the families of servers as a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mtsd.apply.sql.literals import text
from mtsd.model.server import NEVER, Flavour, Version
from mtsd.model.session import NO_UNSIGNED_SUBTRACTION


@dataclass(frozen=True, slots=True)
class TargetFamily:
    """A family of servers, as mtsd applies groups to it."""

    # Sessions.
    session_values: Mapping[bytes, tuple[Version, bytes]]
    """Variables that not all families have, or not with the same value: since when, and the value
    between statements."""
    timestamp_defaults_since: Mapping[tuple[int, int], int]
    """By release, the version in which sessions can first set explicit_defaults_for_timestamp; in
    those that are not listed they always can."""
    sets_timestamp_defaults_first: bool
    """Of a transaction, explicit_defaults_for_timestamp is set before it, for all statements."""
    sets_constraint_checks: bool
    """Sessions can do without CHECK constraints."""
    sets_client_by_number: bool
    """character_set_client can be set to any collation's number, not only to names."""
    after_timestamp: bytes
    """Digits after the microseconds of a timestamp, for a server that cuts off a number that may be
    a little too small."""
    keeps_collation_in_use: bool
    """USE of the database in use does nothing: the session keeps the collation that it had before
    an ALTER DATABASE in another session."""
    privilege_to_pin: str
    """With which a user may set all variables of its sessions but sql_log_bin."""
    privilege_to_log: str
    """With which it may set that one."""
    collations: bytes
    """The query for all collations: number, name, and character set of each."""

    # Rows.
    described_with_gtid: bool
    """A BINLOG statement with a format description leaves the session with an anonymous GTID."""
    obeys_exec_mode: bool
    """BINLOG statements pass over errors as the global slave_exec_mode says."""
    grants_count_since: Version
    """Since when BINLOG applies rows only to tables that its user may change (measured with MySQL
    9.7 and MariaDB 11.8)."""
    finds_by_primary_key: bool
    """It looks for the row of a row event by the primary key only, whatever the event has."""
    fires_triggers: bool
    """Triggers of a table can run for the rows of a BINLOG statement."""
    has_periods: bool
    """Keys may have WITHOUT OVERLAPS."""
    cascades_compute: bool
    """What a cascade computes may depend on the session: keys may be of computed columns."""
    partitions_by_session: bool
    """Which partition a row is in may depend on the session: by a difference, as it is signed."""
    generates_keys_since: Version
    """Since when it can add an invisible primary key to a table."""
    guards_each_table: bool
    """A user needs privileges on a table to change its rows by BINLOG."""
    omits_generated: bool
    """Later versions do not log the values of generated columns."""
    row_modes: int
    """The bits of a MySQL's sql_mode that mean the same here, of those that count for rows."""
    truncates_since: Version
    """Since when it has TIME_TRUNCATE_FRACTIONAL."""
    offsets_since: Version
    """Since when literals of times may have a time zone's offset."""
    lenient: tuple[bytes, bytes]
    """What stands before and after the first word of a statement with an ENUM that is none of its
    members, which has the number 0: strict mode refuses it."""

    # Statements.
    logs_threads_of_rows: bool
    """Its binlog tells which session has changed rows, whether by statements or not."""
    creates_and_fills: bool
    """CREATE TABLE … START TRANSACTION stays open for the rows, if it is logged."""
    undoes_logged: bool
    """When it recovers from a crash it may undo a CREATE TABLE that is in its binlog."""
    completes_definitions: bool
    """When it recovers from a crash it may complete a definition, and logs it only then."""
    renames_temporary: bool
    """RENAME TABLE renames temporary tables, too."""
    disabled_event: tuple[tuple[Version, bytes], ...]
    """The clause of an event that is disabled because it runs on the source, the newest first."""

    # XA transactions, and locks.
    detaches_since: Version
    """Since when XA transactions can be applied: an older version keeps a prepared one in its
    session, and in no other can it be completed."""
    attaches_prepared: bool
    """What is prepared belongs to the session that prepared it, until that ends."""
    lists_xids_in_hex: bool
    """XA RECOVER can do that; otherwise xids are listed as bytes."""
    largest_xid_format: int
    empty_gtrid: bool
    """Whether an xid may have no global part."""
    recovers_all_formats: bool
    """With a binary log it recovers prepared transactions of all format ids from a crash."""
    splits: bool
    """Whether a transaction can be split over several sessions."""
    lock_waits: bytes
    """The query for the transactions that wait for others."""
    grants_locks_by_table: bool
    """To see who waits for whom, a user needs privileges on tables of performance_schema."""


_MYSQL_VALUES: Final[dict[bytes, tuple[Version, bytes]]] = {
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

_MARIADB_VALUES: Final[dict[bytes, tuple[Version, bytes]]] = {
    # By name, as statements have it: another value would be set before and after each of them.
    b"character_set_client": ((0, 0, 0), text("utf8mb4")),
    # utf8mb4_general_ci: it has no utf8mb4_0900_ai_ci, at least not in every version.
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

MYSQL: Final = TargetFamily(
    session_values=_MYSQL_VALUES,
    timestamp_defaults_since={},
    sets_timestamp_defaults_first=True,
    sets_constraint_checks=False,
    sets_client_by_number=True,
    after_timestamp=b"",
    keeps_collation_in_use=False,
    privilege_to_pin="SESSION_VARIABLES_ADMIN",
    privilege_to_log="SESSION_VARIABLES_ADMIN",
    collations=b"SELECT ID,COLLATION_NAME,CHARACTER_SET_NAME FROM information_schema.COLLATIONS",
    described_with_gtid=True,
    obeys_exec_mode=False,
    grants_count_since=(8, 0, 18),
    finds_by_primary_key=False,
    fires_triggers=False,
    has_periods=False,
    cascades_compute=True,
    partitions_by_session=True,
    generates_keys_since=(8, 0, 30),
    guards_each_table=False,
    omits_generated=False,
    row_modes=-1,
    truncates_since=(8, 0, 0),
    offsets_since=(8, 0, 19),
    lenient=(b"", b" /*+ SET_VAR(sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES') */"),
    logs_threads_of_rows=True,
    creates_and_fills=True,
    undoes_logged=False,
    completes_definitions=False,
    renames_temporary=False,
    disabled_event=(((8, 2, 0), b"DISABLE ON REPLICA"), ((0, 0, 0), b"DISABLE ON SLAVE")),
    detaches_since=(8, 0, 29),
    attaches_prepared=False,
    lists_xids_in_hex=True,
    largest_xid_format=(1 << 63) - 1,
    empty_gtrid=True,
    recovers_all_formats=False,
    splits=True,
    lock_waits=(
        b"SELECT REQUESTING_ENGINE_TRANSACTION_ID AS waiting,"
        b"BLOCKING_ENGINE_TRANSACTION_ID AS holding FROM performance_schema.data_lock_waits"
    ),
    grants_locks_by_table=True,
)
MARIADB: Final = TargetFamily(
    session_values=_MARIADB_VALUES,
    # In earlier versions it is an option of the server (error 1238), and not in its binlog
    # (MDEV-28632, MDEV-29078).
    timestamp_defaults_since={(10, 5): 17, (10, 6): 9, (10, 7): 5, (10, 8): 4, (10, 9): 2},
    sets_timestamp_defaults_first=False,
    sets_constraint_checks=True,
    # By number it accepts only the default collation of each set.
    sets_client_by_number=False,
    after_timestamp=b"5",
    keeps_collation_in_use=True,
    privilege_to_pin="BINLOG REPLAY",
    privilege_to_log="BINLOG ADMIN",
    collations=(
        b"SELECT ID,FULL_COLLATION_NAME,CHARACTER_SET_NAME"
        b" FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    ),
    described_with_gtid=False,
    obeys_exec_mode=True,
    grants_count_since=NEVER,
    finds_by_primary_key=True,
    fires_triggers=True,
    has_periods=True,
    cascades_compute=False,
    partitions_by_session=False,
    generates_keys_since=NEVER,
    guards_each_table=True,
    omits_generated=True,
    # Its other bits are not MySQL's.
    row_modes=NO_UNSIGNED_SUBTRACTION,
    truncates_since=NEVER,
    offsets_since=NEVER,
    lenient=(b"SET STATEMENT sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES' FOR ", b""),
    logs_threads_of_rows=False,
    creates_and_fills=False,
    undoes_logged=True,
    completes_definitions=True,
    renames_temporary=True,
    disabled_event=(((0, 0, 0), b"DISABLE ON SLAVE"),),
    # It always keeps one in its session, so that mtsd completes it there.
    detaches_since=(0, 0, 0),
    attaches_prepared=True,
    lists_xids_in_hex=False,
    largest_xid_format=(1 << 31) - 1,
    empty_gtrid=False,
    recovers_all_formats=True,
    splits=False,
    lock_waits=(
        b"SELECT requesting_trx_id AS waiting,blocking_trx_id AS holding"
        b" FROM information_schema.INNODB_LOCK_WAITS"
    ),
    grants_locks_by_table=False,
)
TARGETS: Final[Mapping[Flavour, TargetFamily]] = MappingProxyType({
    Flavour.MYSQL: MYSQL,
    Flavour.MARIADB: MARIADB,
})  # fmt: skip
