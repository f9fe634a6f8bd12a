"""The worker queue (WQ): what one worker has to apply, in the stream's order."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.combining import may_share_commit


@dataclass(slots=True)
class QueuedGroup:
    """A group in a queue; `unmet` of the groups that it waits for have not committed yet."""

    group: Group
    worker: int
    unmet: int


class WorkerQueue:
    """The groups of one worker: those that it has begun, and those that wait."""

    def __init__(self) -> None:
        self._waiting: deque[QueuedGroup] = deque()
        self.running: tuple[Group, ...] = ()
        self.waiting_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def head(self) -> QueuedGroup | None:
        """The first group that has not begun."""
        return self._waiting[0] if self._waiting else None

    def pending(self) -> Iterator[Group]:
        """Yield the groups that have not committed, in order."""
        yield from self.running
        for queued in self._waiting:
            yield queued.group

    def put(self, queued: QueuedGroup) -> None:
        """Add the newest group."""
        self._waiting.append(queued)
        self.waiting_bytes += queued.group.size

    def take(self, batch_groups: int, batch_bytes: int, limit: int | None) -> tuple[Group, ...]:
        """Begin the head, and with it as many behind it as may share its target transaction.

        Empty if the head waits for others, or is past `limit`, or the last batch still runs.
        """
        return () if self.running else self._next_batch(batch_groups, batch_bytes, limit)

    def take_ahead(
        self, batch_groups: int, batch_bytes: int, limit: int | None
    ) -> tuple[Group, ...]:
        """Begin the batch after the one that runs, if it is of rows and as large as can be.

        A smaller one is left in the queue, where it may still grow.
        """
        waiting = self._waiting
        if len(waiting) < batch_groups or waiting[0].group.kind is not GroupKind.ROWS:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit)

    def _next_batch(
        self, batch_groups: int, batch_bytes: int, limit: int | None
    ) -> tuple[Group, ...]:
        waiting = self._waiting
        if not waiting or waiting[0].unmet:
            return ()
        if limit is not None and waiting[0].group.number > limit:
            return ()
        first = waiting.popleft().group
        batch = [first]
        size = first.size
        while waiting and len(batch) < batch_groups:
            queued = waiting[0]
            group = queued.group
            size += group.size
            if (
                queued.unmet
                or size > batch_bytes
                or (limit is not None and group.number > limit)
                or not may_share_commit(first, group)
            ):
                size -= group.size
                break
            batch.append(group)
            waiting.popleft()
        self.waiting_bytes -= size
        taken = tuple(batch)
        self.running += taken
        return taken
