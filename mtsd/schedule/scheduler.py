"""The coordinator's state as one machine: GAQ, policy, worker queues, checkpoints.

Pure: it is told what happens (a group came, a batch committed, a checkpoint was stored) and says
what may happen next. Invariants, with LWM the low-water mark and E the set of committed groups:
every number up to LWM is in E; a group begins only when all that it waits for is in E; what has
been stored of LWM and of the workers' bits is in E.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from mtsd.model.group import Group, GroupKind
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.schedule.assignment import Policy
from mtsd.schedule.executed_groups import ExecutedGroups
from mtsd.schedule.group_assigned_queue import GroupAssignedQueue, LowWaterMark
from mtsd.schedule.worker_queue import WorkerQueue

_MANY_PASSED = 128
"""Groups past the stored low-water mark that make the workers' rows long enough to shorten."""


class WaitCause(enum.StrEnum):
    """Why the coordinator cannot take the next group in."""

    CHECKPOINT_GROUP = "checkpoint_group"
    """The GAQ holds checkpoint_group groups past the stored low-water mark."""
    PENDING_JOBS = "pending_jobs"
    """pending_jobs_size_max bytes are queued."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of the queues: groups, bytes."""

    checkpoint_group: int
    pending_jobs_size_max: int
    batch_groups: int
    batch_bytes: int


class Scheduler:
    """Assigns groups to workers and keeps the low-water mark.

    `executed` are the groups past `mark` that a former run has committed: they are skipped.
    """

    def __init__(
        self,
        policy: Policy,
        workers: int,
        limits: Limits,
        mark: LowWaterMark,
        executed: ExecutedGroups,
    ) -> None:
        self._policy = policy
        self.limits = limits
        """May be changed at any time: what is over a new limit already is let through."""
        self._executed = executed
        self._executed_up_to = executed.highest
        self.queue = GroupAssignedQueue(mark)
        self.workers = [WorkerQueue() for _ in range(workers)]
        self.stored = mark
        """The low-water mark that the target holds."""
        self.pending_bytes = 0
        self.pending_groups = 0
        self.skipped = 0
        """Groups passed over because a former run had committed them."""
        self.committed: dict[str, int] = {}
        """Groups committed in this run, by database."""
        self._waiting: dict[int, list[tuple[WorkerQueue, int, int]]] = {}
        """By a group that is to commit: queue, worker and number of those that wait for it."""
        self._limit: int | None = None
        self._halted = False
        # What a former run has committed is begun, too: a stop has to close the gap before it.
        self._highest_begun = max(mark.number, executed.highest)

    def blocked(self, size: int) -> WaitCause | None:
        """Tell what stands against taking in a group of `size` bytes now."""
        limits = self.limits
        if self.queue.newest - self.stored.number >= limits.checkpoint_group:
            return WaitCause.CHECKPOINT_GROUP
        pending = self.pending_bytes
        if pending and pending + size > limits.pending_jobs_size_max:
            return WaitCause.PENDING_JOBS
        return None

    def executed_before(self, number: int) -> bool:
        """Tell whether a former run has committed this group."""
        return number in self._executed

    def add(self, group: Group) -> int | None:
        """Take in the next group of the stream.

        Returns the worker that can begin something now, if this made one able to; None also for
        a group that needs nothing done.
        """
        number = group.number
        if number <= self._executed_up_to and number in self._executed:
            self.skipped += 1
            self.queue.enter(group, done=True)
            return None
        if group.kind is GroupKind.EMPTY:
            self.queue.enter(group, done=True)
            return None
        self.queue.enter(group)
        assignment = self._policy.assign(group)
        worker, after = assignment
        queue = self.workers[worker]
        for earlier in after:
            self._waiting.setdefault(earlier, []).append((queue, worker, number))
        was_empty = not len(queue)
        queue.put(group, len(after))
        self.pending_bytes += group.size
        self.pending_groups += 1
        return worker if was_empty and queue.can_begin else None

    def begin_streamed(self, number: int) -> None:
        """Learn that a streamed group has begun that cannot be undone: a stop takes it in."""
        self._highest_begun = number

    def add_committed(self, group: Group) -> None:
        """Take in a streamed group that a worker has applied and committed already.

        It has run alone: with nothing unfinished before it.
        """
        self._highest_begun = group.number
        self.queue.enter(group, done=True)

    def reach(self, position: Position, gtids: GtidSet | None) -> None:
        """Learn that the stream has passed a place between groups."""
        self.queue.reach(position, gtids)

    def take(self, worker: int, *, ahead: bool = False) -> tuple[Group, ...]:
        """Begin the next batch of a worker; empty where it has nothing that can begin.

        `ahead`: while its last batch still runs, so that the next one can be made ready.
        """
        if self._halted:
            return ()
        limits = self.limits
        queue = self.workers[worker]
        if ahead:
            # What is ready is held twice, as groups and as statements.
            batch = queue.take_ahead(limits.batch_groups, limits.batch_bytes // 4, self._limit)
        else:
            batch = queue.take(limits.batch_groups, limits.batch_bytes, self._limit)
        if batch and batch[-1].number > self._highest_begun:
            self._highest_begun = batch[-1].number
        return batch

    def commit(self, worker: int, groups: Sequence[Group]) -> set[int]:
        """Learn that groups of the worker's batch have committed, in their order.

        Returns the other workers that can begin something now because of it.
        """
        woken: set[int] = set()
        done = self.queue.done
        waiting = self._waiting
        committed = self.committed
        size = 0
        for group in groups:
            number = group.number
            done(number)
            size += group.size
            for name in group.databases:
                committed[name] = committed.get(name, 0) + 1
            if number in waiting:
                for queue, other, waiter in waiting.pop(number):
                    queue.met(waiter)
                    if queue.can_begin:
                        woken.add(other)
        self._policy.finished(groups)
        self.pending_bytes -= size
        self.pending_groups -= len(groups)
        running = self.workers[worker]
        running.running = running.running[len(groups) :]
        woken.discard(worker)
        return woken

    @property
    def idle(self) -> bool:
        """Whether every group that was taken in has committed."""
        return not self.pending_groups

    def stop(self, *, reading: bool) -> None:
        """Begin nothing past the highest group that has begun, so that no gap stays.

        With `reading`, groups of a gap that have not been read yet are still to be added (see
        `reads_on`); without, the gap stays as far as it has not been read.
        """
        newest = self.queue.newest
        self._limit = self._highest_begun if reading else min(self._highest_begun, newest)

    @property
    def reads_on(self) -> bool:
        """Whether groups are still to be added: before a stop, and in a gap that it closes."""
        return self._limit is None or self.queue.newest < self._limit

    @property
    def stopped(self) -> bool:
        """Whether, after `stop`, everything that was to be finished has committed."""
        return self._limit is not None and self.queue.number >= self._limit

    def halt(self) -> None:
        """Begin nothing any more: a group has failed."""
        self._halted = True

    def checkpoint(self) -> LowWaterMark | None:
        """Return the low-water mark if it is further than the one that is stored."""
        stored = self.stored
        if self.queue.number == stored.number and self.queue.position == stored.position:
            return None
        return self.queue.mark()

    def checkpoint_is_urgent(self) -> bool:
        """Tell whether to store the low-water mark before its period.

        The GAQ fills up, or the workers' rows grow: they hold all that is past the stored mark.
        """
        passed = self.queue.number - self.stored.number
        return passed >= min(_MANY_PASSED, max(1, self.limits.checkpoint_group // 4))

    def checkpointed(self, mark: LowWaterMark) -> None:
        """Learn that the target holds this low-water mark now."""
        self.stored = mark
