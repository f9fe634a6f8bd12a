"""Commits in the source's order over all workers: a batch that is held open until its turn.

A batch may be applied before its turn, side by side with earlier ones; all that has to wait is its
COMMIT. Meanwhile it holds locks, and an earlier group may need one of them: rows that are
independent can share a gap, a unique key or a parent. Nobody but mtsd could resolve that: the
earlier one waits for a lock, the later one for its turn. So whoever holds a batch open asks, as
soon as nothing has committed for a moment, whether a session of an earlier group waits for it; if
so, it gives way: it rolls back, and is applied again at its turn. A metadata lock is in none of the
tables of locks, and they may not be readable: so it also gives way when that has lasted too long.

There is no deadlock: the earliest of all batches waits for no turn, and every later one gives way
at some time. A batch gives way once at most, because it is then applied at its turn. That is no
retry of a transaction that has failed.
"""

from mtsd.apply.appliers.applier import Applier
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.ways.giving_way import Stall, gives_way


class CommitOrder:
    """Tells worker `index` when its batch may commit."""

    def __init__(self, index: int, coordinator: Coordinator, applier: Applier) -> None:
        self._index = index
        self.gave_way = 0
        """Batches rolled back so that an earlier group could go on."""
        self._coordinator = coordinator
        self._applier = applier

    async def comes(self, number: int) -> bool:
        """Wait for the turn of the open transaction that group `number` begins.

        Return whether it may commit; if not, it has to be rolled back. Raises ServerError,
        ConnectionLostError.
        """
        coordinator = self._coordinator
        gaq = coordinator.scheduler.gaq
        mark = gaq.number
        stall = Stall()
        while not await coordinator.turn(self._index, number, stall.pause_s):
            if coordinator.ended.is_set():
                return False
            if gaq.number != mark:
                mark = gaq.number
                stall.ended()
            if await gives_way(self._applier, number, stall, self._earlier(number)):
                self.gave_way += 1
                return False
        return True

    def _earlier(self, number: int) -> set[int]:
        """Return the ids of the sessions on which groups before `number` are applied."""
        coordinator = self._coordinator
        return {
            connection
            for connections, queue in zip(
                coordinator.connections, coordinator.scheduler.workers, strict=True
            )
            for connection in connections
            if queue.running and queue.running[0].number < number
        }
