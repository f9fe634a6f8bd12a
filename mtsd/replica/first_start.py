"""The beginning of a channel, where the target holds no position of it yet."""

import uuid

import structlog

from mtsd.config import Settings
from mtsd.config.start import Earliest
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.replica.endpoints import endpoint, identity
from mtsd.replica.gtid_mode import Gtids, gtids_of
from mtsd.replica.recovery import read_channel
from mtsd.source.handshake import open_source
from mtsd.source.start import resolve_start
from mtsd.target.position_tables import ChannelRow, PositionTables
from mtsd.target.retry import write
from mtsd.target.session import TargetSession
from mtsd.wire.binlog_status import executed_gtids

log = structlog.get_logger(__name__)


async def first_start(settings: Settings, session: TargetSession, tables: PositionTables) -> None:
    """Resolve [source] start where the target holds no position of the channel yet.

    A target that is told the source's GTIDs knows what it has, even where its position tables are
    lost: "earliest" begins after that. Raises NeedsPersonError, ServerError, ConnectionLostError.
    """
    if await read_channel(session.connection, tables) is not None:
        return
    start = settings.source.start
    daemon_uuid = str(uuid.uuid4())
    replica = identity(settings.source, daemon_uuid)
    source = await open_source(endpoint("source", settings.source), replica)
    try:
        mark = await resolve_start(
            source, start, allow_partial_history=settings.source.allow_partial_history
        )
        if isinstance(start, Earliest) and mark.gtids is not None:
            told = gtids_of(settings.target.gtid, session) is not Gtids.OFF
            known = await executed_gtids(session.connection) if told else GtidSet()
            common = known.intersection(await executed_gtids(source.connection))
            if common.minus(mark.gtids):
                mark = LowWaterMark(0, Position("", 0), mark.gtids.union(common))
    finally:
        source.connection.close()
    row = ChannelRow(mark, 0, source.traits.uuid, daemon_uuid)
    await write(session.connection, [tables.insert_channel(row)])
    log.info("the channel begins", position=str(mark.position), gtids=str(mark.gtids or ""))
