"""Who gets a group that any worker may apply."""

from dataclasses import replace
from random import Random

from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.policies.assignment import Assignment
from mtsd.schedule.policies.first_available import FirstAvailable, PlacedGroup
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.planned_policy import PlannedPolicy
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import START_MARK, group


class Placed:
    """A scheduler of four workers that is told where to put each group."""

    def __init__(self, batch_groups: int = 100) -> None:
        self.plan: list[Assignment] = []
        self.placed: list[PlacedGroup] = []
        """Of each group."""
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
        self.note(number, worker)
        self.scheduler.add(group(number, "a", size=size))
        return worker

    def add_after(self, *earlier: int, size: int = 100) -> int:
        """Add a group that waits for those of these numbers alone."""
        number = len(self.plan) + 1
        placed = [self.placed[each - 1] for each in earlier]
        worker = self.distribution.place_after(number, size, placed, self.scheduler.view)
        self.plan.append(Assignment(worker))
        self.note(number, worker)
        self.scheduler.add(group(number, "a", size=size))
        return worker

    def note(self, number: int, worker: int) -> None:
        placed = PlacedGroup(number)
        placed.worker = worker
        placed.place = self.distribution.last_place(worker)
        self.placed.append(placed)

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


def test_where_runs_are_kept_they_are_not_left_for_what_a_group_waits_for() -> None:
    placed = Placed()
    placed.distribution = FirstAvailable(keeps_runs=True)
    placed.fill()
    assert placed.add(2) == 3
    assert placed.add_after(3) == 3


def test_what_waits_for_known_ones_goes_behind_them_as_long_as_they_may_not_have_committed() -> (
    None
):
    placed = Placed(batch_groups=1000)
    placed.fill()
    assert placed.add_after(2) == 1
    # Behind the one that is applied last; the run goes on.
    assert placed.add_after(3, 5) == 1
    assert placed.add() == 3
    # When the run comes to the head of its queue, the first groups have long committed.
    for worker in (3, 0, 2, 1):
        assert placed.add(size=3 << 20) == worker
    run = placed.add()
    assert placed.add_after(1, 2, 3) == run
    assert placed.add_after(10) == placed.placed[10 - 1].worker != run


def test_what_waits_for_one_that_much_else_is_behind_goes_on_with_the_run() -> None:
    placed = Placed(batch_groups=1000)
    assert placed.add() == 0
    size = 1 << 18
    assert [placed.add_after(1, size=size) for _ in range(7)] == [0, 0, 0, 0, 0, 1, 1]


def test_without_combining_only_what_is_last_is_followed() -> None:
    placed = Placed(batch_groups=1)
    placed.fill()
    assert placed.add_after(2) == 1
    assert placed.add_after(2) == 0
    assert placed.add_after(5) == 1


def test_what_waits_for_one_long_before_it_goes_on_with_the_run() -> None:
    placed = Placed()
    placed.fill()
    assert {placed.add() for _ in range(99)} == {3}
    assert placed.add(1) == 0
    assert {placed.add() for _ in range(99)} == {0}
    assert placed.add(1) == 1


def test_one_worker_gets_everything_while_most_runs_would_wait_for_the_one_before() -> None:
    placed = Placed()
    placed.fill()
    for number in range(5, 800):
        placed.add(number - 90 if number % 5 == 0 and number > 100 else 0)
    workers = [placed.add(number - 90 if number % 5 == 0 else 0) for number in range(800, 1200)]
    assert len(set(workers)) == 1
    # The others get something again when hardly anything has to wait.
    later = [placed.add() for _ in range(2000)]
    assert set(later) == {0, 1, 2, 3}


def test_without_combining_the_workers_share_what_waits_for_little() -> None:
    placed = Placed(batch_groups=1)
    placed.fill()
    workers = [placed.add((number - 1) // 8 * 8) for number in range(5, 1000)]
    assert all(workers.count(worker) > 100 for worker in range(4))


def test_large_groups_are_worth_a_wait() -> None:
    placed = Placed()
    placed.fill()
    assert placed.add(size=1 << 19) == 3
    assert placed.add(size=1 << 19) == 3
    assert placed.add(4, size=1 << 19) == 0
    assert placed.add(7) == 0


def test_large_groups_are_shared_although_the_first_wait_for_one_shortly_before() -> None:
    """As behind the first transaction of a file: a run has few of them."""
    placed = Placed(batch_groups=512)
    workers = [placed.add(), *(placed.add(1, size=1 << 16) for _ in range(256))]
    assert all(workers.count(worker) >= 48 for worker in range(4))


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
        mark = max(0, number - chance.choice((1, 2, 30, 255, 500, 511, 512, 513)))
        assert placed.add(mark, chance.choice((10, 100, 10_000, 1 << 20))) in range(4)
        if chance.random() < 0.1:
            placed.distribution.note(number, 10, chance.randrange(4))
        if chance.random() < 0.3:
            for worker in range(4):
                batch = placed.scheduler.take(worker)
                placed.scheduler.commit(worker, batch)
