"""A stop at each step of a streamed group that turns out not to be transactional on the target."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from mtsd.model.group import Group, GroupChunk, GroupClosed, GroupKind, GroupOpened
from mtsd.model.position import Position
from mtsd.model.step import Rows
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.run.dispatch import Dispatcher
from mtsd.replica.workers.streamed_groups import StreamedGroups
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.sequential_policy import SequentialPolicy
from mtsd.schedule.scheduler import Scheduler
from tests.replica.item_stream import ItemStream
from tests.schedule.worlds.streams import START_MARK, Shape, group_of

GROUP = group_of(Shape(("a",), kind=GroupKind.NON_TRANSACTIONAL), 1, Position("binlog.000001", 500))
ITEMS = (
    GroupOpened(1, GROUP.gtid, 0, 1 << 30, b""),
    GroupChunk((Rows((), None),), 1),
    GroupChunk((Rows((), None),), 1),
    GroupClosed(replace(GROUP, steps=())),
)


class _Applier:
    """Notes what is done, and calls `during` in the middle of it."""

    closed = False
    preserves = False

    def __init__(self, during: Callable[[str], None]) -> None:
        self._during = during
        self.records = self.tables = self
        self.done: list[str] = []

    async def begin(self, *_: object, **__: object) -> None:
        self._during("begin")

    async def may_change_without_transactions(self, *_: object) -> bool:
        self._during("look")
        return True

    async def commit_in_doubt(self, _: object) -> None:
        self._during("commit in doubt")
        self.done.append("in doubt")

    async def apply_steps(self, _: object) -> None:
        self._during("apply")
        self.done.append("applied")

    async def settle(self, *_: object) -> None:
        self._during("settle")
        self.done.append("settled")

    async def rollback(self) -> None:
        self.done.append("rolled back")


@pytest.mark.parametrize(
    ("stopped_in", "done"),
    [
        ("begin", ["rolled back"]),
        ("look", ["rolled back"]),
        ("commit in doubt", ["in doubt", "applied", "applied", "settled"]),
        ("apply", ["in doubt", "applied", "applied", "settled"]),
        ("settle", ["in doubt", "applied", "applied", "settled"]),
    ],
)
async def test_it_is_finished_or_has_left_nothing(stopped_in: str, done: list[str]) -> None:
    limits = Limits(100, 1 << 20, 1, 1 << 20)
    scheduler = Scheduler(SequentialPolicy(), 1, limits, START_MARK, ExecutedGroups(1))
    hub = Coordinator(scheduler)

    def during(step: str) -> None:
        if step == stopped_in:
            hub.stop(reading=True)

    def applied(group: Group, *_: object, **__: object) -> None:
        hub.add_committed(group)

    applier = _Applier(during)
    worker = SimpleNamespace(
        applier=applier,
        index=0,
        progress=SimpleNamespace(applied=applied, row_after=lambda _: None),
        settings=SimpleNamespace(daemon_uuid="", show_themselves=frozenset()),
    )
    streamed = StreamedGroups(hub, cast("Worker", worker))
    await Dispatcher(ItemStream(ITEMS), hub, streamed).run()
    assert applier.done == done
    assert hub.ended.is_set()
    assert scheduler.gaq.number == ("settled" in done)


async def test_a_failure_before_its_turn_leaves_the_session_to_the_worker() -> None:
    limits = Limits(100, 1 << 20, 1, 1 << 20)
    hub = Coordinator(Scheduler(SequentialPolicy(), 1, limits, START_MARK, ExecutedGroups(1)))
    applier = _Applier(lambda _: None)
    worker = SimpleNamespace(applier=applier, index=0)
    earlier = group_of(Shape(("a",)), 1, Position("binlog.000001", 400))
    stream = ItemStream([earlier, GroupOpened(2, GROUP.gtid, 0, 1 << 30, b"")])
    streamed = StreamedGroups(hub, cast("Worker", worker))
    dispatching = asyncio.create_task(Dispatcher(stream, hub, streamed).run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert hub.scheduler.take(0) == (earlier,)
    # The worker still waits for the answer to what it has sent in its session.
    hub.fail(ValueError())
    await dispatching
    assert applier.done == []
