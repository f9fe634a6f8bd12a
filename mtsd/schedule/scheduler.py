"""The schedule as one state machine: GAQ, policy, worker queues, checkpoints.

Pure: it is told what happens (a group arrived, a batch committed, a checkpoint was stored) and says
what may happen next. Invariants, with LWM the low-water mark and E the set of committed groups:
every number up to LWM is in E; a group begins only when all that it waits for is in E; what has
been stored of LWM and of the workers' bits is in E.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group, GroupKind, StreamItem
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.model.temporary_tables import TemporaryTables
from mtsd.schedule.admission import NO_FILLERS, Admission, Filler
from mtsd.schedule.batches.alone import BY_THEMSELVES, AloneRule
from mtsd.schedule.batches.worker_queue import WorkerQueue, others_up_to
from mtsd.schedule.checkpoints import Checkpoints
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue
from mtsd.schedule.done.prepared_transactions import PreparedTransactions
from mtsd.schedule.done.repair import Repair
from mtsd.schedule.ending import Ending
from mtsd.schedule.former_run import FormerRun
from mtsd.schedule.limits import Limits
from mtsd.schedule.placement import Placement
from mtsd.schedule.policies.assignment import Need, Policy
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView
from mtsd.schedule.temporary_sessions import TemporarySessions
from mtsd.schedule.wait_cause import WaitCause
from mtsd.schedule.waiters import Waiters
from mtsd.schedule.worker_waits import WorkerWaits, no_clock

_ROWS: Final = GroupKind.ROWS
_EMPTY: Final = GroupKind.EMPTY


class Scheduler:
    """Assigns groups to workers and keeps the low-water mark.

    `executed` are the groups past `mark` that a previous run has committed: they are skipped.
    `alone` says which groups run alone, under every policy. `fillers` fill in the fields of a group
    that the policy needs; a policy that needs none costs nothing. `prepared` are the XA
    transactions that a previous run has left prepared. `clock` returns seconds, only to account for
    waits: no decision depends on it. With `in_order`, groups commit in the stream's order over all
    workers (C1 of WL#4648): see `may_commit`. With a `repair`, what it applies again is not
    skipped, as far as it is rows, and a stop finishes all of it. Raises ValueError if the policy
    needs a field that none of the fillers fills in.
    """

    def __init__(
        self,
        policy: Policy,
        workers: int,
        limits: Limits,
        mark: LowWaterMark,
        executed: ExecutedGroups,
        *,
        alone: AloneRule = BY_THEMSELVES,
        fillers: Mapping[Need, Filler] = NO_FILLERS,
        prepared: PreparedTransactions | None = None,
        clock: Callable[[], float] = no_clock,
        in_order: bool = False,
        repair: Repair | None = None,
    ) -> None:
        self._policy = policy
        self.in_order = in_order
        self.limits = limits
        """See `set_limits`."""
        self.former = FormerRun(executed, repair)
        """What earlier runs have committed."""
        self.gaq = GroupAssignedQueue(mark)
        self._admission = Admission(
            self.gaq, self.former, policy.needs, fillers, prepared or PreparedTransactions()
        )
        self.workers = [WorkerQueue() for _ in range(workers)]
        self._checkpoints = Checkpoints(self.gaq, mark)
        self.pending_bytes = 0
        self._groups = [0] * workers
        self._sizes = [0] * workers
        self._frozen = [False] * workers
        self.view = ScheduleView(
            self._groups, self._sizes, self.gaq, limits.batch_groups, self._frozen
        )
        self.sessions = TemporarySessions(workers, by_names=policy.by_names)
        """Which of them hold temporary tables of the source."""
        self._waiters = Waiters(self.gaq)
        self._placement = Placement(
            policy, self.view, alone, self.sessions, self.workers, self._groups, in_order=in_order
        )
        # What a previous run has committed counts as begun: a stop has to close the gap before it.
        self._ending = Ending(max(mark.number, self.former.up_to))
        self._waits = WorkerWaits(
            self.workers,
            self._frozen,
            self._placement.unfinished_alone,
            self._ending,
            clock,
            by_names=policy.by_names,
            in_order=in_order,
        )

    @property
    def stored(self) -> LowWaterMark:
        """The low-water mark stored on the target."""
        return self._checkpoints.stored

    def set_limits(self, limits: Limits) -> None:
        """Go on with other limits: what already exceeds a new one is let through."""
        self.limits = limits
        self.view.batch_groups = limits.batch_groups

    def blocked(self, size: int) -> WaitCause | None:
        """Return what prevents adding a group of `size` bytes now, or None."""
        limits = self.limits
        if self.gaq.newest - self._checkpoints.stored.number >= limits.checkpoint_group:
            return WaitCause.GAQ_FULL
        pending = self.pending_bytes
        if pending and pending + size > limits.pending_jobs_size_max:
            return WaitCause.PENDING_BYTES
        return None

    def take_in(self, items: Iterator[StreamItem], can_begin: set[int]) -> StreamItem | None:
        """Add groups of rows, and empty ones, as long as there is room and reading continues.

        Returns the first item that is something else, or that cannot be added now; None at the
        end. Workers that can begin something are added to `can_begin`, even if `items` raises.
        """
        for item in items:
            if (
                type(item) is not Group
                or (
                    item.kind is not _ROWS
                    and (item.kind is not _EMPTY or item.uses_temporary is not None)
                )
                or item.unsupported
                or self.blocked(item.size) is not None
                or not self.reads_on
            ):
                return item
            worker = self.add(item)
            if worker is not None:
                can_begin.add(worker)
        return None

    def add(self, group: Group) -> int | None:
        """Add the next group of the stream.

        Returns the worker that can begin something now because of this group, or None; also None
        for a group that needs nothing done.
        """
        number = group.number
        if group.kind is not _EMPTY:
            self._checkpoints.newest_change = number
        admitted = self._admission.admit(group)
        if admitted is None:
            return None
        group, earlier = admitted
        worker, after, mark, separate, first = self._placement.place(group, earlier)
        queue = self.workers[worker]
        was_empty = not len(queue)
        if after or mark > self.gaq.number:
            unmet, mark = self._waiters.add(worker, number, after, mark)
            queue.put(group, unmet, mark, separate=separate)
            if was_empty:
                self._waits.account(worker)
        else:
            queue.put(group, separate=separate)
            if was_empty and self._frozen[worker]:
                self._waits.account(worker)
        if first >= 0:
            queue.pair(earlier, number)
        elif group.xid is not None and self._placement.may_begin_pair(group):
            queue.may_be_paired(number)
        size = group.size
        self.pending_bytes += size
        self._groups[worker] += 1
        self._sizes[worker] += size
        return worker if was_empty and queue.can_begin else None

    @property
    def looks_inside(self) -> bool:
        """Whether the policy goes by what is in a group, which nobody knows of a streamed one."""
        return self._admission.fills

    def distribute(self, distribution: Distribution) -> None:
        """Distribute databases by other rules of a person, from the next group on."""
        self._policy.distribute(distribution, self.unfinished_groups())

    def freeze(self, worker: int, *, frozen: bool) -> None:
        """Have a worker begin nothing more, or continue; what it has begun it finishes."""
        self._frozen[worker] = frozen
        self._waits.account(worker)

    def is_frozen(self, worker: int) -> bool:
        """Return whether a worker begins nothing because a person has frozen it."""
        return self._frozen[worker]

    def begin_streamed(self, number: int) -> None:
        """Note that a streamed group has begun that cannot be undone: a stop has to finish it."""
        self._ending.highest_begun = number

    def awaits_turn(self, worker: int, *, waits: bool) -> None:
        """Note that a worker waits until all before what it has begun has committed, or no more."""
        self._waits.awaits_turn[worker] = waits
        self._waits.account(worker)

    def may_commit(self, number: int) -> bool:
        """Return whether it is the turn of the batch that group `number` begins.

        In order, that is when everything before it has committed. There is always a batch whose
        turn it is: the lowest number of all unfinished groups is begun, or can begin.
        """
        return not self.in_order or self.gaq.number >= number - 1

    def add_committed(self, group: Group) -> None:
        """Add a streamed group that a worker has already applied and committed.

        It has run alone: with nothing unfinished before it.
        """
        self._ending.highest_begun = self._checkpoints.newest_change = group.number
        self._admission.pass_committed(group)

    def reach(
        self, position: Position, gtids: GtidSet | None, temporary: TemporaryTables | None = None
    ) -> None:
        """Note that the stream has passed a place between groups."""
        self.gaq.reach(position, gtids, temporary)
        if temporary is not None:
            self.sessions.only(temporary.by_thread)

    def take(
        self, worker: int, *, ahead: bool = False, at_most: int | None = None, statements: int = 1
    ) -> tuple[Group, ...]:
        """Begin the next batch of a worker; empty if it has nothing that can begin.

        `ahead`: while its last batch is still running, so that the next one can be prepared; it has
        `at_most` so many bytes, unless a single group has more.
        `statements`: at most how many groups of statements it may consist of.
        """
        if self._ending.halted:
            return ()
        if self._frozen[worker]:
            if not ahead:
                self._waits.account(worker)
            return ()
        limits = self.limits
        queue = self.workers[worker]
        passed = 0
        if queue.has_marks:
            passed = others_up_to(self.workers, worker, self.gaq.newest)
        if ahead:
            # What is prepared is in memory twice, as groups and as statements.
            most = min(limits.batch_bytes // 4, at_most or limits.batch_bytes)
            batch = queue.take_ahead(limits.batch_groups, most, self._ending.limit, passed)
        else:
            batch = queue.take(
                limits.batch_groups, limits.batch_bytes, self._ending.limit, passed, statements
            )
            self._waits.account(worker)
        if batch:
            self._ending.begins(batch[-1].number)
        return batch

    def commit(self, worker: int, groups: Sequence[Group]) -> set[int]:
        """Note that groups of the worker's batch have committed, in their order.

        Returns the other workers that can begin something now because of it.
        """
        self.gaq.commit(groups)
        touched: set[int] = set()
        size = 0
        waiters = self._waiters
        alone = self._placement.unfinished_alone
        for group in groups:
            size += group.size
            if alone:
                alone.discard(group.number)
            for other, waiter in waiters.committed(group.number):
                self.workers[other].met(waiter)
                touched.add(other)
        for other, waiter in waiters.reached():
            self.workers[other].mark_reached(waiter)
            touched.add(other)
        self._policy.finished(groups)
        self.pending_bytes -= size
        self._groups[worker] -= len(groups)
        self._sizes[worker] -= size
        self.workers[worker].committed(groups)
        touched.discard(worker)
        for other in touched:
            self._waits.account(other)
        return {other for other in touched if self.workers[other].can_begin}

    def reading_waits(self, cause: WaitCause | None) -> None:
        """Note what keeps the next group of the stream from being added; None if nothing does."""
        self._waits.reading(cause)

    @property
    def reading_waits_for(self) -> WaitCause | None:
        """What keeps the next group of the stream from being added, see `reading_waits`."""
        return self._waits.of_reading

    def waits_for(self, worker: int) -> WaitCause | None:
        """Return what keeps a worker from finishing what it has begun, or from beginning more.

        None if it is at work, has nothing to do, or can begin the head of its queue.
        """
        return self._waits.cause_now(worker)

    def wait_seconds(self) -> dict[WaitCause, float]:
        """Return how long was waited by each cause so far.

        Reading counts once, and every idle worker for itself.
        """
        return self._waits.seconds()

    @property
    def pending_groups(self) -> int:
        """The number of groups that were added and have not committed."""
        return sum(self._groups)

    @property
    def skipped(self) -> int:
        """The number of groups skipped because a previous run had committed them."""
        return self._admission.skipped

    @property
    def prepared_transactions(self) -> int:
        """How many XA transactions are prepared, or about to be, and not completed."""
        return len(self._admission.prepared)

    def partitions(self) -> Sequence[PartitionStatistics]:
        """Return the policy's description of its partitions."""
        return self._policy.partitions(self.unfinished_groups())

    def unfinished_groups(self) -> Iterator[Group]:
        """Yield all groups that were added and have not committed."""
        return chain.from_iterable(queue.pending() for queue in self.workers)

    @property
    def idle(self) -> bool:
        """Whether every group that was added has committed."""
        return not any(self._groups)

    def stop(self, *, reading: bool) -> None:
        """Begin nothing past the highest group that has begun, so that no gap remains.

        With `reading`, groups of a gap that have not yet been read are still to be added (see
        `reads_on`); without it, the gap remains as far as it has not been read. No worker remains
        frozen: a gap may be there.
        """
        self._ending.stop(self.gaq.newest, reading=reading)
        for worker in range(len(self._frozen)):
            self._frozen[worker] = False
        self._waits.account_all()

    @property
    def reads_on(self) -> bool:
        """Whether groups are still to be added: before a stop, and in a gap that it closes."""
        return self._ending.limit is None or self.gaq.newest < self._ending.limit

    @property
    def stopped(self) -> bool:
        """Whether, after `stop`, everything that was to be finished has committed."""
        return self._ending.limit is not None and self.gaq.number >= self._ending.limit

    @property
    def unfinished(self) -> bool:
        """Whether a group past the stored low-water mark has begun, in this run or before."""
        return self._ending.highest_begun > self.stored.number

    @property
    def nothing_past_stored(self) -> bool:
        """Whether no group past the stored low-water mark has committed, in this run or before."""
        number = self.stored.number
        return self.gaq.highest_done == self.gaq.number == number >= self.former.up_to

    def halt(self) -> None:
        """Begin nothing more: a group has failed."""
        self._ending.halted = True
        self._waits.account_all()

    def checkpoint(self, *, rests: bool = False) -> LowWaterMark | None:
        """Return the low-water mark if it is to be stored now, see `Checkpoints.due`."""
        return self._checkpoints.due(self.limits.checkpoint_group, rests=rests)

    def checkpoint_is_urgent(self) -> bool:
        """Return whether to store the low-water mark before its period has passed."""
        return self._checkpoints.are_urgent(self.limits.checkpoint_group)

    def checkpointed(self, mark: LowWaterMark) -> None:
        """Note that the target now stores this low-water mark."""
        self._checkpoints.stored = mark
