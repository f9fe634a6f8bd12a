"""The session state of the source that a statement needs in order to run again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The values of a Query event's status variables; None for those that it lacks.

    Values are the numbers in the binlog (character sets and collations by id, sql_mode as a bit
    set): the server accepts the same numbers in SET. Source of the layout: the manual's and the
    server's description of the Query event's status variables; codes in `mtsd.binlog.query`.
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
