"""The row policy: keys of rows, what refers to them, whole tables, and what it remembers."""

import random
from dataclasses import replace
from itertools import combinations

import pytest

from mtsd.model.group import Group
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.assignment import Assignment
from mtsd.schedule.policies.row_policy import RowPolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import as_filled, may_conflict
from tests.schedule.worlds.streams import START_MARK, group

DATABASE, TABLE, OTHER = 1001, 1002, 1003
ONE_BY_ONE = Limits(
    checkpoint_group=1000, pending_jobs_size_max=1 << 20, batch_groups=1, batch_bytes=1 << 20
)


def rows(*keys: int, references: tuple[int, ...] = (), table: int = TABLE) -> GroupKeys:
    return GroupKeys(tuple(keys), references, parts=(DATABASE, table))


WHOLE = GroupKeys(wholes=(TABLE,), parts=(DATABASE,))
STATEMENT = GroupKeys(wholes=(DATABASE,))


class Scheduled:
    def __init__(self, *, workers: int = 4, max_keys: int = 1000, forgotten_keys: int = 0) -> None:
        self.policy = RowPolicy(max_keys=max_keys, forgotten_keys=forgotten_keys)
        fillers = as_filled(self.policy)
        self.scheduler = Scheduler(
            self.policy, workers, ONE_BY_ONE, START_MARK, ExecutedGroups(1), fillers=fillers
        )
        self.groups: list[Group] = []
        self.done: set[int] = set()

    def add(self, *keys: GroupKeys) -> None:
        for each in keys:
            self.groups.append(replace(group(len(self.groups) + 1, "a"), keys=each))
            self.scheduler.add(self.groups[-1])

    def begun(self) -> set[int]:
        """Begin what can begin; return what is running."""
        for worker in range(len(self.scheduler.workers)):
            self.scheduler.take(worker)
        running = [each for queue in self.scheduler.workers for each in queue.running]
        for one, other in combinations(running, 2):
            assert not may_conflict(one.keys, other.keys)
        for each in running:
            for before in self.groups[: each.number - 1]:
                assert before.number in self.done or not may_conflict(before.keys, each.keys)
        return {each.number for each in running}

    def commit(self, *numbers: int) -> None:
        for worker, queue in enumerate(self.scheduler.workers):
            if queue.running and queue.running[0].number in numbers:
                self.done.add(queue.running[0].number)
                self.scheduler.commit(worker, queue.running)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (rows(1), rows(2), True),
        (rows(1, 2), rows(2, 3), False),
        (rows(1, references=(9,)), rows(2, references=(9,)), True),
        (rows(1, references=(9,)), rows(9, table=OTHER), False),
        (rows(9, table=OTHER), rows(1, references=(9,)), False),
        (WHOLE, rows(1), False),
        (rows(1), WHOLE, False),
        (WHOLE, rows(1, table=OTHER), True),
        (WHOLE, WHOLE, False),
        (STATEMENT, rows(1, table=OTHER), False),
        (WHOLE, STATEMENT, False),
        (STATEMENT, NO_KEYS, True),
    ],
)
def test_two_groups(first: GroupKeys, second: GroupKeys, *, together: bool) -> None:
    scheduled = Scheduled()
    scheduled.add(first, second)
    assert scheduled.begun() == ({1, 2} if together else {1})
    policy, view = RowPolicy(), scheduled.scheduler.view
    policy.assign(replace(group(1, "a"), keys=first), view, 0)
    assigned = policy.assign(replace(group(2, "a"), keys=second), view, 1)
    assert assigned == Assignment(1, frozenset() if together else frozenset({1}))
    # Behind it, in the same queue, it need not be named.
    behind = RowPolicy()
    behind.assign(replace(group(1, "a"), keys=first), view, 1)
    assert behind.assign(replace(group(2, "a"), keys=second), view, 1) == Assignment(1)


def test_who_refers_to_a_row_does_not_wait_for_others_who_do() -> None:
    scheduled = Scheduled(workers=8)
    scheduled.add(rows(9), *[rows(each, references=(9,)) for each in range(4)], rows(9), rows(5))
    scheduled.add(rows(6, references=(9,)))
    assert scheduled.begun() == {1, 7}
    scheduled.commit(1)
    while 6 not in scheduled.begun():
        assert 8 not in scheduled.begun()
        scheduled.commit(*range(2, 6), 7)
    assert scheduled.done >= {1, 2, 3, 4, 5}


def test_a_group_that_refers_to_what_it_changes() -> None:
    scheduled = Scheduled()
    scheduled.add(rows(1, references=(1,)), rows(1, references=(1,)))
    assert scheduled.begun() == {1}
    scheduled.commit(1)
    assert scheduled.begun() == {2}
    scheduled.commit(2)
    assert not scheduled.policy._held
    assert not scheduled.policy._changed
    assert not scheduled.policy._referred


def test_more_keys_than_are_remembered() -> None:
    scheduled = Scheduled(max_keys=10)
    scheduled.add(rows(*range(8)), rows(8, 9, 10), rows(11), rows(12, table=OTHER))
    # Keys of the second are too many: it counts as its table, and as its database.
    assert scheduled.begun() == {1}
    assert scheduled.policy._held == 10
    scheduled.commit(1)
    assert scheduled.begun() == {2}
    scheduled.commit(2)
    assert scheduled.begun() == {3, 4}


def test_with_more_keys_than_are_remembered_it_still_changes_what_it_changes_as_a_whole() -> None:
    """Its rows count as their database; what it changes of another one stays beside that."""
    elsewhere = 2001
    scheduled = Scheduled(max_keys=10)
    scheduled.add(
        GroupKeys(tuple(range(8)), parts=(3001, 3002)),
        GroupKeys(wholes=(elsewhere,)),
        GroupKeys((8, 9, 10), wholes=(elsewhere,), parts=(DATABASE, TABLE)),
    )
    assert scheduled.begun() == {1, 2}
    scheduled.commit(1, 2)
    assert scheduled.begun() == {3}


def random_keys(chance: random.Random) -> GroupKeys:
    if chance.random() < 0.1:
        return chance.choice((WHOLE, STATEMENT, GroupKeys(wholes=(OTHER, OTHER), parts=(DATABASE,)),
                              GroupKeys((3,), wholes=(OTHER,), parts=(DATABASE, TABLE)),
                              NO_KEYS))  # fmt: skip
    keys = [chance.randrange(12) for _ in range(chance.choice((1, 1, 2, 5)))]
    references = tuple(chance.randrange(12) for _ in range(chance.choice((0, 0, 1, 3))))
    return rows(*keys, references=references, table=chance.choice((TABLE, OTHER)))


@pytest.mark.parametrize("seed", range(60))
def test_order_progress_and_memory_of_any_stream(seed: int) -> None:
    """Whatever conflicts is in order, something can go on, and nothing stays of what is done."""
    chance = random.Random(seed)
    scheduled = Scheduled(
        workers=chance.choice((1, 2, 4, 8)),
        max_keys=chance.choice((6, 20, 1000)),
        forgotten_keys=(forgotten := chance.choice((0, 5, 1000))),
    )
    while len(scheduled.done) < 150:
        while len(scheduled.groups) < 150 and chance.random() < 0.8:
            scheduled.add(random_keys(chance))
        begun = scheduled.begun()
        assert begun or len(scheduled.done) == len(scheduled.groups)
        if begun:
            scheduled.commit(chance.choice(sorted(begun)))
        policy = scheduled.policy
        unfinished = [each for each in scheduled.groups if each.number not in scheduled.done]
        held = sum(len(each.keys.rows) + len(each.keys.references) for each in unfinished)
        assert policy._held <= min(held, policy._max_keys)
        known = {each.number for each in unfinished}
        assert set(policy._unfinished) == known
        wholes = sum(len(each.keys.wholes) + len(each.keys.parts) for each in unfinished)
        if begun:
            assert len(policy._changed) <= 2 * policy._held + wholes + forgotten
        assert all(each and known >= each.keys() for each in policy._referred.values())
    assert len(scheduled.policy._changed) <= forgotten
    assert not scheduled.policy._referred
    assert not scheduled.policy._held


def test_a_chain_of_changes_of_one_row_goes_to_one_worker() -> None:
    scheduled = Scheduled()
    scheduled.add(*[rows(1)] * 20)
    assert sorted(map(len, scheduled.scheduler.workers)) == [0, 0, 0, 20]
