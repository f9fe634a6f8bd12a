"""Small worlds under each policy, whole: every interleaving of four groups over three workers.

`SimulatedRun` checks in every state that no group begins or commits before one that it may depend
on, that something can go on, and that a worker that can begin has been woken.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from mtsd.model.group import GroupKind
from mtsd.model.group_keys import GroupKeys
from tests.schedule.worlds.exploring import crash_anywhere_again, crash_anywhere_once, go_through
from tests.schedule.worlds.simulated_run import Mode, RunSettings
from tests.schedule.worlds.streams import Marker, Shape
from tests.schedule.worlds.timed_streams import NEW_FILE, clocks, name_of_times, timed
from tests.schedule.worlds.whole_worlds import distinct, leading, some

EMPTY = Shape((), kind=GroupKind.EMPTY)
ALONE = Shape(("a",), alone=True)
BY_CLOCK = RunSettings(mode=Mode.LOGICAL_CLOCK, workers=3)
BY_PARENT = RunSettings(mode=Mode.COMMIT_PARENT, workers=3)
BY_EITHER = pytest.mark.parametrize("settings", [BY_CLOCK, BY_PARENT], ids=["clock", "parent"])
BY_DATABASE = RunSettings(mode=Mode.DATABASE, workers=3)
SEQUENTIAL = RunSettings(mode=Mode.SEQUENTIAL)


def of_both(files: tuple[tuple[Shape, ...], tuple[Shape, ...]]) -> Iterator[tuple[int, int, Shape]]:
    """Yield the groups of two files, each with its place."""
    for file, shapes in enumerate(files):
        for at, shape in enumerate(shapes):
            yield file, at, shape


@BY_EITHER
@pytest.mark.parametrize("first", list(clocks(2)), ids=name_of_times)
def test_every_clock(first: tuple[Shape, ...], settings: RunSettings) -> None:
    for others in some(shapes[2:] for shapes in clocks(4) if shapes[:2] == first):
        go_through([*first, *others], settings)


@BY_EITHER
@pytest.mark.parametrize("at", [1, 2, 3])
def test_every_clock_over_two_files(at: int, settings: RunSettings) -> None:
    for before, after in some(product(clocks(at), clocks(4 - at)), of_both):
        go_through([*before, NEW_FILE, *after], settings)


@pytest.mark.parametrize("kind", [GroupKind.ROWS, GroupKind.DDL])
def test_every_group_commit_of_mariadb(kind: GroupKind) -> None:
    for ids in some(product((0, 5, 6), repeat=4)):
        shapes = [Shape(("a",), commit_id=commit_id) for commit_id in ids]
        go_through([*shapes[:3], replace(shapes[3], kind=kind)], BY_PARENT)
        go_through([shapes[0], replace(shapes[1], kind=kind), NEW_FILE, *shapes[2:]], BY_PARENT)


@BY_EITHER
@pytest.mark.parametrize("kind", [GroupKind.DDL, GroupKind.NON_TRANSACTIONAL, GroupKind.EMPTY])
def test_every_clock_beside_groups_that_share_no_commit(
    kind: GroupKind, settings: RunSettings
) -> None:
    for shapes, at in some(product(clocks(3), range(3))):
        changed = [*shapes]
        changed[at] = timed(*shapes[at].clock, kind=kind)
        go_through([*changed, timed(1, 4)], settings)


DATABASES = [Shape(("a",)), Shape(("b",)), Shape(("a", "b")), ALONE]


@pytest.mark.parametrize("first", range(4))
def test_every_choice_of_databases(first: int) -> None:
    one, other, both, _ = DATABASES
    mirror = {one: other, other: one, both: both}
    streams = distinct(DATABASES, 4, mirror)
    for shapes in some(each for each in streams if each[0] == DATABASES[first]):
        go_through(shapes, BY_DATABASE)


BY_TABLE = RunSettings(mode=Mode.TABLE, workers=3)
TABLES = [
    *[Shape(("a",), tables=(f"a.{name}",)) for name in "tu"],
    Shape(("a",), tables=("a.t", "a.u")),
    Shape(("b",), tables=("b.t",)),
    Shape(("a",), kind=GroupKind.DDL),
    Shape(("a", "b"), kind=GroupKind.STATEMENTS),
]


@pytest.mark.parametrize(
    "first", [2, 4, *(pytest.param(at, marks=pytest.mark.long) for at in (0, 3, 5))]
)
def test_every_choice_of_tables(first: int) -> None:
    one, other, *others = TABLES
    streams = distinct(TABLES, 4, {one: other, other: one, **{each: each for each in others}})
    for shapes in some(each for each in streams if each[0] == TABLES[first]):
        go_through(shapes, BY_TABLE)


BY_ROW = RunSettings(mode=Mode.ROW, workers=3)
DATABASE, TABLE, OTHER_TABLE = 100, 101, 102


def of_rows(*rows: int, references: tuple[int, ...] = (), table: int = TABLE) -> Shape:
    return Shape(("a",), keys=GroupKeys(tuple(rows), references, parts=(DATABASE, table)))


ROWS = [
    of_rows(1),
    of_rows(2, references=(1,)),
    of_rows(1, 2),
    of_rows(3, references=(1,), table=OTHER_TABLE),
    Shape(("a",), keys=GroupKeys(wholes=(TABLE,), parts=(DATABASE,))),
    Shape(("a",), kind=GroupKind.DDL, keys=GroupKeys(wholes=(DATABASE,))),
]


@pytest.mark.parametrize(
    "first", [0, 4, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 2, 3, 5))]
)
def test_every_choice_of_rows(first: int) -> None:
    for others in some(product(ROWS, repeat=3)):
        go_through([ROWS[first], *others], BY_ROW)


def test_groups_that_run_alone() -> None:
    for parents in product(range(1), range(2), range(3)):
        times = [timed(parent, number) for number, parent in enumerate(parents, 1)]
        for at in range(4):
            go_through([*times[:at], ALONE, *times[at:]], BY_CLOCK)


CRASHES = [
    (timed(0, 1), timed(1, 2), timed(1, 3), timed(2, 4)),
    (timed(0, 1), timed(1, 2), timed(0, 0), timed(1, 4)),
    (timed(0, 1), timed(1, 2), NEW_FILE, timed(0, 1), timed(1, 2)),
    (timed(0, 1), timed(1, 2), EMPTY, timed(1, 4), timed(2, 5)),
]


@BY_EITHER
@pytest.mark.parametrize("items", leading(CRASHES, 1), ids=name_of_times)
def test_crashes(items: tuple[Shape | Marker, ...], settings: RunSettings) -> None:
    crash_anywhere_once(items, settings)


@pytest.mark.parametrize("second", leading(range(0, len(TABLES), 2), 1))
def test_crashes_by_table(second: int) -> None:
    crash_anywhere_once([TABLES[0], TABLES[second], TABLES[3], TABLES[1]], BY_TABLE)


@pytest.mark.parametrize("second", leading([1, 2, 4], 1))
def test_crashes_by_row(second: int) -> None:
    crash_anywhere_once([ROWS[0], ROWS[second], ROWS[3], ROWS[0]], BY_ROW)


@pytest.mark.parametrize(
    "others",
    [BY_DATABASE, BY_TABLE, BY_ROW, BY_PARENT, SEQUENTIAL],
    ids=["database", "table", "row", "parent", "sequential"],
)
def test_crashes_and_another_policy_after_each(others: RunSettings) -> None:
    """What one policy has committed out of order is valid under any other."""
    names = [
        Shape((name,), clock=(min(at, 1), at + 1), keys=GroupKeys((ord(name),)))
        for at, name in enumerate("aba")
    ]
    crash_anywhere_again(names, (BY_CLOCK, others))


@BY_EITHER
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", list(clocks(2)), ids=name_of_times)
def test_every_clock_of_five_groups(first: tuple[Shape, ...], settings: RunSettings) -> None:
    for shapes in clocks(5):
        if shapes[:2] == first:
            go_through(shapes, settings)


@BY_EITHER
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", list(clocks(2)), ids=name_of_times)
def test_crashes_under_every_clock(first: tuple[Shape, ...], settings: RunSettings) -> None:
    for shapes in clocks(4):
        if shapes[:2] == first:
            crash_anywhere_once(shapes, settings)
