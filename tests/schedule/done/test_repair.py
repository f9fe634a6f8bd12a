"""What is applied again after a run without order, from every set that such a run can leave."""

from dataclasses import replace
from itertools import permutations, product
from typing import Final

from mtsd.model.group import GroupKind
from mtsd.model.step import Rows
from mtsd.replica.core.coordinator import Coordinator
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.repair import is_passed, repair_due
from mtsd.schedule.policies.choice import choose_policy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import START_MARK, group

NOBODY: Final[frozenset[int]] = frozenset()


def executed(mark: int, *numbers: int) -> ExecutedGroups:
    return ExecutedGroups(mark + 1).with_numbers(numbers)


def test_everything_past_the_mark_up_to_the_highest() -> None:
    for numbers in ((5,), (4, 6), (4, 5, 8, 9)):
        left, repair = repair_due(3, executed(3, *numbers), NOBODY)
        assert list(left) == []
        assert repair is not None
        assert (repair.first, repair.last) == (4, numbers[-1])
        assert tuple(repair.again) == numbers
    assert repair_due(3, executed(3), NOBODY)[1] is None


def test_what_a_person_has_skipped_stays_so() -> None:
    left, repair = repair_due(3, executed(3, 4, 6, 8), frozenset({6}))
    assert list(left) == [6]
    assert repair is not None
    assert list(repair.again) == [4, 8]
    left, repair = repair_due(3, executed(3, 4), frozenset({4}))
    assert list(left) == [4]
    assert repair is None


def test_what_a_person_has_skipped_stays_so_behind_the_last_that_is_applied_again() -> None:
    left, repair = repair_due(0, executed(0, 1, 3), frozenset({3}))
    scheduler = Scheduler(choose_policy("database", 2), 2, ROOMY, START_MARK, left, repair=repair)
    for number in range(1, 5):
        scheduler.add(replace(group(number, "a"), steps=(Rows((b"event",)),)))
    assert scheduler.skipped == 1
    assert [each.number for each in scheduler.take(0)] == [1, 2, 4]


def test_only_rows_are_applied_again() -> None:
    left, repair = repair_due(0, executed(0, 1, 2, 4), NOBODY)
    scheduler = Scheduler(choose_policy("database", 2), 2, ROOMY, START_MARK, left, repair=repair)
    rows = (Rows((b"event",)),)
    scheduler.add(group(1, "a", kind=GroupKind.DDL))
    for number in range(2, 5):
        scheduler.add(replace(group(number, "a"), steps=rows))
    assert scheduler.gaq.number == 1
    assert scheduler.skipped == 1
    assert [each.number for each in scheduler.take(0)] == [2, 3, 4]
    scheduler.stop(reading=True)
    assert not scheduler.stopped, "the repair is to be finished"


def test_something_is_past_the_stored_mark_until_all_of_a_repair_is_stored() -> None:
    """Until then a run that ends leaves a target that is still to be repaired."""
    left, repair = repair_due(0, executed(0, 2), NOBODY)
    scheduler = Scheduler(choose_policy("database", 2), 2, ROOMY, START_MARK, left, repair=repair)
    ordered = [scheduler.nothing_past_stored]
    for number in (1, 2):
        scheduler.add(replace(group(number, "a"), steps=(Rows((b"event",)),)))
        scheduler.commit(0, scheduler.take(0))
        ordered.append(scheduler.nothing_past_stored)
        scheduler.checkpointed(scheduler.gaq.mark())
        ordered.append(scheduler.nothing_past_stored)
    assert ordered == [False, False, False, False, True]


def test_a_streamed_group_is_not_applied_again() -> None:
    left, repair = repair_due(0, executed(0, 1, 2), NOBODY)
    scheduler = Scheduler(choose_policy("database", 2), 2, ROOMY, START_MARK, left, repair=repair)
    assert scheduler.former.has(1)
    scheduler.add(group(1, "a"))
    assert scheduler.gaq.number == 1


def test_a_repair_of_which_nothing_is_left_to_apply_ends() -> None:
    left, repair = repair_due(0, executed(0, 1), NOBODY)
    scheduler = Scheduler(choose_policy("database", 2), 2, ROOMY, START_MARK, left, repair=repair)
    coordinator = Coordinator(scheduler)
    coordinator.stop(reading=True)
    assert not coordinator.ended.is_set()
    coordinator.take_in(iter([group(1, "a")]))
    assert coordinator.ended.is_set()


def test_changes_in_any_order_and_then_again_in_order_leave_the_last_ones() -> None:
    """Interrupted after any group of the repair, and begun again at the stored mark."""
    for changed, committed in product(("aab", "aba", "abb", "aaa"), product((0, 1), repeat=3)):
        numbers = [number for number, done in enumerate(committed, 1) if done]
        for order in permutations(numbers):
            target = {changed[number - 1]: number for number in order}
            done = executed(0, *numbers)
            mark = 0
            while repair_due(mark, done, NOBODY)[1] is not None:
                mark += 1
                target[changed[mark - 1]] = mark
                done = done.with_numbers([mark]).rebased(mark + 1)
            for number in range(mark + 1, 4):
                target[changed[number - 1]] = number
            assert target == {row: changed.rindex(row) + 1 for row in set(changed)}


def test_a_group_that_has_committed_may_stop_the_repair() -> None:
    done = executed(3, 5, 6)
    by_hand = [6]
    for number, ordered, passed in (
        (3, False, True),
        (4, True, False),
        (5, True, True),
        (5, False, False),
        (6, False, True),
    ):
        assert is_passed(number, 3, done, by_hand, ordered=ordered) is passed, number
