"""What kind of server is at the other end, queried once; replaces `if mariadb`."""

from dataclasses import dataclass

from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import ServerVersion, Version, flavour_of, identity_of, version_of
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.neutral_session import make_neutral

TOO_OLD = Reason(
    "the {server} is version {version}", "upgrade it: {flavour} {oldest} or later is needed"
)


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """The server variables that determine how to talk to it. Sizes in bytes."""

    server: ServerVersion
    server_id: int
    uuid: str
    """What tells it from other servers: its server_uuid, or on MariaDB "server_id N"."""
    place: str
    """HOST:PORT, as it says itself (hostname, port)."""
    reported: tuple[str, int]
    """Host and port by which its own replica would be known at a source."""
    gtid_mode: bool
    """MySQL: transactions carry GTIDs, which a session can set (gtid_mode = ON)."""
    log_bin: bool
    binlog_checksum: bool
    max_allowed_packet: int
    read_only: bool
    super_read_only: bool
    lower_case_table_names: bool
    """Whether table names are not case-sensitive."""
    explicit_defaults_for_timestamp: bool
    """Its global value: without it, NULL in a TIMESTAMP column that is NOT NULL is the time."""
    enforces_gtid_consistency: bool = False
    """MySQL: no statement may change both tables with transactions and others."""
    loses_cascade_errors: bool = False
    """MySQL from 9.6 on, innodb_native_foreign_keys = OFF: a statement whose cascade is the victim
    of a deadlock, or waits too long for a lock, is answered with OK."""
    gtid_strict_mode: bool = False
    """MariaDB: numbers of GTIDs have to grow within a domain, whichever server they are from."""
    binlog_in_engine: bool = False
    """MariaDB 12.3: its binary log is inside InnoDB (binlog_storage_engine): who reads it is told
    neither files nor offsets."""
    observes_locks: bool = False
    """Whether performance_schema is ON: without it a MySQL's table of lock waits is empty."""

    @property
    def rules_ignore_case(self) -> bool:
        """Whether rules for tables that differ only in case may mean the same table."""
        return self.lower_case_table_names or SERVERS[self.server.flavour].rules_ignore_case

    @property
    def version(self) -> Version:
        """The version of MySQL whose statements and variables it has."""
        return self.server.mysql


def supported(server: str, text: str) -> ServerVersion | Refused:
    """Return the version of a `server` ("source" or "target") from the `text` of its greeting."""
    flavour = flavour_of(text)
    version = version_of(text) or (0, 0, 0)
    oldest = SERVERS[flavour].oldest[server]
    if version < oldest:
        return refuse(
            TOO_OLD,
            server=server,
            version=text,
            flavour=flavour.value,
            oldest=".".join(map(str, oldest[:2])),
        )
    return ServerVersion(flavour, version)


async def read_traits(connection: Connection, known: ServerTraits | None = None) -> ServerTraits:
    """Query a server in a new session, and make that neutral.

    What another session has found shortly before is `known`; it holds if the version is the same.
    Raises NeedsPersonError if that is not supported.
    """
    version = supported(connection.endpoint.role, connection.server_version)
    if isinstance(version, Refused):
        raise NeedsPersonError(str(version))
    await make_neutral(connection)
    if known is not None and known.server == version:
        return known
    rows = await connection.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'server_uuid', 'gtid_mode',"
        " 'enforce_gtid_consistency',"
        " 'log_bin', 'binlog_checksum', 'max_allowed_packet', 'read_only', 'super_read_only',"
        " 'lower_case_table_names', 'explicit_defaults_for_timestamp', 'binlog_storage_engine',"
        " 'gtid_strict_mode', 'hostname', 'port',"
        " 'report_host', 'report_port',"
        " 'innodb_native_foreign_keys', 'performance_schema')"
    )
    variables = {str(name).lower(): str(value) for name, value in rows}
    return ServerTraits(
        server=version,
        server_id=int(variables["server_id"]),
        uuid=identity_of(version.flavour, variables),
        place=f"{variables['hostname']}:{variables['port']}",
        reported=(
            variables.get("report_host") or variables["hostname"],
            int(variables.get("report_port") or 0) or int(variables["port"]),
        ),
        gtid_mode=variables.get("gtid_mode") == "ON",
        log_bin=variables["log_bin"] == "ON",
        binlog_checksum=variables.get("binlog_checksum", "NONE") != "NONE",
        max_allowed_packet=int(variables["max_allowed_packet"]),
        read_only=variables["read_only"] == "ON",
        super_read_only=variables.get("super_read_only") == "ON",
        lower_case_table_names=variables.get("lower_case_table_names", "0") != "0",
        explicit_defaults_for_timestamp=variables.get("explicit_defaults_for_timestamp") == "ON",
        enforces_gtid_consistency=variables.get("enforce_gtid_consistency", "OFF") != "OFF",
        loses_cascade_errors=variables.get("innodb_native_foreign_keys") == "OFF",
        gtid_strict_mode=variables.get("gtid_strict_mode") == "ON",
        binlog_in_engine=variables.get("binlog_storage_engine", "") != "",
        observes_locks=variables.get("performance_schema") == "ON",
    )
