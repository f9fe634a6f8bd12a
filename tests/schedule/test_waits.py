"""What is waited for, and how long, by a clock that the tests hold."""

from dataclasses import replace

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.policies.assignment import Assignment
from mtsd.schedule.wait_cause import OF_READING, WaitCause
from mtsd.schedule.waits import DISPATCHER, Waits
from tests.schedule.timed_run import Run
from tests.schedule.worlds.planned_policy import PlannedPolicy
from tests.schedule.worlds.streams import Shape, group, group_of

NAMES = pytest.mark.parametrize("policy", ["database", "table"])


def timed(number: int, last_committed: int) -> Group:
    shape = Shape(("a",), clock=(last_committed, number))
    return group_of(shape, number, group(number).end)


def test_each_waiter_waits_for_one_cause_at_a_time() -> None:
    waits = Waits(2)
    assert waits.seconds(5.0) == dict.fromkeys(WaitCause, 0.0)
    waits.set(0, WaitCause.PARTITION, 5.0)
    waits.set(0, WaitCause.PARTITION, 6.0)
    waits.set(1, WaitCause.PARTITION, 7.0)
    waits.set(DISPATCHER, WaitCause.GAQ_FULL, 7.0)
    assert (waits.cause(0), waits.cause(DISPATCHER)) == (WaitCause.PARTITION, WaitCause.GAQ_FULL)
    waits.set(0, WaitCause.ALONE, 8.0)
    waits.set(DISPATCHER, None, 9.5)
    counted = {cause.value: seconds for cause, seconds in waits.seconds(10.0).items() if seconds}
    assert counted == {"gaq_full": 2.5, "partition": 3.0 + 3.0, "alone": 2.0}
    for waiter in (0, 1):
        waits.set(waiter, None, 10.0)
    assert waits.seconds(20.0) == waits.seconds(10.0)


@NAMES
def test_a_partition_that_another_worker_has(policy: str) -> None:
    run = Run(policy)
    run.add(group(1, "a"))
    run.add(group(2, "b"))
    assert (run.take(0), run.take(1)) == ([1], [2])
    # It goes to the worker that has the newest of its partitions, which is at work.
    run.add(group(3, "a", "b"))
    assert run.take(1) == []
    assert run.scheduler.waits_for(1) is None
    assert run.waited == {}
    run.commit(1)
    assert run.waited == {}
    assert run.take(1) == []
    assert run.scheduler.waits_for(1) is WaitCause.PARTITION
    run.clock.now += 10
    assert run.waited == {"partition": 10}
    run.commit(0)
    assert run.waited == {"partition": 11}
    # What passes until a worker notices is no wait for others.
    assert run.take(1) == [3]
    assert run.waited == {"partition": 11}
    assert run.scheduler.waits_for(1) is None


def test_the_wait_of_an_idle_worker_begins_when_the_group_is_added() -> None:
    run = Run("logical_clock")
    run.add(timed(1, 0))
    assert run.take(0) == [1]
    assert run.take(1) == []
    run.clock.now += 100
    run.add(timed(2, 0))
    # Behind the first one, in its queue.
    assert run.waited == {}
    run.scheduler.commit(0, run.scheduler.workers[0].running)
    assert run.take(0) == [2]
    for number in range(3, 140):
        run.add(timed(number, 2))
    assert run.scheduler.waits_for(1) is WaitCause.DEPENDENCY
    began = run.waited["dependency"]
    run.clock.now += 7
    assert run.waited["dependency"] == began + 7


@pytest.mark.parametrize("policy", ["database", "logical_clock"])
def test_alone(policy: str) -> None:
    run = Run(policy, 3)
    run.add(group_of(Shape(("a",), clock=(0, 1)), 1, group(1).end))
    assert run.take(0) == [1]
    run.add(group_of(Shape(("b",), clock=(0, 2), alone=True), 2, group(2).end))
    run.add(group_of(Shape(("c",), clock=(1, 3)), 3, group(3).end))
    assert WaitCause.ALONE in map(run.scheduler.waits_for, range(3))
    run.clock.now += 1
    assert run.waited.keys() == {"alone"}
    while run.scheduler.pending_groups:
        for worker in range(3):
            if run.take(worker):
                run.commit(worker)
        if run.scheduler.workers[0].running:
            run.commit(0)
    assert [run.scheduler.waits_for(worker) for worker in range(3)] == [None] * 3
    total = run.waited
    assert total.keys() == {"alone"}
    run.clock.now += 100
    assert run.waited == total


def test_a_completion_waits_for_its_prepare() -> None:
    policy = PlannedPolicy([Assignment(0), Assignment(1)])
    policy.by_names = True
    run = Run(policy)
    xid = XaXid(1, b"x", b"")
    run.add(replace(group(1, "a", kind=GroupKind.XA_PREPARE), xid=xid))
    assert run.take(0) == [1]
    run.add(replace(group(2, kind=GroupKind.XA_COMPLETE), xid=xid))
    assert run.scheduler.waits_for(1) is WaitCause.DEPENDENCY


def test_reading_waits() -> None:
    run = Run("database")
    run.scheduler.reading_waits(WaitCause.PENDING_BYTES)
    run.clock.now += 3
    assert run.scheduler.reading_waits_for is WaitCause.PENDING_BYTES
    run.scheduler.reading_waits(WaitCause.GAQ_FULL)
    run.clock.now += 2
    run.scheduler.reading_waits(None)
    run.clock.now += 2
    assert run.waited == {"pending_bytes": 3, "gaq_full": 2}
    assert run.waited.keys() <= OF_READING


@pytest.mark.parametrize("how", ["stop", "halt"])
def test_what_will_not_begin_any_more_waits_for_nothing(how: str) -> None:
    run = Run("database")
    run.add(group(1, "a"))
    run.add(group(2, "b"))
    run.add(group(3, "a", "b"))
    assert run.take(0) == [1]
    assert run.take(1) == [2]
    run.commit(1)
    run.take(1)
    assert run.scheduler.waits_for(1) is WaitCause.PARTITION
    if how == "stop":
        run.scheduler.stop(reading=False)
    else:
        run.scheduler.halt()
    waited = run.waited
    run.clock.now += 5
    assert run.scheduler.waits_for(1) is None
    assert run.waited == waited


@NAMES
def test_what_begins_at_its_turn_only(policy: str) -> None:
    run = Run(policy, in_order=True)
    run.add(group(1, "a"))
    assert run.take(0) == [1]
    run.add(group(2, "b", kind=GroupKind.STATEMENTS))
    assert run.take(1) == []
    assert run.scheduler.waits_for(1) is WaitCause.COMMIT_ORDER
    run.clock.now += 1
    assert run.waited.keys() == {"commit_order"}
    run.commit(0)
    assert run.take(1) == [2]


def test_a_worker_waits_for_its_turn_to_commit() -> None:
    run = Run("database")
    run.add(group(1, "a"))
    run.add(group(2, "b"))
    assert (run.take(0), run.take(1)) == ([1], [2])
    run.scheduler.awaits_turn(1, waits=True)
    assert run.scheduler.waits_for(1) is WaitCause.COMMIT_ORDER
    run.commit(0)
    run.scheduler.awaits_turn(1, waits=False)
    assert run.scheduler.waits_for(1) is None
    run.commit(1)
    assert run.waited == {"commit_order": 1}
