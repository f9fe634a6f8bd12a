"""What is measured of a backlog, and how long it lasts."""

from collections.abc import Sequence

import pytest

from mtsd.cli.calibration_run import MeasuringError, measured_points
from mtsd.plan.backlog import Backlog, backlog_of
from mtsd.plan.calibration import Point
from mtsd.plan.candidate import Candidate
from mtsd.plan.costs import Machines
from tests.plan.streams import load_of_shapes
from tests.schedule.worlds.streams import Shape

POINTS = [Candidate("database", 1, 1), Candidate("database", 4, 1), Candidate("database", 1, 512)]


def test_each_point_is_kept_whatever_becomes_of_the_next() -> None:
    told: list[str] = []
    kept: list[list[Candidate]] = []

    def measured(candidate: Candidate) -> Point:
        if candidate.batch_groups > 1:
            raise MeasuringError("the replica caught up")
        return Point(candidate, 10, 10, 1.0)

    def keep(points: Sequence[Point]) -> None:
        kept.append([point.candidate for point in points])

    points = measured_points(POINTS, measured, told.append, keep)
    assert [point.candidate for point in points] == POINTS[:2]
    assert kept == [POINTS[:1], POINTS[:2]]
    assert told == ["the replica caught up; going on with what was measured before"]
    with pytest.raises(MeasuringError, match="caught up"):
        measured_points(POINTS[2:], measured, told.append, keep)


def test_how_long_a_backlog_lasts() -> None:
    assert Backlog(10_000_000, 100, (10_000, 20_000, 90_000)).points == 2
    assert Backlog(12_000_000, 100, (10_000, 20_000, 90_000)).points == 3
    sample = list(load_of_shapes([Shape(("a",)), Shape(("b",))] * 50))
    found = backlog_of(1 << 20, POINTS, 8.0, sample, Machines(2))
    assert found.taken[0] < found.taken[1] < found.taken[2]
    assert "it may last for" in str(found)
    assert "about" in str(backlog_of(None, POINTS, 8.0, sample, Machines(2)))
