"""A worker: takes the batches of its queue, chooses the way of each, and drives it."""

import asyncio

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import RowTooLargeError
from mtsd.apply.session.obstacle import obstacles_here
from mtsd.apply.session.packet_limit import require_latest_limit
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.report import half_applied
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.choose import BatchWay, choose_batch
from mtsd.replica.ways.doubtful import HalfAppliedError
from mtsd.replica.ways.in_doubt import InDoubtWorker
from mtsd.replica.ways.overlapping import OpenApplier, Overlapping
from mtsd.replica.ways.single_groups import SingleGroups
from mtsd.replica.workers.attempts import Attempts, WorkerSettings
from mtsd.replica.workers.combined_rows import CombinedRows
from mtsd.replica.workers.one_by_one import OneByOne
from mtsd.replica.workers.statements_together import StatementsTogether
from mtsd.replica.workers.target_waits import TargetWait, kind_in_words
from mtsd.schedule.batches.xa_pairs import is_one_transaction
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.connection import Connection


class Worker:
    """Worker `index` (its Id in the tables is one more), with an applier of its own."""

    def __init__(
        self,
        index: int,
        applier: Applier,
        coordinator: Coordinator,
        row: WorkerRow,
        settings: WorkerSettings,
        reached: FaultHook,
        open_other: OpenApplier,
    ) -> None:
        """`open_other` opens another session of the worker's, see `Overlapping`."""
        self.index = index
        self.applier = applier
        self.progress = WorkerProgress(index, coordinator, row)
        self._coordinator = coordinator
        coordinator.connections[index].add(applier.session.connection.thread_id)
        singly = SingleGroups(
            applier,
            self.progress,
            InDoubtWorker(index + 1, settings.daemon_uuid),
            settings.show_themselves,
            settings.again,
            reached,
        )
        self._settlements = singly.settlements
        self._attempts = Attempts(applier, self.progress, singly, settings)
        overlapping = Overlapping(applier, open_other, self.progress)
        self._combined = CombinedRows(
            applier, self.progress, singly, self._attempts, overlapping, reached
        )
        self._together = StatementsTogether(self.progress, singly, self._attempts)
        self._one_by_one = OneByOne(self.progress, singly, self._attempts)
        self._obstacles = obstacles_here()
        self._busy_seconds = 0.0
        self._busy_since: float | None = None

    @property
    def settings(self) -> WorkerSettings:
        """May be changed at any time: takes effect with the next attempt."""
        return self._attempts.settings

    @settings.setter
    def settings(self, settings: WorkerSettings) -> None:
        self._attempts.settings = settings

    async def run(self) -> None:
        """Apply batch after batch until the coordinator has no more. Raises MtsdError."""
        async with self._settlements.nothing_left():
            await self._run()

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        flight = self.progress.flight
        while batch := await self._settlements.while_waiting(
            lambda: self._coordinator.work(self.index, self._together.most)
        ):
            self._busy_since = clock()
            flight.begin(batch)
            try:
                while flight.has_begun and self._coordinator.failure is None:
                    way = choose_batch(flight.next_begun())
                    if way is BatchWay.COMBINED:
                        await self._combined.apply()
                        continue
                    batch = flight.take_begun()
                    together = way is BatchWay.TOGETHER
                    apply = self._together.apply if together else self._one_by_one.apply
                    if not await apply(batch):
                        return
            except RowTooLargeError as error:
                await require_latest_limit(self.applier.session)
                raise self._attempts.failed(self._largest_running(), error, "Do that") from error
            except HalfAppliedError as error:
                remedy = half_applied(error.number)
                raise self._attempts.failed(self._running(error.number), error, remedy) from error
            finally:
                self._busy_seconds = self.busy_seconds
                self._busy_since = None

    @property
    def obstacle(self) -> str:
        """What keeps the target from taking what it applies, in words; "" if nothing does."""
        return "" if self._obstacles is None else self._obstacles.of(self._attempts.who)

    @property
    def appliers(self) -> tuple[Applier, ...]:
        """Those of its open sessions, its own first."""
        return self._combined.overlapping.appliers

    @property
    def busy_seconds(self) -> float:
        """How long it has been applying, what it applies now included."""
        since = self._busy_since
        now = 0.0 if since is None else asyncio.get_running_loop().time() - since
        return self._busy_seconds + now

    def target_wait(self, at_least: float = 0.0) -> TargetWait | None:
        """Return how long the target has not answered, and at what; None where none is waited for.

        `at_least`: or not for so many seconds.
        A packet's transactions are answered one by one: it is the wait for one of them.
        """
        connections = [each.session.connection for each in self.appliers]
        waiting = [each for each in connections if each.awaited is not None]
        if not waiting:
            return None
        connection = min(waiting, key=_awaited_since)
        awaited = connection.awaited
        now = asyncio.get_running_loop().time()
        if awaited is None or now - awaited.since < at_least:
            return None
        running = self._coordinator.scheduler.workers[self.index].running
        return TargetWait(
            self.index + 1,
            connection.thread_id,
            now - awaited.since,
            kind_in_words(awaited.packet, awaited.answered),
            running[0].number if running else 0,
            running[0].kind.value if running else "",
            running[0].databases if running else (),
        )

    @property
    def gave_way(self) -> int:
        """Batches rolled back, and applied again at their turn, for an earlier group's locks."""
        return self._combined.gave_way

    def _running(self, number: int) -> Group:
        running = self._coordinator.scheduler.workers[self.index].running
        return next(group for group in running if group.number == number)

    def _largest_running(self) -> Group:
        running = self._coordinator.scheduler.workers[self.index].running
        if not is_one_transaction(running):
            # Several are of XA transactions, which are applied one after another.
            return running[0]
        return max(running, key=lambda group: max(map(len, group.rows), default=0))


def _awaited_since(connection: Connection) -> float:
    return 0.0 if connection.awaited is None else connection.awaited.since
