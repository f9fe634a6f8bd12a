"""Changing the position on the target deliberately."""

import uuid
from dataclasses import dataclass

from mtsd.config import Settings
from mtsd.config.start import Start
from mtsd.model.errors import NeedsPersonError
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.reason import Refused
from mtsd.model.xa_xid import XaXid
from mtsd.operations.stopped_channel import StoppedChannel, stopped_channel
from mtsd.replica.endpoints import endpoint, identity
from mtsd.replica.filters import rules_of
from mtsd.replica.left_split import complete, left_split
from mtsd.replica.one_channel import claim_source
from mtsd.replica.verdict import Verdict
from mtsd.source.handshake import open_source
from mtsd.source.read_state import read_source_state
from mtsd.source.start import beginning
from mtsd.target.position_tables import ChannelRow
from mtsd.target.retry import write
from mtsd.target.split_table import SPLIT
from mtsd.wire.traits import read_traits


@dataclass(frozen=True, slots=True)
class Moved:
    """A position before and after a change; None if there was none, or is none any more."""

    before: LowWaterMark | None
    after: LowWaterMark | None
    settled: tuple[tuple[int, Verdict], ...] = ()
    """Split groups, by number, whose branches are committed now, or rolled back."""
    prepared: tuple[XaXid, ...] = ()
    """XA transactions of the source that the channel had prepared, and has forgotten now."""


async def set_position(settings: Settings, start: Start, *, drop_doubt: bool = False) -> Moved:
    """Let the channel continue from another place of its source, or of another source.

    What the workers have committed past the low-water mark is forgotten: the new place is the
    whole position. Group numbers continue, so that none is used twice. What a split group has
    left prepared is settled before, since nothing would know of it afterwards. Raises
    NeedsPersonError if a group is in doubt and not `drop_doubt`, if a branch of a split one is
    lost, if the place does not exist on the source, or a daemon is running; ServerError,
    ConnectionLostError.
    """
    async with stopped_channel(settings) as channel:
        if not drop_doubt:
            _refuse_doubt(channel)
        row = channel.row
        daemon_uuid = row.daemon_uuid if row is not None else str(uuid.uuid4())
        replica = identity(settings.source, daemon_uuid)
        source = await open_source(endpoint("source", settings.source), replica)
        try:
            state = await read_source_state(
                source.connection,
                source.traits,
                start,
                gtids_before=settings.target.gtid == "preserve",
            )
        finally:
            source.connection.close()
        begins = beginning(
            start, state, allow_partial_history=settings.source.allow_partial_history
        )
        if isinstance(begins, Refused):
            raise NeedsPersonError(str(begins))
        mark = LowWaterMark(channel.highest_number, begins.position, begins.gtids)
        begun = ChannelRow(mark, 0, state.uuid, daemon_uuid)
        traits = await read_traits(channel.connection)
        settled = await _settle_splits(channel)
        await claim_source(
            channel.connection,
            channel.tables,
            state.uuid,
            rules_of(settings.filter),
            then=channel.tables.begin_anew(begun),
            fold_case=traits.rules_ignore_case,
        )
        return Moved(row.mark if row is not None else None, mark, settled)


async def reset_position(settings: Settings, *, drop_doubt: bool = False) -> Moved:
    """Forget the channel: the next start begins at [source] start, as on a fresh target.

    What is prepared stays so: the source may still complete it. Raises as `set_position` does; the
    source is not queried.
    """
    async with stopped_channel(settings) as channel:
        if not drop_doubt:
            _refuse_doubt(channel)
        settled = await _settle_splits(channel)
        table = channel.tables.prepared
        rows = [table.row(row) for row in await channel.connection.query(table.select())]
        await write(channel.connection, channel.tables.forget())
        before = channel.row.mark if channel.row is not None else None
        return Moved(before, None, settled, tuple(row.xid for row in rows if not row.skipped))


def _refuse_doubt(channel: StoppedChannel) -> None:
    open_ones = [doubt for doubt in channel.in_doubt if not doubt.resolution]
    if open_ones:
        numbers = ", ".join(str(doubt.number) for doubt in open_ones)
        raise NeedsPersonError(
            f"group {numbers} is in doubt: it may or may not have been applied. Start mtsd, which"
            " settles it, or `mtsd resolve` it; --drop-doubt forgets it"
        )


async def _settle_splits(channel: StoppedChannel) -> tuple[tuple[int, Verdict], ...]:
    """Settle, as a start would, split groups whose records are about to be forgotten.

    Prepared branches keep their locks for ever, also through restarts of the target.
    """
    if channel.row is None:
        return ()
    found = []
    for doubt in channel.in_doubt:
        if doubt.kind == SPLIT:
            left = await left_split(
                channel.connection, channel.tables, doubt, channel.row.daemon_uuid
            )
            await complete(channel.connection, left)
            found.append((doubt.number, left.verdict))
    return tuple(found)
