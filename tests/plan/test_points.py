import pytest

from mtsd.control.status import Status, WorkerStatus
from mtsd.plan.calibration import Point, PointsError
from mtsd.plan.candidate import Candidate
from mtsd.plan.points import points_json, read_points


def test_points_are_read_as_they_were_written() -> None:
    points = [
        Point(Candidate("database", 1, 1), 10, 10, 1.5, 0.5, 0.25, 0.125),
        Point(Candidate("database", 4, 512, (("a", "b"), ("c",))), 100, 1, 2.0),
    ]
    assert read_points(points_json(points)) == points


def test_a_status_is_a_point() -> None:
    workers = (
        WorkerStatus(1, "idle", groups=300, transactions=3, busy_ratio=0.5),
        WorkerStatus(2, "idle", groups=100, transactions=2, busy_ratio=0.25),
    )
    status = Status(
        "running", "a", "b", workers=workers, run_seconds=20.0, cpu_seconds=1.5, batch_groups=64
    )
    (point,) = read_points(status.to_json())
    assert point == Point(Candidate("database", 2, 64), 400, 5, 10.0, 1.5)


_ONE = '{"parallel_type": "database", "parallel_workers": 1, "batch_groups": 1}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no points, and is no status"),
        ("[]", "not a JSON object"),
        ("{}", "'workers' is missing"),
        ('{"points": [{}]}', "'candidate' is missing"),
        ('{"points": [{"candidate": 1}]}', "not a JSON object"),
        ('{"points": 3}', "no points"),
        (Status("stopped", "a", "b").to_json(), "the daemon was not running"),
        (
            Status("running", "a", "b", workers=(WorkerStatus(1, "idle"),)).to_json(),
            "too little",
        ),
        (f'{{"points": [{{"candidate": {_ONE}, "groups": true}}]}}', "True is not a number"),
    ],
)
def test_what_is_no_point_is_refused(text: str, why: str) -> None:
    with pytest.raises(PointsError, match=why):
        read_points(text)
