"""The GAQ and its low-water mark, against a plain list of what has happened."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.group import Group
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue
from tests.schedule.worlds.streams import (
    SOURCE_UUID,
    START,
    START_MARK,
    Marker,
    Shape,
    Stream,
    group,
)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(f"{SOURCE_UUID}:{text}")


def test_the_mark_is_its_own_value() -> None:
    start = LowWaterMark(0, START, gtids("100"))
    queue = GroupAssignedQueue(start)
    queue.enter(group(1))
    mark = queue.mark()
    queue.commit([group(1)])
    assert start.gtids == gtids("100")
    assert mark.gtids == gtids("100")
    assert queue.mark().gtids == gtids("1:100")


def test_what_needs_no_applying_enters_as_done() -> None:
    queue = GroupAssignedQueue(START_MARK)
    queue.enter(group(1), done=True)
    assert queue.number == 1
    assert queue.position == group(1).end
    queue.enter(group(2))
    queue.enter(group(3), done=True)
    assert (queue.number, queue.newest, queue.highest_done, len(queue)) == (1, 3, 3, 2)
    assert queue.oldest_commit_time == group(2).commit_time
    queue.commit([group(2)])
    assert (queue.number, queue.highest_done, len(queue)) == (3, 3, 0)
    assert queue.oldest_commit_time is None


def test_each_group_enters_in_its_turn_and_commits_once() -> None:
    queue = GroupAssignedQueue(START_MARK)
    for number in (1, 2, 3):
        queue.enter(group(number))
    with pytest.raises(ValueError, match="group 5 entered, but 4 is next"):
        queue.enter(group(5))
    # One at the mark, and one beyond a gap.
    queue.commit([group(1), group(3)])
    for number in (1, 3):
        with pytest.raises(ValueError, match=f"group {number} has committed twice"):
            queue.commit([group(number)])
    queue.commit([group(2)])
    assert (queue.number, queue.highest_done) == (3, 3)


def test_gtids_become_known_with_the_first_previous_gtids_event() -> None:
    queue = GroupAssignedQueue(START_MARK)
    queue.enter(group(1), done=True)
    assert queue.mark().gtids is None
    queue.reach(Position(START.file, 150), gtids("1"))
    queue.enter(group(2), done=True)
    assert queue.mark().gtids == gtids("1-2")


def test_gtids_become_known_behind_unfinished_groups_too() -> None:
    queue = GroupAssignedQueue(START_MARK)
    queue.enter(group(1))
    queue.enter(group(2))
    queue.reach(Position(START.file, 250), gtids("1-2:50"))
    queue.enter(group(3))
    queue.commit([group(3)])
    queue.commit([group(1)])
    assert queue.mark().gtids is None
    queue.commit([group(2)])
    assert queue.mark().gtids == gtids("1-3:50")


def test_gtids_that_are_known_stay_known_over_a_later_place_without_any() -> None:
    queue = GroupAssignedQueue(START_MARK)
    queue.enter(group(1))
    queue.reach(Position(START.file, 150), gtids("1"))
    queue.reach(Position("binlog.000002", 4), None)
    queue.commit([group(1)])
    assert queue.mark() == LowWaterMark(1, Position("binlog.000002", 4), gtids("1"))


SHAPES = st.sampled_from(
    [Shape(("a",)), Shape(("a",), anonymous=True), Marker(), Marker(new_file=True),
     Marker(previous_gtids=True)]
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(SHAPES, max_size=25), st.lists(st.integers(0, 30), max_size=60))
def test_against_a_list(shapes: list[Shape | Marker], choices: list[int]) -> None:
    """Enter and finish in any order; even choices take the next item of the stream in."""
    stream = Stream.of(shapes)
    queue = GroupAssignedQueue(START_MARK)
    at = 0
    unfinished: list[int] = []
    done: set[int] = set()
    for choice in choices:
        if choice % 2 == 0 and at < len(stream.items):
            item = stream.items[at]
            at += 1
            if not isinstance(item, Group):
                queue.reach(item.end, item.gtids)
            elif choice % 3 == 0:
                queue.enter(item, done=True)
                done.add(item.number)
            else:
                queue.enter(item)
                unfinished.append(item.number)
        elif unfinished:
            number = unfinished.pop(choice % len(unfinished))
            done.add(number)
            queue.commit([stream.groups[number - 1]])

        head = min(unfinished, default=0)
        passed = stream.items[:at]
        if head:
            passed = passed[: passed.index(stream.groups[head - 1])]
        mark = queue.mark()
        assert mark.number == sum(isinstance(item, Group) for item in passed)
        assert mark.position == (passed[-1].end if passed else START)
        assert mark.gtids == stream.known_gtids(mark)
        assert queue.newest == sum(isinstance(item, Group) for item in stream.items[:at])
        assert queue.highest_done == max(done, default=0)
        assert len(queue) == queue.newest - queue.number
        for each in stream.groups[: queue.newest]:
            assert queue.is_committed(each.number) == (each.number in done)
