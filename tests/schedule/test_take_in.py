"""Groups of rows are taken in one after another until something else comes, or room is short."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mtsd.model.errors import BinlogError
from mtsd.model.group import GroupKind, PositionReached, StreamItem
from mtsd.model.position import Position
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.streams import START, START_MARK, group


def scheduler_of(limits: Limits, *executed: int) -> Scheduler:
    done = ExecutedGroups(1).with_numbers(executed)
    return Scheduler(DatabasePolicy(2), 2, limits, START_MARK, done)


ROOMY = Limits(
    checkpoint_group=100, pending_jobs_size_max=10_000, batch_groups=10, batch_bytes=10_000
)


def test_what_is_no_group_of_rows_is_handed_back_with_the_rest_still_to_come() -> None:
    scheduler = scheduler_of(ROOMY)
    reached = PositionReached(Position(START.file, 250))
    ddl = group(3, "a", kind=GroupKind.DDL)
    refused = replace(group(4, "a"), unsupported="an event")
    items = iter((group(1, "a"), group(2, "b"), reached, ddl, refused))
    can_begin: set[int] = set()
    assert scheduler.take_in(items, can_begin) is reached
    assert (scheduler.gaq.newest, can_begin) == (2, {0, 1})
    can_begin.clear()
    assert scheduler.take_in(items, can_begin) is ddl
    scheduler.add(ddl)
    assert scheduler.take_in(items, can_begin) is refused
    assert scheduler.take_in(items, can_begin) is None
    assert not can_begin


@pytest.mark.parametrize(
    "limits",
    [
        Limits(checkpoint_group=1, pending_jobs_size_max=9_000, batch_groups=9, batch_bytes=9_000),
        Limits(checkpoint_group=100, pending_jobs_size_max=150, batch_groups=9, batch_bytes=9_000),
    ],
)
def test_a_group_that_has_no_room_is_handed_back(limits: Limits) -> None:
    scheduler = scheduler_of(limits)
    groups = [group(number, "a") for number in (1, 2, 3)]
    items: Iterator[StreamItem] = iter(groups)
    assert scheduler.take_in(items, set()) is groups[1]
    assert next(items) is groups[2]


def test_a_stop_takes_in_what_closes_a_gap_and_no_more() -> None:
    scheduler = scheduler_of(ROOMY, 3)
    scheduler.stop(reading=True)
    groups = [group(number, "a") for number in (1, 2, 3, 4)]
    assert scheduler.take_in(iter(groups), set()) is groups[3]
    assert scheduler.gaq.newest == 3


def test_who_can_begin_is_told_where_reading_fails() -> None:
    scheduler = scheduler_of(ROOMY)

    def damaged() -> Iterator[StreamItem]:
        yield group(1, "a")
        raise BinlogError("cut off")

    can_begin: set[int] = set()
    with pytest.raises(BinlogError):
        scheduler.take_in(damaged(), can_begin)
    assert can_begin == {0}


def test_an_empty_group_of_a_session_with_temporary_tables_is_handed_back() -> None:
    """What it would have created, the target does not have."""
    use = TemporaryUse((1, 7), frozenset(), frozenset({("d", "t")}), uses=False, only=True)
    empty = group(1, "a", kind=GroupKind.EMPTY)
    of_session = replace(group(2, "a", kind=GroupKind.EMPTY), uses_temporary=use)
    scheduler = scheduler_of(ROOMY)
    assert scheduler.take_in(iter((empty, of_session)), set()) is of_session
    scheduler.add(of_session)
    assert scheduler.gaq.number == 2
