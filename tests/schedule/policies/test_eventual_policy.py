"""Eventual consistency: groups of rows keep no order, and everything else keeps all of it."""

from collections.abc import Sequence
from itertools import product
from typing import Final

import pytest

from mtsd.model.group import GroupKind
from mtsd.schedule.batches.alone import AloneRule
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.choice import POLICIES
from tests.schedule.worlds.exploring import explore, name_of
from tests.schedule.worlds.simulated_run import ROOMY, Mode, RunSettings, SimulatedRun
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Shape, Stream

A: Final = Shape(("a",))
DELETE: Final = Shape(("a",), deletes=True)
DDL: Final = Shape(("a",), kind=GroupKind.DDL)
STATEMENT: Final = Shape(("b",), kind=GroupKind.STATEMENTS)
ALONE: Final = Shape(("a",), alone=True)
EMPTY: Final = Shape((), kind=GroupKind.EMPTY)
SINGLE: Final = Limits(
    checkpoint_group=99, pending_jobs_size_max=1 << 30, batch_groups=1, batch_bytes=1
)
RULE: Final = AloneRule(all_but_rows=True)
EVENTUAL: Final = RunSettings(workers=3, alone=RULE, eventual=True)
IN_TURN: Final = RunSettings(workers=3, alone=RULE, eventual=True, deletes_in_turn=True)


class Ordered(SimulatedRun):
    """A run in which the order of the commits makes another state."""

    def key(self) -> tuple[object, ...]:
        """Return what tells two states apart."""
        return *super().key(), tuple(self.target.applied)


def orders(shapes: Sequence[Shape], settings: RunSettings) -> set[tuple[int, ...]]:
    """Return every order in which groups can commit, one by one."""
    found: set[tuple[int, ...]] = set()

    class Noting(Ordered):
        def check(self) -> None:
            super().check()
            if len(self.target.applied) == len(shapes):
                found.add(tuple(self.target.applied))

    explore(Stream.of(shapes), SimulatedTarget(), settings, checkpoints=False, run=Noting)
    return found


@pytest.mark.parametrize("limits", [SINGLE, ROOMY], ids=["one by one", "combined"])
@pytest.mark.parametrize("settings", [EVENTUAL, IN_TURN], ids=["free", "deletes in turn"])
@pytest.mark.parametrize(
    "others",
    [pytest.param((A, DDL)), pytest.param((A, DELETE, DDL, EMPTY), marks=pytest.mark.long)],
)
def test_every_interleaving(settings: RunSettings, limits: Limits, others: Sequence[Shape]) -> None:
    """In none of them is there a deadlock, a lost wake-up, or a change of an order to keep."""
    settings = RunSettings(
        workers=3, limits=limits, alone=RULE, eventual=True,
        deletes_in_turn=settings.deletes_in_turn,
    )  # fmt: skip
    for shapes in product((A, DELETE, EMPTY), (A, DELETE), others, (A,)):
        explore(Stream.of(shapes), SimulatedTarget(), settings, checkpoints=False)


@pytest.mark.parametrize(
    "shapes", [(A, A, DDL), (A, STATEMENT, A), (A, DELETE, A), (EMPTY, A, A)], ids=name_of
)
def test_stops_leave_no_gap(shapes: Sequence[Shape]) -> None:
    explore(Stream.of(shapes), SimulatedTarget(), IN_TURN, stops=True)


def test_rows_commit_in_any_order() -> None:
    settings = RunSettings(workers=3, limits=SINGLE, alone=RULE, eventual=True)
    assert len(orders([A, A, A], settings)) == 6


@pytest.mark.parametrize("between", [DDL, STATEMENT, ALONE], ids=["ddl", "statement", "alone"])
def test_nothing_passes_what_runs_alone(between: Shape) -> None:
    settings = RunSettings(workers=3, limits=SINGLE, alone=RULE, eventual=True)
    assert orders([A, between, A], settings) == {(1, 2, 3)}
    assert orders([A, A, between], settings) == {(1, 2, 3), (2, 1, 3)}


def test_later_ones_pass_deletes_and_deletes_pass_nothing() -> None:
    settings = RunSettings(
        workers=3, limits=SINGLE, alone=RULE, eventual=True, deletes_in_turn=True
    )
    assert orders([A, DELETE, A], settings) == {(1, 2, 3), (1, 3, 2), (3, 1, 2)}


Row = tuple[int, int] | None
"""When a row was changed, and what it says; None: it is not there."""


def folded(order: Sequence[int], changes: Sequence[Row], *, newer: bool) -> Row:
    """Return what is left of a row after changes in some order: the last one, or the newest."""
    row: Row = None
    for number in order:
        change = changes[number - 1]
        if change is None:
            row = None
        elif not newer or row is None or row[0] <= change[0]:
            row = change
    return row


def test_the_newer_row_wins_in_every_order() -> None:
    settings = RunSettings(
        workers=3, limits=SINGLE, alone=RULE, eventual=True, deletes_in_turn=True
    )
    differs = 0
    for deleted in product((False, True), repeat=3):
        changes: list[Row] = [None if gone else (at, at) for at, gone in enumerate(deleted, 1)]
        expected = folded([1, 2, 3], changes, newer=False)
        for order in orders([DELETE if gone else A for gone in deleted], settings):
            # A delete in its turn leaves what is newer.
            left = [
                row
                for number in order
                if (row := changes[number - 1]) is not None
                and not any(changes[later - 1] is None for later in range(number + 1, 4))
            ]
            assert max(left, default=None) == expected
            differs += folded(order, changes, newer=False) != expected
    assert differs, "the order of the commits would not matter anyway"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_does_not_matter(policy: str) -> None:
    settings = RunSettings(mode=Mode(policy), workers=2, limits=SINGLE, alone=RULE, eventual=True)
    assert orders([A, A], settings) == {(1, 2), (2, 1)}


def test_without_workers_everything_is_in_order() -> None:
    settings = RunSettings(mode=Mode.SEQUENTIAL, limits=SINGLE, alone=RULE, eventual=True)
    assert orders([A, A, DDL, A], settings) == {(1, 2, 3, 4)}
