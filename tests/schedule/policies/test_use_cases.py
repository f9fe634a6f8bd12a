"""Use cases U.A.1, U.A.2 and U.B of WL#5569, and what else the database policy promises."""

from dataclasses import replace

import pytest

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group, GroupKind
from mtsd.model.position import Position
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.assignment import Assignment
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.policies.foreign_key_families import NO_FOREIGN_KEYS, ForeignKeys
from mtsd.schedule.policies.schedule_view import ScheduleView
from mtsd.schedule.policies.sequential_policy import SequentialPolicy
from mtsd.schedule.scheduler import Scheduler
from mtsd.schedule.wait_cause import WaitCause
from tests.binlog.building import query
from tests.binlog.transactions import grouped
from tests.schedule.worlds.streams import START_MARK, group

VIEW = ScheduleView([0] * 3, [0] * 3, GroupAssignedQueue(START_MARK), 100, [False] * 3)
ONE_BY_ONE = Limits(
    checkpoint_group=100, pending_jobs_size_max=100_000, batch_groups=1, batch_bytes=100_000
)


class Driven:
    """A scheduler whose workers take what they can, in lockstep."""

    def __init__(self, workers: int, limits: Limits = ONE_BY_ONE) -> None:
        self.policy = DatabasePolicy(workers)
        self.scheduler = Scheduler(self.policy, workers, limits, START_MARK, ExecutedGroups(1))
        self.workers = range(workers)
        self.running: dict[int, tuple[Group, ...]] = {}

    def add(self, *groups: Group) -> None:
        for each in groups:
            self.scheduler.add(each)

    def begin(self) -> set[int]:
        """Let every idle worker begin what it can; return the numbers of all that is running."""
        for worker in self.workers:
            if worker not in self.running and (batch := self.scheduler.take(worker)):
                self.running[worker] = batch
        return {each.number for batch in self.running.values() for each in batch}

    def commit(self, number: int) -> None:
        """Let the batch commit that holds this group."""
        for worker, batch in list(self.running.items()):
            if number in {each.number for each in batch}:
                del self.running[worker]
                self.scheduler.commit(worker, batch)
                return
        raise AssertionError(f"group {number} is not running")


def has_stopped(scheduler: Scheduler) -> bool:
    """Ask anew: mypy takes a property that was tested for settled."""
    return scheduler.stopped


# U.A.1: a transaction spawning to multiple databases


def test_a_group_of_two_databases_joins_both_and_parallel_mode_resumes() -> None:
    driven = Driven(3)
    other, t1, t2, t3 = group(1, "db2"), group(2, "db1"), group(3, "db1"), group(4, "db1", "db2")
    driven.add(other, t1, t2, t3, group(5, "db3"), group(6, "db1"), group(7, "db2"))

    # db1 and db2 run side by side, db3 is not concerned.
    assert driven.begin() == {1, 2, 5}
    driven.commit(5)
    driven.commit(2)
    assert driven.begin() == {1, 3}
    driven.commit(3)
    # T3 waits for db2's worker, and nothing of its databases overtakes it.
    assert driven.begin() == {1}
    driven.commit(1)
    assert driven.begin() == {4}
    driven.commit(4)
    # The parallel mode has resumed.
    assert driven.begin() == {6, 7}


def test_parallel_mode_resumes_under_a_backlog_that_never_ends() -> None:
    names = [f"db{n}" for n in range(8)]
    driven = Driven(4)
    number = 0

    def add_to_backlog(*databases: str) -> None:
        nonlocal number
        number += 1
        driven.add(group(number, *databases))

    for turn in range(40):
        add_to_backlog(names[turn % 8])
    add_to_backlog(*names)
    for turn in range(20):
        add_to_backlog(names[turn % 8])
    done = 0
    most_running = 0
    while done < 150:
        running = driven.begin()
        if min(running) > 41 + 16:
            most_running = max(most_running, len(running))
        for each in running:
            driven.commit(each)
            done += 1
            add_to_backlog(names[number % 8])
    assert most_running == 4


def test_only_the_queue_of_the_crossing_group_waits() -> None:
    driven = Driven(3)
    driven.add(group(1, "a"), group(2, "b"), group(3, "c"), group(4, "a", "b"), group(5, "c"))
    assert driven.begin() == {1, 2, 3}
    driven.commit(3)
    assert driven.begin() == {1, 2, 5}
    driven.commit(2)
    driven.commit(5)
    assert driven.begin() == {1}
    driven.commit(1)
    assert driven.begin() == {4}


# U.A.2: a query crossing databases; over the maximum it runs alone


def test_a_query_that_crosses_databases_within_the_maximum() -> None:
    driven = Driven(2)
    crossing = group(3, "a", "b", kind=GroupKind.STATEMENTS)
    driven.add(group(1, "a"), group(2, "b"), crossing, group(4, "a"), group(5, "b"))
    assert driven.begin() == {1, 2}
    driven.commit(1)
    assert driven.begin() == {2}
    driven.commit(2)
    assert driven.begin() == {3}
    driven.commit(3)
    assert driven.begin() == {4, 5}


def test_a_query_over_the_maximum_runs_alone() -> None:
    driven = Driven(3)
    over_max = group(4, alone=True, kind=GroupKind.STATEMENTS)
    driven.add(group(1, "a"), group(2, "b"), group(3, "a"), over_max, group(5, "c"), group(6, "b"))
    assert driven.begin() == {1, 2}
    driven.commit(1)
    assert driven.begin() == {2, 3}
    driven.commit(2)
    # What comes after it does not begin before it, on an idle worker either.
    assert driven.begin() == {3}
    driven.commit(3)
    assert driven.begin() == {4}
    driven.commit(4)
    assert driven.begin() == {5, 6}


def test_two_that_run_alone_follow_each_other() -> None:
    driven = Driven(4)
    driven.add(
        group(1, "a"), group(2, alone=True), group(3, "b"), group(4, alone=True), group(5, "c")
    )
    order: list[int] = []
    while running := driven.begin():
        assert len(running) == 1
        order += running
        driven.commit(*running)
    assert order == [1, 2, 3, 4, 5]


# U.B: what only the coordinator executes moves the mark and stops nobody


def test_rotation_behind_unfinished_groups_counts_when_it_is_reached() -> None:
    driven = Driven(2)
    scheduler = driven.scheduler
    driven.add(group(1, "a"), group(2, "b"))
    rotated = Position("binlog.000002", 4)
    scheduler.reach(rotated, None)
    driven.add(group(3, "a"))
    assert driven.begin() == {1, 2}
    driven.commit(2)
    assert scheduler.checkpoint() is None
    driven.commit(1)
    assert scheduler.gaq.mark().position == rotated
    assert scheduler.gaq.mark().number == 2


def test_rotation_of_an_idle_source_counts_at_once() -> None:
    driven = Driven(2)
    rotated = Position("binlog.000002", 4)
    driven.scheduler.reach(rotated, None)
    mark = driven.scheduler.checkpoint()
    assert mark is not None
    assert (mark.number, mark.position) == (0, rotated)
    driven.scheduler.checkpointed(mark)
    assert driven.scheduler.checkpoint() is None


# The assignments themselves


def test_a_partition_goes_to_its_owner_and_a_new_one_to_the_least_occupied() -> None:
    policy = DatabasePolicy(2)
    assert policy.assign(group(1, "a"), VIEW) == Assignment(0)
    assert policy.assign(group(2, "b"), VIEW) == Assignment(1)
    assert policy.assign(group(3, "a"), VIEW) == Assignment(0)
    policy.finished([group(2, "b")])
    assert policy.assign(group(4, "c"), VIEW) == Assignment(1)


def test_a_crossing_group_names_what_it_waits_for() -> None:
    policy = DatabasePolicy(3)
    for number, name in enumerate("abc", 1):
        policy.assign(group(number, name), VIEW)
    assert policy.assign(group(4, "a", "b", "c"), VIEW) == Assignment(2, frozenset({1, 2}))


def test_a_group_that_runs_alone_waits_for_everything_and_all_later_ones_for_it() -> None:
    driven = Driven(3)
    driven.add(*(group(number, name) for number, name in enumerate("abca", 1)))
    driven.add(group(5, "b", alone=True), group(6, "c"), group(7, "b"))
    assert driven.begin() == {1, 2, 3}
    driven.commit(2)
    driven.commit(3)
    assert driven.begin() == {1}
    driven.commit(1)
    assert driven.begin() == {4}
    driven.commit(4)
    assert driven.begin() == {5}
    driven.commit(5)
    assert driven.begin() == {6, 7}


def test_bound_databases_are_one_partition() -> None:
    policy = DatabasePolicy(3, [["a", "b"], ["c", "d"]])
    assert policy.assign(group(1, "a"), VIEW) == Assignment(0)
    assert policy.assign(group(2, "c"), VIEW) == Assignment(1)
    assert policy.assign(group(3, "b"), VIEW) == Assignment(0)
    assert policy.assign(group(4, "d", "c"), VIEW) == Assignment(1)
    assert policy.aph.usage() == {"a+b": (0, 2), "c+d": (1, 2)}
    for each in (group(1, "a"), group(3, "b"), group(2, "c"), group(4, "d", "c")):
        policy.finished([each])
    assert policy.aph.usage() == {}


JOINED = ForeignKeys(databases=(frozenset("ab"), frozenset("bc")))
REFERS = "ALTER TABLE b.t ADD FOREIGN KEY (i) REFERENCES a.t (i)"


def definition(number: int, text: str, *databases: str) -> Group:
    (read,) = grouped(query(text.encode(), database=databases[0].encode()))
    assert isinstance(read, Group)
    return replace(group(number, *databases, kind=GroupKind.DDL), steps=read.steps)


def test_databases_that_foreign_keys_join_are_one_partition() -> None:
    policy = DatabasePolicy(3, foreign_keys=JOINED)
    assert policy.assign(group(1, "a"), VIEW) == Assignment(0)
    assert policy.assign(group(2, "d"), VIEW) == Assignment(1)
    assert policy.assign(group(3, "c"), VIEW) == Assignment(0)
    assert policy.aph.usage() == {"a+b+c": (0, 2), "d": (1, 1)}
    policy.finished([group(1, "a"), group(3, "c")])
    policy.finished([group(2, "d")])
    assert policy.aph.usage() == {}


def test_bound_databases_with_those_that_foreign_keys_join_to_them() -> None:
    policy = DatabasePolicy(3, [["x", "c"]], JOINED)
    policy.assign(group(1, "a"), VIEW)
    policy.assign(group(2, "x"), VIEW)
    assert policy.aph.usage() == {"a+b+c+x": (0, 2)}
    policy.distribute(Distribution(bind=(("x", "y"),), weigh=(("x", 5),)), ())
    policy.assign(group(3, "b"), VIEW)
    policy.assign(group(4, "y"), VIEW)
    assert set(policy.aph.usage()) == {"a+b+c+x", "a+b+c", "x+y"}


@pytest.mark.parametrize("text", [REFERS, "RENAME TABLE b.t TO a.t"])
def test_a_definition_joins_its_databases(text: str) -> None:
    policy = DatabasePolicy(3, foreign_keys=NO_FOREIGN_KEYS)
    assert policy.assign(group(1, "a"), VIEW) == Assignment(0)
    assert policy.assign(group(2, "b"), VIEW) == Assignment(1)
    joining = definition(3, text, "b", "a")
    assert policy.assign(joining, VIEW) == Assignment(1, frozenset({1}))
    assert policy.assign(group(4, "a"), VIEW) == Assignment(2, frozenset({1, 2, 3}))
    assert policy.aph.usage() == {"a": (0, 1), "b": (1, 1), "a+b": (2, 2)}
    policy.finished([group(1, "a"), group(2, "b"), joining, group(4, "a")])
    assert policy.aph.usage() == {}


def test_without_foreign_keys_definitions_join_nothing() -> None:
    """The source tells itself which of its tables others refer to."""
    policy = DatabasePolicy(3)
    policy.assign(definition(1, REFERS, "b", "a"), VIEW)
    assert set(policy.aph.usage()) == {"a", "b"}


def test_the_sequential_policy_knows_one_worker() -> None:
    policy = SequentialPolicy()
    for number, name in enumerate("aab", 1):
        assert policy.assign(group(number, name), VIEW) == Assignment(0)
        policy.finished([group(number, name)])


# Room


def test_at_rest_empty_groups_are_no_reason_to_store_the_mark() -> None:
    """What a checkpoint changes is such a group for the other server of a circle."""
    driven = Driven(2)
    scheduler = driven.scheduler

    def store() -> int:
        mark = scheduler.checkpoint(rests=True)
        if mark is not None:
            scheduler.checkpointed(mark)
        return scheduler.stored.number

    driven.add(group(1, "a"), group(2, kind=GroupKind.EMPTY))
    driven.begin()
    driven.commit(1)
    assert store() == 2
    driven.add(group(3, kind=GroupKind.EMPTY))
    assert store() == 2
    assert scheduler.checkpoint() is not None
    # Never in a file that may be purged.
    scheduler.reach(Position("binlog.000002", 4), None)
    assert store() == 3
    scheduler.reach(Position("binlog.000002", 157), None)
    assert scheduler.checkpoint(rests=True) is None
    driven.add(group(4, "a"), group(5, kind=GroupKind.EMPTY))
    driven.begin()
    assert store() == 3
    driven.commit(4)
    assert store() == 5
    most = ONE_BY_ONE.checkpoint_group // 4
    driven.add(*(group(6 + each, kind=GroupKind.EMPTY) for each in range(most)))
    assert store() == 5 + most


def test_a_full_group_assigned_queue_waits_for_the_stored_mark() -> None:
    limits = Limits(
        checkpoint_group=2, pending_jobs_size_max=1000, batch_groups=1, batch_bytes=1000
    )
    driven = Driven(2, limits)
    scheduler = driven.scheduler
    driven.add(group(1, "a"), group(2, "b"))
    assert scheduler.blocked(1) is WaitCause.GAQ_FULL
    driven.begin()
    driven.commit(1)
    assert scheduler.checkpoint_is_urgent()
    assert scheduler.blocked(1) is WaitCause.GAQ_FULL
    mark = scheduler.checkpoint()
    assert mark is not None
    scheduler.checkpointed(mark)
    assert scheduler.blocked(1) is None
    assert not scheduler.checkpoint_is_urgent()


def test_a_larger_group_than_may_be_pending_comes_in_when_nothing_is() -> None:
    limits = Limits(checkpoint_group=9, pending_jobs_size_max=250, batch_groups=9, batch_bytes=9)
    driven = Driven(2, limits)
    scheduler = driven.scheduler
    driven.add(group(1, "a", size=200))
    assert scheduler.blocked(50) is None
    assert scheduler.blocked(51) is WaitCause.PENDING_BYTES
    assert scheduler.blocked(1000) is WaitCause.PENDING_BYTES
    driven.begin()
    driven.commit(1)
    assert scheduler.blocked(1000) is None
    driven.add(group(2, "b", size=1000))
    assert scheduler.blocked(1) is WaitCause.PENDING_BYTES


# Stop


def test_a_stop_finishes_up_to_the_highest_that_has_begun() -> None:
    driven = Driven(2)
    scheduler = driven.scheduler
    driven.add(
        group(1, "a"), group(2, "a"), group(3, "b"), group(4, "a"), group(5, "b"), group(6, "b")
    )
    assert driven.begin() == {1, 3}
    driven.commit(3)
    assert driven.begin() == {1, 5}
    scheduler.stop(reading=False)
    assert not has_stopped(scheduler)
    driven.commit(5)
    assert driven.begin() == {1}
    driven.commit(1)
    assert driven.begin() == {2}
    driven.commit(2)
    assert not has_stopped(scheduler)
    assert driven.begin() == {4}
    driven.commit(4)
    assert has_stopped(scheduler)
    assert driven.begin() == set()
    assert scheduler.gaq.number == scheduler.gaq.highest_done == 5


def test_a_stop_with_nothing_begun_is_over_at_once() -> None:
    driven = Driven(2)
    driven.add(group(1, "a"))
    driven.scheduler.stop(reading=False)
    assert driven.scheduler.stopped
    assert driven.begin() == set()


def test_a_stop_closes_the_gap_that_a_former_run_has_left() -> None:
    executed = ExecutedGroups(1).with_numbers([2])
    scheduler = Scheduler(DatabasePolicy(2), 2, ONE_BY_ONE, START_MARK, executed)
    first = group(1, "a")
    scheduler.add(first)
    scheduler.add(group(2, "b"))
    scheduler.add(group(3, "a"))
    assert scheduler.skipped == 1
    scheduler.stop(reading=False)
    assert not has_stopped(scheduler)
    assert scheduler.take(0) == (first,)
    scheduler.commit(0, [first])
    assert has_stopped(scheduler)
    assert scheduler.gaq.number == 2


def has_more_to_read(scheduler: Scheduler) -> bool:
    return scheduler.reads_on


def test_a_stop_reads_on_through_a_gap_that_is_not_read_yet() -> None:
    executed = ExecutedGroups(1).with_numbers([2, 4])
    scheduler = Scheduler(DatabasePolicy(2), 2, ONE_BY_ONE, START_MARK, executed)
    first, third = group(1, "a"), group(3, "a")
    scheduler.add(first)
    scheduler.stop(reading=True)
    assert has_more_to_read(scheduler)
    scheduler.add(group(2, "b"))
    scheduler.add(third)
    scheduler.add(group(4, "b"))
    assert not has_more_to_read(scheduler)
    for due in (first, third):
        assert not has_stopped(scheduler)
        assert scheduler.take(0) == (due,)
        scheduler.commit(0, [due])
    assert has_stopped(scheduler)
    assert scheduler.gaq.number == 4


def test_a_stop_without_the_source_leaves_what_it_cannot_read() -> None:
    executed = ExecutedGroups(1).with_numbers([4])
    scheduler = Scheduler(DatabasePolicy(2), 2, ONE_BY_ONE, START_MARK, executed)
    scheduler.stop(reading=False)
    assert not scheduler.reads_on
    assert scheduler.stopped


def test_nothing_begins_after_a_failure() -> None:
    driven = Driven(2)
    driven.add(group(1, "a"), group(2, "b"), group(3, "b"))
    assert driven.begin() == {1, 2}
    driven.scheduler.halt()
    driven.commit(2)
    assert driven.begin() == {1}
    assert driven.scheduler.gaq.number == 0
    assert driven.scheduler.gaq.highest_done == 2


# Streamed groups


def test_a_streamed_group_enters_as_committed() -> None:
    driven = Driven(2)
    driven.add(group(1, "a"))
    driven.begin()
    driven.commit(1)
    assert driven.scheduler.idle
    driven.scheduler.add_committed(group(2, "a", size=10**9))
    driven.add(group(3, "a"))
    assert driven.scheduler.gaq.number == 2
    driven.scheduler.stop(reading=False)
    assert driven.scheduler.stopped


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_number_of_workers_ends(workers: int) -> None:
    driven = Driven(workers)
    names = ("a", "b", "c")
    for number in range(1, 31):
        driven.add(group(number, names[number % 3], names[number % 2], alone=number % 7 == 0))
    while running := driven.begin():
        driven.commit(min(running))
    assert driven.scheduler.gaq.number == 30
