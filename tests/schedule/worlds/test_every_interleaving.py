"""Small worlds, whole: every interleaving of a few groups, and a crash in each of their states.

The steps of a run and of the target are searched as a graph: two ways that lead to one state are
followed once. What a crash leaves behind is a state of the target; every restart from each of
those is run too, searched again as a graph or to its end, so recovery is met in every state that
it can find.
"""

import pytest

from mtsd.model.group import GroupKind
from mtsd.schedule.limits import Limits
from tests.schedule.worlds.exploring import (
    ROTATE,
    crash_anywhere_again,
    crash_anywhere_once,
    name_of,
)
from tests.schedule.worlds.simulated_run import Mode, RunSettings
from tests.schedule.worlds.streams import Marker, Shape
from tests.schedule.worlds.whole_worlds import distinct, leading, some

A = Shape(("a",))
B = Shape(("b",))
C = Shape(("c",))
AB = Shape(("a", "b"))
BC = Shape(("b", "c"))
ALONE = Shape((), alone=True)
DDL = Shape(("a",), kind=GroupKind.DDL)
EMPTY = Shape((), kind=GroupKind.EMPTY)
STOP = Marker()

TWO = RunSettings(workers=2)
LONG = pytest.mark.long


MIRROR = {A: B, B: A, AB: AB, ALONE: ALONE}


@pytest.mark.parametrize("shapes", some(distinct((A, B, AB, ALONE), 3, MIRROR)), ids=name_of)
def test_three_groups_of_two_databases(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_once(shapes, TWO)


@pytest.mark.parametrize(
    "shapes",
    leading(
        [
            (A, ALONE, B, A),
            (A, B, ROTATE, B, ROTATE, EMPTY),
            (A, B, AB, A),
            pytest.param((A, B, AB, B, A), marks=LONG),
            (ALONE, A, ALONE, B),
            pytest.param((A, B, BC, AB, C), marks=LONG),
            (A, A, B, AB),
            (A, BC, B, AB),
            (DDL, B, A, DDL),
            (A, EMPTY, B, EMPTY, A),
            (A, B, ROTATE, STOP, A),
        ],
        2,
    ),
    ids=name_of,
)
def test_four_and_five_groups(shapes: tuple[Shape | Marker, ...]) -> None:
    crash_anywhere_once(shapes, TWO)


@pytest.mark.parametrize(
    "shapes",
    leading([(A, B, AB), (A, B, A), (A, ALONE, B), (A, B, C), (A, EMPTY, B, A)], 1),
    ids=name_of,
)
def test_any_number_of_crashes(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_again(shapes, (TWO, RunSettings(mode=Mode.SEQUENTIAL)))


def test_any_number_of_crashes_with_other_rows_dropped_and_databases_bound() -> None:
    bound = RunSettings(workers=3, bind=(("a", "b"),), drop_others=True)
    crash_anywhere_again((A, B, A), (TWO, bound))


@pytest.mark.parametrize("shapes", leading([(A, AB, B, A), (A, B, A, B)], 1), ids=name_of)
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
@pytest.mark.parametrize("shapes", list(distinct((A, B, AB, ALONE), 4, MIRROR)), ids=name_of)
def test_four_groups_and_any_number_of_crashes(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere_again(shapes, (TWO,))
