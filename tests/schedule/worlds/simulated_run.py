"""One life of the daemon around the scheduler, step by step, between a stream and a target.

Every step is what one await of the daemon would separate from the next, and checks what
must be true in each state: so a driver only has to choose steps, at random or all of them.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from random import Random
from typing import Self, TypeVar

from mtsd.binlog.events.rows import deletes_rows
from mtsd.model.distribution import Distribution
from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import GroupKeys
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.schedule.admission import Filler
from mtsd.schedule.batches.alone import BY_THEMSELVES, AloneRule
from mtsd.schedule.done.worker_row import blank_row
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.assignment import Assignment, Need, Policy
from mtsd.schedule.policies.choice import choose_policy
from mtsd.schedule.policies.commit_parent_policy import CommitParentPolicy
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.policies.eventual_policy import EventualPolicy
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.homes import Homes
from mtsd.schedule.policies.logical_clock_policy import LogicalClockPolicy
from mtsd.schedule.policies.row_policy import RowPolicy
from mtsd.schedule.policies.table_policy import TablePolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.planned_policy import PlannedPolicy
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Stream, partitions

ROOMY = Limits(
    checkpoint_group=1000, pending_jobs_size_max=1 << 20, batch_groups=100, batch_bytes=1 << 20
)


@dataclass(frozen=True, slots=True)
class Freeze:
    """A person freezes a worker, or lets it continue."""

    worker: int
    frozen: bool


class Mode(enum.Enum):
    """How the daemon is set to schedule: by a `parallel_type`, or otherwise."""

    SEQUENTIAL = "sequential"
    DATABASE = "database"
    LOGICAL_CLOCK = "logical_clock"
    COMMIT_PARENT = "commit_parent"
    TABLE = "table"
    ROW = "row"
    PLANNED = "planned"
    """By the assignments of `RunSettings.plan`."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What may be changed from one start to the next."""

    mode: Mode = Mode.DATABASE
    workers: int = 2
    bind: tuple[tuple[str, ...], ...] = ()
    limits: Limits = ROOMY
    drop_others: bool = False
    """Whether recovery drops the other rows when it writes its own."""
    plan: tuple[Assignment, ...] = ()
    """The assignments of the groups from number 1 on."""
    alone: AloneRule = BY_THEMSELVES
    in_order: bool = False
    """Whether commits keep the stream's order over all workers."""
    eventual: bool = False
    """Whether groups of rows keep no order."""
    deletes_in_turn: bool = False
    """With `eventual`: whether those that delete rows begin after everything before them."""
    statements: int = 1
    """How many groups of statements may begin together."""
    overlaps: bool = False
    """Whether a batch may be applied while the one before it commits."""
    homes_after: int = 0
    """Of how many groups it is looked which partitions have a home; 0: of as many as usual."""
    by_hand: tuple[Distribution | Freeze, ...] = ()
    """What a person does while it runs, in this order, each at any moment."""

    def must_precede(
        self, earlier: Group, later: Group, bind: Sequence[Sequence[str]] = ()
    ) -> bool:
        """Tell whether two groups of a stream have to commit in its order.

        `bind` are the databases that were bound when the later one was taken in.
        """
        if GroupKind.EMPTY in (earlier.kind, later.kind):
            return False
        if self.mode is Mode.SEQUENTIAL:
            return True
        if self.alone.applies_to(earlier) or self.alone.applies_to(later):
            return True
        if self.eventual:
            return self.deletes_in_turn and deletes_rows(later.rows)
        if self.mode is Mode.PLANNED:
            worker, after, mark = self.plan[later.number - 1]
            return (
                earlier.number <= mark
                or earlier.number in after
                or self.plan[earlier.number - 1].worker == worker
            )
        if self.mode is Mode.LOGICAL_CLOCK or (
            self.mode is Mode.COMMIT_PARENT and later.sequence_number
        ):
            return may_depend(earlier, later)
        if self.mode is Mode.COMMIT_PARENT:
            return earlier.commit_id != later.commit_id or not later.commit_id
        if self.mode is Mode.ROW:
            return may_conflict(earlier.keys, later.keys)
        bound = {name for together in bind for name in together}.intersection(
            (*earlier.databases, *later.databases)
        )
        if self.mode is Mode.TABLE and earlier.tables and later.tables and not bound:
            return not set(earlier.tables).isdisjoint(later.tables)
        return not partitions(earlier, bind).isdisjoint(partitions(later, bind))


def as_filled(policy: Policy) -> Mapping[Need, Filler]:
    """Return fillers that leave groups as they are: those of the tests have what is needed."""
    return dict.fromkeys(policy.needs, lambda group: group)


def may_conflict(one: GroupKeys, other: GroupKeys) -> bool:
    """Tell whether two groups change the same, or one what the other refers to."""
    return any(
        not set(mine.rows).isdisjoint(others.rows + others.references)
        or not set(mine.wholes).isdisjoint(others.wholes + others.parts)
        for mine, others in ((one, other), (other, one))
    )


def may_depend(earlier: Group, later: Group) -> bool:
    """Tell whether the source's clock leaves it open that a group depends on an earlier one."""
    return (
        earlier.end.file != later.end.file
        or later.last_committed == 0
        or not _has_time(earlier)
        or not _has_time(later)
        or earlier.sequence_number <= later.last_committed
    )


def _has_time(group: Group) -> bool:
    return group.sequence_number > group.last_committed


class Step(enum.Enum):
    """What can happen next; those of a worker come with its index."""

    READ = "the next item of the stream is taken in"
    TAKE = "a worker begins a batch"
    COMMIT = "the target commits the rest of a batch"
    COMMIT_FIRST = "the target commits one group of a batch: it is replayed group by group"
    LEARN = "the daemon learns that the commit succeeded, or of the failure"
    BEGIN_AHEAD = "a worker begins the batch after the one that commits"
    MAKE = "a worker makes what it sends after what it holds open"
    HOLD = "a worker applies a batch before it can commit, and holds it open"
    GIVE_WAY = "it rolls back what it holds"
    SEND_COMMIT = "it sends the COMMIT of what it holds"
    SEND = "a worker sends a packet, behind others or not"
    EXECUTE = "the server runs the next transaction of a packet"
    FAIL = "that one fails"
    REPLAY = "a group is applied by itself"
    OWE = "a definition is applied, and its place in the row is owed"
    SETTLE = "that is settled by itself"
    COMPUTE = "the low-water mark is computed"
    STORE = "the target commits the low-water mark"
    LEARN_STORED = "the daemon learns that it did"
    BY_HAND = "a person changes the distribution"


Choice = tuple[Step, int]
Answer = TypeVar("Answer")
_SIZE = attrgetter("size")


class SimulatedRun:
    """The daemon from its start to a stop or a crash; the crash is to forget the object."""

    def __init__(self, stream: Stream, target: SimulatedTarget, settings: RunSettings) -> None:
        self.stream = stream
        self.target = target
        self.settings = settings
        self.executed = target.recovered()
        target.write_recovery_row(self.executed, drop_others=settings.drop_others)
        mark = target.mark
        self._began_at = mark
        workers = 1 if settings.mode is Mode.SEQUENTIAL else settings.workers
        self._workers = workers
        self.policy, self.scheduler = self._new_scheduler()
        self._told: list[Callable[[Scheduler], object]] = []
        """All that the scheduler has been told, for `fork`."""
        self.rows = [blank_row(worker + 1, mark) for worker in range(workers)]
        self.running: list[tuple[Group, ...]] = [()] * workers
        """What each worker has begun and the target has not committed."""
        self.unlearned: list[tuple[Group, ...]] = [()] * workers
        """What the target has committed and the scheduler has not been told."""
        self.told = [False] * workers
        """Whether a worker has a reason to look for its next batch."""
        self.computed: LowWaterMark | None = None
        self.is_stored = False
        self.done_by_hand = 0
        self.bind = settings.bind
        self.bound_at: dict[int, Sequence[Sequence[str]]] = {}
        """By group that has been taken in: what was bound then."""
        self.next_item = stream.after(mark.position)
        self.unfinished: dict[int, Group] = {}
        self.begun = max(mark.number, self.executed.highest)
        """The highest group that this run or one before it has begun, as far as it is known."""
        self.stopping = False
        self.halted = False
        self._last_mark: tuple[int, Position] = (mark.number, mark.position)
        target.recovered()
        following = self._next_group()
        assert following is None or following.number == mark.number + 1, "numbers have shifted"
        self.check()

    def _new_scheduler(self) -> tuple[Policy, Scheduler]:
        """Return a scheduler as it is at the run's start, and its policy."""
        settings, workers = self.settings, self._workers
        policy: Policy
        if settings.mode is Mode.PLANNED:
            policy = PlannedPolicy(settings.plan)
        elif settings.mode is Mode.SEQUENTIAL:
            policy = choose_policy("", 0)
        else:
            policy = choose_policy(
                settings.mode.value,
                workers,
                settings.bind,
                in_order=settings.in_order,
                eventual=settings.eventual,
                deletes_in_turn=settings.deletes_in_turn,
            )
        if settings.homes_after and isinstance(policy, DatabasePolicy | TablePolicy):
            policy.placement.homes = Homes(workers, settings.homes_after)
        scheduler = Scheduler(
            policy,
            workers,
            settings.limits,
            self._began_at,
            self.executed,
            alone=settings.alone,
            fillers=as_filled(policy),
            in_order=settings.in_order,
        )
        return policy, scheduler

    def tell(self, what: Callable[[Scheduler], Answer]) -> Answer:
        """Do what changes the scheduler. It goes by nothing that the run changes later."""
        self._told.append(what)
        return what(self.scheduler)

    def _next_group(self) -> Group | None:
        for item in self.stream.items[self.next_item :]:
            if isinstance(item, Group):
                return item
        return None

    # Steps

    def can_read(self) -> bool:
        """Tell whether the next item of the stream can be taken in."""
        if self.next_item >= len(self.stream.items) or self.stopping or self.halted:
            return False
        item = self.stream.items[self.next_item]
        return not isinstance(item, Group) or self.scheduler.blocked(item.size) is None

    def read(self) -> None:
        """Take in the next item of the stream."""
        item = self.stream.items[self.next_item]
        self.next_item += 1
        if not isinstance(item, Group):
            reached = item
            self.tell(lambda scheduler: scheduler.reach(reached.end, reached.gtids))
        else:
            added = item
            before = item.number in self.target.applied
            assert before == self.scheduler.former.has(item.number)
            if item.kind is not GroupKind.EMPTY and not before:
                self.unfinished[item.number] = item
                self.bound_at[item.number] = self.bind
            woken = self.tell(lambda scheduler: scheduler.add(added))
            if woken is not None:
                self.told[woken] = True
        self.check()

    def can_take(self, worker: int) -> bool:
        """Tell whether a worker has a batch that it can begin."""
        queue = self.scheduler.workers[worker]
        head = queue.head
        if self.halted or head is None or not queue.can_begin:
            return False
        if self.scheduler.is_frozen(worker):
            return False
        return not self.stopping or head.number <= self.begun

    def take(self, worker: int) -> None:
        """Begin a batch."""
        able = self.can_take(worker)
        self.told[worker] = False
        was_running = bool(self.scheduler.workers[worker].running)
        statements = self.settings.statements
        batch = self.tell(lambda scheduler: scheduler.take(worker, statements=statements))
        assert bool(batch) == able
        if batch:
            assert not was_running
            self._check_beginning(batch)
            self.running[worker] = batch
            if self.stopping:
                assert batch[-1].number <= self.begun
            self.begun = max(self.begun, batch[-1].number)
        self.check()

    def can_commit(self, worker: int) -> bool:
        """Tell whether the target may commit something for a worker."""
        running = self.running[worker]
        return (
            bool(running)
            and not self.unlearned[worker]
            and self.scheduler.may_commit(running[0].number)
        )

    def commit(self, worker: int, count: int) -> None:
        """Let the target commit the next `count` groups of a worker's batch, with its row."""
        batch = self.running[worker]
        groups, self.running[worker] = batch[:count], batch[count:]
        self._check_commit(groups)
        self.rows[worker] = self.rows[worker].advanced(groups, self.scheduler.stored)
        self.target.commit(groups, self.rows[worker])
        self.unlearned[worker] = groups
        self.check()

    def learn(self, worker: int) -> None:
        """Tell the scheduler of the commit."""
        groups, self.unlearned[worker] = self.unlearned[worker], ()
        for group in groups:
            del self.unfinished[group.number]
        woken = self.tell(lambda scheduler: scheduler.commit(worker, groups))
        assert worker not in woken
        for other in woken:
            self.told[other] = True
        if not self.running[worker]:
            self.told[worker] = True
        self.check()

    def fail(self, worker: int) -> None:
        """Let the next group of a worker's batch fail for good: its rest is given up."""
        self.running[worker] = ()
        self.halted = True
        self.tell(Scheduler.halt)
        self.check()

    def can_compute(self) -> bool:
        """Tell whether there is a low-water mark to store and none is on its way."""
        return self.computed is None and self.scheduler.checkpoint() is not None

    def compute(self) -> None:
        """Compute a checkpoint."""
        mark = self.scheduler.checkpoint()
        assert mark is not None
        assert mark.gtids == self.stream.known_gtids(mark)
        self.computed = mark
        self.is_stored = False
        self.check()

    def store(self) -> None:
        """Let the target commit the checkpoint."""
        assert self.computed is not None
        self.target.store(self.computed)
        self.is_stored = True
        self.target.recovered()
        self.check()

    def learn_stored(self) -> None:
        """Tell the scheduler of the stored checkpoint."""
        mark = self.computed
        assert mark is not None
        self.tell(lambda scheduler: scheduler.checkpointed(mark))
        self.computed = None
        self.is_stored = False
        self.check()

    def stop(self) -> None:
        """Begin a graceful stop."""
        self.stopping = True
        self.tell(lambda scheduler: scheduler.stop(reading=False))
        self.told = [True] * len(self.told)
        self.check()

    @property
    def is_told(self) -> bool:
        """Whether the scheduler has been told of all that the target has committed."""
        return not any(self.unlearned) and not self.is_stored

    def do_by_hand(self) -> None:
        """Let a person do what comes next."""
        what = self.settings.by_hand[self.done_by_hand]
        self.done_by_hand += 1
        if isinstance(what, Freeze):
            frozen = what
            self.tell(lambda scheduler: scheduler.freeze(frozen.worker, frozen=frozen.frozen))
            self.told[what.worker] = True
        else:
            rules = what
            self.tell(lambda scheduler: scheduler.distribute(rules))
            self.bind = what.bind
        self.check()

    def fork(self) -> Self:
        """Return an independent copy: only its scheduler is made anew, and told the same."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.target = self.target.fork()
        copy.rows = self.rows.copy()
        copy.running = self.running.copy()
        copy.unlearned = self.unlearned.copy()
        copy.told = self.told.copy()
        copy.bound_at = self.bound_at.copy()
        copy.unfinished = self.unfinished.copy()
        copy._told = self._told.copy()
        copy.policy, copy.scheduler = self._new_scheduler()
        for what in self._told:
            what(copy.scheduler)
        return copy

    # Choosing

    def choices(self) -> list[Choice]:
        """Return every step that can come next."""
        result: list[Choice] = []
        if self.can_read():
            result.append((Step.READ, 0))
        for worker, running in enumerate(self.running):
            if self.can_take(worker):
                result.append((Step.TAKE, worker))
            if self.can_commit(worker):
                result.append((Step.COMMIT, worker))
                if len(running) > 1:
                    result.append((Step.COMMIT_FIRST, worker))
            if self.unlearned[worker]:
                result.append((Step.LEARN, worker))
        if self.can_compute():
            result.append((Step.COMPUTE, 0))
        if self.done_by_hand < len(self.settings.by_hand) and not self.stopping:
            result.append((Step.BY_HAND, 0))
        if self.computed is not None:
            result.append((Step.LEARN_STORED if self.is_stored else Step.STORE, 0))
        return result

    def step(self, choice: Choice) -> None:
        """Take one step."""
        step, worker = choice
        match step:
            case Step.READ:
                self.read()
            case Step.TAKE:
                self.take(worker)
            case Step.COMMIT:
                self.commit(worker, len(self.running[worker]))
            case Step.COMMIT_FIRST:
                self.commit(worker, 1)
            case Step.LEARN:
                self.learn(worker)
            case Step.COMPUTE:
                self.compute()
            case Step.STORE:
                self.store()
            case Step.LEARN_STORED:
                self.learn_stored()
            case Step.BY_HAND:
                self.do_by_hand()

    def walk(self, random: Random, adding: float, count: int) -> bool:
        """Take up to `count` steps at random, a share of them, `adding`, to add to the work.

        Returns whether more steps can come.
        """
        for _ in range(count):
            choices = self.choices()
            added = [choice for choice in choices if choice[0] in {Step.READ, Step.TAKE}]
            if added and random.random() < adding:
                choices = added
            if not choices:
                return False
            self.step(random.choice(choices))
        return True

    def finish(self, seed: int = 0) -> None:
        """Take steps until none is left, and check that everything has been done that had to be."""
        random = Random(seed)
        adding = random.random()
        while self.walk(random, adding, 100):
            pass
        if self.halted:
            return
        mark = self.target.mark
        if not self.stopping:
            assert self.next_item == len(self.stream.items), "blocked for ever"
            assert not self.unfinished
            assert mark.number == len(self.stream.groups)
        else:
            assert self.scheduler.stopped
            self._check_no_gap()
        assert mark == self.scheduler.gaq.mark()
        assert self.scheduler.stored == mark

    # What must be true

    def _check_beginning(self, batch: Sequence[Group]) -> None:
        self._check_batch(batch)
        for group in batch:
            self._check_turn(group, batch)
        alone = self.settings.alone.applies_to
        if any(map(alone, batch)):
            assert not any(self.running), "a group that runs alone has begun beside others"
        for others in self.running:
            assert not any(map(alone, others)), "begun beside one that is alone"

    def _check_batch(self, batch: Sequence[Group]) -> None:
        limits = self.settings.limits
        assert [group.number for group in batch] == sorted(group.number for group in batch)
        if len(batch) == 1:
            return
        assert len(batch) <= limits.batch_groups
        assert sum(group.size for group in batch) <= limits.batch_bytes
        assert not any(group.unsupported for group in batch)
        kinds = {group.kind for group in batch}
        if kinds <= {GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL}:
            assert len(batch) <= self.settings.statements
            return
        assert kinds == {GroupKind.ROWS}
        assert len({group.format_description for group in batch}) == 1

    def _check_turn(self, group: Group, together: Sequence[Group]) -> None:
        """Check that everything that has to precede a group is applied, or before it in its batch.

        This is both the order of commits and the closure of the executed set.
        """
        here = {other.number for other in together}
        for earlier in self.stream.groups[: group.number - 1]:
            if earlier.number in self.target.applied or earlier.number in here:
                continue
            bind = self.bound_at.get(group.number, ())
            assert not self.settings.must_precede(earlier, group, bind)

    def _check_commit(self, groups: Sequence[Group]) -> None:
        """Check that groups may commit together now."""
        for group in groups:
            self._check_turn(group, groups)
        if self.settings.in_order:
            passed = {*self.target.applied, *(group.number for group in groups)}
            for earlier in self.stream.groups[: groups[-1].number]:
                is_empty = earlier.kind is GroupKind.EMPTY
                assert is_empty or earlier.number in passed, "a state that never existed"

    def _check_no_gap(self) -> None:
        queue = self.scheduler.gaq
        taken_in = (number for number in self.target.applied if number <= queue.newest)
        assert max(taken_in, default=0) <= queue.number

    def check(self) -> None:
        """Check the invariants that hold in every state."""
        scheduler = self.scheduler
        queue = scheduler.gaq
        number, position = queue.number, queue.position
        applied, mark = self.target.applied, self.target.mark
        for passed in range(mark.number + 1, number + 1):
            is_empty = self.stream.groups[passed - 1].kind is GroupKind.EMPTY
            assert is_empty or passed in applied, "the low-water mark has passed a gap"
        assert self._last_mark[0] <= number
        if position is not self._last_mark[1]:
            assert self._last_mark[1] <= position
            assert self.stream.after(position) <= self.next_item
        self._last_mark = (number, position)
        stored = scheduler.stored
        assert stored.number <= mark.number <= number
        assert _are_in_order(stored.position, mark.position)
        assert _are_in_order(mark.position, position)

        pending = self.unfinished
        view = scheduler.view
        assert scheduler.pending_groups == len(pending)
        assert scheduler.pending_bytes == sum(map(_SIZE, pending.values()))
        assert scheduler.idle == (not pending)
        for worker, waits in enumerate(scheduler.workers):
            groups = list(waits.pending())
            assert waits.oldest == (groups[0].number if groups else None)
            assert view.groups[worker] == len(groups)
            assert view.sizes[worker] == sum(map(_SIZE, groups))
        assert view.mark == number
        oldest = min(pending, default=0)
        assert queue.oldest_commit_time == (pending[oldest].commit_time if oldest else None)
        all_learned = not any(self.unlearned)
        if all_learned:
            newest = queue.newest
            taken_in = [each for each in applied if number < each <= newest]
            assert queue.highest_done >= max(taken_in, default=number)

        is_any_able = False
        for worker, told in enumerate(self.told):
            if self.can_take(worker):
                assert told, "a worker that could begin was not woken"
                is_any_able = True
            else:
                assert scheduler.take(worker) == (), "begun where it has to wait"
        if self.halted:
            return
        if self.stopping:
            due = number < min(self.begun, queue.newest)
            assert scheduler.stopped == (not due)
            progress_due = due
        else:
            progress_due = bool(pending)
        if progress_due and not is_any_able and all_learned:
            workers = range(len(self.rows))
            is_frozen = any(map(scheduler.is_frozen, workers))
            assert is_frozen or any(map(self._proceeds, workers)), "deadlock"

    def _proceeds(self, worker: int) -> bool:
        """Tell whether a worker goes on with what it has begun, whatever the others do."""
        running = self.running[worker]
        return bool(running) and self.scheduler.may_commit(running[0].number)

    def key(self) -> tuple[object, ...]:
        """Return what tells two states apart for every step that may follow."""
        scheduler = self.scheduler
        policy = self.policy
        placed: object = None
        if isinstance(policy, DatabasePolicy | TablePolicy):
            placed = (
                _runs(policy.placement.distribution),
                *(
                    (name, entry.worker, entry.usage, entry.last)
                    for name, entry in sorted(policy.aph._entries.items())
                    if entry.usage
                ),
                tuple(policy.placement.succession._before.items()),
                tuple(policy.placement.homes.of.items()),
                tuple(policy.placement.homes._together.items()),
                tuple(policy._counted.items()),
            )
        elif isinstance(
            policy, LogicalClockPolicy | CommitParentPolicy | RowPolicy | EventualPolicy
        ):
            placed = _runs(policy.distribution)
        queues = tuple(
            (
                tuple(
                    (
                        group.number,
                        worker._unmet.get(group.number),
                        group.number in worker._marks,
                        group.number in worker._separate,
                    )
                    for group in worker._waiting
                ),
                tuple(group.number for group in worker.running),
            )
            for worker in scheduler.workers
        )
        return (
            self.target.key(),
            self.next_item,
            self.done_by_hand,
            tuple(self.bound_at.get(number) for number in self.unfinished),
            placed,
            max(scheduler._placement._newest_alone, scheduler.gaq.number),
            queues,
            tuple(len(groups) for groups in self.running),
            tuple(len(groups) for groups in self.unlearned),
            tuple(self.told),
            tuple((row.executed.base, row.executed.bits) for row in self.rows),
            scheduler.gaq.number,
            scheduler.gaq.position,
            scheduler.stored.number,
            scheduler.stored.position,
            self.computed and (self.computed.number, self.computed.position, self.is_stored),
            self.begun,
            self.stopping,
            self.halted,
        )


def _are_in_order(one: Position, other: Position) -> bool:
    """Tell that without a comparison, which takes its time, where they are the same."""
    return one is other or one <= other


def _runs(runs: FirstAvailable | None) -> object:
    if runs is None:
        return None
    return runs._worker, runs._groups, tuple(runs._starts), tuple(runs._owners)
