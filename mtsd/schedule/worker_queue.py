"""The worker queue (WQ): what one worker has to apply, in the stream's order."""

from collections import deque
from collections.abc import Iterator

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.combining import MOST_RECORDED, may_share_commit, may_share_record


class WorkerQueue:
    """The groups of one worker: those that it has begun, and those that wait."""

    def __init__(self) -> None:
        self._waiting: deque[Group] = deque()
        self._unmet: dict[int, int] = {}
        """How many groups have yet to commit, by the number of the group waiting for them."""
        self._marks: dict[int, int] = {}
        """The low-water mark still to be reached, by the number of the group waiting for it."""
        self._apart: set[int] = set()
        """The groups that may not share a commit, or a packet, with the one before them here."""
        self.running: tuple[Group, ...] = ()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def head(self) -> Group | None:
        """The first group that has not begun."""
        return self._waiting[0] if self._waiting else None

    @property
    def can_begin(self) -> bool:
        """Whether nothing is running and the head waits for nothing."""
        waiting = self._waiting
        if self.running or not waiting:
            return False
        head = waiting[0].number
        return head not in self._unmet and head not in self._marks

    @property
    def oldest(self) -> int | None:
        """The number of the first group that has not committed."""
        if self.running:
            return self.running[0].number
        return self._waiting[0].number if self._waiting else None

    @property
    def has_marks(self) -> bool:
        """Whether one of the groups waits for a low-water mark."""
        return bool(self._marks)

    def awaited_mark(self, number: int) -> int:
        """Return the low-water mark that group `number` waits for; 0 if for none."""
        return self._marks.get(number, 0)

    def pending(self) -> Iterator[Group]:
        """Yield the groups that have not committed, in order."""
        yield from self.running
        yield from self._waiting

    def put(self, group: Group, unmet: int = 0, mark: int = 0, *, apart: bool = False) -> None:
        """Add the newest group.

        It waits for the commits of `unmet` others, and for the low-water mark to reach `mark`
        if that is not 0. `apart`: it is neither combined with the one before it, nor sent while
        that one is in flight: others commit between them.
        """
        self._waiting.append(group)
        if apart:
            self._apart.add(group.number)
        if unmet:
            self._unmet[group.number] = unmet
        if mark:
            self._marks[group.number] = mark

    def met(self, number: int) -> None:
        """Note that one of the groups that group `number` waits for has committed."""
        left = self._unmet[number] - 1
        if left:
            self._unmet[number] = left
        else:
            del self._unmet[number]

    def mark_reached(self, number: int) -> None:
        """Note that the low-water mark has reached what group `number` needs; it may have begun."""
        self._marks.pop(number, None)

    def take(
        self, batch_groups: int, batch_bytes: int, limit: int | None, others_up_to: int = 0
    ) -> tuple[Group, ...]:
        """Begin the head, with as many groups after it as may share its transaction or its record.

        `others_up_to` is a number up to which the other queues have nothing unfinished: for groups
        that come after their own predecessors here, it is as good as the low-water mark.

        Empty if the head waits for others or is past `limit`, or the last batch is still running.
        """
        if self.running:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit, others_up_to)

    def take_ahead(
        self, batch_groups: int, batch_bytes: int, limit: int | None, others_up_to: int = 0
    ) -> tuple[Group, ...]:
        """Begin the batch after the running one, if it consists of rows and cannot get larger.

        A smaller one stays in the queue, where it may still grow.
        """
        waiting = self._waiting
        if len(waiting) < batch_groups or waiting[0].kind is not GroupKind.ROWS:
            return ()
        if waiting[0].number in self._apart:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit, others_up_to)

    def _next_batch(
        self, batch_groups: int, batch_bytes: int, limit: int | None, others_up_to: int
    ) -> tuple[Group, ...]:
        waiting = self._waiting
        unmet = self._unmet
        marks = self._marks
        apart = self._apart
        if not waiting or waiting[0].number in unmet:
            return ()
        if limit is not None and waiting[0].number > limit:
            return ()
        if marks and marks.get(waiting[0].number, 0) > others_up_to:
            return ()
        first = waiting.popleft()
        apart.discard(first.number)
        batch = [first]
        size = first.size
        may_join = may_share_commit
        if first.kind is not GroupKind.ROWS:
            may_join = may_share_record
            batch_groups = min(batch_groups, MOST_RECORDED)
        while waiting and len(batch) < batch_groups:
            group = waiting[0]
            together = size + group.size
            if (
                together > batch_bytes
                or group.number in unmet
                or group.number in apart
                or (marks and marks.get(group.number, 0) > others_up_to)
                or (limit is not None and group.number > limit)
                or not may_join(first, group)
            ):
                break
            batch.append(group)
            waiting.popleft()
            size = together
        taken = tuple(batch)
        if marks:
            for group in taken:
                marks.pop(group.number, None)
        self.running += taken
        return taken
