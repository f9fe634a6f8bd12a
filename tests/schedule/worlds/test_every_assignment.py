"""Whatever a policy answers, the schedule keeps it: every answer for a few groups, whole.

For each plan of workers, marks and groups to wait for, every interleaving of a run is gone
through. `SimulatedRun` checks in every state that no group begins or commits before what it waits
for, that something can go on, and that a worker that can begin has been woken.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

import pytest

from mtsd.model.group import GroupKind
from mtsd.schedule.batches.alone import AloneRule
from mtsd.schedule.policies.assignment import Assignment
from tests.schedule.worlds.exploring import crash_anywhere_once, explore
from tests.schedule.worlds.simulated_run import Mode, RunSettings
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Shape, Stream
from tests.schedule.worlds.whole_worlds import some

WORKERS = 3
ROWS = Shape(("a",))
ALONE = Shape(("a",), alone=True)
DDL = Shape(("a",), kind=GroupKind.DDL)
EMPTY = Shape((), kind=GroupKind.EMPTY)

Plan = tuple[Assignment, ...]


def placements(length: int) -> Iterator[tuple[int, ...]]:
    """Yield each way to place groups on the workers, that differs by more than their names."""
    for workers in product(range(WORKERS), repeat=length):
        if all(worker <= max(workers[:at], default=-1) + 1 for at, worker in enumerate(workers)):
            yield workers


def marks(length: int) -> Iterator[tuple[int, ...]]:
    """Yield each choice of a mark for every group."""
    return product(*(range(number) for number in range(1, length + 1)))


def earlier_groups(length: int) -> Iterator[tuple[frozenset[int], ...]]:
    """Yield each choice of groups to wait for, for every group."""
    return product(
        *(
            [
                frozenset(chosen)
                for chosen in chain.from_iterable(
                    combinations(range(1, number), count) for count in range(number)
                )
            ]
            for number in range(1, length + 1)
        )
    )


def settings_of(plan: Plan, alone: AloneRule = AloneRule(ddl=True)) -> RunSettings:  # noqa: B008
    return RunSettings(mode=Mode.PLANNED, workers=WORKERS, plan=plan, alone=alone)


def go_through(shapes: Sequence[Shape], plan: Plan) -> None:
    explore(Stream.of(shapes), SimulatedTarget(), settings_of(plan), checkpoints=False)


@pytest.mark.parametrize("workers", list(placements(4)), ids=str)
def test_every_mark_of_four_groups(workers: tuple[int, ...]) -> None:
    for chosen in some(marks(4)):
        plan = tuple(map(Assignment, workers, [frozenset()] * 4, chosen))
        go_through([ROWS] * 4, plan)


@pytest.mark.parametrize("workers", list(placements(4)), ids=str)
def test_every_group_to_wait_for_of_four(workers: tuple[int, ...]) -> None:
    for after in some(earlier_groups(4)):
        go_through([ROWS] * 4, tuple(map(Assignment, workers, after)))


@pytest.mark.parametrize("workers", list(placements(3)), ids=str)
def test_every_mark_beside_every_group_to_wait_for(workers: tuple[int, ...]) -> None:
    for chosen, after in some(product(marks(3), earlier_groups(3))):
        go_through([ROWS] * 3, tuple(map(Assignment, workers, after, chosen)))


@pytest.mark.parametrize("workers", list(placements(4)), ids=str)
@pytest.mark.parametrize("lonely", [ALONE, DDL], ids=["alone", "ddl"])
def test_groups_that_run_alone_under_any_policy(lonely: Shape, workers: tuple[int, ...]) -> None:
    for shapes in some(product((ROWS, lonely), repeat=4)):
        go_through(shapes, tuple(map(Assignment, workers)))
    go_through((ROWS, EMPTY, lonely, ROWS), tuple(map(Assignment, workers)))


FIVE = [
    ((0, 1, 2, 0, 1), (0, 0, 0, 2, 3)),
    ((0, 1, 2, 1, 0), (0, 0, 1, 1, 4)),
    ((0, 0, 1, 1, 2), (0, 0, 0, 0, 2)),
    ((0, 1, 0, 1, 0), (0, 0, 1, 2, 3)),
    ((0, 1, 1, 2, 2), (0, 0, 1, 3, 3)),
]


@pytest.mark.parametrize(("workers", "chosen"), FIVE, ids=str)
def test_marks_of_five_groups(workers: tuple[int, ...], chosen: tuple[int, ...]) -> None:
    go_through([ROWS] * 5, tuple(map(Assignment, workers, [frozenset()] * 5, chosen)))


@pytest.mark.parametrize(("workers", "chosen"), [((0, 1, 2, 0), (0, 0, 1, 2))], ids=str)
def test_marks_through_crashes_and_stops(workers: tuple[int, ...], chosen: tuple[int, ...]) -> None:
    plan = tuple(map(Assignment, workers, [frozenset()] * 4, chosen))
    crash_anywhere_once([ROWS, ROWS, EMPTY, ROWS], settings_of(plan))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("workers", list(placements(5)), ids=str)
def test_every_mark_of_five_groups(workers: tuple[int, ...]) -> None:
    for chosen in marks(5):
        go_through([ROWS] * 5, tuple(map(Assignment, workers, [frozenset()] * 5, chosen)))
