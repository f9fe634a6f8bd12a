"""What a server says about replication: its own replica's channels, and the replicas it feeds.

Rows are read by column name, because the number of columns differs by version. MySQL before 8.0.22
and MariaDB say Master and Slave where later versions say Source and Replica (manuals, "SHOW REPLICA
STATUS", "SHOW ALL SLAVES STATUS"); a column that a version does not have is empty.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mtsd.model.position import Position
from mtsd.model.server import ServerVersion, Version, of_version
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Value
from mtsd.wire.family import SERVERS

_SAYS_REPLICA = (8, 0, 22)
_APPLIED = "SELECT @@GLOBAL.gtid_slave_pos"


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One channel of a server's own replica."""

    channel: str
    host: str
    port: int
    user: str
    source_server_id: int
    source_uuid: str
    """In lower case; "" on MariaDB, and before the replica has first connected."""
    receiving: bool
    """Whether its receiver thread runs, whether connected or trying to connect."""
    applying: bool
    received: Position
    """How far it has read in the source's binary log."""
    executed: Position
    """How far it has applied that."""
    received_gtids: str
    executed_gtids: str
    """As the server writes them: on MySQL everything that it has executed."""
    by_gtid: bool
    """It reads by GTID set: auto-position, or Using_Gtid on MariaDB."""
    error: str
    """Its last errors; "" if there are none."""


@dataclass(frozen=True, slots=True)
class RegisteredReplica:
    """A replica that reads from a server; `uuid` in lower case, "" if it has none."""

    server_id: int
    uuid: str


def replica_status_statement(server: ServerVersion) -> str:
    """Return the statement whose rows `replica_status` parses: one of each channel."""
    return of_version(SERVERS[server.flavour].replica_status, server.number)


def replica_status(row: Mapping[str, Value]) -> ReplicaStatus:
    """Parse a row of SHOW REPLICA STATUS, or of its older equivalents."""
    columns = {today_named(name): value for name, value in row.items()}

    def text(*names: str) -> str:
        return next((str(columns[name]) for name in names if columns.get(name) is not None), "")

    def number(name: str) -> int:
        return int(text(name) or 0)

    errors = (text("last_io_error"), text("last_sql_error"))
    return ReplicaStatus(
        channel=text("channel_name", "connection_name"),
        host=text("source_host"),
        port=number("source_port"),
        user=text("source_user"),
        source_server_id=number("source_server_id"),
        source_uuid=text("source_uuid").lower(),
        receiving=text("replica_io_running") not in {"", "No"},
        applying=text("replica_sql_running") == "Yes",
        received=Position(text("source_log_file"), number("read_source_log_pos")),
        executed=Position(text("relay_source_log_file"), number("exec_source_log_pos")),
        received_gtids=text("retrieved_gtid_set", "gtid_io_pos"),
        executed_gtids=text("executed_gtid_set", "gtid_replica_pos"),
        by_gtid=text("auto_position") == "1" or text("using_gtid") not in {"", "No"},
        error="; ".join(error for error in errors if error),
    )


async def own_channels(connection: Connection, server: ServerVersion) -> list[ReplicaStatus]:
    """Return the channels of a server's own replica. Raises ServerError, ConnectionLostError."""
    return [*await channels_shown(connection.query_named, server)]


async def channels_shown(
    query_named: Callable[[str], Awaitable[Sequence[Mapping[str, Value]]]], server: ServerVersion
) -> dict[ReplicaStatus, Mapping[str, Value]]:
    """Return the channels of a server's own replica, and the row of each; raises as the query does.

    The rows of a MariaDB have the numbers of its own transactions, where those are higher in a
    domain that the source has, too. What is applied is in a variable.
    """
    rows = await query_named(replica_status_statement(server))
    channels = {replica_status(row): row for row in rows}
    if not channels or not SERVERS[server.flavour].has_domains:
        return channels
    ((applied,),) = (each.values() for each in await query_named(_APPLIED))
    return {replace(channel, executed_gtids=str(applied)): row for channel, row in channels.items()}


async def registered_replicas(connection: Connection, version: Version) -> list[RegisteredReplica]:
    """Return the replicas that read from a server. Raises ServerError, ConnectionLostError."""
    statement = "SHOW REPLICAS" if version >= _SAYS_REPLICA else "SHOW SLAVE HOSTS"
    return [registered_replica(row) for row in await connection.query_named(statement)]


def registered_replica(row: Mapping[str, Value]) -> RegisteredReplica:
    """Parse a row of SHOW REPLICAS, or of its older equivalents."""
    columns = {today_named(name): value for name, value in row.items()}
    uuid = str(columns.get("replica_uuid") or "").lower()
    return RegisteredReplica(int(str(columns["server_id"])), uuid)


def today_named(column: str) -> str:
    """Return the present name of a column, in lower case."""
    return column.lower().replace("master", "source").replace("slave", "replica")
