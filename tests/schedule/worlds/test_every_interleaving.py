"""Small worlds, whole: every interleaving of a few groups, and a crash in each of their states.

The steps of a run and of the target are searched as a graph: two ways that lead to one state are
followed once. What a crash leaves behind is a state of the target; every restart from each of
those is run too, searched again as a graph or to its end, so recovery is met in every state that
it can find.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import pytest

from mtsd.model.group import GroupKind
from mtsd.schedule.limits import Limits
from tests.schedule.worlds.simulated_run import Mode, RunSettings, SimulatedRun, Step
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Marker, Shape, Stream
from tests.schedule.worlds.whole_worlds import some

A = Shape(("a",))
B = Shape(("b",))
C = Shape(("c",))
AB = Shape(("a", "b"))
BC = Shape(("b", "c"))
ALONE = Shape((), alone=True)
DDL = Shape(("a",), kind=GroupKind.DDL)
EMPTY = Shape((), kind=GroupKind.EMPTY)
ROTATE = Marker(new_file=True, previous_gtids=True)
STOP = Marker()

TWO = RunSettings(workers=2)
LONG = pytest.mark.long
AFTERWARDS = (
    RunSettings(workers=2),
    RunSettings(workers=3, drop_others=True),
    RunSettings(mode=Mode.SEQUENTIAL),
)


def explore(
    stream: Stream,
    target: SimulatedTarget,
    settings: RunSettings,
    *,
    stops: bool = False,
    checkpoints: bool = True,
    run: type[SimulatedRun] = SimulatedRun,
) -> dict[tuple[object, ...], SimulatedTarget]:
    """Go through every state of a run; return the states of the target that a crash can leave.

    With `stops`, try a graceful stop in each state too. Without `checkpoints` there are none
    before the end, so far fewer states.
    """
    first = run(stream, target, settings)
    left = {target.key(): target}
    seen = {first.key()}
    open_states = [first]
    while open_states:
        state = open_states.pop()
        if stops:
            stopped = state.fork()
            stopped.stop()
            stopped.finish()
        choices = state.choices()
        if not checkpoints:
            choices = [choice for choice in choices if choice[0] is not Step.COMPUTE]
        if not choices:
            state.fork().finish()
        for number, choice in enumerate(choices):
            follower = state if number + 1 == len(choices) else state.fork()
            follower.perform(choice)
            key = follower.key()
            if key in seen:
                continue
            seen.add(key)
            open_states.append(follower)
            if follower.target.key() not in left:
                left[follower.target.key()] = follower.target.fork()
    return left


def restart(stream: Stream, target: SimulatedTarget, settings: RunSettings) -> None:
    """Recover and run to the end of the stream."""
    target = target.fork()
    SimulatedRun(stream, target, settings).finish()
    assert set(target.applied) == {g.number for g in stream.groups if g.kind is not GroupKind.EMPTY}


def crash_anywhere_once(shapes: Iterable[Shape | Marker], settings: RunSettings) -> None:
    """Restart from each state that one run can leave."""
    stream = Stream.of(shapes)
    for target in explore(stream, SimulatedTarget(), settings, stops=True).values():
        for afterwards in AFTERWARDS:
            restart(stream, target, afterwards)


def crash_anywhere_again(
    shapes: Iterable[Shape | Marker], several_settings: Sequence[RunSettings]
) -> None:
    """Go through every state of every run from each state that any number of crashes can leave."""
    stream = Stream.of(shapes)
    fresh = SimulatedTarget()
    left = {fresh.key(): fresh}
    open_targets = [fresh]
    while open_targets:
        target = open_targets.pop()
        for settings in several_settings:
            for key, found in explore(stream, target.fork(), settings).items():
                if key not in left:
                    left[key] = found
                    open_targets.append(found)


def distinct_streams(kinds: Sequence[Shape], length: int) -> Iterator[tuple[Shape, ...]]:
    """Yield the streams of a length that differ by more than the databases' names."""
    swap = {A: B, B: A}
    for shapes in product(kinds, repeat=length):
        mirrored = tuple(swap.get(shape, shape) for shape in shapes)
        if kinds.index(shapes[0]) <= kinds.index(mirrored[0]):
            yield shapes


def name_of(shapes: Iterable[Shape | Marker]) -> str:
    return " ".join(
        ("rotate" if shape.new_file else "stop")
        if isinstance(shape, Marker)
        else shape.kind.value
        if shape.kind is not GroupKind.ROWS
        else "alone"
        if shape.alone
        else "".join(shape.databases)
        for shape in shapes
    )


@pytest.mark.parametrize("shapes", some(distinct_streams((A, B, AB, ALONE), 3)), ids=name_of)
def test_three_groups_of_two_databases(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_once(shapes, TWO)


@pytest.mark.parametrize(
    "shapes",
    [
        (A, B, AB, A),
        pytest.param((A, B, AB, B, A), marks=LONG),
        (A, ALONE, B, A),
        (ALONE, A, ALONE, B),
        pytest.param((A, B, BC, AB, C), marks=LONG),
        (A, A, B, AB),
        (A, BC, B, AB),
        (DDL, B, A, DDL),
        (A, EMPTY, B, EMPTY, A),
        (A, B, ROTATE, B, ROTATE, EMPTY),
        (A, B, ROTATE, STOP, A),
    ],
    ids=name_of,
)
def test_four_and_five_groups(shapes: tuple[Shape | Marker, ...]) -> None:
    crash_anywhere_once(shapes, TWO)


@pytest.mark.parametrize(
    "shapes", [(A, B, A), (A, B, AB), (A, ALONE, B), (A, B, C), (A, EMPTY, B, A)], ids=name_of
)
def test_any_number_of_crashes(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_again(shapes, (TWO, RunSettings(mode=Mode.SEQUENTIAL)))


def test_any_number_of_crashes_with_other_rows_dropped_and_databases_bound() -> None:
    bound = RunSettings(workers=3, bind=(("a", "b"),), drop_others=True)
    crash_anywhere_again((A, B, A), (TWO, bound))


@pytest.mark.parametrize("shapes", [(A, B, A, B), (A, AB, B, A)], ids=name_of)
@pytest.mark.parametrize(
    "limits",
    [
        Limits(checkpoint_group=2, pending_jobs_size_max=1000, batch_groups=2, batch_bytes=1000),
        Limits(checkpoint_group=9, pending_jobs_size_max=250, batch_groups=1, batch_bytes=1000),
        Limits(checkpoint_group=1, pending_jobs_size_max=1, batch_groups=9, batch_bytes=1),
    ],
    ids=str,
)
def test_narrow_limits(shapes: tuple[Shape, ...], limits: Limits) -> None:
    crash_anywhere_again(shapes, (RunSettings(workers=2, limits=limits),))


@pytest.mark.long
@pytest.mark.parametrize(
    "shapes",
    [(A, B, ALONE, A, B), (A, A, B, B, AB), (A, B, C, AB, C), (A, B, C, A, B)],
    ids=name_of,
)
def test_five_groups(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_once(shapes, TWO)
    crash_anywhere_once(shapes, RunSettings(workers=3))


@pytest.mark.long
@pytest.mark.parametrize("shapes", list(distinct_streams((A, B, AB, ALONE), 4)), ids=name_of)
def test_four_groups_and_any_number_of_crashes(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_again(shapes, (TWO,))
