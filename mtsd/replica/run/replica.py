"""One run of the replica, once it has started: to a stop, a failure or the loss of the target."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from time import process_time

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.failed_groups import SkippedGroup
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.obstacle import obstacles_here
from mtsd.apply.session.session import TargetSession
from mtsd.config import Settings
from mtsd.model.errors import ConnectionLostError, MtsdError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.pulse import Pulse
from mtsd.model.temporary_tables import described
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.core.limits import distribution_of, limits_of
from mtsd.replica.run.checkpointer import Checkpointer
from mtsd.replica.run.dispatch import Dispatcher
from mtsd.replica.run.executed_readings import ExecutedReadings
from mtsd.replica.run.key_readings import KeyReadings
from mtsd.replica.run.policy_choice import PolicyInForce
from mtsd.replica.run.semi_sync_watch import SemiSyncWatch
from mtsd.replica.run.statistics import ReplicaStatistics, WorkerStatistics, worker_state
from mtsd.replica.stages.delay_stage import DelayStage
from mtsd.replica.ways.streamed_failures import StreamedGroupError
from mtsd.replica.workers.held_up import HeldUpWatch
from mtsd.replica.workers.lost_answers import LostAnswers, OpenSession
from mtsd.replica.workers.stopped_group import record_stopped
from mtsd.replica.workers.target_waits import TargetWait, TargetWaits
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.by_database import pending_by_database
from mtsd.schedule.done.repair import Repair
from mtsd.source.source_log import Needed, SourceLogWatch
from mtsd.source.stream import SourceStream
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.steady_clock import steady

_SHORTEST_TIMEOUT_S = 1.0
"""How long tasks may take to notice that nothing more is to be done."""
_LAST_CHANCE_S = 5.0
"""How long other workers may finish their commit after the connection to the target was lost."""

_NOT_STORED = "stop_timeout passed before the low-water mark was stored: the next start recovers"
_LARGE_GROUP_ABANDONED = (
    "stop_timeout passed while a large group was applied. What of it has not been prepared or"
    " committed is rolled back; the next start settles the rest"
)

log = structlog.get_logger(__name__)


class StopTimeoutError(MtsdError):
    """stop_timeout passed before everything that had begun was committed."""


class Replica:
    """Everything that belongs to one run: sessions on both servers, scheduler, coroutines."""

    def __init__(
        self,
        settings: Settings,
        channel_session: TargetSession,
        current: CurrentEndpoint,
        coordinator: Coordinator,
        workers: list[Worker],
        stream: SourceStream,
        delayed: DelayStage,
        dispatcher: Dispatcher,
        checkpointer: Checkpointer,
        reached: FaultHook,
        readings: Sequence[KeyReadings | ExecutedReadings] = (),
        *,
        repair: Repair | None = None,
        skipped_ever: tuple[SkippedGroup, ...] = (),
        policy: PolicyInForce,
    ) -> None:
        """With a `repair`, the run ends by itself when that is done; `current` is the target's."""
        self._settings = settings
        self._session = channel_session
        self._current = current
        self._coordinator = coordinator
        self._workers = workers
        self._stream = stream
        self._delayed = delayed
        self._checkpointer = checkpointer
        self._dispatcher = dispatcher
        self._reached = reached
        self._readings = readings
        self.repair = repair
        self._skipped_ever = skipped_ever
        self._policy = policy
        self._source_log = SourceLogWatch(
            lambda: stream.endpoint, lambda: stream.connected, lambda: stream.received.position,
            stream.connect_anew, self._needed,
        )  # fmt: skip
        family, own = channel_session.family, coordinator.sessions
        self._held_up = HeldUpWatch(current, family, self._target_waits, own)
        self._began = asyncio.get_running_loop().time()
        self._cpu_began = process_time()
        self._stop_requested = False
        self._stop_by: float | None = None

    async def run(self) -> None:
        """Replicate until `stop` or a failure, which is raised; all sessions are closed then."""
        coordinator = self._coordinator
        if self.repair is not None:
            # Nothing after it begins in this run.
            coordinator.stop(reading=True)
        worker_tasks = [
            asyncio.create_task(self._guard(worker.run()), name=f"worker {worker.index + 1}")
            for worker in self._workers
        ]
        dispatcher = asyncio.create_task(self._guard(self._dispatcher.run()), name="dispatcher")
        checkpointer = asyncio.create_task(
            self._guard(self._checkpointer.run()), name="checkpointer"
        )
        told = TargetWaits(self._target_waits, len(self._workers), lambda: self._held_up.why)
        beside = [asyncio.create_task(told.run(), name="target waits")]
        beside.append(asyncio.create_task(self._held_up.run(), name="held up"))
        lost_answers = LostAnswers(self._current, self._open_sessions)
        beside.append(asyncio.create_task(lost_answers.run(), name="lost answers"))
        beside.append(asyncio.create_task(self._source_log.run(), name="source log"))
        if self._stream.semi_sync is not None:
            watch = SemiSyncWatch(self._stream.semi_sync, coordinator, self._stream)
            beside.append(asyncio.create_task(watch.run(), name="semi-sync"))
        beside += [asyncio.create_task(self._guard(each.run())) for each in self._readings]
        try:
            await coordinator.ended.wait()
            self._stream.close()
            lost = isinstance(coordinator.failure, ConnectionLostError | StreamedGroupError)
            timeout = _LAST_CHANCE_S if lost else max(self._stop_time_left(), _SHORTEST_TIMEOUT_S)
            tasks = [*worker_tasks, dispatcher, checkpointer]
            _, running = await asyncio.wait(tasks, timeout=timeout)
            obstacles = obstacles_here()
            # What waits for the same obstacle is no news.
            expected = lost and obstacles is not None and obstacles.what
            for task in () if expected else running:
                log.warning("abandoned in the middle of its work", task=task.get_name())
            if running:
                # A large group is in no queue, so only here is it seen.
                coordinator.fail(
                    StopTimeoutError(
                        _NOT_STORED if running == {checkpointer} else _LARGE_GROUP_ABANDONED
                    )
                )
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
            for task in [*worker_tasks, dispatcher, checkpointer, *beside]:
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
            async with asyncio.timeout(max(self._stop_time_left(), _LAST_CHANCE_S)):
                await self._checkpointer.store(at_end=True)
                await self._checkpointer.end()
        except TimeoutError as error:
            raise StopTimeoutError(_NOT_STORED) from error

    def stop(self) -> None:
        """Begin a graceful stop: finish what has begun, so that no gap remains."""
        coordinator = self._coordinator
        if self._stop_requested or coordinator.ended.is_set():
            return
        self._stop_requested = True
        asyncio.get_running_loop().call_later(self._stop_time_left(), self._stop_timed_out)
        # What is still accepted comes before something that a run without the delay has applied.
        self._delayed.delay = 0
        coordinator.stop(reading=self._stream.connected)
        if not coordinator.reads_on:
            self._stream.close()

    def _stop_time_left(self) -> float:
        """Return what is left of stop_timeout, which begins here if it has not yet, in seconds.

        Each step of a stop by itself may find a target that answers nothing: a service manager
        that waits for the end kills what takes several times stop_timeout.
        """
        now = asyncio.get_running_loop().time()
        if self._stop_by is None:
            self._stop_by = now + self._settings.replica.stop_timeout
        return self._stop_by - now

    def reload(self, settings: Settings) -> None:
        """Adopt from other settings what can change while running (`config.reloading`).

        Raises what `endpoint` raises; nothing has changed then.
        """
        source = endpoint("source", settings.source)
        target = endpoint("target", settings.target)
        read = settings.replica
        self._settings = settings
        self._stream.endpoint = source
        self._current.endpoint = target
        self._stream.settings = replace(
            self._stream.settings,
            hold_bytes=read.pending_jobs_size_max,
            chunk_bytes=read.batch_bytes,
        )
        if self.repair is None and not self._stop_requested:
            self._delayed.delay = settings.replica.delay
        self._coordinator.set_limits(limits_of(settings))
        for worker in self._workers:
            worker.settings = replace(
                worker.settings,
                transaction_retries=read.transaction_retries,
                skip_errors=frozenset(read.skip_errors),
            )
        self.distribute(settings)
        self._checkpointer.period = settings.replica.checkpoint_period
        # The current period may be long.
        self._coordinator.checkpoint_due.set()

    def distribute(self, settings: Settings) -> None:
        """Distribute databases as other settings say from the next group on, if names count."""
        fold_case = self._session.traits.lower_case_table_names
        distribution = distribution_of(settings, fold_case=fold_case)
        self._coordinator.scheduler.distribute(distribution)

    def freeze(self, worker: int, *, frozen: bool) -> None:
        """Have the worker of that Id begin nothing more, or continue."""
        self._coordinator.freeze(worker - 1, frozen=frozen)

    @property
    def pulse(self) -> Pulse:
        """The dispatcher's, for the watchdog."""
        return self._coordinator.pulse

    @property
    def finished(self) -> bool:
        """Whether it has ended because it has reached where it was to stop by itself."""
        return self._coordinator.finished

    @property
    def unfinished(self) -> str:
        """What a stop now would leave for the next start to recover, as a sentence; "" if nothing.

        Only without that, the position on the target is the whole truth for others.
        """
        scheduler = self._coordinator.scheduler
        if not scheduler.unfinished:
            return ""
        return (
            f"the position on the target ends with group {scheduler.stored.number}, and later ones"
            " have begun: some may be applied. Start mtsd again, which finishes them, before the"
            " position is used for anything else"
        )

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
            oldest_commit_time=self._oldest_commit_time,
            remaining_delay=self._delayed.seconds_left(),
            pending_groups=scheduler.pending_groups + self._delayed.held_groups,
            prepared_transactions=scheduler.prepared_transactions,
            pending_bytes=scheduler.pending_bytes + self._delayed.held_bytes,
            skipped=scheduler.skipped,
            skipped_ever=self._skipped_ever,
            run_seconds=asyncio.get_running_loop().time() - self._began,
            cpu_seconds=process_time() - self._cpu_began,
            waits=scheduler.wait_seconds(),
            reading_waits_for=scheduler.reading_waits_for,
            workers=tuple(self._worker_statistics(worker) for worker in self._workers),
            partitions=tuple(scheduler.partitions()),
            pending_by_database=pending_by_database(scheduler.unfinished_groups()),
            source_log=self._source_log.found(self._stream.server),
            semi_sync="off" if self._stream.semi_sync is None else self._stream.semi_sync.state,
            heard_at=self._stream.heard_at,
            in_doubt=self._checkpointer.in_doubt,
            warnings=self._checkpointer.guard.warnings + self._source_log.warnings,
            policy=self._policy,
            held_up=self._held_up.found,
        )

    @property
    def _oldest_commit_time(self) -> int | None:
        """That of the oldest group not yet applied; they are in order."""
        gaq, dispatcher, delayed = self._coordinator.scheduler.gaq, self._dispatcher, self._delayed
        times = gaq.oldest_commit_time, dispatcher.commit_time, delayed.held_commit_time
        return next((each for each in times if each is not None), None)

    def _needed(self) -> Needed:
        oldest = self._oldest_commit_time
        age = oldest and steady() + self._stream.clock_offset - oldest / 1_000_000
        return Needed(self._coordinator.scheduler.gaq.position, age)

    def _open_sessions(self) -> Iterator[OpenSession]:
        channel = self._session.connection
        awaited = None if channel.is_sending else channel.awaited
        yield OpenSession(channel.thread_id, awaited, channel.close)
        for applier in self._appliers():
            connection = applier.session.connection
            awaited = None if connection.is_sending else connection.awaited
            yield OpenSession(connection.thread_id, awaited, applier.close)

    def _appliers(self) -> Iterator[Applier]:
        for worker in self._workers:
            yield from worker.appliers

    def _target_waits(self, at_least: float) -> list[TargetWait]:
        waits = (worker.target_wait(at_least) for worker in self._workers)
        return [wait for wait in waits if wait is not None]

    def _worker_statistics(self, worker: Worker) -> WorkerStatistics:
        scheduler = self._coordinator.scheduler
        queue = scheduler.workers[worker.index]
        progress = worker.progress
        target_wait = worker.target_wait()
        state, waits_for = worker_state(
            queued=len(queue),
            running=bool(queue.running) or worker.index in self._dispatcher.at_work,
            frozen=scheduler.is_frozen(worker.index),
            waits_for=scheduler.waits_for(worker.index),
            at_target=worker.obstacle,
            awaited_s=target_wait.seconds if target_wait is not None else 0.0,
        )
        return WorkerStatistics(
            id=worker.index + 1,
            state=state,
            queue_groups=len(queue) + len(queue.running),
            queue_bytes=scheduler.view.sizes[worker.index],
            groups=progress.groups,
            transactions=progress.transactions,
            retries=progress.retries,
            skipped=progress.skipped,
            gave_way=worker.gave_way,
            waits_for=waits_for,
            last_position=progress.last.end if progress.last else None,
            last_gtid=progress.last.gtid if progress.last else None,
            busy_seconds=worker.busy_seconds,
            target_wait=target_wait,
        )

    def _stop_timed_out(self) -> None:
        if not self._coordinator.ended.is_set():
            running = [
                f"worker {worker.index + 1} in group {queue.running[0].number}"
                + (f" ({worker.obstacle})" if worker.obstacle else "")
                for worker in self._workers
                if (queue := self._coordinator.scheduler.workers[worker.index]).running
            ]
            self._coordinator.fail(
                StopTimeoutError(
                    f"stop_timeout passed; rolled back at {'; '.join(running) or 'no group'}."
                    " The next start continues from there"
                )
            )
            for applier in self._appliers():
                applier.close()

    async def _guard(self, coroutine: Coroutine[None, None, None]) -> None:
        try:
            await coroutine
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the run raises the first failure
            self._coordinator.fail(error)

    async def _close(self) -> None:
        self._stream.close()
        for applier in self._appliers():
            applier.close()
        self._session.connection.close()
