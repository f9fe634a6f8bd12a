"""XA transactions under each policy: distributed round robin, with the outcome of one by one."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from mtsd.model.build import COMPILED
from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.parallel_type import BY_THE_SOURCE
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.prepared_transactions import Prepared, PreparedTransactions
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.choice import POLICIES, choose_policy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import DELETES, START_MARK, group
from tests.schedule.worlds.xa_streams import (
    COMMITS,
    COMPLETE,
    PREPARE,
    ROLLS_BACK,
    XaSource,
    XaTarget,
    outcome,
    xa_sources,
)

LIMITS: Final = replace(ROOMY, batch_groups=4)
ONE_BY_ONE: Final = replace(ROOMY, batch_groups=1)
"""Nothing is combined, as in a server."""
LONG: Final = pytest.mark.long


def xa(number: int, name: int, kind: GroupKind, *, commits: bool = True) -> Group:
    """Make a group of which the source's clock says that it depends on nothing in the stream."""
    xid = XaXid(1, b"%d" % name, b"")
    plain = group(number, "a", kind=kind)
    steps = (DELETES,) if kind is PREPARE else (COMMITS if commits else ROLLS_BACK,)
    return replace(plain, steps=steps, xid=xid, last_committed=100, sequence_number=100 + number)


def with_databases(plain: Group) -> Group:
    """Fill in the keys of a group of which only the databases are known."""
    if plain.keys != NO_KEYS:
        return plain
    return replace(plain, keys=GroupKeys(wholes=tuple(map(hash, plain.databases))))


class Run:
    """A schedule whose workers begin and commit in any order; a crash is to forget it."""

    def __init__(
        self,
        policy: str,
        workers: int,
        mark: LowWaterMark = START_MARK,
        executed: ExecutedGroups | None = None,
        left: PreparedTransactions | None = None,
        *,
        limits: Limits = LIMITS,
        in_order: bool = False,
    ) -> None:
        chosen = choose_policy(policy, workers, in_order=in_order)
        self.scheduler = Scheduler(
            chosen,
            max(workers, 1),
            limits,
            mark,
            executed or ExecutedGroups(mark.number + 1),
            fillers=dict.fromkeys(chosen.needs, with_databases),
            prepared=left,
            in_order=in_order,
        )

    def queues(self) -> list[list[int]]:
        """Return the numbers of the unfinished groups of each worker."""
        return [[each.number for each in queue.pending()] for queue in self.scheduler.workers]

    def commit(self, worker: int) -> set[int]:
        """Commit what a worker has begun; return who else can begin something now."""
        return self.scheduler.commit(worker, self.scheduler.workers[worker].running)


@pytest.mark.parametrize("policy", sorted(BY_THE_SOURCE))
def test_the_worked_example(policy: str) -> None:
    """MDEV-31949: with four workers, T8 may be at its worker's turn while T1 has not begun."""
    run = Run(policy, 4, limits=ONE_BY_ONE)
    for number in range(1, 8):
        run.scheduler.add(xa(number, number, PREPARE))
    run.scheduler.add(xa(8, 1, COMPLETE))
    assert run.queues() == [[1, 5], [2, 6], [3, 7], [4, 8]]
    for worker in (1, 2, 3):
        assert run.scheduler.take(worker)[0].number == worker + 1
        assert run.commit(worker) == set()
    # Worker 4 has come to T8, and T1 is still at its very beginning.
    assert run.scheduler.take(3) == ()
    (first,) = run.scheduler.take(0)
    assert (first.number, run.scheduler.take(3)) == (1, ())
    assert run.commit(0) == {3}
    assert [each.number for each in run.scheduler.take(3)] == [8]


def test_groups_that_are_recorded_together() -> None:
    run = Run("database", 1)
    kinds = (PREPARE, PREPARE, COMPLETE, PREPARE, COMPLETE, COMPLETE)
    for number, (name, kind) in enumerate(zip((1, 2, 1, 3, 2, 3), kinds, strict=True), 1):
        run.scheduler.add(xa(number, name, kind, commits=False))
    taken = []
    while batch := run.scheduler.take(0):
        taken.append([each.number for each in batch])
        run.commit(0)
    # Never two of one xid, and no more than may be combined.
    assert taken == [[1, 2], [3, 4, 5], [6]]


def test_what_runs_alone_is_recorded_alone() -> None:
    run = Run("database", 1)
    for number in range(1, 4):
        run.scheduler.add(replace(xa(number, number, PREPARE), alone=number == 2))
    for number in range(1, 4):
        assert [each.number for each in run.scheduler.take(0)] == [number]
        run.commit(0)


def test_an_xid_used_again_waits_for_the_one_before() -> None:
    run = Run("logical_clock", 4)
    for number, kind in enumerate((PREPARE, COMPLETE, PREPARE, COMPLETE), 1):
        run.scheduler.add(xa(number, 1, kind, commits=False))
    assert run.queues() == [[1], [2], [3], [4]]
    for worker in range(4):
        assert [len(run.scheduler.take(each)) for each in range(4)] == [
            int(each == worker) for each in range(4)
        ]
        assert run.commit(worker) == ({worker + 1} if worker < 3 else set())


@pytest.mark.parametrize("policy", sorted(BY_THE_SOURCE))
@pytest.mark.parametrize("workers", [1, 2, 4, 16])
def test_round_robin_goes_on_over_other_groups(policy: str, workers: int) -> None:
    run = Run(policy, workers, limits=ONE_BY_ONE)
    turns = []
    for number in range(1, 101):
        if number % 3:
            run.scheduler.add(xa(number, number, PREPARE))
            turns.append(next(at for at, queue in enumerate(run.queues()) if number in queue))
        else:
            run.scheduler.add(replace(group(number, "a"), last_committed=0, sequence_number=0))
    assert turns == [at % workers for at in range(len(turns))]


def test_where_partitions_decide_a_group_goes_to_its_partition() -> None:
    """Round robin would have it wait at another worker for what is before it anyway."""
    run = Run("database", 4)
    for number in range(1, 9):
        run.scheduler.add(replace(xa(number, number, PREPARE), databases=("ab"[number % 2],)))
    assert run.queues() == [[1, 3, 5, 7], [2, 4, 6, 8], [], []]


@pytest.mark.parametrize("workers", [2, 4, 16])
def test_two_rounds_are_enough_where_the_order_of_commits_is_kept(workers: int) -> None:
    """What a queue's head waits for is then less than 2 x workers before it; else anywhere."""
    chance = Random(workers)
    for ordered in (True, False):
        run = Run("logical_clock", workers, limits=ONE_BY_ONE)
        farthest = 0
        newest: dict[int, int] = {}
        for number in range(1, 600):
            name = chance.randrange(3 * workers)
            run.scheduler.add(xa(number, name, COMPLETE if name in newest else PREPARE))
            if newest.pop(name, None) is None:
                newest[name] = number
        while not run.scheduler.idle:
            for worker in range(workers):
                run.scheduler.take(worker)
            for waiting in run.scheduler._waiters._by_group.items():
                for worker, waiter in waiting[1]:
                    head = run.scheduler.workers[worker].head
                    if head is not None and head.number == waiter:
                        farthest = max(farthest, waiter - waiting[0])
            running = [
                (queue.running[0].number, worker)
                for worker, queue in enumerate(run.scheduler.workers)
                if queue.running
            ]
            run.commit((min(running) if ordered else chance.choice(running[-2:]))[1])
        assert farthest < 2 * workers if ordered else farthest >= 2 * workers


def test_a_completion_waits_for_its_prepare_whatever_the_clock_says() -> None:
    stream = [xa(1, 1, PREPARE), xa(2, 2, PREPARE), xa(3, 1, COMPLETE, commits=False)]
    for policy in POLICIES:
        run = Run(policy, 4)
        for each in stream:
            run.scheduler.add(each)
        began = [each.number for worker in range(4) for each in run.scheduler.take(worker)]
        assert 3 not in began, policy


def crash_and_go_on(
    source: XaSource,
    policies: Sequence[str],
    chance: Random,
    crashes: int,
    *,
    in_order: bool = False,
) -> XaTarget:
    """Apply a whole stream, in several lives of the daemon; each may have another policy.

    A worker that was not woken may look for its next batch all the same, but must find none: so
    no wake-up is lost, and one too many does no harm.
    """
    target = XaTarget()
    applied: dict[int, Group] = {}
    mark = START_MARK
    left: dict[XaXid, Prepared] = {}
    for life in range(crashes + 1):
        executed = ExecutedGroups(mark.number + 1).with_numbers(
            sorted(number for number in applied if number > mark.number)
        )
        remembered = left.items() if chance.random() < 0.5 else ()
        workers = chance.choice((0, 1, 2, 4, 4, 16))
        run = Run(
            chance.choice(policies),
            workers,
            mark,
            executed,
            PreparedTransactions(remembered),
            in_order=in_order,
        )
        scheduler = run.scheduler
        told: set[int | None] = set()
        waiting = iter(source.groups[mark.number :])
        ends = chance.randrange(2 * len(source.groups)) if life < crashes else -1
        eager = chance.choice((0.3, 0.9, 1.0))
        following = next(waiting, None)
        while ends and not (following is None and scheduler.idle):
            ends -= 1
            if following is not None and chance.random() < eager:
                told.add(scheduler.add(following))
                following = next(waiting, None)
                continue
            for worker in range(max(workers, 1)):
                if chance.random() < 0.8:
                    look(scheduler, worker, told)
            running = [
                at
                for at, queue in enumerate(scheduler.workers)
                if queue.running and scheduler.may_commit(queue.running[0].number)
            ]
            if running:
                worker = chance.choice(running)
                for each in scheduler.workers[worker].running:
                    assert each.number not in applied
                    target.apply(each, source.effects[each.number - 1])
                    applied[each.number] = each
                    record(left, source.groups[each.number - 1])
                told |= run.commit(worker)
                told.add(worker)
            elif following is None:
                for worker in range(max(workers, 1)):
                    look(scheduler, worker, told)
                assert any(
                    queue.running and scheduler.may_commit(queue.running[0].number)
                    for queue in scheduler.workers
                ), "deadlock"
        number = chance.randint(mark.number, scheduler.gaq.number)
        if number > mark.number:
            mark = LowWaterMark(number, source.groups[number - 1].end, None)
    assert len(applied) == len(source.groups)
    return target


def look(scheduler: Scheduler, worker: int, told: set[int | None]) -> None:
    """Let a worker look for its next batch, whether it was woken or not."""
    if scheduler.take(worker):
        assert worker in told, "a worker that could begin was not woken"
    told.discard(worker)


def record(left: dict[XaXid, Prepared], group: Group) -> None:
    """Keep what the target's tables tell the next start of what is prepared."""
    if group.xid is None:
        return
    if group.kind is PREPARE:
        left[group.xid] = Prepared(group.databases, group.alone)
    else:
        left.pop(group.xid, None)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "seeds",
    [
        range(25 if COMPILED else 5),
        # What a group waits for is a prepare that all other groups of its queue have passed.
        range(192, 193),
        pytest.param(range(25, 3000), marks=LONG),
    ],
    ids=["some", "a passed prepare", "many"],
)
@pytest.mark.parametrize("in_order", [False, True], ids=["partition", "any_time"])
def test_the_outcome_is_that_of_one_by_one(policy: str, seeds: range, *, in_order: bool) -> None:
    for source in xa_sources(seeds, 60):
        expected = outcome(source.groups, source.effects)
        for again in range(3):
            chance = Random(again)
            found = crash_and_go_on(source, [policy], chance, 3 * again, in_order=in_order)
            assert found == expected


@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 3000), marks=LONG)])
def test_the_outcome_under_another_policy_after_each_crash(seeds: range) -> None:
    for source in xa_sources(seeds, 60):
        expected = outcome(source.groups, source.effects)
        chance = Random(source.groups[-1].number)
        assert crash_and_go_on(source, list(POLICIES), chance, 4) == expected
