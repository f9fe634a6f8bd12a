"""Who gets a group that any worker may apply."""

from dataclasses import replace
from random import Random

from mtsd.schedule.assignment import Assignment
from mtsd.schedule.executed_groups import ExecutedGroups
from mtsd.schedule.first_available import FirstAvailable
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.planned_policy import PlannedPolicy
from tests.schedule.simulated_run import ROOMY
from tests.schedule.streams import START_MARK, group


class Placed:
    """A scheduler of four workers that is told where to put each group."""

    def __init__(self, batch_groups: int = 100) -> None:
        self.plan: list[Assignment] = []
        self.scheduler = Scheduler(
            PlannedPolicy(self.plan),
            4,
            replace(ROOMY, batch_groups=batch_groups),
            START_MARK,
            ExecutedGroups(1),
        )
        self.distribution = FirstAvailable()

    def add(self, mark: int = 0, size: int = 100) -> int:
        number = len(self.plan) + 1
        worker = self.distribution.place(number, size, mark, self.scheduler.view)
        self.plan.append(Assignment(worker, mark=mark))
        self.scheduler.add(group(number, "a", size=size))
        return worker

    def fill(self) -> None:
        """Give every worker something to do."""
        assert [self.add() for _ in range(4)] == [0, 1, 2, 3]

    def commit(self, worker: int) -> None:
        self.scheduler.commit(worker, self.scheduler.take(worker))


def test_who_has_nothing_to_do_comes_first() -> None:
    placed = Placed()
    placed.fill()
    assert placed.add() == 3
    placed.commit(1)
    assert placed.add() == 1
    assert placed.add() == 1


def test_a_run_ends_and_the_next_is_for_the_worker_with_the_least_to_do() -> None:
    placed = Placed()
    placed.fill()
    assert [placed.add() for _ in range(99)] == [3] * 99
    assert [placed.add() for _ in range(100)] == [0] * 100
    assert placed.add(size=1 << 20) == 1
    assert [placed.add() for _ in range(100)] == [2] * 100
    assert placed.add() == 3


def test_without_combining_a_run_is_one_group() -> None:
    placed = Placed(batch_groups=1)
    placed.fill()
    assert [placed.add() for _ in range(5)] == [0, 1, 2, 3, 0]
    # Behind the one before it, but not behind others.
    assert placed.add(9) == 0
    assert placed.add(9) == 1


def test_what_waits_for_one_shortly_before_it_goes_behind_it() -> None:
    placed = Placed()
    placed.fill()
    assert placed.add(2) == 1
    assert placed.add(3) == 2
    assert [placed.add(number) for number in range(6, 300)] == [2] * 294


def test_what_waits_for_one_long_before_it_goes_on_with_the_run() -> None:
    placed = Placed()
    placed.fill()
    assert {placed.add() for _ in range(99)} == {3}
    assert placed.add(1) == 0
    assert {placed.add() for _ in range(99)} == {0}
    assert placed.add(1) == 1


def test_large_groups_are_worth_a_wait() -> None:
    placed = Placed()
    placed.fill()
    assert placed.add(size=1 << 19) == 3
    assert placed.add(size=1 << 19) == 3
    assert placed.add(4, size=1 << 19) == 0
    assert placed.add(7) == 0


def test_limits_may_change() -> None:
    placed = Placed()
    placed.fill()
    assert {placed.add() for _ in range(10)} == {3}
    placed.scheduler.set_limits(replace(ROOMY, batch_groups=1))
    assert [placed.add() for _ in range(4)] == [0, 1, 2, 0]


def test_any_order_of_groups_commits_and_forced_workers() -> None:
    chance = Random(7)
    placed = Placed()
    for number in range(1, 3000):
        mark = max(0, number - chance.choice((1, 2, 30, 255, 256, 257, 500)))
        assert placed.add(mark, chance.choice((10, 100, 10_000, 1 << 20))) in range(4)
        if chance.random() < 0.1:
            placed.distribution.note(number, 10, chance.randrange(4))
        if chance.random() < 0.3:
            for worker in range(4):
                batch = placed.scheduler.take(worker)
                placed.scheduler.commit(worker, batch)
