"""Databases bound, pinned and weighed while groups are unfinished, and workers frozen."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from random import Random

import pytest

from mtsd.model.distribution import HEAVIEST, Distribution, NotPossibleError
from mtsd.model.group import GroupKind
from mtsd.model.group_keys import GroupKeys
from mtsd.schedule.wait_cause import WaitCause
from tests.schedule.timed_run import Run
from tests.schedule.worlds.exploring import explore, name_of
from tests.schedule.worlds.simulated_run import Freeze, Mode, RunSettings, SimulatedRun
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Shape, Stream, group

A, B, C = (Shape((name,), tables=(f"{name}.t",)) for name in "abc")
AB = Shape(("a", "b"), tables=("a.t", "b.t"))
ALONE = Shape((), alone=True)
DDL = Shape(("a",), kind=GroupKind.DDL)
BOUND = Distribution(bind=(("a", "b"),))
NONE = Distribution()
PINNED = Distribution(pin=(("a", 2),))
BOTH = Distribution(bind=(("a", "b"),), pin=(("b", 1),), weigh=(("a", 5),))
OTHERS = Distribution(bind=(("b", "c"),))
FROZEN = (Freeze(0, frozen=True), Freeze(0, frozen=False))
NAMES = pytest.mark.parametrize("mode", [Mode.DATABASE, Mode.TABLE])


def go_through(
    shapes: Sequence[Shape],
    by_hand: Sequence[Distribution | Freeze],
    mode: Mode = Mode.DATABASE,
    *,
    stops: bool = False,
) -> None:
    """Try every interleaving of the groups, the commits and what a person does.

    With `stops`, a stop in each state too.
    """
    settings = RunSettings(mode=mode, workers=2, by_hand=tuple(by_hand))
    explore(Stream.of(shapes), SimulatedTarget(), settings, stops=stops, checkpoints=False)


@NAMES
@pytest.mark.parametrize("change", [BOUND, PINNED, BOTH], ids=["bind", "pin", "both"])
@pytest.mark.parametrize("shapes", [(A, B, AB), (A, B, A)], ids=name_of)
def test_a_change_at_any_moment(shapes: Sequence[Shape], change: Distribution, mode: Mode) -> None:
    go_through(shapes, [change], mode)


@NAMES
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("change", [BOUND, PINNED, BOTH], ids=["bind", "pin", "both"])
@pytest.mark.parametrize("shapes", list(product((A, B, AB), repeat=3)), ids=name_of)
def test_a_change_at_any_moment_of_any_stream(
    shapes: Sequence[Shape], change: Distribution, mode: Mode
) -> None:
    go_through([*shapes, B], [change], mode)


@NAMES
@pytest.mark.parametrize(
    "changes",
    [(BOUND, NONE), (BOUND, OTHERS), (BOTH, PINNED)],
    ids=["bind-unbind", "bind-others", "less"],
)
def test_two_changes_at_any_moments(changes: Sequence[Distribution], mode: Mode) -> None:
    go_through([A, B, A], changes, mode)


@NAMES
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shapes", [(A, B, A, B), (A, B, C, B), (B, DDL, A, B)], ids=name_of)
def test_two_changes_at_any_moments_of_others(shapes: Sequence[Shape], mode: Mode) -> None:
    for changes in ((BOUND, NONE), (BOUND, OTHERS), (BOTH, PINNED)):
        go_through(shapes, changes, mode)


def shape_parts(shape: Shape) -> tuple[int, ...]:
    """Return the keys of a shape's databases, which differ from those of its rows."""
    return tuple(-ord(name) for name in shape.databases)


@pytest.mark.parametrize(
    "shapes",
    [(A, B, A), (A, ALONE, B), (A, AB, B), (DDL, A, B)],
    ids=name_of,
)
@pytest.mark.parametrize(
    "mode",
    [
        Mode.DATABASE,
        Mode.TABLE,
        Mode.LOGICAL_CLOCK,
        Mode.COMMIT_PARENT,
        Mode.ROW,
        Mode.SEQUENTIAL,
    ],
)
def test_a_worker_frozen_for_any_time(shapes: Sequence[Shape], mode: Mode) -> None:
    timed = [
        replace(
            shape,
            clock=(at // 2, at + 1),
            keys=GroupKeys(tuple(map(ord, shape.databases)), parts=shape_parts(shape)),
        )
        if shape.kind is GroupKind.ROWS
        else replace(shape, keys=GroupKeys(wholes=shape_parts(shape)))
        for at, shape in enumerate(shapes)
    ]
    go_through(timed, FROZEN, mode, stops=True)


def test_a_worker_frozen_for_any_time_and_a_database_bound() -> None:
    for at in range(3):
        changes: list[Distribution | Freeze] = [*FROZEN]
        changes.insert(at, BOTH)
        go_through([A, B, A], changes)


@NAMES
@pytest.mark.parametrize("seed", range(12))
def test_random_changes(mode: Mode, seed: int) -> None:
    """Long streams: whatever a person does, the order holds and everything is applied."""
    chance = Random(seed)
    kinds = [A, A, B, B, C, AB, Shape(("b", "c"), tables=("b.t", "c.t")), DDL, ALONE]
    names = [*combinations("abc", 2), ("a", "b", "c")]
    by_hand: list[Distribution | Freeze] = []
    for _ in range(12):
        if chance.random() < 0.5:
            by_hand += [Freeze(chance.randrange(3), frozen=chance.random() < 0.6)]
            continue
        bind = (chance.choice(names),) if chance.random() < 0.6 else ()
        pin = ((chance.choice("abc"), chance.randint(1, 3)),) if chance.random() < 0.6 else ()
        weigh = ((chance.choice("abc"), chance.randint(2, 6)),) if chance.random() < 0.4 else ()
        by_hand.append(Distribution(bind, pin, weigh))
    by_hand += [Freeze(worker, frozen=False) for worker in range(3)]
    stream = Stream.of(chance.choices(kinds, k=60))
    settings = RunSettings(mode=mode, workers=3, by_hand=tuple(by_hand))
    SimulatedRun(stream, SimulatedTarget(), settings).finish(seed)


def assigned(run: Run, *databases: str) -> int:
    """Add a group and return the worker that got it."""
    before = list(run.scheduler.view.groups)
    run.add(group(run.scheduler.gaq.newest + 1, *databases))
    after = run.scheduler.view.groups
    return next(worker for worker in range(len(after)) if after[worker] > before[worker])


@pytest.mark.parametrize("policy", ["database", "table"])
def test_a_pinned_database_goes_to_its_worker_after_what_another_has(policy: str) -> None:
    run = Run(policy, 3)
    assert assigned(run, "a") == 0
    assert run.take(0) == [1]
    run.scheduler.distribute(Distribution(pin=(("a", 3),)))
    assert assigned(run, "a") == 2
    assert run.take(2) == []
    assert run.scheduler.waits_for(2) is WaitCause.PARTITION
    run.commit(0)
    assert run.take(2) == [2]
    run.commit(2)
    # Its worker has more to do than any other, and keeps it.
    assert [assigned(run, name) for name in ("a", "b", "a", "c", "a")] == [2, 0, 2, 1, 2]
    run.scheduler.distribute(Distribution())
    assert assigned(run, "a") == 2


@pytest.mark.parametrize("policy", ["database", "table"])
def test_what_is_bound_comes_after_what_both_have(policy: str) -> None:
    run = Run(policy)
    assert (assigned(run, "a"), assigned(run, "b")) == (0, 1)
    assert (run.take(0), run.take(1)) == ([1], [2])
    run.scheduler.distribute(BOUND)
    # To the worker of the newest.
    assert (assigned(run, "a"), assigned(run, "b")) == (1, 1)
    run.commit(1)
    assert run.take(1) == []
    run.commit(0)
    assert (run.take(1), assigned(run, "c")) == ([3], 0)
    run.scheduler.distribute(NONE)
    assert assigned(run, "a") == 1


@pytest.mark.parametrize("policy", ["database", "table"])
def test_what_was_bound_for_a_moment_does_not_stay_in_order(policy: str) -> None:
    run = Run(policy, 2)
    assert (assigned(run, "a"), assigned(run, "b")) == (0, 1)
    run.scheduler.distribute(BOUND)
    run.scheduler.distribute(NONE)
    assert (run.take(0), run.take(1)) == ([1], [2])
    assert (assigned(run, "a"), assigned(run, "b")) == (0, 1)
    run.commit(0)
    run.commit(1)
    assert (assigned(run, "a"), assigned(run, "b")) == (0, 1)
    run.take(0)
    run.take(1)
    # Both were in use all the time, and are free of each other.
    assert [run.scheduler.waits_for(worker) for worker in (0, 1)] == [None, None]


@pytest.mark.parametrize("policy", ["database", "table"])
def test_what_is_bound_to_another_before_it_comes_again_keeps_its_order(policy: str) -> None:
    """The first bind has brought no group: the second one comes after what was before that."""
    run = Run(policy)
    assert (assigned(run, "a"), assigned(run, "b")) == (0, 1)
    assert (run.take(0), run.take(1)) == ([1], [2])
    run.scheduler.distribute(BOUND)
    run.scheduler.distribute(OTHERS)
    assigned(run, "b")
    run.commit(0)
    assert (run.take(0), run.take(1)) == ([], [])
    run.commit(1)
    assert sorted((run.take(0), run.take(1))) == [[], [3]]


@pytest.mark.parametrize("policy", ["database", "table"])
def test_a_heavy_database_counts_for_several(policy: str) -> None:
    run = Run(policy, 2)
    run.scheduler.distribute(Distribution(weigh=(("a", 3),)))
    assert [assigned(run, name) for name in ("a", "b", "c", "d")] == [0, 1, 1, 1]
    assert assigned(run, "a") == 0
    # As many partitions on each worker now: with the weight gone, the second one has more.
    run.scheduler.distribute(NONE)
    assert assigned(run, "e") == 0


@pytest.mark.parametrize("policy", ["database", "table"])
def test_a_frozen_worker_gets_nothing_new_while_others_are_not(policy: str) -> None:
    run = Run(policy, 2)
    assert assigned(run, "a") == 0
    run.scheduler.freeze(0, frozen=True)
    assert [assigned(run, name) for name in ("b", "c", "a")] == [1, 1, 0]
    assert run.take(0) == []
    assert run.scheduler.waits_for(0) is WaitCause.FROZEN
    run.scheduler.freeze(1, frozen=True)
    assert assigned(run, "d") == 0
    run.clock.now += 5
    assert run.waited.keys() == {"frozen"}
    run.scheduler.freeze(0, frozen=False)
    assert run.take(0) == [1]


def test_what_a_frozen_worker_has_begun_it_finishes() -> None:
    run = Run("database")
    assert assigned(run, "a") == 0
    assert assigned(run, "a") == 0
    assert run.take(0) == [1]
    run.scheduler.freeze(0, frozen=True)
    assert run.scheduler.take(0, ahead=True) == ()
    run.commit(0)
    assert run.take(0) == []
    run.scheduler.stop(reading=False)
    assert not run.scheduler.is_frozen(0)


def test_impossible_pins() -> None:
    apart = Distribution(bind=(("a", "b"),), pin=(("a", 1), ("b", 3)))
    assert list(apart.problems(2)) == [
        'database "b" is pinned to worker 3, and there are 2',
        'databases that are bound together are pinned apart: "a" to worker 1 and "b" to worker 3',
    ]


def test_distributions_are_changed_step_by_step() -> None:
    first = Distribution().with_bound(["a", "b"]).with_bound(["c", "d", "c"])
    assert first.bind == (("a", "b"), ("c", "d"))
    assert first.with_bound(["b", "c", "e"]).bind == (("b", "c", "e"),)
    assert first.without_bound(["a"]).bind == (("c", "d"),)
    pinned = first.with_pinned(["a"], 2).with_pinned(["c"], 1).with_pinned(["a"], 3)
    assert pinned.pin == (("a", 3), ("c", 1))
    assert pinned.workers == {"a": 2, "b": 2, "c": 0, "d": 0}
    assert pinned.with_pinned(["a", "x"], 0).pin == (("c", 1),)
    together = Distribution(bind=(("a", "b"),), pin=(("a", 2),))
    assert together.with_pinned(["b", "a"], 0).pin == ()
    with pytest.raises(NotPossibleError, match='"b" remains with worker 2'):
        together.with_pinned(["b"], 0)
    heavy = first.with_weight(["a"], 4).with_weight(["b"], 3).with_weight(["e"], 2)
    assert heavy.weights == {"a": 4, "b": 3, "a+b": 7, "c+d": 2, "e": 2}
    assert heavy.with_weight(["a", "b"], 1).weigh == (("e", 2),)
    assert list(pinned.problems(3)) == []
    with pytest.raises(NotPossibleError, match="at least two databases"):
        first.with_bound(["a", "a"])
    for weight in (0, HEAVIEST + 1):
        with pytest.raises(NotPossibleError, match="from 1 to 1000"):
            first.with_weight(["a"], weight)


@NAMES
@pytest.mark.parametrize("shapes", [(A, B, A), (B, A, AB)], ids=name_of)
def test_while_commits_keep_the_streams_order(shapes: Sequence[Shape], mode: Mode) -> None:
    for by_hand in ((BOTH, NONE), FROZEN, (Freeze(1, frozen=True), Freeze(1, frozen=False))):
        settings = RunSettings(mode=mode, workers=2, by_hand=by_hand, in_order=True)
        explore(Stream.of(shapes), SimulatedTarget(), settings, stops=True, checkpoints=False)


def test_names_that_are_one_on_the_target() -> None:
    given = Distribution(
        bind=(("A", "b"), ("a", "C"), ("d",)), pin=(("B", 2), ("D", 1)), weigh=(("C", 3),)
    )
    assert given.in_lower_case() == Distribution(
        bind=(("a", "b", "c"), ("d",)), pin=(("b", 2), ("d", 1)), weigh=(("c", 3),)
    )
