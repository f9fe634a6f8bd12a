"""The session state of the source that a statement needs in order to run again."""

from dataclasses import dataclass
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The values of a Query event's status variables; None for those that it lacks.

    Values are the numbers in the binlog (character sets and collations by id, sql_mode as a bit
    set): the server accepts the same numbers in SET. Source of the layout: the manual's and the
    server's description of the Query event's status variables; codes in `mtsd.binlog.events.query`.
    """

    auto_is_null: bool | None = None
    foreign_key_checks: bool | None = None
    unique_checks: bool | None = None
    sql_mode: int | None = None
    auto_increment_increment: int | None = None
    auto_increment_offset: int | None = None
    character_set_client: int | None = None
    collation_connection: int | None = None
    collation_server: int | None = None
    time_zone: bytes | None = None
    lc_time_names: int | None = None
    collation_database: int | None = None
    explicit_defaults_for_timestamp: bool | None = None
    default_collation_for_utf8mb4: int | None = None
    sql_require_primary_key: bool | None = None
    default_table_encryption: bool | None = None
    enable_cascade_triggers: bool | None = None
    """Since 9.7: triggers fire for rows changed by a foreign key cascade."""
    original_server_version: int | None = None
    """Of definitions, from the GTID event: of the MySQL that they were first run on, 80036 for
    8.0.36."""
    sql_if_exists: bool | None = None
    """MariaDB: DROP, ALTER and RENAME act as if they said IF EXISTS."""
    check_constraint_checks: bool | None = None
    """MariaDB: whether CHECK constraints are checked."""
    system_versioning_insert_history: bool | None = None
    """MariaDB since 10.11: INSERT may set the period of a row of a versioned table."""
    character_set_collations: tuple[tuple[int, int], ...] | None = None
    """MariaDB since 11.2: pairs of a character set, by a collation of it, and its default one."""


class RowState(NamedTuple):
    """What a server's expressions over the columns of a row depend on, in a session of the source.

    That are generated columns, CHECK constraints and functional keys. `sql_mode` has only the bits
    of `COMPUTING_MODES`. `time_zone` is None if the source does not say it: MySQL does if the first
    statement of a transaction has used it.
    """

    sql_mode: int
    time_zone: bytes | None
    lc_time_names: int


NO_UNSIGNED_SUBTRACTION: Final = 1 << 6
_NO_BACKSLASH_ESCAPES: Final = 1 << 20
_NO_ZERO_IN_DATE: Final = 1 << 23
_NO_ZERO_DATE: Final = 1 << 24
ALLOW_INVALID_DATES: Final = 1 << 25
_PAD_CHAR_TO_FULL_LENGTH: Final = 1 << 31
TIME_TRUNCATE_FRACTIONAL: Final = 1 << 32
COMPUTING_MODES: Final = (
    NO_UNSIGNED_SUBTRACTION
    | _NO_BACKSLASH_ESCAPES
    | _NO_ZERO_IN_DATE
    | _NO_ZERO_DATE
    | ALLOW_INVALID_DATES
    | _PAD_CHAR_TO_FULL_LENGTH
    | TIME_TRUNCATE_FRACTIONAL
)
"""Of MySQL's sql_mode, what changes values. The strict modes only change which are errors, and the
source has accepted its rows (by INSERT IGNORE, perhaps)."""


def row_state(context: SessionContext, former: RowState | None = None) -> RowState:
    """Return the state of the rows after a BEGIN, or after a statement of the transaction.

    One that has used no time zone does not say it: then it is still the `former` one.
    """
    zone = context.time_zone
    if zone is None and former is not None:
        zone = former.time_zone
    return RowState((context.sql_mode or 0) & COMPUTING_MODES, zone, context.lc_time_names or 0)
