"""The beginning of a channel, when the target has no position for it yet."""

import uuid
from collections.abc import Mapping

import structlog

from mtsd.apply.position.executed_gtids import held_gtids
from mtsd.apply.position.lock_names import LockNames
from mtsd.apply.position.other_schemas import positions_elsewhere
from mtsd.apply.position.position_schema import lost_row
from mtsd.apply.position.position_tables import ChannelRow, PositionTables
from mtsd.apply.session.session import TargetSession
from mtsd.config import Settings
from mtsd.config.start import FilePosition
from mtsd.filter.rules import Rules
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Refused
from mtsd.replica.core.endpoints import endpoint, identity
from mtsd.replica.core.filters import rules_of
from mtsd.replica.core.gtid_mode import Gtids, gtids_of
from mtsd.replica.guards.executed_beyond import HeldGtids, refusal
from mtsd.replica.guards.one_channel import claim_source
from mtsd.replica.guards.own_replica import require_alone
from mtsd.replica.recovery.recovery import read_channel
from mtsd.source.handshake import open_source
from mtsd.source.read_state import read_source_state
from mtsd.source.start import beginning

log = structlog.get_logger(__name__)


async def first_start(
    settings: Settings, session: TargetSession, tables: PositionTables, locks: LockNames
) -> Mapping[str, Rules]:
    """Resolve [source] start if the target has no position for the channel yet.

    The channel's source is claimed in any case; returns the filters of the source's other channels,
    by their names. Raises NeedsPersonError, ServerError,
    ConnectionLostError.
    """
    rules = rules_of(settings.filter)
    fold_case = session.traits.rules_ignore_case
    former = await read_channel(session.connection, tables)
    if former is not None:
        return await claim_source(
            session.connection, tables, locks, former.source_uuid, rules, fold_case=fold_case
        )
    await _refuse_remains(session, tables)
    start = settings.source.start
    daemon_uuid = str(uuid.uuid4())
    replica = identity(settings.source, daemon_uuid)
    source = await open_source(endpoint("source", settings.source), replica)
    try:
        flavour = source.traits.server.flavour
        await require_alone(session.connection, settings.source, source.traits)
        gtids = gtids_of(settings.target.gtid, flavour, session)
        held = await held_gtids(session.connection, session.traits)
        if isinstance(start, FilePosition) and source.traits.gtid_mode:
            log.info("reads the source's file up to the start, for its GTIDs", start=str(start))
        state = await read_source_state(source.connection, source.traits, start)
    finally:
        source.connection.close()
    mark = beginning(
        start,
        state,
        allow_partial_history=settings.source.allow_partial_history,
        executed=None if gtids is Gtids.OFF else held,
    )
    if isinstance(mark, Refused):
        raise NeedsPersonError(str(mark))
    refused = refusal(gtids, HeldGtids(held), mark.gtids, start, state.executed)
    if refused is not None:
        raise NeedsPersonError(str(refused))
    for schema, source_uuid in await positions_elsewhere(session.connection, tables.schema):
        if source_uuid == state.uuid.lower():
            log.warning(
                "another schema of the target has a position for the same source: what was applied"
                " from there may be applied twice, see `mtsd check`",
                schema=schema, source=source_uuid,
            )  # fmt: skip
    row = ChannelRow(mark, 0, state.uuid, daemon_uuid)
    others = await claim_source(
        session.connection,
        tables,
        locks,
        state.uuid,
        rules,
        then=[tables.insert_channel(row)],
        fold_case=fold_case,
    )
    log.info("the channel begins", position=str(mark.position), gtids=str(mark.gtids or ""))
    return others


async def _refuse_remains(session: TargetSession, tables: PositionTables) -> None:
    """Raise NeedsPersonError if the channel has lost its row."""
    ((remains,),) = await session.connection.query(tables.select_remains())
    refused = lost_row(tables.schema, tables.channel, remains=bool(remains))
    if refused is not None:
        raise NeedsPersonError(str(refused))
