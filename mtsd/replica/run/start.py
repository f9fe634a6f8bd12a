"""The start of a run: takes the channel, recovers, and opens what the run needs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import structlog

from mtsd.apply.branches.splitting_allowed import why_not_split
from mtsd.apply.position.executed_gtids import execute_empty
from mtsd.apply.position.fencing import take_channel, take_lock
from mtsd.apply.position.lock_names import PRESERVING, LockNames, make_locks
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.convergent_sql import ChangeMode
from mtsd.apply.session.binlog_allowed import allows_binlog
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.config import Settings
from mtsd.filter.rules import Rules
from mtsd.model.errors import NeedsPersonError
from mtsd.model.fault_points import FaultHook, nothing
from mtsd.model.group import Group
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Refused
from mtsd.model.progress import Progress
from mtsd.model.server import Flavour, flavour_of_identity
from mtsd.model.until import Until
from mtsd.replica.core.apply_mode import applies_sql, change_of, in_repair, keeps_order
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.earlier_runs import EarlierRuns
from mtsd.replica.core.endpoints import about_session, endpoint
from mtsd.replica.core.filters import filter_of, rules_of
from mtsd.replica.core.gtid_mode import GtidRecorder, Gtids, gtids_of
from mtsd.replica.core.limits import splits
from mtsd.replica.guards.domain_watch import DomainWatch
from mtsd.replica.guards.executed_beyond import read_held, refusal
from mtsd.replica.guards.guard import Guard
from mtsd.replica.guards.handed_over import require_no_fence
from mtsd.replica.guards.lenient_target import read_leniency
from mtsd.replica.guards.new_triggers import NewTriggers
from mtsd.replica.guards.own_replica import KnownServer
from mtsd.replica.recovery.recovery import Recovered, adopt_source, make_tables, recover
from mtsd.replica.run.checkpointer import Checkpointer
from mtsd.replica.run.dispatch import Dispatcher
from mtsd.replica.run.executed_readings import ExecutedReadings
from mtsd.replica.run.first_start import first_start
from mtsd.replica.run.key_readings import KeyReadings
from mtsd.replica.run.policy_choice import PolicyInForce, put_in_force
from mtsd.replica.run.position_home import identity_now, record_home
from mtsd.replica.run.replica import Replica
from mtsd.replica.run.schedule_opening import (
    open_schedule,
    read_changed_keys,
    read_joined_tables,
    worker_count,
)
from mtsd.replica.run.stream_opening import SourceGates, groups_until, open_stream, stream_settings
from mtsd.replica.stages.delay_stage import DelayStage
from mtsd.replica.stages.folded_names import FoldedNames
from mtsd.replica.stages.known_keys_stage import KnownKeysStage
from mtsd.replica.stages.returned_groups import ReturnedGroups
from mtsd.replica.stages.skipped_groups import GroupStream
from mtsd.replica.stages.split_stage import SplitStage
from mtsd.replica.ways.split_keys import SplitKeys
from mtsd.replica.ways.split_meetings import Meetings
from mtsd.replica.workers.split_groups import SplitGroups
from mtsd.replica.workers.stopped_group import record_stopped
from mtsd.replica.workers.streamed_groups import StreamedGroups
from mtsd.replica.workers.worker import Worker
from mtsd.replica.workers.worker_opening import open_worker, opened_together
from mtsd.source.family import SOURCES
from mtsd.wire.binlog_status import executed_gtids
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.link import Links
from mtsd.wire.understood import understood

_CHANNEL_WAIT_TIMEOUT_S: Final = 60
_RECEIPT_S: Final = 30.0
_LET_GO_S: Final = 10

log = structlog.get_logger(__name__)


async def start(
    settings: Settings,
    *,
    new_source: str = "",
    unsplit: int = 0,
    until: Until | None = None,
    progress: Progress | None = None,
    earlier: EarlierRuns | None = None,
    links: Links | None = None,
    reached: FaultHook = nothing,
) -> Replica:
    """Connect to the target, recover, and get everything ready to run.

    `new_source` is the UUID of a source that continues by GTID set where the previous one
    stopped; streamed groups up to number `unsplit` are not split; the run ends by itself at
    `until`; `progress` is told what the start is doing, and `links` which server is connected;
    `earlier` is what the process keeps from its runs.
    Raises NeedsPersonError, ServerError, ConnectionLostError, with nothing left open.
    """
    progress = progress or Progress()
    earlier = earlier or EarlierRuns()
    links = links or Links.new()
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    progress.doing = "connects to the target"
    current = CurrentEndpoint(endpoint("target", settings.target))
    links.target.tries()
    session = await TargetSession.open(
        current.endpoint,
        SessionSettings(
            settings.target.binary_log,
            settings.target.gtid_domain_id,
            about=about_session(settings, "coordinator"),
        ),
        reached=reached,
    )
    links.target.up()
    workers: list[Worker] = []
    try:
        locks = await _take_channel(settings, session, tables, progress)
        others, recovered = await _recover(
            settings, session, tables, locks, new_source, progress, earlier, reached
        )
        if recovered.repair is not None:
            settings = in_repair(settings)
        if not session.can_imitate:
            log.warning(
                "the target's user may not set what statements of the source need: rows and"
                " definitions are applied, other statements stop the replica (see `mtsd check`)"
            )
        family = flavour_of_identity(recovered.source_uuid)
        gtids = gtids_of(settings.target.gtid, family, session)
        settings, because = await put_in_force(settings, session, tables)
        as_sql = await _applies_sql(settings, session, family)
        known = KnownTables(session.traits.server, by_binlog=not as_sql)
        triggers = NewTriggers(known) if as_sql else None
        guard = _guard(settings, session, recovered, gtids, triggers)
        await guard.check_target()
        progress.doing = "opens the sessions of the workers"
        if splits(settings.replica):
            refused = await why_not_split(session)
            if refused is not None:
                raise NeedsPersonError(str(refused))
        preserved, recorder = await _record_gtids(gtids, session, recovered)
        held = await read_held(session.connection, session.traits, tables)
        refused_by = partial(refusal, gtids, held, recovered.gtids, recovered.mark.position)
        changed_keys = await read_changed_keys(settings, session, family, as_sql=as_sql)
        foreign_keys = await read_joined_tables(settings, session)
        coordinator = Coordinator(
            open_schedule(settings, session, recovered, changed_keys, foreign_keys),
            keeps_order=keeps_order(settings.replica),
            applied=earlier.applied,
        )
        workers += await opened_together(
            open_worker(
                index, settings, tables, locks, coordinator, recovered, reached, current,
                session.traits, known, preserves=preserved is not None, as_sql=as_sql,
            )
            for index in range(worker_count(settings))
        )  # fmt: skip
        fold_case = session.traits.lower_case_table_names
        server = session.traits.server
        replicated = filter_of(settings, fold_case=fold_case, target=server, others=others)
        domains = DomainWatch(session)
        stream = open_stream(
            settings,
            session.traits,
            recovered,
            stream_settings(settings.replica, replicated, foreign_keys),
            SourceGates(coordinator, guard, domains, refused_by),
            earlier,
            links.source,
            reached,
        )
        checkpointer = Checkpointer(
            session.connection,
            tables,
            coordinator,
            settings.replica.checkpoint_period,
            recovered.stale,
            recovered.stopped,
            recorder,
            guard,
            domains,
            reached,
            # Only what is in its binary log can come back to it, and rules leave out other groups
            # whose GTIDs a person may wait for.
            rests=session.is_logged and not replicated.rules,
        )
        groups = groups_until(stream, recovered, until)
        merged = [stream.merged]
        if fold_case:
            groups = names_folded = FoldedNames(groups)
            merged.append(names_folded.merged)
        coordinator.after_definition = partial(_forget_tables, known, merged)
    except BaseException as error:
        await record_stopped(session.connection, tables, error)
        for worker in workers:
            worker.applier.close()
        session.connection.close()
        links.target.closed()
        raise
    if changed_keys is not None:
        groups = KnownKeysStage(groups, changed_keys, coordinator.due)
    if recovered.repair is not None:
        # What the target has executed is applied again, under other GTIDs.
        preserved = None

    def clock_offset() -> float:
        return stream.clock_offset

    coordinator.clock_offset = clock_offset
    delayed = DelayStage(groups, settings.replica.delay, clock_offset, coordinator.due)
    large: GroupStream = delayed
    streamed = StreamedGroups(coordinator, workers[0], preserved, reached=reached)
    if splits(settings.replica):
        by_table = settings.replica.split_transactions == "table"
        large = SplitStage(
            delayed, lambda: coordinator.scheduler.limits.batch_bytes, all_engines=by_table
        )
        keys = SplitKeys(current, session.traits)
        streamed = SplitGroups(
            coordinator,
            workers,
            keys,
            Meetings(earlier.met_in, keys.connect),
            as_sql=as_sql,
            strict=change_of(settings.replica, repairs=False) is ChangeMode.STRICT,
            by_table=by_table,
            unsplit=unsplit,
            mariadb=SOURCES[family].dialect.tables_of_mariadb,
            reached=reached,
        )
    readings: list[KeyReadings | ExecutedReadings] = []
    if preserved is not None:
        executed = ExecutedReadings(current, preserved, coordinator.pulse)
        large = ReturnedGroups(large, preserved, session.traits.uuid, executed.ask)
        readings.append(executed)
    dispatcher = Dispatcher(
        large, coordinator, streamed, preserved, recovered.mark.temporary, workers,
        recovered.skipped,
    )  # fmt: skip
    if changed_keys is not None:
        is_committed = coordinator.scheduler.gaq.is_committed
        readings.append(KeyReadings(current, session.traits, changed_keys, is_committed))
    return Replica(
        settings, session, current, coordinator, workers, stream, delayed, dispatcher, checkpointer,
        reached, readings, repair=recovered.repair, skipped_ever=recovered.skipped_ever,
        policy=PolicyInForce(settings.replica.parallel_type, because),
    )  # fmt: skip


def _forget_tables(
    known: KnownTables, merged: Sequence[MergedDatabases], definition: Group
) -> None:
    """Find out anew about what a definition may have changed."""
    known.forget(definition, frozenset[str]().union(*(each.names for each in merged)))


@understood("target")
async def _take_channel(
    settings: Settings, session: TargetSession, tables: PositionTables, progress: Progress
) -> LockNames:
    """Make the channel this daemon's alone, as long as the session lives; return its locks."""
    await session.connection.query(b"SET @@session.wait_timeout=%d" % _CHANNEL_WAIT_TIMEOUT_S)
    # This session detects that a target has vanished, on behalf of all of them.
    session.connection.expect_receipt(_RECEIPT_S)
    # What no source makes possible is refused before anything is written.
    flavour = session.traits.server.flavour
    gtids = gtids_of(settings.target.gtid, flavour, session)
    (await read_leniency(session.connection, flavour, by_binlog=False)).require()
    progress.doing = "takes the channel"
    locks = await make_locks(session.connection, tables.schema, tables.channel)
    await take_channel(session.connection, locks, progress=progress)
    if gtids is Gtids.PRESERVE:
        # An mtsd that replicates the other way takes a channel without that for one that lets
        # every change go round. Whoever had the channel before lets go of both locks.
        await take_lock(session.connection, locks.session(PRESERVING), _LET_GO_S)
    return locks


@understood("target")
async def _recover(
    settings: Settings,
    session: TargetSession,
    tables: PositionTables,
    locks: LockNames,
    new_source: str,
    progress: Progress,
    earlier: EarlierRuns,
    reached: FaultHook,
) -> tuple[Mapping[str, Rules], Recovered]:
    """Return the rules of the source's other channels, and what the run begins with."""
    progress.doing = "reads the position tables"
    await make_tables(session.connection, tables)
    await record_home(session.connection, tables, identity_now(session.traits), earlier)
    await require_no_fence(session.connection, tables)
    others = await first_start(settings, session, tables, locks)
    count = worker_count(settings)
    in_order = keeps_order(settings.replica)
    recovered = await recover(
        session.connection, tables, locks, count, reached, progress, keeps_order=in_order
    )
    # A start that has failed after that is repeated, and then the channel already has it.
    if new_source and new_source != recovered.source_uuid:
        others = await adopt_source(
            session.connection, tables, locks, recovered, new_source,
            rules_of(settings.filter), fold_case=session.traits.rules_ignore_case,
        )  # fmt: skip
        recovered = await recover(
            session.connection, tables, locks, count, reached, progress, keeps_order=in_order
        )
    return others, recovered


@understood("target")
async def _applies_sql(settings: Settings, session: TargetSession, family: Flavour) -> bool:
    """Return whether rows of a source of that family are applied by SQL statements."""
    allowed = await allows_binlog(session.connection)
    as_sql = applies_sql(settings, family, session.traits.server.flavour, allowed=allowed)
    if isinstance(as_sql, Refused):
        raise NeedsPersonError(str(as_sql))
    if as_sql:
        log.info("rows are applied as SQL", binlog_allowed=allowed)
    return as_sql


@understood("target")
async def _record_gtids(
    gtids: Gtids, session: TargetSession, recovered: Recovered
) -> tuple[GtidSet | None, GtidRecorder]:
    """Record on the target what it has to know of the source's GTIDs before anything is applied.

    Return what it has executed, if each group commits under its own GTID, and what records
    later ones.
    """
    preserved = None
    known = GtidSet()
    if gtids is Gtids.PRESERVE:
        # A skipped group is not applied, but its GTID counts as executed all the same.
        await execute_empty(session.connection, recovered.past_gtids)
        preserved = await executed_gtids(session.connection)
        known = recovered.mark.gtids or known
    recorder = GtidRecorder(gtids, session.connection, known)
    if preserved is None and recovered.gtids is not None:
        await recorder.record(recovered.gtids)
    return preserved, recorder


def _guard(
    settings: Settings,
    session: TargetSession,
    recovered: Recovered,
    gtids: Gtids,
    triggers: NewTriggers | None,
) -> Guard:
    traits, target, source = session.traits, settings.target, settings.source
    return Guard(
        session.connection,
        traits.server,
        KnownServer(traits.uuid, traits.server_id, target.host, target.port),
        KnownServer(recovered.source_uuid, 0, source.host, source.port),
        triggers=triggers,
        preserves=gtids is Gtids.PRESERVE,
    )
