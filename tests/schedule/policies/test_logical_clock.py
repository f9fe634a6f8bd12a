"""The logical clock policy: what each group waits for, and where the clock tells nothing."""

from dataclasses import replace

from mtsd.model.group import Group, GroupKind
from mtsd.model.position import Position
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.policies.logical_clock_policy import LogicalClockPolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import START_MARK, Marker, Shape, Stream

LAST = (1 << 63) - 1
NEW_FILE = Marker(new_file=True)


def timed(last_committed: int, sequence_number: int) -> Shape:
    return Shape(("a",), clock=(last_committed, sequence_number))


def marks_of(*items: Shape | Marker) -> list[int]:
    """Return what each group waits for, at the latest, while none has committed."""
    policy = LogicalClockPolicy()
    view = Scheduler(policy, 4, ROOMY, START_MARK, ExecutedGroups(1)).view
    groups = Stream.of(items).groups
    return [policy.assign(group, view).mark for group in groups if group.kind is GroupKind.ROWS]


def test_a_group_waits_up_to_its_last_committed() -> None:
    times = [timed(0, 1), timed(1, 2), timed(1, 3), timed(2, 4), timed(1, 5), timed(4, 6)]
    assert marks_of(*times) == [0, 1, 1, 2, 1, 4]


def test_an_offset_to_the_numbers_of_groups() -> None:
    # As after a start in the middle of a file.
    assert marks_of(timed(490, 500), timed(480, 501), timed(500, 502)) == [0, 0, 1]


def test_an_unknown_parent_is_everything_before() -> None:
    times = [timed(0, 1), timed(1, 2), timed(1, 3), timed(0, 4), timed(1, 5)]
    assert marks_of(*times) == [0, 1, 1, 3, 1]


def test_groups_without_a_clock_run_one_by_one() -> None:
    assert marks_of(*[timed(0, 0)] * 4) == [0, 1, 2, 3]


def test_a_group_without_a_clock_among_others() -> None:
    times = [timed(0, 1), timed(1, 2), timed(0, 0), timed(1, 3), timed(1, 4), timed(3, 5)]
    # The fourth does not know what it has to do with the third; nor does what follows.
    assert marks_of(*times) == [0, 1, 2, 3, 3, 4]


def test_a_gap_in_the_numbers() -> None:
    times = [timed(0, 1), timed(1, 2), timed(1, 5), timed(1, 6), timed(3, 7), timed(5, 8)]
    assert marks_of(*times) == [0, 1, 2, 2, 2, 3]


def test_the_numbers_begin_again_in_each_file() -> None:
    first = [timed(0, 1), timed(1, 2), timed(1, 3)]
    assert marks_of(*first, NEW_FILE, timed(1, 2), timed(1, 3), timed(2, 4)) == [0, 1, 1, 3, 3, 4]
    # Even if they seem to go on.
    assert marks_of(*first, NEW_FILE, timed(1, 4), timed(1, 5)) == [0, 1, 1, 3, 3]


def test_files_without_a_group() -> None:
    first = [timed(0, 1), timed(1, 2)]
    assert marks_of(*first, NEW_FILE, NEW_FILE, timed(1, 2), timed(1, 3)) == [0, 1, 2, 2]


def test_numbers_that_cannot_be_count_as_none() -> None:
    assert marks_of(timed(0, 1), timed(2, 2), timed(1, 3), timed(1, 4)) == [0, 1, 2, 2]
    assert marks_of(timed(0, 1), timed(1, 2), timed(1, 2), timed(1, 3)) == [0, 1, 2, 3]
    assert marks_of(timed(0, 1), timed(9, 2), timed(1, 3)) == [0, 1, 2]


def test_the_counter_wraps() -> None:
    wrapped = [timed(LAST - 2, LAST - 1), timed(LAST - 2, LAST), timed(LAST, -LAST - 1)]
    assert marks_of(*wrapped, timed(-5, -LAST), timed(0, 1), timed(1, 2)) == [0, 0, 2, 3, 4, 5]
    # A source begins another file before.
    assert marks_of(*wrapped[:2], NEW_FILE, timed(0, 1), timed(1, 2)) == [0, 0, 2, 3]


def test_groups_that_are_left_out_count_as_committed() -> None:
    empty = Shape((), kind=GroupKind.EMPTY, clock=(1, 2))
    groups = Stream.of([timed(0, 1), empty, empty, timed(3, 4), timed(1, 5)]).groups
    scheduler = Scheduler(LogicalClockPolicy(), 2, ROOMY, START_MARK, ExecutedGroups(1))
    for group in groups:
        scheduler.add(group)
    assert [begun(scheduler, worker) for worker in range(2)] == [[1, 4, 5], []]


def test_what_waits_for_one_worker_only_is_combined_behind_it() -> None:
    times = [timed(0, 1), *[timed(number - 1, number) for number in range(2, 60)]]
    scheduler = Scheduler(LogicalClockPolicy(), 4, ROOMY, START_MARK, ExecutedGroups(1))
    for group in Stream.of(times).groups:
        scheduler.add(group)
    assert begun(scheduler, 0) == list(range(1, 60))


def test_what_waits_does_not_keep_the_others_waiting() -> None:
    # Group 3 waits for 1 and 2, which are at two workers; 4 and 5 go on meanwhile.
    times = [timed(0, 1), timed(1, 2), timed(1, 3), timed(3, 4), timed(1, 5), timed(1, 6)]
    scheduler = Scheduler(LogicalClockPolicy(), 4, ROOMY, START_MARK, ExecutedGroups(1))
    groups = Stream.of(times).groups
    scheduler.add(groups[0])
    scheduler.commit(0, scheduler.take(0))
    for group in groups[1:]:
        scheduler.add(group)
    assert [begun(scheduler, worker) for worker in range(4)] == [[2], [3], [5], [6]]
    scheduler.commit(0, groups[1:2])
    assert scheduler.commit(1, groups[2:3]) == set()
    assert begun(scheduler, 1) == [4]


def test_a_session_with_temporary_tables_keeps_its_worker() -> None:
    policy = LogicalClockPolicy()
    view = Scheduler(policy, 4, ROOMY, START_MARK, ExecutedGroups(1)).view
    groups = Stream.of([timed(0, 1), timed(1, 2), timed(1, 3)]).groups
    assert policy.assign(groups[0], view).worker == 0
    assert policy.assign(groups[1], view, 3)[::2] == (3, 1)
    # What depends on that one goes behind it.
    depends = replace(groups[2], last_committed=2)
    assert policy.assign(depends, view)[::2] == (3, 2)


def test_positions_of_a_source_without_files() -> None:
    group = replace(Stream.of([timed(0, 0)]).groups[0], end=Position("", 0))
    policy = LogicalClockPolicy()
    view = Scheduler(policy, 1, ROOMY, START_MARK, ExecutedGroups(1)).view
    assert [policy.assign(replace(group, number=n), view).mark for n in (1, 2)] == [0, 1]


def begun(scheduler: Scheduler, worker: int) -> list[int]:
    batch: tuple[Group, ...] = scheduler.take(worker)
    return [group.number for group in batch]
