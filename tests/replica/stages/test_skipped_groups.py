"""Groups that are passed over, whatever they are: without a server, as only the numbers decide."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mtsd.model.errors import ApplyError, MtsdError, NeedsPersonError, NotSupportedError
from mtsd.model.group import GroupChunk, GroupClosed, GroupKind, GroupOpened, StreamItem
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import Position
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.recovery.recovery import row_of_recovery
from mtsd.replica.run.dispatch import Dispatcher
from mtsd.replica.stages.skipped_groups import AsSkipped
from mtsd.replica.workers.streamed_groups import StreamedGroups
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.sequential_policy import SequentialPolicy
from mtsd.schedule.scheduler import Scheduler
from mtsd.schedule.wait_cause import WaitCause
from tests.replica.item_stream import ItemStream
from tests.schedule.worlds.streams import SOURCE_UUID, START, START_MARK, Shape, group_of

END = Position("binlog.000001", 500)
ROWS = group_of(Shape(("a",)), 1, END)
INCIDENT = group_of(Shape((), kind=GroupKind.INCIDENT), 1, END)
UNSUPPORTED = group_of(Shape(("a",), kind=GroupKind.XA_PREPARE, unsupported="XA"), 1, END)
LARGE = (
    GroupOpened(1, ROWS.gtid, 0, 1 << 30, b"", unsupported="load data"),
    GroupChunk((), 1),
    GroupClosed(replace(ROWS, unsupported="load data")),
)


def coordinator(executed: Sequence[int]) -> Coordinator:
    done = ExecutedGroups(1).with_numbers(executed)
    limits = Limits(100, 1 << 20, 1, 1 << 20)
    return Coordinator(Scheduler(SequentialPolicy(), 1, limits, START_MARK, done))


async def dispatched(
    items: Sequence[StreamItem], executed: Sequence[int], preserved: GtidSet | None = None
) -> Coordinator:
    hub = coordinator(executed)
    streamed = StreamedGroups(hub, cast("Worker", SimpleNamespace(applier=None)), preserved)
    await Dispatcher(ItemStream(items), hub, streamed, preserved).run()
    return hub


@pytest.mark.parametrize("items", [(INCIDENT,), (UNSUPPORTED,), LARGE])
async def test_passed_over_where_it_counts_as_executed(items: Sequence[StreamItem]) -> None:
    hub = await dispatched(items, [1])
    assert hub.scheduler.gaq.number == 1
    assert hub.scheduler.gaq.position == END
    hub = await dispatched(items, [1], GtidSet.parse(str(ROWS.gtid)))
    assert hub.scheduler.gaq.number == 1


@pytest.mark.parametrize(
    ("items", "error", "group"),
    [
        ((INCIDENT,), ApplyError, FailedGroup.of(INCIDENT)),
        ((UNSUPPORTED,), NotSupportedError, FailedGroup.of(UNSUPPORTED)),
        (LARGE, NotSupportedError, FailedGroup(1, None, str(ROWS.gtid), (), "streamed")),
    ],
)
async def test_the_error_names_the_group_and_the_way_past(
    items: Sequence[StreamItem], error: type[MtsdError], group: FailedGroup
) -> None:
    with pytest.raises(error, match="mtsd skip --group 1 --reason TEXT") as raised:
        await dispatched(items, [])
    assert isinstance(raised.value, MtsdError)
    assert raised.value.group == group


_NUMBERS = st.frozensets(st.integers(1, 12))


@given(mark=st.integers(0, 6), rows=st.lists(_NUMBERS, max_size=4), skipped=st.integers(1, 12))
def test_a_skip_adds_its_group_to_what_the_rows_prove_and_nothing_else(
    mark: int, rows: list[frozenset[int]], skipped: int
) -> None:
    assume(skipped > mark)
    place = LowWaterMark(mark, START, gtids_of(range(1, mark + 1)))
    workers = [
        WorkerRow(id_, None, START, ExecutedGroups(1).with_numbers(numbers), gtids_of(numbers))
        for id_, numbers in enumerate(rows)
    ]
    group = FailedGroup.of(group_of(Shape(("a",)), skipped, END))
    row = row_of_recovery(place, workers, [group])
    expected = {number for number in frozenset().union(*rows) | {skipped} if number > mark}
    assert set(row.executed) == expected
    assert row.gtids == gtids_of(sorted(expected))
    # Killed anywhere behind that, a start finds the same in all rows together.
    again = row_of_recovery(place, [*workers, row], [])
    assert (again.executed, again.gtids) == (row.executed, row.gtids)


def gtids_of(numbers: Iterable[int]) -> GtidSet:
    gtids = GtidSet()
    for number in numbers:
        gtids.add(Gtid(SOURCE_UUID, number))
    return gtids


@pytest.mark.parametrize("item", [ROWS, GroupClosed(ROWS)])
@pytest.mark.parametrize(
    "skipped",
    [
        FailedGroup.of(ROWS),
        replace(FailedGroup.of(ROWS), gtid=""),
        # Another server of the topology has it elsewhere.
        replace(FailedGroup.of(ROWS), end=START),
        replace(FailedGroup.of(ROWS), gtid="", end=None),
    ],
)
async def test_the_group_that_was_skipped(item: StreamItem, skipped: FailedGroup) -> None:
    stream = AsSkipped(ItemStream([item, item]), [skipped])
    assert list(await stream.read()) == [item]
    assert list(await stream.read()) == [item]


@pytest.mark.parametrize("item", [ROWS, GroupClosed(ROWS)])
@pytest.mark.parametrize(
    "skipped",
    [
        replace(FailedGroup.of(ROWS), gtid="3e11fa47-71ca-11e1-9e33-c80aa9429562:1"),
        replace(FailedGroup.of(ROWS), gtid="", end=START),
    ],
)
async def test_another_group_in_its_place(item: StreamItem, skipped: FailedGroup) -> None:
    items = await AsSkipped(ItemStream([item]), [skipped]).read()
    with pytest.raises(NeedsPersonError, match="the source has another group in its place"):
        next(items)


async def test_what_is_refused_waits_for_the_next_start_if_a_stop_comes_first() -> None:
    hub = coordinator([])
    streamed = StreamedGroups(hub, cast("Worker", SimpleNamespace(applier=None)))
    stream = ItemStream([ROWS, replace(UNSUPPORTED, number=2)])
    dispatching = asyncio.create_task(Dispatcher(stream, hub, streamed).run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not hub.scheduler.idle
    assert not dispatching.done()
    # Group 1 has not begun: it is not to be applied any more.
    hub.stop(reading=True)
    await dispatching
    assert hub.scheduler.gaq.number == 0


async def test_so_many_that_the_queue_is_full_are_stored_soon() -> None:
    hub = coordinator([])
    most = hub.scheduler.limits.checkpoint_group
    passed = [group_of(Shape((), kind=GroupKind.EMPTY), 1 + each, END) for each in range(most)]
    assert hub.take_in(iter(passed[: most // 8])) is None
    assert not hub.checkpoint_due.is_set()
    assert hub.take_in(iter(passed[most // 8 :])) is None
    assert hub.scheduler.blocked(0) is WaitCause.GAQ_FULL
    assert hub.checkpoint_due.is_set()
