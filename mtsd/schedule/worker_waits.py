"""What keeps the dispatcher and each worker waiting, and how long: no decision depends on it."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from mtsd.schedule.batches.worker_queue import WorkerQueue
from mtsd.schedule.ending import Ending
from mtsd.schedule.wait_cause import WaitCause, cause_of_head
from mtsd.schedule.waits import DISPATCHER, Waits


def no_clock() -> float:
    """Stand still: nothing seems to wait."""
    return 0.0


class WorkerWaits:
    """Accounts for the waits of workers with these `queues`.

    Some of them are `frozen`; `unfinished_alone` are groups that run alone. `clock` is in seconds.
    """

    __slots__ = (
        "_alone", "_by_names", "_clock", "_ending", "_frozen", "_in_order", "_queues", "_waits",
        "awaits_turn",
    )  # fmt: skip

    def __init__(
        self,
        queues: Sequence[WorkerQueue],
        frozen: Sequence[bool],
        unfinished_alone: AbstractSet[int],
        ending: Ending,
        clock: Callable[[], float],
        *,
        by_names: bool,
        in_order: bool,
    ) -> None:
        self._queues = queues
        self._frozen = frozen
        self._alone = unfinished_alone
        self._ending = ending
        self._clock = clock
        self._by_names = by_names
        self._in_order = in_order
        self._waits = Waits(len(queues))
        self.awaits_turn = [False] * len(queues)
        """By worker: whether what it has begun waits until all before it has committed."""

    def reading(self, cause: WaitCause | None) -> None:
        """Note what keeps the next group of the stream from being added; None if nothing does."""
        self._waits.set(DISPATCHER, cause, self._clock())

    @property
    def of_reading(self) -> WaitCause | None:
        """What was noted last by `reading`."""
        return self._waits.cause(DISPATCHER)

    def cause_now(self, worker: int) -> WaitCause | None:
        """Return what keeps a worker from finishing what it has begun, or from beginning more."""
        if self.awaits_turn[worker]:
            return WaitCause.COMMIT_ORDER
        queue = self._queues[worker]
        head = queue.head
        if head is None or queue.running or self._ending.halted:
            return None
        if queue.can_begin and not self._frozen[worker]:
            return None
        limit = self._ending.limit
        if limit is not None and head.number > limit:
            return None
        if self._frozen[worker]:
            return WaitCause.FROZEN
        return cause_of_head(
            head,
            queue.awaited_mark(head.number),
            self._alone,
            by_names=self._by_names,
            in_order=self._in_order,
        )

    def account(self, worker: int) -> None:
        """Note what the worker waits for from now on."""
        cause = self.cause_now(worker)
        if cause is not self._waits.cause(worker):
            self._waits.set(worker, cause, self._clock())

    def account_all(self) -> None:
        """Note what each of them waits for from now on."""
        for worker in range(len(self._queues)):
            self.account(worker)

    def seconds(self) -> dict[WaitCause, float]:
        """Return how long was waited by each cause so far."""
        return self._waits.seconds(self._clock())
