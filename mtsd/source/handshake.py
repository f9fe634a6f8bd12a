"""Connecting to a source as a replica, up to the first event of the dump."""

from dataclasses import dataclass

import structlog

from mtsd.binlog.events.previous_gtids import encode_gtid_set
from mtsd.model.error_numbers import ER
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import FIRST_EVENT
from mtsd.source.continuation import ByFile, ByGtid
from mtsd.source.family import SOURCES
from mtsd.wire.connection import Connection
from mtsd.wire.dump_packets import (
    COM_BINLOG_DUMP,
    COM_BINLOG_DUMP_GTID,
    COM_REGISTER_SLAVE,
    MARIADB_CAPABILITY,
    SEMI_SYNC,
    dump,
    dump_gtid,
    register,
)
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.replica_status import registered_replicas
from mtsd.wire.steady_clock import steady
from mtsd.wire.traits import ServerTraits, read_traits

log = structlog.get_logger(__name__)

NO_BINARY_LOG = Reason("the source {address} writes no binary log", "start it with log_bin")
SAME_SERVER_ID = Reason(
    "the source {address} also has server_id {value}",
    "give this replica another one: [source] server_id",
)
NOT_A_REPLICA = Reason(
    "the source {address} refuses user {user!r} as a replica: {error}",
    "grant REPLICATION SLAVE on the source to the user of [source] user",
)
_NET_WRITE_TIMEOUT_S = 86_400
_SILENT_PERIODS = 3
SEMI_SYNC_ENABLED = ("rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled")
"""Variables that say whether a source waits for replicas: it has one of them, or cannot."""


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The identity to register with; the source ends an older dump of the same `uuid`."""

    server_id: int
    uuid: str
    heartbeat_period: float
    """Seconds of silence after which the source sends a heartbeat."""
    host: str = ""
    port: int = 0
    """Where SHOW REPLICAS on the source says that the replica is: the target."""
    channel: str = ""

    @property
    def longest_silence(self) -> float:
        """Seconds without a byte after which the connection is taken for lost."""
        return _SILENT_PERIODS * self.heartbeat_period


TAKEN = Reason(
    "another mtsd reads from the source {address} as this replica, with server_id {server_id} and"
    " the UUID {uuid}, and was there before: the source ends the older of the two connections",
    "stop one of them; if this target is a copy of the other one's, position tables included, run"
    " mtsd position adopt here; on a MariaDB, another [source] server_id is enough",
)


def taken_over(endpoint: Endpoint, identity: ReplicaIdentity) -> Refused:
    """Return why this replica gives way to another one of the same identity."""
    return refuse(TAKEN, address=endpoint, server_id=identity.server_id, uuid=identity.uuid)


class SameReplicaError(MtsdError):
    """Another replica is registered with this one's server_id: it may have gone a moment ago."""


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A connection to the source that has passed the checks."""

    connection: Connection
    traits: ServerTraits
    clock_offset: float
    """Seconds that the source's clock is ahead of `steady`, within half a round trip.

    Not of this machine's clock, which may be set while the connection lasts.
    """


async def open_source(endpoint: Endpoint, identity: ReplicaIdentity) -> SourceSession:
    """Connect and check everything that would make replication fail.

    Raises NeedsPersonError, ServerError, ConnectionLostError.
    """
    about = (("channel", identity.channel), ("target", f"{identity.host}:{identity.port}"))
    connection = await Connection.open(endpoint, about=about)
    try:
        async with connection.answering():
            traits = await read_traits(connection)
            if not traits.log_bin:
                raise NeedsPersonError(str(refuse(NO_BINARY_LOG, address=endpoint)))
            if traits.server_id == identity.server_id:
                raise NeedsPersonError(
                    str(refuse(SAME_SERVER_ID, address=endpoint, value=traits.server_id))
                )
            before = steady()
            rows = await connection.query(b"SELECT UNIX_TIMESTAMP(NOW(6))")
            after = steady()
            offset = float(str(rows[0][0])) - (before + after) / 2
    except BaseException:
        connection.close()
        raise
    return SourceSession(connection, traits, offset)


async def start_dump(
    session: SourceSession,
    identity: ReplicaIdentity,
    way: ByFile | ByGtid,
    reached: FaultHook,
    *,
    returns: bool = False,
    semi_sync: bool = False,
) -> bool:
    """Register and request what comes next; return whether this replica was already registered.

    `returns`: it was connected a moment ago, so that one with the same server_id is the newcomer.
    `semi_sync`: the source may wait for acknowledgements of this replica.
    Raises SameReplicaError, NeedsPersonError, ServerError, ConnectionLostError.
    """
    connection = session.connection
    family = SOURCES[session.traits.server.flavour]
    found_another = False
    async with connection.answering():
        if family.tells_replicas_apart:
            found_another = await _is_registered(session, identity, returns=returns)
        await _register(session, identity)
        if semi_sync:
            await connection.run(b"SET %b" % SEMI_SYNC, 1)
        if isinstance(way, ByGtid) and family.begins_by_state:
            await _connect_state(connection, way)
    await reached(FaultPoint.BEFORE_DUMP)
    if isinstance(way, ByGtid) and family.begins_by_state:
        # The place was set together with the rest of the handshake.
        request = dump(identity.server_id, "", FIRST_EVENT)
        await connection.command(COM_BINLOG_DUMP, request, answer=False)
    elif isinstance(way, ByGtid):
        request = dump_gtid(identity.server_id, encode_gtid_set(way.gtids))
        await connection.command(COM_BINLOG_DUMP_GTID, request, answer=False)
    else:
        request = dump(identity.server_id, way.position.file, way.position.offset)
        await connection.command(COM_BINLOG_DUMP, request, answer=False)
    return found_another


async def can_wait(source: Connection) -> bool:
    """Return whether a source can wait for replicas' acknowledgements: MySQL needs a plugin."""
    async with source.answering():
        names = ", ".join(f"'{name}'" for name in SEMI_SYNC_ENABLED)
        return bool(await source.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))


async def _connect_state(connection: Connection, way: ByGtid) -> None:
    """Say where a MariaDB has to begin: after the last GTID of each domain.

    The strict mode of a replica would refuse a source whose numbers have holes.
    """
    places = ",".join(map(str, way.gtids.places()))
    await connection.run(
        b"SET @slave_connect_state='%b', @slave_gtid_strict_mode=0, @slave_gtid_ignore_duplicates=0"
        % places.encode(),
        1,
    )


async def _register(session: SourceSession, identity: ReplicaIdentity) -> None:
    connection = session.connection
    heartbeat = int(identity.heartbeat_period * 1_000_000_000)
    # Older sources know only the first name of each pair, newer ones prefer the second. To other
    # servers than its own, a user variable means nothing.
    await connection.run(
        b"SET @master_heartbeat_period=%d, @source_heartbeat_period=%d,"
        b" @master_binlog_checksum=@@global.binlog_checksum,"
        b" @source_binlog_checksum=@@global.binlog_checksum,"
        b" @slave_uuid='%b', @replica_uuid='%b', %b;SET @@session.net_write_timeout=%d"
        % (
            heartbeat,
            heartbeat,
            identity.uuid.encode(),
            identity.uuid.encode(),
            MARIADB_CAPABILITY,
            _NET_WRITE_TIMEOUT_S,
        ),
        2,
    )
    request = register(identity.server_id, identity.host, identity.port)
    try:
        await connection.command(COM_REGISTER_SLAVE, request, answer=True)
    except ServerError as error:
        if error.number != ER.ACCESS_DENIED_ERROR:
            raise
        # MariaDB does not say which privilege is missing.
        endpoint = connection.endpoint
        refused = refuse(NOT_A_REPLICA, address=endpoint, user=endpoint.user, error=error)
        raise NeedsPersonError(str(refused)) from error


async def _is_registered(
    session: SourceSession, identity: ReplicaIdentity, *, returns: bool
) -> bool:
    """Return whether this replica is registered, by its UUID.

    Raises SameReplicaError if another one has its server_id, unless it `returns`.
    """
    registered = False
    for replica in await registered_replicas(session.connection, session.traits.version):
        server_id, other = replica.server_id, replica.uuid
        registered = registered or other == identity.uuid
        if server_id == identity.server_id and other not in {"", identity.uuid}:
            message = (
                f"another replica of the source {session.connection.endpoint} also has server_id"
                f" {server_id}; its server_uuid is {other}: give this one another server_id"
                " ([source] server_id). If the other one is gone, start again when SHOW REPLICAS on"
                " the source no longer lists it"
            )
            if not returns:
                raise SameReplicaError(message)
            log.warning(message)
    return registered
