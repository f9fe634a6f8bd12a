"""Changing the position on the target deliberately."""

import uuid
from dataclasses import dataclass, field, replace

import structlog

from mtsd.apply.position.executed_gtids import held_gtids
from mtsd.apply.position.position_tables import ChannelRow
from mtsd.apply.position.split_table import SPLIT
from mtsd.apply.session.retry import write
from mtsd.config import Settings
from mtsd.config.start import GtidStart, Start
from mtsd.control.stop_file import StopFile
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.command import command
from mtsd.model.outcome.reason import Refused
from mtsd.model.xa_xid import XaXid
from mtsd.operations.copies.beginning import BeginsAfter, Copies, OnTarget, begin_after
from mtsd.operations.moved_by import Former, MovedBy, applied_before, moved_by
from mtsd.operations.stopped_channel import StoppedChannel, begin, stopped_channel
from mtsd.replica.core.endpoints import endpoint, identity
from mtsd.replica.core.filters import rules_of
from mtsd.replica.core.gtid_mode import Gtids, decide_gtids
from mtsd.replica.guards.executed_beyond import HeldGtids, executed_beyond, refusal
from mtsd.replica.guards.one_channel import claim_source
from mtsd.replica.guards.own_replica import require_alone
from mtsd.replica.recovery.left_split import complete, left_split
from mtsd.replica.recovery.recovery import gtids_beyond
from mtsd.replica.recovery.verdict import Verdict
from mtsd.schedule.done.executed_groups import recovered
from mtsd.source.handshake import SourceSession, open_source
from mtsd.source.read_state import gtids_before, read_source_state
from mtsd.source.source_state import SourceState
from mtsd.source.start import beginning
from mtsd.wire.traits import ServerTraits, read_traits

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Moved:
    """A position before and after a change; None if there was none, or is none any more."""

    before: LowWaterMark | None
    after: LowWaterMark | None
    settled: tuple[tuple[int, Verdict], ...] = ()
    """Split groups, by number, whose branches are committed now, or rolled back."""
    by: MovedBy = field(default_factory=MovedBy)
    prepared: tuple[XaXid, ...] = ()
    """XA transactions of the source that the channel had prepared, and has forgotten now."""
    copy: BeginsAfter | None = None
    """The copy that the new position is after, if it is after one."""
    kept: GtidSet = field(default_factory=GtidSet)
    """What mtsd had applied before the target's own replica, which knows nothing of it."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What a person has said to be meant: that nothing of it is a mistake."""

    back: bool = False
    """Some transactions are applied again."""
    forward: bool = False
    """Some transactions are never applied."""
    despite_executed: bool = False
    """What the target has executed by GTID is applied all the same."""
    drop_doubt: bool = False
    """A group in doubt is forgotten."""
    although_missing: bool = False
    """The target has none of a copy's tables."""


async def set_position(
    settings: Settings, place: Start | Copies, meant: Meant, *, dry_run: bool = False
) -> Moved:
    """Let the channel continue from another place of its source, or of another source.

    With `dry_run` it only decides, and nothing is written.

    What the workers have committed past the low-water mark is forgotten: the new place is the
    whole position. Group numbers continue, so that none is used twice. What a split group has
    left prepared is settled before, since nothing would know of it afterwards. Raises
    NeedsPersonError if something is not `meant`, if a branch of a split group is lost, if the place
    does not exist on the source, or a daemon is running; ServerError, ConnectionLostError.
    """
    async with stopped_channel(settings, dry_run=dry_run) as channel:
        if not meant.drop_doubt:
            _refuse_doubt(channel)
        row = channel.row
        daemon_uuid = row.daemon_uuid if row is not None else str(uuid.uuid4())
        replica = identity(settings.source, daemon_uuid)
        traits = await read_traits(channel.connection)
        # Before the source is asked: what the target has executed since is not among it.
        held = await held_gtids(channel.connection, traits)
        source = await open_source(endpoint("source", settings.source), replica)
        try:
            await require_alone(channel.connection, settings.source, source.traits)
            copy = None
            if isinstance(place, tuple | OnTarget):
                copy = await begin_after(
                    place,
                    settings,
                    source,
                    channel.connection,
                    traits,
                    although_missing=meant.although_missing,
                )
                start = copy.start
            else:
                start = place
            state = await read_source_state(source.connection, source.traits, start)
            former = await _former(channel, source, state)
        finally:
            source.connection.close()
        kept = GtidSet()
        forward = meant.forward
        if place is OnTarget.REPLICA and isinstance(start, GtidStart):
            executed = GtidSet.parse(start.text)
            kept = applied_before(executed, former, state)
            start = GtidStart(str(executed.union(kept)))
            # What it has gone forward by, the target has executed.
            forward = True
        begins = beginning(
            start, state, allow_partial_history=settings.source.allow_partial_history
        )
        if isinstance(begins, Refused):
            raise NeedsPersonError(str(begins))
        mark = LowWaterMark(channel.highest_number, begins.position, begins.gtids)
        mode = _mode(settings, source.traits, traits)
        by = moved_by(former, mark, state, held if mode is Gtids.PRESERVE else GtidSet())
        refused = refusal(mode, HeldGtids(held), mark.gtids, start, state.executed)
        despite = GtidSet()
        problems = by.refused(start, back=meant.back, forward=forward)
        if refused is not None and not meant.despite_executed:
            problems.insert(0, refused)
        elif refused is not None and mark.gtids is not None:
            despite = executed_beyond(held, state.executed, mark.gtids)
        if problems:
            raise NeedsPersonError(". ".join(map(str, problems)))
        before = row.mark if row is not None else None
        if dry_run:
            return Moved(before, mark, by=by, copy=copy, kept=kept)
        locks = await begin(channel)
        begun = ChannelRow(mark, 0, state.uuid, daemon_uuid)
        statements = channel.tables.begin_anew(begun)
        if despite:
            statements.append(channel.tables.despite.replace_gtids(despite))
        settled = await _settle_splits(channel)
        await claim_source(
            channel.connection,
            channel.tables,
            locks,
            state.uuid,
            rules_of(settings.filter),
            then=statements,
            fold_case=traits.rules_ignore_case,
        )
        _forget_last_stop(settings)
        return Moved(before, mark, settled, by, copy=copy, kept=kept)


async def _former(
    channel: StoppedChannel, source: SourceSession, state: SourceState
) -> Former | None:
    """Return where the channel was, by GTID too if the source can tell."""
    row = channel.row
    if row is None:
        return None
    mark = row.mark
    place = mark.position
    sizes = {file.name: file.size for file in state.files or ()}
    is_there = row.source_uuid == state.uuid and place.offset <= sizes.get(place.file, 0)
    if mark.gtids is None and state.gtid_mode and is_there:
        known = await gtids_before(source.connection, source.traits.server.flavour, place)
        mark = replace(mark, gtids=known)
    past = recovered(mark.number, (worker.executed for worker in channel.workers))
    ends = [worker.last for worker in channel.workers if worker.last is not None]
    gtids = None
    if mark.gtids is not None:
        gtids = mark.gtids.union(gtids_beyond(mark, channel.workers, ()))
    return Former(mark, gtids, row.source_uuid, len(past), max([place, *ends]))


def _mode(settings: Settings, source: ServerTraits, target: ServerTraits) -> Gtids:
    mode = decide_gtids(
        settings.target.gtid,
        source.server.flavour,
        target.server.flavour,
        gtid_mode=target.gtid_mode,
        logged=target.log_bin and settings.target.binary_log,
    )
    if isinstance(mode, Refused):
        raise NeedsPersonError(str(mode))
    return mode


async def reset_position(settings: Settings, *, drop_doubt: bool = False) -> Moved:
    """Forget the channel: the next start begins at [source] start, as on a fresh target.

    What is prepared stays so: the source may still complete it. Raises as `set_position` does; the
    source is not queried.
    """
    async with stopped_channel(settings) as channel:
        if channel.locks is None:
            return Moved(None, None)
        if not drop_doubt:
            _refuse_doubt(channel)
        settled = await _settle_splits(channel)
        table = channel.tables.prepared
        rows = [table.row(row) for row in await channel.connection.query(table.select())]
        await write(channel.connection, channel.tables.forget())
        _forget_last_stop(settings)
        before = channel.row.mark if channel.row is not None else None
        return Moved(
            before, None, settled, prepared=tuple(row.xid for row in rows if not row.skipped)
        )


def _forget_last_stop(settings: Settings) -> None:
    """Remove what a daemon has left on this machine of its end, as `begin_anew` does there."""
    socket = settings.status.socket
    if socket is None:
        return
    file = StopFile(socket)
    try:
        file.clear()
    except OSError as error:
        log.warning("cannot remove", file=str(file.path), error=str(error))


def _refuse_doubt(channel: StoppedChannel) -> None:
    open_ones = [doubt for doubt in channel.in_doubt if not doubt.resolution]
    if open_ones:
        numbers = ", ".join(str(doubt.number) for doubt in open_ones)
        raise NeedsPersonError(
            f"group {numbers} is in doubt: it may or may not have been applied. Start mtsd, which"
            f" settles it, or `{command('resolve')}`, which lists it; --drop-doubt forgets it"
        )


async def _settle_splits(channel: StoppedChannel) -> tuple[tuple[int, Verdict], ...]:
    """Settle, as a start would, split groups whose records are about to be forgotten.

    Prepared branches keep their locks for ever, also through restarts of the target.
    """
    if channel.row is None:
        return ()
    splits = []
    for doubt in channel.in_doubt:
        if doubt.kind == SPLIT:
            left = await left_split(
                channel.connection, channel.tables, doubt, channel.row.daemon_uuid
            )
            await complete(channel.connection, left)
            splits.append((doubt.number, left.verdict))
    return tuple(splits)
