"""The target in a simulation: sessions that share processors, and commits that share syncs.

As in a server's group commit, transactions that wait for a sync are first written to the logs, one
after the other, by one of them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from mtsd.model.group import GroupKind
from mtsd.plan.costs import Costs
from mtsd.plan.processors import Processors
from mtsd.plan.timeline import CHECKPOINT_RAN, RAN, SYNCED, WAITED, WRITTEN, Timeline
from mtsd.schedule.batches.in_flight import Batch

CHECKPOINTER: Final = -1
"""Used in place of a worker for a checkpoint's transaction."""
_DEFINITIONS: Final = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})

Ran = Callable[[int, Batch, float, float], None]
"""Called for each transaction with its worker, its groups, and when it began and was synced."""


class _Session:
    __slots__ = ("begun", "busy", "queue", "running")

    def __init__(self) -> None:
        self.queue: deque[tuple[Batch, float]] = deque()
        """Transactions that were sent but have not begun, and the processor time of each."""
        self.running: Batch = ()
        self.begun = 0.0
        self.busy = 0.0
        """Seconds in which the session ran a transaction or waited for its sync."""


class TargetStage:
    """One session for each of `workers`, which runs its transactions one at a time, in order."""

    __slots__ = (
        "_costs", "_is_syncing", "_processors", "_ran", "_sessions", "_syncing", "_timeline",
        "_to_sync", "busy", "synced",
    )  # fmt: skip

    def __init__(
        self,
        workers: int,
        costs: Costs,
        timeline: Timeline,
        processors: Processors,
        ran: Ran | None,
    ) -> None:
        self._costs = costs
        self._timeline = timeline
        self._processors = processors
        self._ran = ran
        self._sessions = [_Session() for _ in range(workers)]
        self._to_sync: list[int] = []
        self._syncing: list[int] = []
        self._is_syncing = False
        self.busy = 0.0
        """Processor seconds that transactions have used or will use."""
        self.synced = 0.0
        """Seconds spent in syncs."""

    @property
    def workers(self) -> Sequence[float]:
        """How long each session was busy, in seconds."""
        return [session.busy for session in self._sessions]

    def send(self, worker: int, transactions: Sequence[tuple[Batch, float]]) -> None:
        """Accept a worker's transactions, each with the processor time of its contents."""
        session = self._sessions[worker]
        session.queue.extend(transactions)
        if not session.running:
            self._run_next(worker, session)

    def send_checkpoint(self) -> None:
        """Accept the transaction of a checkpoint."""
        self.busy += self._costs.transaction
        seconds = max(0.0, self._costs.transaction - self._costs.serial)
        self._processors.run(seconds, CHECKPOINT_RAN, CHECKPOINTER)

    def _run_next(self, worker: int, session: _Session) -> None:
        if session.queue:
            session.running, seconds = session.queue.popleft()
            session.begun = self._timeline.now
            seconds += self._costs.transaction
            self.busy += seconds
            self._processors.run(max(0.0, seconds - self._costs.serial), RAN, worker)

    def has_run(self, worker: int) -> None:
        """Record that a worker's transaction has had its processor time."""
        delay = self._costs.delay
        if self._sessions[worker].running[0].kind in _DEFINITIONS:
            delay += self._costs.definition
        if delay:
            self._timeline.at(self._timeline.now + delay, WAITED, worker)
        else:
            self.wait_for_sync(worker)

    def wait_for_sync(self, worker: int) -> None:
        """Make a transaction wait for the next sync that begins."""
        self._to_sync.append(worker)
        if not self._is_syncing:
            self._begin_sync()

    def _begin_sync(self) -> None:
        self._is_syncing = True
        self._syncing, self._to_sync = self._to_sync, []
        if self._costs.serial:
            self._processors.run(self._costs.serial * len(self._syncing), WRITTEN, 0)
        else:
            self.has_written()

    def has_written(self) -> None:
        """Sync what has been written."""
        costs = self._costs
        syncing = self._syncing
        seconds = costs.sync
        if costs.written:
            sessions = self._sessions
            groups = sum([len(sessions[each].running) for each in syncing if each != CHECKPOINTER])
            seconds += costs.written * groups
        self.synced += seconds
        self._timeline.at(self._timeline.now + seconds, SYNCED, 0)

    def has_synced(self) -> list[int]:
        """Record that a sync has ended; return whose transactions have committed.

        The next sync begins, and the sessions continue.
        """
        self._is_syncing = False
        committed, self._syncing = self._syncing, []
        if self._to_sync:
            self._begin_sync()
        now = self._timeline.now
        for worker in committed:
            if worker != CHECKPOINTER:
                session = self._sessions[worker]
                if self._ran is not None:
                    self._ran(worker, session.running, session.begun, now)
                session.running = ()
                session.busy += now - session.begun
                self._run_next(worker, session)
        return committed
