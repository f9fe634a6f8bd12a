"""The example of WL#5569's high-level specification: three workers, five groups, one queue.

The seed numbers its groups from 0 and its workers from 1; here group 0 of the seed is group 1, and
the seed's W#2, W#1, W#3 are the workers 0, 1, 2, in which order the policy engages them.
"""

import pytest

from mtsd.model.group import Group
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.streams import SOURCE_UUID, START, group

W2, W1, W3 = 0, 1, 2

GROUPS = [
    group(1, "orders"),
    group(2, "stock"),
    group(3, "stock"),
    group(4, "orders"),
    group(5, "users"),
]


def scheduler_with(batch_groups: int) -> tuple[Scheduler, DatabasePolicy]:
    policy = DatabasePolicy(3)
    limits = Limits(
        checkpoint_group=100,
        pending_jobs_size_max=10_000,
        batch_groups=batch_groups,
        batch_bytes=10_000,
    )
    mark = LowWaterMark(0, START, GtidSet())
    return Scheduler(policy, 3, limits, mark, ExecutedGroups(1)), policy


def queue_state(scheduler: Scheduler) -> list[tuple[int, bool]]:
    """Return the GAQ as the seed draws it: each group and whether it is committed."""
    queue = scheduler.gaq
    return [(number, number in queue._done) for number in range(queue.number + 1, queue.newest + 1)]


def begin(scheduler: Scheduler, worker: int, *groups: Group) -> None:
    assert scheduler.take(worker) == groups


def check_mark(scheduler: Scheduler, number: int) -> None:
    mark = scheduler.gaq.mark()
    assert mark.number == number
    assert mark.position == (GROUPS[number - 1].end if number else START)
    assert str(mark.gtids) == ("", f"{SOURCE_UUID}:1", f"{SOURCE_UUID}:1-{number}")[min(number, 2)]


def test_group_by_group() -> None:
    scheduler, policy = scheduler_with(batch_groups=1)
    engaged = [scheduler.add(each) for each in GROUPS]

    # Each worker is engaged by its first group; the others queue up behind.
    assert engaged == [W2, W1, None, None, W3]
    assert policy.aph.usage() == {"orders": (W2, 2), "stock": (W1, 2), "users": (W3, 1)}
    assert queue_state(scheduler) == [(1, False), (2, False), (3, False), (4, False), (5, False)]

    # The first of W#1 and the task of W#3 commit while W#2 is committing.
    begin(scheduler, W2, GROUPS[0])
    begin(scheduler, W1, GROUPS[1])
    begin(scheduler, W3, GROUPS[4])
    assert scheduler.commit(W1, [GROUPS[1]]) == set()
    assert scheduler.commit(W3, [GROUPS[4]]) == set()
    assert queue_state(scheduler) == [(1, False), (2, True), (3, False), (4, False), (5, True)]
    assert policy.aph.usage() == {"orders": (W2, 2), "stock": (W1, 1)}
    check_mark(scheduler, 0)
    assert scheduler.gaq.highest_done == 5

    # W#2 discards its own and the next: the next to the low-water mark is the seed's group 2.
    scheduler.commit(W2, [GROUPS[0]])
    assert queue_state(scheduler) == [(3, False), (4, False), (5, True)]
    check_mark(scheduler, 2)

    # W#1 commits it.
    begin(scheduler, W1, GROUPS[2])
    scheduler.commit(W1, [GROUPS[2]])
    assert queue_state(scheduler) == [(4, False), (5, True)]
    check_mark(scheduler, 3)

    # At last W#2 commits, and the queue becomes empty.
    begin(scheduler, W2, GROUPS[3])
    scheduler.commit(W2, [GROUPS[3]])
    assert queue_state(scheduler) == []
    check_mark(scheduler, 5)
    assert scheduler.idle
    assert policy.aph.usage() == {}


def test_a_workers_groups_in_one_transaction() -> None:
    scheduler, _ = scheduler_with(batch_groups=128)
    for each in GROUPS:
        scheduler.add(each)
    begin(scheduler, W2, GROUPS[0], GROUPS[3])
    begin(scheduler, W1, GROUPS[1], GROUPS[2])
    begin(scheduler, W3, GROUPS[4])

    scheduler.commit(W1, [GROUPS[1], GROUPS[2]])
    scheduler.commit(W3, [GROUPS[4]])
    assert queue_state(scheduler) == [(1, False), (2, True), (3, True), (4, False), (5, True)]
    check_mark(scheduler, 0)

    # W#2's transaction failed as a whole and is replayed group by group.
    scheduler.commit(W2, [GROUPS[0]])
    check_mark(scheduler, 3)
    assert scheduler.take(W2) == ()
    scheduler.commit(W2, [GROUPS[3]])
    check_mark(scheduler, 5)


def test_a_checkpoint_stores_the_mark_where_it_was_computed() -> None:
    scheduler, _ = scheduler_with(batch_groups=1)
    assert scheduler.checkpoint() is None
    for each in GROUPS:
        scheduler.add(each)
    begin(scheduler, W2, GROUPS[0])
    scheduler.commit(W2, [GROUPS[0]])
    mark = scheduler.checkpoint()
    assert mark is not None

    # While it is being stored the queue moves on.
    begin(scheduler, W1, GROUPS[1])
    scheduler.commit(W1, [GROUPS[1]])
    assert (mark.number, mark.position, str(mark.gtids)) == (1, GROUPS[0].end, f"{SOURCE_UUID}:1")
    assert scheduler.stored.number == 0
    scheduler.checkpointed(mark)
    assert scheduler.stored is mark
    following = scheduler.checkpoint()
    assert following is not None
    assert following.number == 2


def test_a_group_cannot_commit_twice_or_enter_out_of_turn() -> None:
    scheduler, _ = scheduler_with(batch_groups=1)
    scheduler.add(GROUPS[0])
    scheduler.add(GROUPS[1])
    with pytest.raises(ValueError, match="group 4 entered, but 3 is next"):
        scheduler.gaq.enter(GROUPS[3])
    scheduler.gaq.commit([GROUPS[1]])
    with pytest.raises(ValueError, match="group 2 has committed twice"):
        scheduler.gaq.commit([GROUPS[1]])
