"""Starting on a target that a previous run may have left at any instant (WL#5599)."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from mtsd.apply.position.failed_groups import SkippedGroup, StoppedGroup
from mtsd.apply.position.fencing import fence, release_locks
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.lock_names import LockNames
from mtsd.apply.position.position_schema import (
    COLUMNS_OF,
    LOCK_TOKEN,
    TABLES,
    defect,
    inconsistent,
)
from mtsd.apply.position.position_tables import RECOVERY_ID, ChannelRow, PositionTables
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.position.split_table import SPLIT
from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.retry import announced_wait, write, write_each
from mtsd.filter.rules import Rules
from mtsd.model.errors import NeedsPersonError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import GroupKind
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import NOWHERE
from mtsd.model.progress import Progress
from mtsd.model.server import flavour_of
from mtsd.replica.guards.one_channel import claim_source, release_source
from mtsd.replica.recovery.evidence import verdict
from mtsd.replica.recovery.left_prepared import left_prepared
from mtsd.replica.recovery.left_split import settle_split
from mtsd.replica.recovery.verdict import Verdict
from mtsd.schedule.done.executed_groups import ExecutedGroups, recovered
from mtsd.schedule.done.repair import Repair, again_of, is_passed, repair_due
from mtsd.schedule.done.worker_row import WorkerRow, blank_row
from mtsd.source.continuation import ChannelPlace, adoption
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_READS = b"reading of the position tables"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a run begins with."""

    mark: LowWaterMark
    executed: ExecutedGroups
    """Groups past the low-water mark that have committed, and are not applied again."""
    daemon_uuid: str
    source_uuid: str
    rows: tuple[WorkerRow, ...]
    """What each worker begins with; its row in the table may contain more, from a previous run."""
    stale: tuple[tuple[int, int], ...]
    """(Id, highest group number) of rows to be removed once the mark has passed them."""
    show_themselves: frozenset[int]
    """Groups that may have been applied, and fail with an error that says so if they have."""
    past_gtids: GtidSet
    """The GTIDs of `executed`, as far as they have any."""
    gtids: GtidSet | None
    """Everything executed, including past the low-water mark; None if unknown."""
    stopped: int
    """The number of the group that stopped a previous run and is still to be applied; 0: none."""
    skipped: tuple[FailedGroup, ...]
    """Those of `executed` that were not applied, because a person skipped them."""
    skipped_ever: tuple[SkippedGroup, ...]
    """All that people have skipped on this channel, for those who ask."""
    prepared: tuple[PreparedRow, ...]
    """The XA transactions that are prepared and not completed."""
    repair: Repair | None
    """What has to be applied in order before anything else."""


async def make_tables(connection: Connection, tables: PositionTables) -> None:
    """Create the position schema and tables if they are missing.

    Raises NeedsPersonError if the existing ones are not those that mtsd has created.
    """
    existing = await require_usable(connection, tables)
    if len(existing.engines) != len(TABLES):
        family = TARGETS[flavour_of(connection.server_version)]
        await write_each(connection, tables.definitions(family))


@dataclass(frozen=True, slots=True)
class ExistingTables:
    """The existing position tables, in the form that `defect` needs."""

    engines: dict[str, str]
    columns: Mapping[str, Sequence[str]]
    filled: bool


async def require_usable(connection: Connection, tables: PositionTables) -> ExistingTables:
    """Return which position tables exist.

    Raises NeedsPersonError if they are not those that mtsd has created, ServerError,
    ConnectionLostError.
    """
    existing = await read_tables(connection, tables)
    refused = defect(tables.schema, existing.engines, existing.columns, filled=existing.filled)
    if refused is not None:
        raise NeedsPersonError(str(refused))
    return existing


async def read_tables(connection: Connection, tables: PositionTables) -> ExistingTables:
    """Query the position tables. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(tables.select_tables())
    engines = {str(name): str(engine) for name, engine in rows}
    columns: dict[str, list[str]] = {table: [] for table in COLUMNS_OF}
    for table, column in await connection.query(tables.select_columns()):
        columns[str(table)].append(str(column))
    filled = False
    if len(engines) != len(TABLES):
        # A start that was killed may have left the token alone.
        telling_ones = [name for name in engines if name != LOCK_TOKEN]
        filled = any([await connection.query(tables.select_any(name)) for name in telling_ones])
    return ExistingTables(engines, columns, filled)


@understood("target")
async def read_channel(connection: Connection, tables: PositionTables) -> ChannelRow | None:
    """Return the channel's row; None if the channel has never begun."""
    async with announced_wait(connection, _READS):
        rows = await connection.query(tables.select_channel())
    return tables.channel_row(rows[0]) if rows else None


@understood("target")
async def recover(
    connection: Connection,
    tables: PositionTables,
    locks: LockNames,
    workers: int,
    reached: FaultHook,
    progress: Progress | None = None,
    *,
    keeps_order: bool = True,
) -> Recovered:
    """Fence off the previous run, settle in-doubt groups, and record what has been executed.

    `keeps_order` is whether this run commits no group without those that it depends on.

    `connection` holds the channel's lock; the channel's row exists. One transaction writes
    the union of all rows as row 0 before anything is applied, so that a crash during or after
    this finds nothing else. Raises NeedsPersonError if an in-doubt group has no evidence.
    """
    await reached(FaultPoint.BEFORE_FENCING)
    channel = await read_channel(connection, tables)
    if channel is None:
        raise LookupError("the channel has no row")
    former = await read_workers(connection, tables)
    sessions = range(1, max([channel.workers, workers, *(row.id for row in former)]) + 1)
    progress = progress or Progress()
    progress.doing = "ends what a former run left behind"
    taken = await fence(connection, locks, sessions, progress)
    progress.doing = "recovers"
    await reached(FaultPoint.AFTER_FENCING)

    # Only from here on does nothing change any more.
    channel = await read_channel(connection, tables) or channel
    rows = await read_workers(connection, tables)
    refused = inconsistent(tables.schema, tables.channel, channel.mark, channel.workers, rows)
    if refused is not None:
        raise NeedsPersonError(str(refused))
    mark = channel.mark
    executed = recovered(mark.number, (row.executed for row in rows))
    stopped, skipped = await read_failed(connection, tables)
    doubts = [tables.doubts.record(row) for row in await connection.query(tables.doubts.select())]
    show_themselves: set[int] = set()
    settled: list[FailedGroup] = []
    applied: list[InDoubt] = []
    for doubt in unsettled(doubts, mark, rows):
        try:
            if doubt.kind == SPLIT:
                settlement = await settle_split(connection, tables, doubt, channel.daemon_uuid)
            else:
                settlement = await verdict(connection, tables, doubt)
        except NeedsPersonError as error:
            error.group = replace(doubt.group, later_applied=executed.highest > doubt.number)
            raise
        log.info("settled", group=doubt.number, verdict=settlement.value, gtid=doubt.evidence)
        if settlement is Verdict.APPLIED:
            applied.append(doubt)
            settled.append(doubt.group)
        elif settlement is Verdict.SHOWS_ITSELF:
            show_themselves.add(doubt.number)
    prepared, of_prepared = await left_prepared(connection, tables, applied)
    union = row_of_recovery(mark, rows, settled)
    executed, gtids = union.executed, union.gtids
    left, repair = executed, None
    by_hand = frozenset(each.group.number for each in skipped)
    if not channel.ordered:
        left, repair = repair_due(mark.number, executed, by_hand)
    passed = stopped is not None and is_passed(
        stopped.group.number, mark.number, executed, by_hand, ordered=channel.ordered
    )
    present = {row.id: row.token for row in rows}
    begun = tuple(
        blank_row(id_, mark, present.get(id_) or _new_token()) for id_ in range(1, workers + 1)
    )
    statements = [
        tables.workers.replace(union),
        *(tables.workers.replace(row) for row in begun if row.id not in present),
        # A record without evidence stays until its group comes again.
        *(
            tables.doubts.delete(doubt.number)
            for doubt in doubts
            if doubt.number not in show_themselves
        ),
        *of_prepared,
        *([tables.split.delete()] if any(doubt.kind == SPLIT for doubt in doubts) else []),
        tables.update_workers(workers),
        tables.update_ordered(ordered=keeps_order and repair is None),
        *([tables.failed.delete_stopped()] if passed else []),
        # This daemon's end is not that of the one before.
        tables.last_stop.delete(),
    ]
    await reached(FaultPoint.BEFORE_RECOVERY_WRITE)
    await write(connection, statements)
    await reached(FaultPoint.AFTER_RECOVERY_WRITE)
    await release_locks(connection, taken)
    stale = [(id_, executed.highest) for id_ in sorted(present) if id_ > workers]
    log.info(
        "recovered", number=mark.number, position=str(mark.position), skips=len(executed),
        up_to=executed.highest, in_doubt=len(doubts), applies_again=len(again_of(repair)),
    )  # fmt: skip
    return Recovered(
        mark,
        left,
        channel.daemon_uuid,
        channel.source_uuid,
        begun,
        ((RECOVERY_ID, executed.highest), *stale),
        frozenset(show_themselves),
        gtids,
        None if mark.gtids is None else mark.gtids.union(gtids),
        stopped.group.number if stopped is not None and not passed else 0,
        tuple(each.group for each in skipped if each.group.number in executed),
        skipped,
        tuple(prepared),
        repair,
    )


def row_of_recovery(
    mark: LowWaterMark, rows: Sequence[WorkerRow], settled: Sequence[FailedGroup]
) -> WorkerRow:
    """Return row 0: what all rows prove done past the mark, and groups that count as done too."""
    executed = recovered(mark.number, (row.executed for row in rows))
    return WorkerRow(
        RECOVERY_ID,
        None,
        mark.position,
        executed.with_numbers(group.number for group in settled),
        gtids_beyond(mark, rows, [group.gtid for group in settled]),
        _new_token(),
    )


async def adopt_source(
    connection: Connection,
    tables: PositionTables,
    locks: LockNames,
    recovered: Recovered,
    source_uuid: str,
    rules: Rules,
    *,
    fold_case: bool,
) -> Mapping[str, Rules]:
    """Let the channel continue with another source, by its GTID set.

    The order of its groups past the low-water mark may differ, so only the GTIDs say what was
    executed. Numbering continues, because no number is used twice. Raises NeedsPersonError if
    the GTIDs do not cover everything, if a repair is left to be done, or if another channel of
    the target has that source. `rules`, `fold_case` and the result are those of `claim_source`.
    """
    way = adoption(
        ChannelPlace(
            recovered.mark.position,
            recovered.mark.gtids,
            recovered.source_uuid,
            recovered.gtids,
            is_complete=not recovered.show_themselves,
            repair=recovered.repair,
        ),
        source_uuid,
    )
    if isinstance(way, Refused):
        raise NeedsPersonError(str(way))
    mark = LowWaterMark(recovered.executed.highest, NOWHERE, way.executed)
    row = ChannelRow(mark, 0, source_uuid, recovered.daemon_uuid)
    others = await claim_source(
        connection, tables, locks, source_uuid, rules,
        then=tables.begin_anew(row), fold_case=fold_case,
    )  # fmt: skip
    await release_source(connection, way.former)
    log.warning("another source", former=recovered.source_uuid, now=source_uuid)
    return others


def unsettled(
    doubts: Iterable[InDoubt], mark: LowWaterMark, rows: Iterable[WorkerRow]
) -> list[InDoubt]:
    """Return the in-doubt groups that neither the low-water mark nor a worker's row settles.

    Nor those that have not begun, because they come in a run after one that is not settled: for
    example, of a run with the groups 7, 8 and 9, of which the row has 7, only 8.
    """
    executed = recovered(mark.number, (row.executed for row in rows))
    left: list[InDoubt] = []
    stopped: set[int] = set()
    """The workers with such a group."""
    for doubt in sorted(doubts, key=lambda doubt: doubt.number):
        if doubt.number <= mark.number or doubt.number in executed:
            continue
        if doubt.is_of_run and doubt.worker_id in stopped:
            continue
        if doubt.kind == GroupKind.NON_TRANSACTIONAL.value:
            stopped.add(doubt.worker_id)
        left.append(doubt)
    return left


def gtids_beyond(mark: LowWaterMark, rows: Iterable[WorkerRow], settled: Iterable[str]) -> GtidSet:
    """Return what is executed past the low-water mark, by GTID.

    `settled` are the GTIDs of groups that no row has, because they were in doubt.
    """
    gtids = GtidSet()
    for row in rows:
        gtids.update(row.executed_gtids)
    for gtid in filter(None, settled):
        gtids.add(Gtid.parse(gtid))
    return gtids if mark.gtids is None else gtids.listed_beyond(mark.gtids)


async def read_workers(connection: Connection, tables: PositionTables) -> list[WorkerRow]:
    """Return the rows of all workers, including row 0 of the last recovery."""
    async with announced_wait(connection, _READS):
        rows = await connection.query(tables.workers.select())
    return [tables.workers.row(row) for row in rows]


async def read_failed(
    connection: Connection, tables: PositionTables
) -> tuple[StoppedGroup | None, tuple[SkippedGroup, ...]]:
    """Return the group that stopped the last run, if it is on record, and all skipped groups."""
    stopped = await connection.query(tables.failed.select_stopped())
    skipped = await connection.query(tables.failed.select_skipped())
    return (
        tables.failed.stopped(stopped[0]) if stopped else None,
        tuple(tables.failed.skipped(row) for row in skipped),
    )


def _new_token() -> int:
    """Return a token that no other row has, with room for the worker to increment it."""
    return 1 + secrets.randbits(62)
