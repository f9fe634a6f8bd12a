"""Connecting to a MySQL source as a replica, up to the first event of the dump."""

from dataclasses import dataclass
from time import time

from mtsd.binlog.previous_gtids import encode_gtid_set
from mtsd.model.errors import MtsdError, NeedsPersonError
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.wire.binlog_status import executed_gtids
from mtsd.wire.connection import Connection
from mtsd.wire.dump_packets import (
    COM_BINLOG_DUMP,
    COM_BINLOG_DUMP_GTID,
    COM_REGISTER_SLAVE,
    dump,
    dump_gtid,
    register,
)
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.traits import ServerTraits, read_traits

_NET_WRITE_TIMEOUT_S = 86_400


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """As which replica to register; the source ends an older dump of the same `uuid`."""

    server_id: int
    uuid: str
    heartbeat_period: float
    """Seconds of silence after which the source sends a heartbeat."""


class SameReplicaError(MtsdError):
    """Another replica seems to be this one; it may be this one's own former connection."""


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A connection to the source that has passed the checks."""

    connection: Connection
    traits: ServerTraits
    clock_offset: float
    """Seconds that the source's clock is ahead of ours, to half a round trip."""


async def open_source(endpoint: Endpoint, identity: ReplicaIdentity) -> SourceSession:
    """Connect and check what cannot work.

    Raises NeedsPersonError, ServerError, ConnectionLostError.
    """
    connection = await Connection.open(endpoint)
    try:
        async with connection.answering():
            traits = await read_traits(connection)
            if not traits.log_bin:
                raise NeedsPersonError(
                    f"the source {endpoint} writes no binary log: start it with log_bin"
                )
            if traits.server_id == identity.server_id:
                raise NeedsPersonError(
                    f"the source {endpoint} has server_id {traits.server_id} too: give this"
                    " replica another one ([source] server_id)"
                )
            before = time()
            rows = await connection.query(b"SELECT UNIX_TIMESTAMP(NOW(6))")
            after = time()
            offset = float(str(rows[0][0])) - (before + after) / 2
    except BaseException:
        connection.close()
        raise
    return SourceSession(connection, traits, offset)


async def refuse_behind(connection: Connection, gtids: GtidSet) -> None:
    """Raise NeedsPersonError where the source has not executed everything that was received."""
    lacking = gtids.minus(await executed_gtids(connection))
    if lacking:
        raise NeedsPersonError(
            f"the target is ahead of its source, which lacks {str(lacking)[:400]}: it was reset, or"
            " has lost its last transactions, or is another server. Compare the two; mtsd position"
            " set says where to go on"
        )


async def start_dump(
    session: SourceSession,
    identity: ReplicaIdentity,
    position: Position,
    gtids: GtidSet | None,
    reached: Reached,
) -> None:
    """Register and ask for everything after `gtids`, or from `position` where that is None.

    Raises SameReplicaError, ServerError, ConnectionLostError.
    """
    connection = session.connection
    async with connection.answering():
        await _register(session, identity)
    await reached(FaultPoint.BEFORE_DUMP)
    if gtids is not None:
        request = dump_gtid(identity.server_id, encode_gtid_set(gtids))
        await connection.command(COM_BINLOG_DUMP_GTID, request, answer=False)
    else:
        request = dump(identity.server_id, position.file, position.offset)
        await connection.command(COM_BINLOG_DUMP, request, answer=False)


async def _register(session: SourceSession, identity: ReplicaIdentity) -> None:
    connection = session.connection
    await _look_for_the_same(session, identity)
    heartbeat = int(identity.heartbeat_period * 1_000_000_000)
    # Older sources know the first name of each pair only, newer ones prefer the second.
    await connection.run(
        b"SET @master_heartbeat_period=%d, @source_heartbeat_period=%d,"
        b" @master_binlog_checksum=@@global.binlog_checksum,"
        b" @source_binlog_checksum=@@global.binlog_checksum,"
        b" @slave_uuid='%b', @replica_uuid='%b';SET @@session.net_write_timeout=%d"
        % (
            heartbeat,
            heartbeat,
            identity.uuid.encode(),
            identity.uuid.encode(),
            _NET_WRITE_TIMEOUT_S,
        ),
        2,
    )
    await connection.command(COM_REGISTER_SLAVE, register(identity.server_id, "", 0), answer=True)


async def _look_for_the_same(session: SourceSession, identity: ReplicaIdentity) -> None:
    """Raise SameReplicaError where another replica is registered under this one's server_id."""
    newer = session.traits.version >= (8, 0, 22)
    rows = await session.connection.query(b"SHOW REPLICAS" if newer else b"SHOW SLAVE HOSTS")
    for row in rows:
        server_id, other = int(str(row[0])), str(row[-1]).lower()
        if server_id == identity.server_id and other not in {"", identity.uuid}:
            raise SameReplicaError(
                f"another replica of the source {session.connection.endpoint} has server_id"
                f" {server_id} too; its server_uuid is {other}: give this one another server_id"
                " ([source] server_id). If it is gone, start again once SHOW REPLICAS there has"
                " forgotten it"
            )
