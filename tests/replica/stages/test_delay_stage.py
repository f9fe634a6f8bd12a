"""When the groups of a stream are due, on a clock of the test."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from mtsd.model.group import Group, PositionReached, StreamItem
from mtsd.model.position import Position
from mtsd.replica.stages import delay_stage
from mtsd.replica.stages.delay_stage import DelayStage
from mtsd.wire.steady_clock import steady
from tests.schedule.worlds.streams import group


class _Clock:
    """Seconds since 1970, which pass only in `wait`."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.stopped = False

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds_left: Callable[[], float]) -> None:
        while not self.stopped and (left := seconds_left()) > 0:
            self.now += min(left, 0.5)


class _Stream:
    def __init__(self, items: Sequence[StreamItem]) -> None:
        self._items = list(items)

    async def read(self) -> Iterator[StreamItem]:
        items, self._items = self._items, []
        return iter(items)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock(1000.0)
    monkeypatch.setattr(delay_stage, "steady", clock)
    return clock


def taken(
    clock: _Clock, items: Sequence[StreamItem], delay: float, offset: float = 0.0
) -> list[tuple[int, float]]:
    """Return the numbers of the groups, each with the time at which it has been passed on."""
    stage = DelayStage(_Stream(items), delay, lambda: offset, clock.wait)

    async def read() -> list[tuple[int, float]]:
        result: list[tuple[int, float]] = []
        count = sum(isinstance(item, Group) for item in items)
        while len(result) < count:
            groups = [item for item in await stage.read() if isinstance(item, Group)]
            result += [(group.number, clock.now) for group in groups]
        return result

    return asyncio.run(read())


def at(number: int, seconds: float) -> Group:
    return replace(group(number, "a"), commit_time=int(seconds * 1_000_000))


def test_each_waits_for_its_own_time(clock: _Clock) -> None:
    items: list[StreamItem] = [
        at(1, 900),
        at(2, 995),
        at(3, 996),
        PositionReached(Position("b.1", 9)),
        at(4, 999),
    ]
    assert taken(clock, items, 10) == [(1, 1000), (2, 1005), (3, 1006), (4, 1009)]


def test_without_a_delay_nothing_waits(clock: _Clock) -> None:
    assert taken(clock, [at(1, 1000), at(2, 1001)], 0) == [(1, 1000), (2, 1000)]


def test_the_clock_of_the_source_counts(clock: _Clock) -> None:
    assert taken(clock, [at(1, 1100)], 10, offset=100) == [(1, 1010)]


def test_a_time_that_has_not_come_yet_is_not_waited_for(clock: _Clock) -> None:
    assert taken(clock, [at(1, 5000), at(2, 5000), at(3, 1000)], 10) == [
        (1, 1010),
        (2, 1010),
        (3, 1010),
    ]


def test_a_changed_delay_counts_from_the_same_time(clock: _Clock) -> None:
    stage = DelayStage(_Stream([at(1, 1000)]), 10, lambda: 0.0, clock.wait)

    async def read() -> float:
        assert list(await stage.read()) == []
        held = [stage.held_commit_time]
        stage.delay = 3
        assert stage.seconds_left() == 3
        assert [item for item in await stage.read() if isinstance(item, Group)]
        held.append(stage.held_commit_time)
        assert held == [1_000_000_000, None]
        return clock.now

    assert asyncio.run(read()) == 1003


def test_a_stop_ends_the_wait(clock: _Clock) -> None:
    clock.stopped = True
    assert taken(clock, [at(1, 1000)], 10) == [(1, 1000)]


def test_to_set_the_clock_of_this_machine_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5000.0
    monkeypatch.setattr(delay_stage, "time", lambda: now, raising=False)
    offset = 5000.0 - steady()
    stage = DelayStage(_Stream([at(1, 5000)]), 10, lambda: offset, _Clock(0).wait)

    async def read() -> list[StreamItem]:
        return list(await stage.read())

    assert asyncio.run(read()) == []
    now -= 86_400
    assert 0 < stage.seconds_left() <= 10
    now += 2 * 86_400
    assert 0 < stage.seconds_left() <= 10
