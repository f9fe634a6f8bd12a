from dataclasses import replace

import pytest

from mtsd.plan.calibration import TYPICAL, Point, PointsError, calibrated
from mtsd.plan.candidate import Candidate
from mtsd.plan.costs import Costs, Machines
from mtsd.plan.simulation import Simulation
from tests.plan.streams import independent

GROUPS = independent(20_000, 8)
REAL = Costs(
    read_group=18e-6,
    send=120e-6,
    source_group=4e-6,
    transaction=450e-6,
    group=6e-6,
    row=11e-6,
    sync=900e-6,
)
THREE = [Candidate("database", 1, 1), Candidate("database", 1, 512), Candidate("database", 4, 1)]
OTHERS = [
    Candidate("database", 2, 32),
    Candidate("database", 8, 8),
    Candidate("database", 4, 512),
    Candidate("database", 8, 1),
]


def measured(
    candidate: Candidate, machines: Machines, *, counted: bool, costs: Costs = REAL
) -> Point:
    """Return the point that would be measured for a daemon with these costs."""
    groups = GROUPS[: 2000 if candidate.batch_groups == 1 else None]
    outcome = Simulation(candidate, groups, costs, machines).run()
    seconds = outcome.groups / outcome.rate
    return Point(
        candidate,
        outcome.groups,
        outcome.transactions,
        seconds,
        (outcome.reading + outcome.sending) * outcome.seconds,
        outcome.target * outcome.seconds if counted else None,
        others=0.5 if costs.background else 0.0,
    )


@pytest.mark.parametrize(
    ("machines", "counted"),
    [
        (Machines(2), True),
        pytest.param(Machines(2, 8), True, marks=pytest.mark.long),
        pytest.param(Machines(2, 8), False, marks=pytest.mark.long),
    ],
)
def test_three_points_tell_what_the_others_are(machines: Machines, counted: bool) -> None:
    points = [measured(candidate, machines, counted=counted) for candidate in THREE]
    costs, fits = calibrated(points, GROUPS, machines)
    assert all(abs(fit.off) < (0.05 if counted else 0.15) for fit in fits), fits
    for candidate in OTHERS:
        groups = GROUPS[: 2000 if candidate.batch_groups == 1 else None]
        real = Simulation(candidate, groups, REAL, machines).run().rate
        found = Simulation(candidate, groups, costs, machines).run().rate
        assert found == pytest.approx(real, rel=0.2 if counted else 0.3), candidate


@pytest.mark.parametrize("sync", [pytest.param(5e-3, marks=pytest.mark.long), 1e-5])
def test_a_slow_disk_is_not_taken_for_other_programs(sync: float) -> None:
    real = replace(REAL, sync=sync)
    points = [measured(candidate, Machines(2), counted=True, costs=real) for candidate in THREE]
    costs, fits = calibrated(points, GROUPS, Machines(2))
    assert costs.background == 0
    assert all(abs(fit.off) < 0.1 for fit in fits), fits
    assert costs.sync + costs.delay == pytest.approx(sync, rel=0.2, abs=1e-4)


def test_other_programs_are_seen() -> None:
    real = replace(REAL, background=3)
    points = [measured(candidate, Machines(2), counted=True, costs=real) for candidate in THREE]
    costs, _ = calibrated(points, GROUPS, Machines(2))
    assert costs.background in {2, 3}


def test_what_keeps_others_from_committing_is_seen() -> None:
    """Several workers gain little then, and many gain no more."""
    real = replace(REAL, sync=300e-6, serial=250e-6, written=8e-6)
    points = [measured(candidate, Machines(2), counted=True, costs=real) for candidate in THREE]
    costs, fits = calibrated(points, GROUPS, Machines(2))
    assert all(abs(fit.off) < 0.1 for fit in fits), fits
    assert costs.serial == pytest.approx(real.serial, rel=0.4)
    for candidate in OTHERS:
        groups = GROUPS[: 2000 if candidate.batch_groups == 1 else None]
        wanted = Simulation(candidate, groups, real, Machines(2)).run().rate
        found = Simulation(candidate, groups, costs, Machines(2)).run().rate
        assert found == pytest.approx(wanted, rel=0.2), candidate


def test_processors_that_slow_each_other_down_are_seen() -> None:
    real = replace(REAL, contention=0.5, sync=100e-6)
    points = [measured(candidate, Machines(2), counted=True, costs=real) for candidate in THREE]
    costs, _ = calibrated(points, GROUPS, Machines(2))
    assert 0.2 < costs.contention < 0.8
    for candidate in OTHERS:
        groups = GROUPS[: 2000 if candidate.batch_groups == 1 else None]
        wanted = Simulation(candidate, groups, real, Machines(2)).run().rate
        found = Simulation(candidate, groups, costs, Machines(2)).run().rate
        assert found == pytest.approx(wanted, rel=0.2), candidate


def test_one_point_is_enough_for_something() -> None:
    machines = Machines(2)
    point = replace(measured(THREE[0], machines, counted=False), daemon=None)
    costs, (fit,) = calibrated([point], GROUPS, machines)
    assert fit.off == pytest.approx(0, abs=0.05)
    assert costs.row == TYPICAL.row


def test_points_without_anything_are_refused() -> None:
    with pytest.raises(PointsError, match="no point"):
        calibrated([], GROUPS, Machines(2))
    with pytest.raises(PointsError, match="nothing was applied at the point database, 1 workers"):
        calibrated([Point(THREE[0], 0, 0, 1.0)], GROUPS, Machines(2))
