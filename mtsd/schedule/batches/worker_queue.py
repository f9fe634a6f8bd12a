"""The worker queue (WQ): what one worker has to apply, in the stream's order."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.batches.combining import (
    MAX_RECORDED,
    is_of_rows_for_good,
    may_share_commit,
    may_share_record,
    may_share_statements,
)
from mtsd.schedule.batches.xa_pairs import pairs_together

_ROWS: Final = GroupKind.ROWS
_PREPARE: Final = GroupKind.XA_PREPARE
_COMPLETE: Final = GroupKind.XA_COMPLETE
_STATEMENTS: Final = GroupKind.STATEMENTS
_NON_TRANSACTIONAL: Final = GroupKind.NON_TRANSACTIONAL
_DDL: Final = GroupKind.DDL


class WorkerQueue:
    """The groups of one worker: those that it has begun, and those that wait."""

    def __init__(self) -> None:
        self._waiting: deque[Group] = deque()
        self._waiting_bytes = 0
        self._unmet: dict[int, int] = {}
        """How many groups have yet to commit, by the number of the group waiting for them."""
        self._marks: dict[int, int] = {}
        """The low-water mark still to be reached, by the number of the group waiting for it."""
        self._separate: set[int] = set()
        """The groups that may not share a commit, or a packet, with the one before them here."""
        self._prepares: set[int] = set()
        """Groups that wait, and may be the first of a pair (see `xa_pairs`)."""
        self._pairs: dict[int, int] = {}
        """By each of the two groups of a pair the other one, while both wait."""
        self._rows_for_good: set[int] = set()
        """Groups that wait, and are each a batch that may share a packet: `is_of_rows_for_good`."""
        self._passed: set[int] = set()
        """First groups of pairs that have not committed, and which later groups have passed."""
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
        if not self.running and not self._waiting:
            return None
        first = self.running[0] if self.running else self._waiting[0]
        return min(first.number, *self._passed) if self._passed else first.number

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

    def put(self, group: Group, unmet: int = 0, mark: int = 0, *, separate: bool = False) -> None:
        """Add the newest group.

        It waits for the commits of `unmet` others, and for the low-water mark to reach `mark`
        if that is not 0. `separate`: it is neither combined with the one before it, nor sent while
        that one is in flight: others commit between them.
        """
        self._waiting.append(group)
        self._waiting_bytes += group.size
        if separate:
            self._separate.add(group.number)
        if group.kind is _NON_TRANSACTIONAL and is_of_rows_for_good(group):
            self._rows_for_good.add(group.number)
        if unmet:
            self._unmet[group.number] = unmet
        if mark:
            self._marks[group.number] = mark

    def may_be_paired(self, number: int) -> None:
        """Note that a group that was added may become the first of a pair."""
        self._prepares.add(number)

    def awaits_second(self, number: int) -> bool:
        """Return whether a group waits here, and may become the first of a pair."""
        return number in self._prepares

    def pair(self, first: int, second: int) -> None:
        """Note that two groups that wait here are a pair."""
        self._pairs[first] = second
        self._pairs[second] = first

    def committed(self, groups: Sequence[Group]) -> None:
        """Note that the first groups of those that are running have committed."""
        self.running = self.running[len(groups) :]
        if self._passed:
            self._passed.difference_update(group.number for group in groups)

    def replay(self, *, pairs: bool) -> list[tuple[Group, ...]]:
        """Return what is running, to be applied in units, in the stream's order.

        What later groups have passed begins, too: a unit that fails waits until everything before
        it has committed. With `pairs`, the two groups of each are a unit, in the place of the first
        one; otherwise every group is.
        """
        passed = [group for group in self._waiting if group.number in self._passed]
        if passed:
            waiting = (group for group in self._waiting if group.number not in self._passed)
            self._waiting = deque(waiting)
            self._begin(passed)
        groups = sorted(self.running, key=lambda group: group.number)
        units: list[tuple[Group, ...]] = [(group,) for group in groups]
        if pairs:
            units = pairs_together(groups)
        self.running = tuple(chain.from_iterable(units))
        return units

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
        self,
        batch_groups: int,
        batch_bytes: int,
        limit: int | None,
        others_up_to: int = 0,
        statements: int = 1,
    ) -> tuple[Group, ...]:
        """Begin the head, with as many groups after it as may share its transaction or its record.

        `others_up_to` is a number up to which the other queues have nothing unfinished: for groups
        that come after their own predecessors here, it is as good as the low-water mark.
        `statements` is how many groups of statements may share a transaction.

        Empty if the head waits for others or is past `limit`, or the last batch is still running.
        """
        if self.running:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit, others_up_to, statements)

    def take_ahead(
        self, batch_groups: int, batch_bytes: int, limit: int | None, others_up_to: int = 0
    ) -> tuple[Group, ...]:
        """Begin the batch after the running one, if it consists of rows and cannot get larger.

        A smaller one stays in the queue, where it may still grow.
        """
        waiting = self._waiting
        if not waiting or waiting[0].number in self._separate:
            return ()
        if self._rows_for_good:
            return self._next_before_end(batch_groups, batch_bytes, limit, others_up_to)
        if len(waiting) < batch_groups and self._waiting_bytes < batch_bytes:
            return ()
        if waiting[0].kind is _PREPARE:
            return self._next_with_pairs(batch_groups, batch_bytes, limit, others_up_to)
        if waiting[0].kind is not _ROWS:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit, others_up_to)

    def _next_before_end(
        self, batch_groups: int, batch_bytes: int, limit: int | None, others_up_to: int
    ) -> tuple[Group, ...]:
        """Begin a batch, if it cannot get larger, as what ends it waits here."""
        first = self._waiting[0]
        if first.kind is not _ROWS and first.number not in self._rows_for_good:
            return ()
        return self._next_batch(batch_groups, batch_bytes, limit, others_up_to)

    def _next_batch(
        self,
        batch_groups: int,
        batch_bytes: int,
        limit: int | None,
        others_up_to: int,
        statements: int = 1,
    ) -> tuple[Group, ...]:
        waiting = self._waiting
        if not waiting or not self._may_begin(waiting[0], limit, others_up_to):
            return ()
        first = waiting[0]
        if self._prepares and (first.kind is _ROWS or first.kind is _PREPARE):
            taken = self._next_with_pairs(batch_groups, batch_bytes, limit, others_up_to)
            if taken:
                return taken
        waiting.popleft()
        batch = [first]
        size = first.size
        may_join = may_share_commit
        xids = set()
        if first.kind is _STATEMENTS or first.kind is _NON_TRANSACTIONAL or first.kind is _DDL:
            may_join = may_share_statements
            batch_groups = min(batch_groups, statements)
        elif first.kind is not _ROWS:
            may_join = may_share_record
            batch_groups = min(batch_groups, MAX_RECORDED)
            xids.add(first.xid)
        unmet = self._unmet
        marks = self._marks
        separate = self._separate
        while waiting and len(batch) < batch_groups:
            group = waiting[0]
            number = group.number
            together = size + group.size
            if (
                together > batch_bytes
                or number in unmet
                or number in separate
                or (marks and marks.get(number, 0) > others_up_to)
                or (limit is not None and number > limit)
                or not may_join(first, group)
            ):
                break
            if xids:
                if group.xid in xids or (group.kind is _PREPARE and number in self._pairs):
                    break
                xids.add(group.xid)
            batch.append(group)
            waiting.popleft()
            size = together
        return self._begin(batch)

    def _next_with_pairs(
        self, batch_groups: int, batch_bytes: int, limit: int | None, others_up_to: int
    ) -> tuple[Group, ...]:
        """Begin groups of rows, and pairs, that form one transaction.

        Of a pair both, or neither: what prepares a transaction whose completion is not among them
        stays at the head of the queue, and later groups pass it. That happens once at most if its
        completion is not here yet. Empty if the head is to be applied by itself.
        """
        waiting = self._waiting
        prepares = self._prepares
        pairs = self._pairs
        within: list[Group] = []
        single: set[int] = set()
        size = 0
        for group in waiting:
            number = group.number
            kind = group.kind
            size += group.size
            if (
                len(within) >= batch_groups
                or (within and (size > batch_bytes or number in self._separate))
                or not self._may_begin(group, limit, others_up_to)
            ):
                break
            if kind is _COMPLETE:
                first = pairs.get(number, 0)
                if first not in single:
                    break
                single.remove(first)
            elif within and group.format_description != within[0].format_description:
                break
            elif kind is _PREPARE:
                if number not in prepares:
                    break
                single.add(number)
            elif kind is not _ROWS or not may_share_commit(group, group):
                break
            within.append(group)
        if len(single) == len(within):
            return ()
        head = waiting[0].number
        if head in single and head in self._passed and head not in pairs:
            return ()
        for _ in within:
            waiting.popleft()
        if single:
            waiting.extendleft(group for group in reversed(within) if group.number in single)
            self._passed |= single
        return self._begin([group for group in within if group.number not in single])

    def _may_begin(self, group: Group, limit: int | None, others_up_to: int) -> bool:
        number = group.number
        if number in self._unmet or (limit is not None and number > limit):
            return False
        marks = self._marks
        return not marks or marks.get(number, 0) <= others_up_to

    def _begin(self, batch: list[Group]) -> tuple[Group, ...]:
        """Note that groups that were taken out of the queue have begun."""
        marks = self._marks
        if marks or self._separate or self._prepares or self._pairs or self._rows_for_good:
            for group in batch:
                number = group.number
                marks.pop(number, None)
                self._separate.discard(number)
                self._rows_for_good.discard(number)
                self._prepares.discard(number)
                other = self._pairs.pop(number, 0)
                self._pairs.pop(other, 0)
        taken = tuple(batch)
        self._waiting_bytes -= sum([group.size for group in batch])
        self.running += taken
        return taken


def others_up_to(queues: Sequence[WorkerQueue], worker: int, newest: int) -> int:
    """Return the number up to which no queue but the worker's has an unfinished group.

    `newest` is the newest of all groups.
    """
    up_to = newest
    for other, queue in enumerate(queues):
        oldest = queue.oldest
        if other != worker and oldest is not None and oldest <= up_to:
            up_to = oldest - 1
    return up_to
