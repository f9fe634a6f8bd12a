"""Measured points as JSON, from a file of points or from `mtsd status --json`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mtsd.plan.calibration import Point, PointsError
from mtsd.plan.candidate import Candidate

_LEAST_BUSY = 0.02


def points_json(points: Sequence[Point]) -> str:
    """Return points as JSON."""
    return json.dumps({"points": [asdict(point) for point in points]}, indent=2) + "\n"


def read_points(text: str) -> list[Point]:
    """Return the points in a file, or the single point in a status; raises PointsError.

    For a daemon that mostly waits for the source, only the time in which its busiest worker was
    busy counts, which shows how fast the daemon is while it works.
    """
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise PointsError("it is not a JSON object")
        if "points" in document:
            return [_point(one) for one in document["points"]]
        return [_of_status(document)]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, PointsError):
            raise
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise PointsError(f"it has no points, and is no status of a daemon: {what}") from error


def _point(one: Mapping[str, object]) -> Point:
    candidate = one["candidate"]
    if not isinstance(candidate, dict):
        raise PointsError("a candidate is not a JSON object")
    bind = tuple(tuple(names) for names in candidate.get("bind", ()))
    of = Candidate(
        str(candidate["parallel_type"]),
        int(candidate["parallel_workers"]),
        int(candidate["batch_groups"]),
        bind,
    )
    return Point(
        of,
        int(_number(one["groups"])),
        int(_number(one["transactions"])),
        _number(one["seconds"]),
        *(None if one.get(who) is None else _number(one[who]) for who in _CPU),
    )


_CPU = ("daemon", "target", "source", "others")


def _of_status(status: Mapping[str, object]) -> Point:
    workers = status["workers"]
    if not isinstance(workers, list) or not workers:
        raise PointsError("no worker has applied anything: the daemon was not running")
    seconds = _number(status["run_seconds"])
    busy = max(_number(worker["busy_ratio"]) for worker in workers)
    groups = sum(int(worker["groups"]) for worker in workers)
    if not groups or busy < _LEAST_BUSY:
        raise PointsError("the daemon has applied too little to tell how fast it is")
    return Point(
        Candidate("database", len(workers), int(_number(status["batch_groups"]))),
        groups,
        sum(int(worker["transactions"]) for worker in workers),
        seconds * busy,
        _number(status["cpu_seconds"]),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PointsError(f"{value!r} is not a number")
    return float(value)
