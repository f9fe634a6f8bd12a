"""Commits in the stream's order over all workers: small worlds, whole, for every policy.

What a reader can see is what has committed: `SimulatedRun` checks at each commit that nothing
before it is missing. A batch that is held open may be rolled back at any time.
"""

import itertools
from collections.abc import Sequence
from typing import ClassVar

import pytest

from mtsd.model.group import GroupKind
from mtsd.model.group_keys import GroupKeys
from mtsd.schedule.limits import Limits
from tests.schedule.worlds.exploring import ROTATE, explore, name_of, restart
from tests.schedule.worlds.pipelined_run import PipelinedRun
from tests.schedule.worlds.simulated_run import Mode, RunSettings, SimulatedRun
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Marker, Shape, Stream
from tests.schedule.worlds.timed_streams import NEW_FILE, clocks, name_of_times, timed
from tests.schedule.worlds.whole_worlds import some

A, B, C, AB = (
    Shape(
        tuple(names),
        tables=tuple(f"{name}.t" for name in names),
        keys=GroupKeys(tuple(map(ord, names))),
    )
    for names in ("a", "b", "c", "ab")
)
ALONE = Shape((), alone=True)
DDL = Shape(("a",), kind=GroupKind.DDL)
EMPTY = Shape((), kind=GroupKind.EMPTY)
PAIRS = Limits(
    checkpoint_group=99, pending_jobs_size_max=1 << 30, batch_groups=2, batch_bytes=1 << 20
)
SINGLE = Limits(checkpoint_group=99, pending_jobs_size_max=1 << 30, batch_groups=1, batch_bytes=1)
NARROW = Limits(checkpoint_group=2, pending_jobs_size_max=250, batch_groups=2, batch_bytes=1000)
STREAMS: Sequence[Sequence[Shape | Marker]] = (
    (A, B, C, A),
    (A, B, AB, C),
    (A, ALONE, B, C),
    (A, DDL, B, C),
    (A, EMPTY, B, C),
)


def crash_anywhere(
    shapes: Sequence[Shape | Marker],
    settings: RunSettings,
    run: type[SimulatedRun] = SimulatedRun,
    *,
    stops: bool = False,
) -> None:
    stream = Stream.of(shapes)
    left = explore(stream, SimulatedTarget(), settings, checkpoints=False, run=run, stops=stops)
    for target in left.values():
        restart(stream, target, settings)
        restart(stream, target, RunSettings(workers=2))


@pytest.mark.parametrize("shapes", STREAMS, ids=name_of)
@pytest.mark.parametrize("mode", [Mode.DATABASE, Mode.TABLE, Mode.ROW])
@pytest.mark.parametrize("limits", [PAIRS, SINGLE, NARROW], ids=["pairs", "one by one", "narrow"])
def test_three_workers(shapes: Sequence[Shape | Marker], mode: Mode, limits: Limits) -> None:
    settings = RunSettings(mode=mode, workers=3, limits=limits, in_order=True)
    crash_anywhere(shapes, settings, stops=True)


class WatchedRun(SimulatedRun):
    """Notes how many workers have begun something at once, in any of its states."""

    most: ClassVar[int] = 0

    def check(self) -> None:
        """Check the invariants, and look at what is in flight."""
        super().check()
        WatchedRun.most = max(WatchedRun.most, sum(map(bool, self.running)))


BY_THE_SOURCE = pytest.mark.parametrize("mode", [Mode.LOGICAL_CLOCK, Mode.COMMIT_PARENT])


@BY_THE_SOURCE
@pytest.mark.parametrize("first", list(clocks(2)), ids=name_of_times)
def test_every_clock(first: tuple[Shape, ...], mode: Mode) -> None:
    settings = RunSettings(mode=mode, workers=3, limits=SINGLE, in_order=True)
    WatchedRun.most = 0
    for others in some(shapes[2:] for shapes in clocks(4) if shapes[:2] == first):
        stream = Stream.of([*first, *others])
        explore(stream, SimulatedTarget(), settings, checkpoints=False, run=WatchedRun)
    # Whatever the first two are, some of the others have nothing to wait for.
    assert WatchedRun.most >= 2, "nothing has run in parallel"


TIMES: Sequence[Sequence[Shape | Marker]] = (
    (timed(0, 1), timed(1, 2), timed(1, 3), timed(1, 4)),
    (timed(0, 1), timed(1, 2), timed(1, 3), timed(2, 4)),
    (timed(0, 1), timed(1, 2), timed(1, 3, GroupKind.DDL), timed(1, 4)),
    (timed(0, 1), timed(1, 2), timed(1, 3, GroupKind.EMPTY), timed(1, 4)),
    (timed(0, 1), timed(1, 2), NEW_FILE, timed(0, 1), timed(1, 2)),
)


@BY_THE_SOURCE
@pytest.mark.parametrize("shapes", TIMES, ids=name_of_times)
@pytest.mark.parametrize("limits", [PAIRS, SINGLE, NARROW], ids=["pairs", "one by one", "narrow"])
def test_three_workers_by_the_source(
    shapes: Sequence[Shape | Marker], mode: Mode, limits: Limits
) -> None:
    settings = RunSettings(mode=mode, workers=3, limits=limits, in_order=True)
    crash_anywhere(shapes, settings, stops=True)


@pytest.mark.parametrize(
    "mode", [Mode.DATABASE, Mode.TABLE, Mode.LOGICAL_CLOCK, Mode.COMMIT_PARENT, Mode.ROW]
)
def test_all_workers_run_at_once(mode: Mode) -> None:
    """Under every policy there is something to put in order in these small worlds."""
    shapes: Sequence[Shape] = (A, B, C)
    if mode in {Mode.LOGICAL_CLOCK, Mode.COMMIT_PARENT}:
        shapes = (timed(0, 1), timed(1, 2), timed(1, 3), timed(1, 4))
    settings = RunSettings(mode=mode, workers=3, limits=SINGLE, in_order=True)
    WatchedRun.most = 0
    stream = Stream.of(shapes)
    explore(stream, SimulatedTarget(), settings, checkpoints=False, run=WatchedRun)
    assert WatchedRun.most == 3


@pytest.mark.parametrize("shapes", [(A, B, A), (A, B, C, EMPTY), (A, DDL, B)], ids=name_of)
@pytest.mark.parametrize("limits", [PAIRS, SINGLE], ids=["pairs", "one by one"])
def test_what_is_held_open(shapes: Sequence[Shape | Marker], limits: Limits) -> None:
    settings = RunSettings(workers=2, limits=limits, in_order=True)
    crash_anywhere(shapes, settings, PipelinedRun)


@pytest.mark.long
@pytest.mark.parametrize(
    "shapes", [(A, B, C, A), (A, B, C, B), (A, B, DDL, C), (A, ROTATE, B, C)], ids=name_of
)
@pytest.mark.parametrize("limits", [PAIRS, SINGLE], ids=["pairs", "one by one"])
def test_more_of_what_is_held_open(shapes: Sequence[Shape | Marker], limits: Limits) -> None:
    settings = RunSettings(workers=3, limits=limits, in_order=True)
    crash_anywhere(shapes, settings, PipelinedRun)


@pytest.mark.parametrize("policy", ["database", "table", "logical_clock", "commit_parent", "row"])
def test_runs_of_consecutive_groups_commit_together(policy: str) -> None:
    """Whatever the policy: otherwise nothing could be combined."""
    mode = Mode(policy)
    stream = Stream.of([Shape((f"d{number}",)) for number in range(64)])
    limits = Limits(
        checkpoint_group=999, pending_jobs_size_max=1 << 30, batch_groups=16, batch_bytes=1 << 20
    )
    settings = RunSettings(mode=mode, workers=4, limits=limits, in_order=True)
    run = SimulatedRun(stream, SimulatedTarget(), settings)
    while run.can_read():
        run.read()
    queues = [[group.number for group in queue.pending()] for queue in run.scheduler.workers]
    runs = sum(
        1 + sum(second != first + 1 for first, second in itertools.pairwise(numbers))
        for numbers in queues
    )
    # One group for each worker that has nothing to do, then 16 at a time; all at one worker where
    # each waits for the one before.
    assert runs <= 4 + 64 // 16
    run.finish()
