"""Where the stream ends: every condition at every place of a small binary log."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest

from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import Group, GroupClosed, GroupOpened, PositionReached, StreamItem
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.model.server import Flavour
from mtsd.model.until import (
    Goal,
    Until,
    UntilAfterGtids,
    UntilBeforeGtids,
    UntilGapsFilled,
    UntilPosition,
    parse_gtids,
    refuse_other_family,
)
from mtsd.replica.stages.until_stage import UntilReachedError, UntilStage
from tests.schedule.worlds.streams import SOURCE_UUID, Shape, group_of

GROUPS = 5
BEGINS = (("binlog.000001", 200), ("binlog.000001", 300), ("binlog.000002", 150),
          ("binlog.000002", 260), ("binlog.000002", 400))  # fmt: skip
SIZE = 100


def log(*, anonymous: bool = False, domain: str = "") -> list[StreamItem]:
    """Return a binary log of two files, with a hole before its last group."""
    items: list[StreamItem] = [PositionReached(Position("binlog.000001", 200))]
    for number, (file, begin) in enumerate(BEGINS, 1):
        if number == 3:
            items.append(PositionReached(Position("binlog.000001", 450)))
            items.append(PositionReached(Position("binlog.000002", 4)))
            items.append(PositionReached(Position("binlog.000002", 150)))
        shape = Shape(("a",), anonymous=anonymous)
        group = replace(group_of(shape, number, Position(file, begin + SIZE)), begin=begin)
        if domain:
            group = replace(group, gtid=Gtid(domain, 10 * number))
        items.append(group)
    return items


def streamed(items: Sequence[StreamItem]) -> list[StreamItem]:
    """Return the same with every group streamed."""
    result: list[StreamItem] = []
    for item in items:
        if isinstance(item, Group):
            begin = Position(item.end.file, item.begin)
            result.append(GroupOpened(item.number, item.gtid, 0, 0, b"", begin=begin))
            result.append(GroupClosed(item))
        else:
            result.append(item)
    return result


class _Stream:
    def __init__(self, items: Sequence[StreamItem], piece: int) -> None:
        self._items = list(items)
        self._piece = piece
        self.asked = False

    async def read(self) -> Iterator[StreamItem]:
        self.asked = True
        piece, self._items = self._items[: self._piece], self._items[self._piece :]
        return iter(piece)

    @property
    def at_end(self) -> bool:
        return not self._items


def last_applied(
    items: Sequence[StreamItem], until: Until, mark: int, highest: int, piece: int = 2
) -> int | None:
    """Return the number of the last group before the goal; None if it is not reached."""
    numbers = [item.number for item in items if isinstance(item, Group)]
    groups = [item for item in items if isinstance(item, Group)]
    start = groups[mark - 1].end if mark else Position("binlog.000001", 4)
    at = next(n for n, item in enumerate(items) if item is groups[mark - 1]) + 1 if mark else 0
    executed = GtidSet()
    for group in groups:
        if group.gtid is not None and group.number <= mark:
            executed.advance(group.gtid)
    applied = mark

    async def read(rest: Sequence[StreamItem]) -> int | None:
        nonlocal applied
        stream = _Stream(rest, piece)
        goal = Goal(until, LowWaterMark(mark, start, executed), highest, executed)
        stage = UntilStage(stream, goal)
        try:
            while not stream.at_end or goal.reached:
                for item in await stage.read():
                    group = item.group if isinstance(item, GroupClosed) else item
                    if isinstance(group, Group):
                        applied = group.number
        except UntilReachedError:
            return applied
        return None

    assert numbers == list(range(1, GROUPS + 1))
    whole = asyncio.run(read(items[at:]))
    applied = mark
    assert asyncio.run(read(streamed(items[at:]))) == whole
    return whole


STARTS = [(mark, highest) for mark in range(GROUPS + 1) for highest in range(mark, GROUPS + 1)]


@pytest.mark.parametrize(("mark", "highest"), STARTS)
def test_positions(mark: int, highest: int) -> None:
    ends = [Position(file, begin + SIZE) for file, begin in BEGINS]
    offsets = (4, 199, 200, 201, 299, 300, 301, 399, 400, 401, 450, 501)
    for file, offset in product(("binlog.000001", "binlog.000002", "binlog.000003"), offsets):
        wanted = Position(file, offset)
        before = sum(Position(*begin) < wanted for begin in BEGINS)
        expected: int | None = max(highest, before)
        if expected == GROUPS and wanted > ends[-1]:
            # Only more of the log would tell that nothing else begins before it.
            expected = None
        for piece in (1, 3):
            found = last_applied(log(), UntilPosition(wanted), mark, highest, piece)
            assert found == expected, wanted


@pytest.mark.parametrize("domain", ["", "0-1"])
@pytest.mark.parametrize(("mark", "highest"), STARTS)
def test_gtids(mark: int, highest: int, domain: str) -> None:
    for chosen in product((False, True), repeat=GROUPS):
        numbers = [number for number, take in enumerate(chosen, 1) if take]
        if domain and len(numbers) > 1:
            continue
        if not numbers:
            continue
        gtids = GtidSet()
        for number in numbers:
            gtids.advance(Gtid(domain, 10 * number) if domain else Gtid(SOURCE_UUID, number))
        # What a previous run has applied ends it, too.
        before = max(highest, numbers[0] - 1)
        assert last_applied(log(domain=domain), UntilBeforeGtids(gtids), mark, highest) == before
        after = max(highest, *numbers)
        assert last_applied(log(domain=domain), UntilAfterGtids(gtids), mark, highest) == after
    strange = parse_gtids(f"0-1-{10 * GROUPS + 1}" if domain else f"{SOURCE_UUID}:1-100")
    assert last_applied(log(domain=domain), UntilAfterGtids(strange), mark, highest) is None


def test_a_number_that_mariadb_left_out_is_passed() -> None:
    items = log(domain="0-1")
    assert last_applied(items, UntilAfterGtids(parse_gtids("0-1-25")), 0, 0) == 3
    assert last_applied(items, UntilBeforeGtids(parse_gtids("0-1-25")), 0, 0) == 2


@pytest.mark.parametrize("domain", ["", "0-1"])
def test_gtids_from_before_the_beginning_are_known_from_the_next_file(domain: str) -> None:
    """A run that began at a position knows of none that it has executed."""
    gtids = GtidSet()
    gtids.advance(Gtid(domain, 10) if domain else Gtid(SOURCE_UUID, 1))
    end = Position("binlog.000002", 150)
    items = log(domain=domain)[3:]
    at = items.index(PositionReached(end))
    items[at] = PositionReached(end, gtids)
    conditions: list[Until] = [UntilBeforeGtids(gtids), UntilAfterGtids(gtids)]
    for until in conditions:
        goal = Goal(until, LowWaterMark(2, Position("binlog.000001", 400), None), 2, None)
        for item in items[: at + 1]:
            assert not goal.is_past(item)
            goal.passed(item)
        assert goal.reached


def test_a_position_between_groups_is_reached_without_another_group() -> None:
    goal = Goal(
        UntilPosition(Position("binlog.000002", 150)),
        LowWaterMark(2, Position("binlog.000001", 400), None), 2, None,
    )  # fmt: skip
    for item in log()[3:6]:
        assert not goal.reached
        goal.passed(item)
    assert goal.reached


@pytest.mark.parametrize(
    ("source", "gtids", "said"),
    [
        (Flavour.MYSQL, "0-1-3", "GTIDs of 0-1 are MariaDB's, but the source is MySQL"),
        (Flavour.MARIADB, f"{SOURCE_UUID}:1", f"GTIDs of {SOURCE_UUID} are MySQL's, but the"),
    ],
)
def test_gtids_of_the_other_family_are_refused(source: Flavour, gtids: str, said: str) -> None:
    for condition in (UntilBeforeGtids, UntilAfterGtids):
        with pytest.raises(NeedsPersonError, match=said):
            refuse_other_family(condition(parse_gtids(gtids)), source)
    other = next(each for each in Flavour if each is not source)
    refuse_other_family(UntilAfterGtids(parse_gtids(gtids)), other)


@pytest.mark.parametrize(("mark", "highest"), STARTS)
def test_gaps(mark: int, highest: int) -> None:
    assert last_applied(log(), UntilGapsFilled(), mark, highest) == highest


def test_nothing_is_read_at_the_goal() -> None:
    stream = _Stream(log(), 1)
    goal = Goal(UntilGapsFilled(), LowWaterMark(2, Position("binlog.000001", 400), None), 2, None)
    with pytest.raises(UntilReachedError):
        asyncio.run(UntilStage(stream, goal).read())
    assert not stream.asked


def test_what_cannot_be_told_needs_a_person() -> None:
    gtids = parse_gtids(f"{SOURCE_UUID}:3")
    for until in (UntilBeforeGtids(gtids), UntilAfterGtids(gtids)):
        with pytest.raises(
            NeedsPersonError, match=r"group 1, beginning at binlog\.000001:200, has"
        ):
            last_applied(log(anonymous=True), until, 0, 0)
    with pytest.raises(NeedsPersonError, match=r"files are named like binlog\.000001"):
        last_applied(log(), UntilPosition(Position("mysql-bin.000001", 200)), 0, 0)


@pytest.mark.parametrize("text", ["", "binlog.000001", "binlog.000001:3", "a/b:4", "binlog.1:x"])
def test_bad_positions(text: str) -> None:
    with pytest.raises(ValueError, match=r"FILE:POS|begins at 4"):
        UntilPosition.parse(text)


def test_an_empty_set_is_no_condition() -> None:
    with pytest.raises(ValueError, match="a GTID set is needed"):
        parse_gtids("")
