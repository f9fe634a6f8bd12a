"""One run of the replica: from a recovery to a stop, a failure or the loss of the target."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace

import structlog

from mtsd.config import Settings
from mtsd.filter.filter import Filter
from mtsd.model.errors import ConnectionLostError, MtsdError, NeedsPersonError
from mtsd.model.fault_points import FaultPoint, Reached, nothing
from mtsd.model.gtid import GtidSet
from mtsd.model.progress import Progress
from mtsd.model.pulse import Pulse
from mtsd.model.reason import Refused
from mtsd.model.server import flavour_of_identity
from mtsd.model.temporary_tables import described
from mtsd.replica.apply_mode import applies_sql
from mtsd.replica.checkpointer import Checkpointer
from mtsd.replica.coordinator import Coordinator
from mtsd.replica.dispatch import Dispatcher
from mtsd.replica.endpoints import endpoint, identity
from mtsd.replica.filters import filter_of, rules_of
from mtsd.replica.first_start import first_start
from mtsd.replica.gtid_mode import Gtids, ToldGtids, gtids_of
from mtsd.replica.recovery import (
    Recovered,
    adopt_source,
    make_tables,
    recover,
)
from mtsd.replica.skipped_groups import AsSkipped
from mtsd.replica.statistics import ReplicaStatistics, WorkerStatistics
from mtsd.replica.stopped_group import record_stopped
from mtsd.replica.streamed_groups import StreamedGroupError, StreamedGroups
from mtsd.replica.target_waits import TargetWait, TargetWaits
from mtsd.replica.worker import Worker, WorkerSettings
from mtsd.schedule.alone import AloneRule
from mtsd.schedule.policies import choose_policy
from mtsd.schedule.prepared_transactions import Prepared, PreparedTransactions
from mtsd.schedule.scheduler import Limits, Scheduler
from mtsd.source.stream import SourceStream, StreamSettings
from mtsd.target.applier import Applier
from mtsd.target.binlog_allowed import allows_binlog
from mtsd.target.binlog_applier import BinlogApplier
from mtsd.target.branch_sessions import BranchSessions
from mtsd.target.executed_gtids import execute_empty
from mtsd.target.fencing import CHANNEL, lock_name, take_channel, take_lock
from mtsd.target.position_tables import PositionTables
from mtsd.target.session import SessionSettings, TargetSession
from mtsd.target.sql_applier import ROW_MODE, SqlApplier
from mtsd.target.xa import needs_branch_sessions
from mtsd.wire.binlog_status import executed_gtids

_CHANNEL_WAIT_TIMEOUT_S = 60
_RECEIPT_S = 30.0
_LAST_CHANCE_S = 5.0
"""How long other workers may finish their commit after the connection to the target was lost."""

log = structlog.get_logger(__name__)


class StopTimeoutError(MtsdError):
    """stop_timeout passed before everything that had begun was committed."""


class Replica:
    """Everything that belongs to one run: sessions on both servers, scheduler, coroutines."""

    def __init__(
        self,
        settings: Settings,
        channel_session: TargetSession,
        coordinator: Coordinator,
        workers: list[Worker],
        stream: SourceStream,
        dispatcher: Dispatcher,
        checkpointer: Checkpointer,
        reached: Reached,
    ) -> None:
        self._settings = settings
        self._session = channel_session
        self._coordinator = coordinator
        self._workers = workers
        self._stream = stream
        self._checkpointer = checkpointer
        self._dispatcher = dispatcher
        self._reached = reached
        self._began = asyncio.get_running_loop().time()

    @classmethod
    async def start(
        cls,
        settings: Settings,
        *,
        new_source: str = "",
        progress: Progress | None = None,
        reached: Reached = nothing,
    ) -> "Replica":
        """Connect to the target, recover, and get everything ready to run.

        `new_source` is the UUID of a source that continues by GTID set where the previous one
        stopped; `progress` is told what the start is doing.
        Raises NeedsPersonError, ServerError, ConnectionLostError, with nothing left open.
        """
        progress = progress or Progress()
        target = endpoint("target", settings.target)
        session_settings = SessionSettings(settings.target.binary_log)
        tables = PositionTables(settings.target.schema, settings.replica.channel)
        progress.doing = "connects to the target"
        session = await TargetSession.open(target, session_settings, reached=reached)
        workers: list[Worker] = []
        try:
            await session.connection.query(
                b"SET @@session.wait_timeout=%d" % _CHANNEL_WAIT_TIMEOUT_S
            )
            # This session detects that a target has vanished, on behalf of all of them.
            session.connection.expect_receipt(_RECEIPT_S)
            # What no source makes possible is refused before anything is written.
            flavour = session.traits.server.flavour
            gtids_of(settings.target.gtid, flavour, session)
            fold_case = session.traits.lower_case_table_names
            progress.doing = "takes the channel"
            await take_channel(session.connection, tables.channel, progress=progress)
            progress.doing = "reads the position tables"
            await make_tables(session.connection, tables)
            others = await first_start(settings, session, tables)
            count = max(settings.replica.parallel_workers, 1)
            recovered = await recover(session.connection, tables, count, reached, progress)
            if new_source:
                others = await adopt_source(
                    session.connection, tables, recovered, new_source,
                    rules_of(settings.filter), fold_case=fold_case,
                )  # fmt: skip
                recovered = await recover(session.connection, tables, count, reached, progress)
            family = flavour_of_identity(recovered.source_uuid)
            gtids = gtids_of(settings.target.gtid, family, session)
            allowed = await allows_binlog(session.connection)
            as_sql = applies_sql(settings, family, flavour, allowed=allowed)
            if isinstance(as_sql, Refused):
                raise NeedsPersonError(str(as_sql))
            if as_sql:
                log.info("rows are applied as SQL", binlog_allowed=allowed)
            progress.doing = "opens the sessions of the workers"
            preserved = None
            known = GtidSet()
            if gtids is Gtids.PRESERVE:
                # A skipped group is not applied, but its GTID counts as executed all the same.
                await execute_empty(session.connection, recovered.past_gtids)
                preserved = await executed_gtids(session.connection)
                known = recovered.mark.gtids or known
            told = ToldGtids(gtids, session.connection, known)
            if preserved is None and recovered.gtids is not None:
                await told.tell(recovered.gtids)
            coordinator = Coordinator(_scheduler(settings, recovered))
            for index in range(count):
                worker = await _worker(
                    index, settings, tables, coordinator, recovered, reached,
                    preserves=preserved is not None, as_sql=as_sql,
                )  # fmt: skip
                workers.append(worker)
            replicated = filter_of(settings, fold_case=fold_case, others=others)
            stream = _stream(settings, recovered, replicated, coordinator.pulse, reached)
            checkpointer = Checkpointer(
                session.connection,
                tables,
                coordinator,
                settings.replica.checkpoint_period,
                recovered.stale,
                recovered.stopped,
                told,
                reached,
            )
        except BaseException as error:
            await record_stopped(session.connection, tables, error)
            for worker in workers:
                worker.applier.close()
            session.connection.close()
            raise
        streamed = StreamedGroups(coordinator, workers[0], preserved)
        groups = AsSkipped(stream, recovered.skipped)
        dispatcher = Dispatcher(groups, coordinator, streamed, preserved, recovered.mark.temporary)
        return cls(
            settings, session, coordinator, workers, stream, dispatcher, checkpointer, reached
        )

    async def run(self) -> None:
        """Replicate until `stop` or a failure, which is raised; all sessions are closed then."""
        coordinator = self._coordinator
        worker_tasks = [
            asyncio.create_task(self._guard(worker.run()), name=f"worker {worker.index + 1}")
            for worker in self._workers
        ]
        dispatcher = asyncio.create_task(self._guard(self._dispatcher.run()), name="dispatcher")
        checkpointer = asyncio.create_task(
            self._guard(self._checkpointer.run()), name="checkpointer"
        )
        waits = asyncio.create_task(
            TargetWaits(self._target_waits, len(self._workers)).run(), name="target waits"
        )
        try:
            await coordinator.ended.wait()
            self._stream.close()
            lost = isinstance(coordinator.failure, ConnectionLostError | StreamedGroupError)
            patience = _LAST_CHANCE_S if lost else self._settings.replica.stop_timeout
            tasks = [*worker_tasks, dispatcher, checkpointer]
            _, running = await asyncio.wait(tasks, timeout=patience)
            for task in running:
                log.warning("abandoned; its transaction is rolled back", task=task.get_name())
            if (
                not running
                and not lost
                and not isinstance(coordinator.failure, asyncio.CancelledError)
            ):
                await self._reached(FaultPoint.BEFORE_STOP_CHECKPOINT)
                await self._store_at_the_end()
            if checkpointer.done() and coordinator.failure is not None:
                await record_stopped(
                    self._session.connection,
                    PositionTables(self._settings.target.schema, self._settings.replica.channel),
                    coordinator.failure,
                    highest_done=coordinator.scheduler.gaq.highest_done,
                )
        finally:
            for task in [*worker_tasks, dispatcher, checkpointer, waits]:
                task.cancel()
            await self._close()
        if coordinator.failure is not None:
            raise coordinator.failure

    async def _store_at_the_end(self) -> None:
        if lost := self._coordinator.scheduler.gaq.mark().temporary.tables:
            log.warning(
                "stopped while the source has temporary tables: they end with the session that"
                " holds them on the target, and a statement that uses them later stops the replica",
                tables=described(lost),
            )
        # The workers' rows prove what it would say.
        try:
            async with asyncio.timeout(max(self._settings.replica.stop_timeout, _LAST_CHANCE_S)):
                await self._checkpointer.store()
        except TimeoutError:
            log.warning("the low-water mark could not be stored in time: the next start recovers")

    def stop(self) -> None:
        """Begin a graceful stop: finish what has begun, so that no gap remains."""
        coordinator = self._coordinator
        if coordinator.stopping or coordinator.ended.is_set():
            return
        timeout = self._settings.replica.stop_timeout
        asyncio.get_running_loop().call_later(timeout, self._stop_timed_out)
        coordinator.stop(reading=self._stream.connected)
        if not coordinator.reads_on:
            self._stream.close()

    def reload(self, settings: Settings) -> None:
        """Adopt from other settings what can change while running (`config.reloading`).

        Raises what `endpoint` raises; nothing has changed then.
        """
        source = endpoint("source", settings.source)
        read = settings.replica
        self._settings = settings
        self._stream.endpoint = source
        self._stream.settings = replace(
            self._stream.settings,
            hold_bytes=read.pending_jobs_size_max,
            chunk_bytes=read.batch_bytes,
        )
        self._coordinator.set_limits(_limits(settings))
        for worker in self._workers:
            worker.settings = replace(
                worker.settings,
                transaction_retries=read.transaction_retries,
                skip_errors=frozenset(read.skip_errors),
            )
        self._checkpointer.period = settings.replica.checkpoint_period
        # The current period may be long.
        self._coordinator.checkpoint_due.set()

    @property
    def pulse(self) -> Pulse:
        """The dispatcher's, for the watchdog."""
        return self._coordinator.pulse

    @property
    def statistics(self) -> ReplicaStatistics:
        """The current state."""
        scheduler = self._coordinator.scheduler
        return ReplicaStatistics(
            connected=self._stream.connected,
            received=self._stream.received.position,
            received_gtids=self._stream.received.gtids,
            executed=scheduler.gaq.position,
            executed_gtids=scheduler.gaq.mark().gtids,
            executed_number=scheduler.gaq.number,
            clock_offset=self._stream.clock_offset,
            oldest_commit_time=scheduler.gaq.oldest_commit_time,
            pending_groups=scheduler.pending_groups,
            prepared_transactions=scheduler.prepared_transactions,
            pending_bytes=scheduler.pending_bytes,
            skipped=scheduler.skipped,
            run_seconds=asyncio.get_running_loop().time() - self._began,
            waits=dict(self._coordinator.waits),
            workers=tuple(self._worker_statistics(worker) for worker in self._workers),
            partitions=tuple(scheduler.partitions()),
        )

    def _target_waits(self) -> list[TargetWait]:
        return [wait for worker in self._workers if (wait := worker.target_wait()) is not None]

    def _worker_statistics(self, worker: Worker) -> WorkerStatistics:
        queue = self._coordinator.scheduler.workers[worker.index]
        waiting = "waiting" if len(queue) else "idle"
        return WorkerStatistics(
            id=worker.index + 1,
            state="applying" if queue.running else waiting,
            queue_groups=len(queue) + len(queue.running),
            queue_bytes=self._coordinator.scheduler.view.sizes[worker.index],
            groups=worker.groups,
            transactions=worker.transactions,
            retries=worker.retries,
            last_position=worker.last.end if worker.last else None,
            last_gtid=worker.last.gtid if worker.last else None,
            busy_seconds=worker.busy_seconds,
            target_wait=worker.target_wait(),
        )

    def _stop_timed_out(self) -> None:
        if not self._coordinator.ended.is_set():
            running = [
                f"worker {index + 1} in group {queue.running[0].number}"
                for index, queue in enumerate(self._coordinator.scheduler.workers)
                if queue.running
            ]
            self._coordinator.fail(
                StopTimeoutError(
                    f"stop_timeout passed; rolled back at {'; '.join(running) or 'no group'}."
                    " The next start continues from there"
                )
            )
            for worker in self._workers:
                worker.applier.close()

    async def _guard(self, coroutine: Coroutine[None, None, None]) -> None:
        try:
            await coroutine
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the run raises the first failure
            self._coordinator.fail(error)

    async def _close(self) -> None:
        self._stream.close()
        for worker in self._workers:
            worker.applier.close()
        self._session.connection.close()


def _limits(settings: Settings) -> Limits:
    replica = settings.replica
    return Limits(
        checkpoint_group=replica.checkpoint_group,
        pending_jobs_size_max=replica.pending_jobs_size_max,
        batch_groups=1 if settings.target.gtid == "preserve" else replica.batch_groups,
        batch_bytes=replica.batch_bytes,
    )


def _scheduler(settings: Settings, recovered: Recovered) -> Scheduler:
    replica = settings.replica
    workers = max(replica.parallel_workers, 1)
    policy = choose_policy(replica.parallel_type, replica.parallel_workers, replica.bind)
    # The records tell nothing that other policies than by database need: then they run alone.
    left = () if policy.needs else recovered.prepared
    return Scheduler(
        policy,
        workers,
        _limits(settings),
        recovered.mark,
        recovered.executed,
        alone=AloneRule(ddl=replica.ddl == "alone", statements=replica.statements == "alone"),
        prepared=PreparedTransactions(
            (each.xid, Prepared(each.databases, each.alone)) for each in left
        ),
    )


async def _worker(
    index: int,
    settings: Settings,
    tables: PositionTables,
    coordinator: Coordinator,
    recovered: Recovered,
    reached: Reached,
    *,
    preserves: bool,
    as_sql: bool,
) -> Worker:
    target = replace(endpoint("target", settings.target), found_rows=as_sql)
    session_settings = SessionSettings(
        settings.target.binary_log,
        ROW_MODE if as_sql else b"0",
        flavour_of_identity(recovered.source_uuid),
    )
    session = await TargetSession.open(target, session_settings, reached=reached)
    worker_id = CHANNEL + 1 + index
    if not await take_lock(session.connection, lock_name(tables.channel, worker_id), 10):
        session.connection.close()
        raise NeedsPersonError(
            f"the lock of worker {worker_id} is held by a session that mtsd did not open"
        )
    session.keep_lock(lock_name(tables.channel, worker_id))
    branch_sessions = None
    if needs_branch_sessions(session.connection):
        lock = lock_name(tables.channel, worker_id, branch=True)
        branch_sessions = BranchSessions(target, session_settings, lock, reached=reached)
    applier: Applier
    if as_sql:
        applier = SqlApplier(
            session,
            tables,
            settings.replica.batch_bytes,
            preserves=preserves,
            idempotent=settings.replica.exec_mode == "idempotent",
            branch_sessions=branch_sessions,
            reached=reached,
        )
    else:
        applier = BinlogApplier(
            session,
            tables,
            settings.replica.batch_bytes,
            preserves=preserves,
            branch_sessions=branch_sessions,
            reached=reached,
        )
    return Worker(
        index,
        applier,
        coordinator,
        recovered.rows[index],
        WorkerSettings(
            transaction_retries=settings.replica.transaction_retries,
            skip_errors=frozenset(settings.replica.skip_errors),
            daemon_uuid=recovered.daemon_uuid,
            show_themselves=recovered.show_themselves,
        ),
        reached,
    )


def _stream(
    settings: Settings,
    recovered: Recovered,
    replicated: Filter,
    pulse: Pulse,
    reached: Reached,
) -> SourceStream:
    return SourceStream(
        endpoint("source", settings.source),
        identity(settings.source, recovered.daemon_uuid),
        StreamSettings(
            hold_bytes=settings.replica.pending_jobs_size_max,
            chunk_bytes=settings.replica.batch_bytes,
            replicated=replicated,
        ),
        recovered.mark,
        recovered.source_uuid,
        executed=recovered.gtids,
        pulse=pulse,
        reached=reached,
    )
