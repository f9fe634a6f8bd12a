from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.model.group import Group, GroupKind
from mtsd.plan.candidate import Candidate, CommonSettings
from mtsd.plan.costs import COLD_GROUPS, COLD_SHARE, Machines
from mtsd.plan.replayed_group import ReplayedGroup, repeated
from mtsd.plan.simulated_run import SimulatedRun
from mtsd.plan.simulation import Simulation
from mtsd.schedule.batches.alone import AloneRule
from mtsd.schedule.batches.in_flight import Batch
from tests.plan.streams import COSTS, FREE, SHAPES, independent, load_of_shapes
from tests.schedule.worlds.streams import Shape

TWO = Machines(2)
MANY = Machines(64, 64)


def noted(
    told: list[tuple[int, Batch, float, float]],
    worker: int,
    batch: Batch,
    begun: float,
    ended: float,
) -> None:
    told.append((worker, batch, begun, ended))


def simulated(
    groups: list[ReplayedGroup],
    workers: int,
    batch: int,
    machines: Machines = TWO,
    bind: tuple[tuple[str, ...], ...] = (),
) -> tuple[SimulatedRun, list[tuple[int, Batch, float, float]]]:
    """Return the outcome, and every transaction of the target in the order in which they ended."""
    told: list[tuple[int, Batch, float, float]] = []
    simulation = Simulation(
        Candidate("database", workers, batch, bind), groups, COSTS, machines,
        ran=partial(noted, told),
    )  # fmt: skip
    return simulation.run(), told


@given(SHAPES, st.integers(0, 5), st.integers(1, 9), st.sampled_from([TWO, MANY, Machines(1, 1)]))
def test_every_group_commits_once_in_transactions_of_the_batch_size(
    shapes: list[Shape], workers: int, batch: int, machines: Machines
) -> None:
    groups = load_of_shapes(shapes)
    outcome, told = simulated(groups, workers, batch, machines)
    committed = [group.number for _, batch, _, _ in told for group in batch]
    to_do = [one.group.number for one in groups if one.group.kind is not GroupKind.EMPTY]
    assert sorted(committed) == to_do
    assert outcome.groups == len(to_do)
    assert outcome.transactions == len(told)
    assert all(len(groups) <= batch for _, groups, _, _ in told)
    assert all(0 <= worker < max(1, workers) for worker, _, _, _ in told)


@given(SHAPES, st.integers(1, 5), st.integers(1, 9))
def test_what_depends_on_each_other_never_overlaps(
    shapes: list[Shape], workers: int, batch: int
) -> None:
    _, told = simulated(load_of_shapes(shapes), workers, batch, MANY)
    whole = [(group, begun, ended) for _, groups, begun, ended in told for group in groups]
    whole.sort(key=lambda one: one[0].number)
    together = {group.number: groups for _, groups, _, _ in told for group in groups}
    for at, (group, _, ended) in enumerate(whole):
        for later, begun, _ in whole[at + 1 :]:
            if together[group.number] is not together[later.number] and depend(group, later):
                assert ended <= begun


def depend(group: Group, later: Group) -> bool:
    return group.alone or later.alone or not set(group.databases).isdisjoint(later.databases)


@given(SHAPES, st.integers(1, 5), st.integers(1, 9), st.integers(1, 3))
def test_no_more_processors_are_used_than_there_are(
    shapes: list[Shape], workers: int, batch: int, processors: int
) -> None:
    outcome, _ = simulated(load_of_shapes(shapes), workers, batch, Machines(1, processors))
    # Only the daemon has urgent tasks, and it does one thing at a time.
    assert outcome.target <= processors + 1e-9
    assert outcome.reading + outcome.sending <= 1 + 1e-9
    assert outcome.sync <= 1 + 1e-9
    assert all(busy <= 1 + 1e-9 for busy in outcome.workers)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60))
def test_one_worker_that_combines_nothing_takes_the_sum(rows: list[int]) -> None:
    costs = replace(FREE, transaction=3e-4, group=1e-5, row=2e-5, sync=5e-4)
    groups = [
        one._replace(rows=count) for one, count in zip(independent(len(rows), 3), rows, strict=True)
    ]
    outcome = Simulation(Candidate("database", 1, 1), groups, costs, Machines(1, 1)).run()
    used = sum(3e-4 + (1 + COLD_SHARE) * (1e-5 + 2e-5 * count) for count in rows)
    expected = used + 5e-4 * len(rows)
    assert outcome.seconds == pytest.approx(expected)
    assert outcome.target == pytest.approx(used / expected)


@pytest.mark.parametrize("batch", [1, 8, 64])
@pytest.mark.parametrize("machines", [MANY, TWO, Machines(2, 4)])
def test_more_workers_are_not_slower_where_nothing_depends(batch: int, machines: Machines) -> None:
    # More workers combine less, because their queues are shorter, which costs more.
    costs = replace(COSTS, send=0.0) if batch > 1 else COSTS
    rates = [
        Simulation(Candidate("database", workers, batch), independent(5000, 64), costs, machines)
        .run()
        .rate
        for workers in (1, 2, 4, 8, 16)
    ]
    for fewer, more in pairwise(rates):
        assert more >= 0.85 * fewer


def test_workers_beyond_the_databases_change_nothing() -> None:
    few, _ = simulated(independent(3000, 2), 2, 1, MANY)
    many, _ = simulated(independent(3000, 2), 16, 1, MANY)
    assert many.rate == pytest.approx(few.rate, rel=0.02)
    assert sum(busy > 0 for busy in many.workers) == 2


def test_concurrent_commits_share_a_sync() -> None:
    groups = independent(4000, 8)
    one, _ = simulated(groups, 1, 1, MANY)
    eight, _ = simulated(groups, 8, 1, MANY)
    assert eight.rate > 4 * one.rate
    assert eight.sync <= 1
    assert eight.sync * eight.seconds < one.sync * one.seconds / 3


def test_combined_groups_share_a_transaction() -> None:
    groups = independent(20_000, 4)
    alone, _ = simulated(groups, 4, 1, MANY)
    combined, _ = simulated(groups, 4, 128, MANY)
    assert alone.transactions == 20_000
    assert combined.transactions < 1_000
    assert combined.rate > 5 * alone.rate


def test_the_daemon_is_a_serial_stage() -> None:
    slow = replace(COSTS, read_group=1e-3, transaction=0.0, group=0.0, row=0.0, sync=0.0)
    groups = independent(2000, 8)
    rates = [
        Simulation(Candidate("database", workers, 64), groups, slow, MANY).run().rate
        for workers in (1, 8)
    ]
    one, several = rates
    assert one == pytest.approx(1000 / (1 + COLD_SHARE * COLD_GROUPS / 64), rel=0.05)
    # In more, and so smaller, transactions.
    assert 1000 / (1 + COLD_SHARE) < several <= one


def test_processors_are_shared_by_daemon_and_target() -> None:
    groups = independent(20_000, 8)
    apart, _ = simulated(groups, 8, 64, Machines(1, 1))
    shared, _ = simulated(groups, 8, 64, Machines(1))
    used = shared.target + shared.reading + shared.sending
    assert 0.9 < used < 1.001
    assert shared.rate < 0.9 * apart.rate


def test_other_programs_take_their_share_of_the_processors() -> None:
    groups = independent(3000, 1)
    rates = [
        Simulation(
            Candidate("database", 1, 64), groups, replace(COSTS, background=others), Machines(2)
        )
        .run()
        .rate
        for others in (0, 2, 8)
    ]
    assert rates[0] > 1.3 * rates[1] > 1.6 * rates[2]
    none = Simulation(
        Candidate("database", 1, 64), [], replace(COSTS, background=2), Machines(2)
    ).run()
    assert none.groups == 0


def test_waits_are_told_by_what_waits() -> None:
    shapes = [Shape(("a",)), Shape(("b",)), Shape(("a", "b"))] * 500
    outcome, _ = simulated(load_of_shapes(shapes), 2, 1, MANY)
    assert outcome.waits.keys() <= {"a", "b", "a+b"}
    assert outcome.waits["a+b"] > 0
    assert 0.05 < outcome.waiting < 1
    bound, _ = simulated(load_of_shapes(shapes), 2, 1, MANY, (("a", "b"),))
    assert not bound.waits


def test_definitions_take_their_time() -> None:
    shapes = [Shape(("a",), kind=GroupKind.DDL, row_flags=None)] * 10
    outcome, _ = simulated(load_of_shapes(shapes, rows=0), 1, 1, MANY)
    assert outcome.seconds > 10 * COSTS.definition


def test_definitions_run_alone_if_the_settings_say_so() -> None:
    shapes = [Shape(("a",)), Shape(("b",), kind=GroupKind.DDL, row_flags=None)] * 20
    spans = {}
    for ddl in (False, True):
        told: list[tuple[int, Batch, float, float]] = []
        settings = CommonSettings(alone=AloneRule(ddl=ddl))
        Simulation(
            Candidate("database", 2, 1), load_of_shapes(shapes), COSTS, MANY, settings=settings,
            ran=partial(noted, told),
        ).run()  # fmt: skip
        whole = sorted((begun, ended) for _, _, begun, ended in told)
        spans[ddl] = any(begun < ended for (_, ended), (begun, _) in pairwise(whole))
    assert spans == {False: True, True: False}


def test_a_stream_longer_than_the_queue_goes_on_at_checkpoints() -> None:
    simulation = Simulation(
        Candidate("database", 2, 16), independent(5000, 4), COSTS, MANY,
        settings=CommonSettings(checkpoint_group=64),
    )  # fmt: skip
    outcome = simulation.run()
    assert outcome.groups == 5000
    assert outcome.blocked["gaq_full"] > 0.1


def test_a_group_larger_than_may_wait_is_still_applied() -> None:
    shapes = [Shape(("a",), size=1 << 20)] * 5
    simulation = Simulation(
        Candidate("database", 2, 16), load_of_shapes(shapes), COSTS, MANY,
        settings=CommonSettings(pending_jobs_size_max=1 << 16),
    )  # fmt: skip
    assert simulation.run().groups == 5


def test_nothing_to_do_takes_no_time() -> None:
    outcome, _ = simulated([], 4, 512)
    assert (outcome.groups, outcome.seconds, outcome.rate) == (0, 0.0, 0.0)


def test_a_short_load_is_repeated() -> None:
    groups = independent(7, 3)
    found = list(repeated(lambda: groups, 20))
    assert [one.group.number for one in found] == list(range(1, 22))
    assert [one.group.databases for one in found[7:14]] == [one.group.databases for one in groups]
    assert list(repeated(list, 5)) == []
    assert Simulation(Candidate("database", 2, 4), found, COSTS, MANY).run().groups == 21
