"""The worker queue (WQ): what one worker has to apply, in the stream's order."""

from collections import deque
from collections.abc import Iterator

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.combining import may_share_commit


class WorkerQueue:
    """The groups of one worker: those that it has begun, and those that wait."""

    def __init__(self) -> None:
        self._waiting: deque[Group] = deque()
        self._unmet: dict[int, int] = {}
        """Of how many groups the commit is still to come, by the number of the one that waits."""
        self.running: tuple[Group, ...] = ()
        self.waiting_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def head(self) -> Group | None:
        """The first group that has not begun."""
        return self._waiting[0] if self._waiting else None

    @property
    def can_begin(self) -> bool:
        """Whether nothing runs and the head waits for nobody."""
        waiting = self._waiting
        return bool(waiting) and not self.running and waiting[0].number not in self._unmet

    def pending(self) -> Iterator[Group]:
        """Yield the groups that have not committed, in order."""
        yield from self.running
        yield from self._waiting

    def put(self, group: Group, unmet: int) -> None:
        """Add the newest group, which waits for the commits of `unmet` others."""
        self._waiting.append(group)
        self.waiting_bytes += group.size
        if unmet:
            self._unmet[group.number] = unmet

    def met(self, number: int) -> None:
        """Learn that one of the groups that group `number` waits for has committed."""
        left = self._unmet[number] - 1
        if left:
            self._unmet[number] = left
        else:
            del self._unmet[number]

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
        if len(waiting) < batch_groups or waiting[0].kind is not GroupKind.ROWS:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit)

    def _next_batch(
        self, batch_groups: int, batch_bytes: int, limit: int | None
    ) -> tuple[Group, ...]:
        waiting = self._waiting
        unmet = self._unmet
        if not waiting or waiting[0].number in unmet:
            return ()
        if limit is not None and waiting[0].number > limit:
            return ()
        first = waiting.popleft()
        batch = [first]
        size = first.size
        while waiting and len(batch) < batch_groups:
            group = waiting[0]
            together = size + group.size
            if (
                together > batch_bytes
                or group.number in unmet
                or (limit is not None and group.number > limit)
                or not may_share_commit(first, group)
            ):
                break
            batch.append(group)
            waiting.popleft()
            size = together
        self.waiting_bytes -= size
        taken = tuple(batch)
        self.running += taken
        return taken
