"""Long random lives: runs, failures, stops and crashes under changing settings (hypothesis).

Where the exhaustive tests take small worlds whole, this takes walks through large ones. The
examples of the ordinary run are always the same; the long run draws new ones.
"""

import enum
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mtsd.model.group import GroupKind
from mtsd.schedule.limits import Limits
from tests.schedule.worlds.simulated_run import ROOMY, Mode, RunSettings, SimulatedRun
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Marker, Shape, Stream

NAMES = ("a", "b", "c", "d", "e")
COMMON = [Shape((name,), size=size) for name in NAMES for size in (30, 100, 100, 500)]
UNCOMMON: list[Shape | Marker] = [
    *(Shape(names) for names in (("a", "b"), ("b", "a"), ("b", "c", "d"), ("e", "a"), NAMES)),
    Shape(("a",), anonymous=True),
    Shape(("b",), anonymous=True),
    Shape(("a",), format_description=b"format 2"),
    Shape(("b",), unsupported="JSON diffs"),
    Shape(("a",), kind=GroupKind.DDL),
    Shape(("b", "c"), kind=GroupKind.STATEMENTS, size=500),
    *[Shape(("a",), kind=GroupKind.STATEMENTS)] * 3,
    *[Shape((), kind=GroupKind.STATEMENTS, alone=True)] * 2,
    Shape(("d",), kind=GroupKind.NON_TRANSACTIONAL),
    Shape((), alone=True),
    Shape(("b", "c"), alone=True, kind=GroupKind.DDL, size=1),
    *[Shape((), kind=GroupKind.EMPTY, size=0)] * 3,
    Marker(),
    Marker(new_file=True),
    Marker(new_file=True, previous_gtids=True),
    Marker(previous_gtids=True),
]
SHARES = st.sampled_from([0.9, 0.6, 0.2])
SEEDS = st.integers(0, (1 << 32) - 1)
"""Hypothesis chooses the course of events; which steps lead there, it need not know."""

limits = st.one_of(
    st.sampled_from([ROOMY, replace(ROOMY, batch_groups=1)]),
    st.builds(
        Limits,
        checkpoint_group=st.sampled_from([20, 5, 2, 1]),
        pending_jobs_size_max=st.sampled_from([3000, 1000, 300, 1]),
        batch_groups=st.sampled_from([6, 2, 1]),
        batch_bytes=st.sampled_from([1000, 250, 1]),
    ),
)
binds = st.sampled_from([(), (), (("a", "b"),), (("d", "c", "a"), ("b", "e"))])
MODES = (
    *[Mode.DATABASE] * 3, Mode.SEQUENTIAL, Mode.TABLE, Mode.LOGICAL_CLOCK, Mode.COMMIT_PARENT,
)  # fmt: skip
run_settings = st.builds(
    RunSettings,
    mode=st.sampled_from(MODES),
    workers=st.sampled_from([2, 3, 4, 5, 1]),
    bind=binds,
    limits=limits,
    drop_others=st.booleans(),
    statements=st.sampled_from([1, 2, 100]),
)


class End(enum.Enum):
    """How a life of the daemon can begin to end."""

    CRASH = "crash"
    STOP = "stop"
    FAILURE = "failure"


class Lives(RuleBasedStateMachine):
    """One source and one target through any number of lives of the daemon."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = Stream()
        self.target = SimulatedTarget()
        self.run: SimulatedRun
        self.sequence_number = 0
        """Of the last group in the source's current file."""

    def _start(self, chosen: RunSettings) -> None:
        self.run = SimulatedRun(self.stream, self.target, chosen)

    @initialize(
        chosen=run_settings,
        count=st.integers(5, 60),
        uncommon=st.sampled_from([0.05, 0.3, 0.7]),
        seed=SEEDS,
    )
    def first_start(self, chosen: RunSettings, count: int, uncommon: float, seed: int) -> None:
        self.source_writes(count, uncommon, seed)
        self._start(chosen)

    @rule(count=st.integers(1, 40), uncommon=st.sampled_from([0.05, 0.3, 0.7]), seed=SEEDS)
    def source_writes(self, count: int, uncommon: float, seed: int) -> None:
        random = Random(seed)
        for _ in range(count):
            rare = random.random() < uncommon
            item = random.choice(UNCOMMON if rare else COMMON)
            if isinstance(item, Marker):
                self.sequence_number *= not item.new_file
                self.stream.append(item)
                continue
            self.sequence_number += 1
            since = random.choice((1, 2, 3, 8, 30))
            clock = (max(0, self.sequence_number - since), self.sequence_number)
            tables = tuple(f"{name}.{random.choice('tu')}" for name in item.databases)
            self.stream.append(
                replace(
                    item,
                    clock=clock if random.random() < 0.97 else (0, 0),
                    tables=tables if item.kind is GroupKind.ROWS else (),
                )
            )

    @rule(count=st.integers(1, 100), adding=SHARES, seed=SEEDS)
    def walk(self, count: int, adding: float, seed: int) -> None:
        self.run.walk(Random(seed), adding, count)

    @rule(worker=st.integers(0, 4))
    def look_for_a_batch(self, worker: int) -> None:
        """Let a worker look whether there is something for it, though nobody has woken it."""
        self.run.take(worker % len(self.run.running))

    @rule()
    def drop_passed_rows(self) -> None:
        self.target.drop_passed_rows()

    @rule(
        end=st.sampled_from(End),
        count=st.integers(0, 60),
        adding=SHARES,
        seed=SEEDS,
        chosen=run_settings,
    )
    def disturb(self, end: End, count: int, adding: float, seed: int, chosen: RunSettings) -> None:
        """Bring on an end, in the middle of something where there is anything to do."""
        random = Random(seed)
        self.run.walk(random, adding, count)
        able = [w for w in range(len(self.run.running)) if self.run.can_commit(w)]
        if end is End.CRASH:
            self._start(chosen)
        elif end is End.STOP and not self.run.stopping:
            self.run.stop()
        elif end is End.FAILURE and able:
            self.run.fail(random.choice(able))

    @precondition(lambda self: self.run.stopping or self.run.halted)
    @rule(chosen=run_settings, seed=SEEDS)
    def finish_and_restart(self, chosen: RunSettings, seed: int) -> None:
        """Go on to the end of a stop, or of what a failure leaves to do."""
        self.run.finish(seed)
        self._start(chosen)

    @invariant()
    def restart_would_skip_exactly_what_is_applied(self) -> None:
        self.target.recovered()

    def teardown(self) -> None:
        """Whatever has happened, one more life applies the rest of the stream."""
        if not hasattr(self, "run"):
            return
        if not self.run.halted:
            self.run.finish()
        self._start(RunSettings(workers=2))
        self.run.finish()
        everything = {g.number for g in self.stream.groups if g.kind is not GroupKind.EMPTY}
        assert set(self.target.applied) == everything


def test_lives() -> None:
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=20,
            stateful_step_count=60,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
            phases=[Phase.generate, Phase.shrink],
        ),
    )


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_more_lives() -> None:
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=1500,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            phases=[Phase.generate, Phase.shrink],
        ),
    )
