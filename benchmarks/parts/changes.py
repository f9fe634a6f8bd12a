"""Changes a second of CPU through the source for Spark, beside mysql-replication in the same run.

For one and for a hundred rows a transaction: mysql-replication, the source in a Python process of
its own, and in Spark the CPU of Python and of Java. All of it is the checkout, not compiled.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import Figure, Range
from benchmarks.inputs import row_events
from benchmarks.inputs.repeated import repeated
from benchmarks.parts.spark import CHANGES, TIMES, submitted
from benchmarks.processes.decoding import SOURCES, THEIRS
from tests.spark.standalone import StandaloneCluster

_RUNS: Final = 5
_SHAPES: Final = ("shape table", "shape changes")
"""What is read in Spark, too."""
LEAST: Final = {row_events.SINGLE: 30.0, row_events.MULTI: 20.0}
"""Times mysql-replication's changes a second that shape `table` has to reach."""


@dataclass(frozen=True, slots=True)
class Read:
    """One way of reading a load: µs of CPU for a change, of Python and of Java."""

    load: str
    way: str
    python: float
    java: float = 0.0


def measured() -> list[Read]:
    """Return the figures of every load and way. Raises ClusterError and CalledProcessError."""
    loads = (row_events.SINGLE, row_events.MULTI)
    found: list[Read] = []
    for load in loads:
        for way in (THEIRS, *SOURCES):
            seconds = _seconds(str(row_events.recorded(load)), way, 1 if way == THEIRS else _RUNS)
            found.append(Read(load, way, min(seconds) / CHANGES * 1e6))
    reads = [(load, way) for load in loads for way in _SHAPES]
    options = [
        {"path": str(repeated(row_events.recorded(load), TIMES[load])), **SOURCES[way]}
        for load, way in reads
    ]
    with StandaloneCluster() as cluster:
        # The first read starts Python and fills the caches.
        costs = submitted(cluster, [options[0], *options])[1:]
    for (load, way), cost in zip(reads, costs, strict=True):
        changes = CHANGES * TIMES[load] / 1e6
        found.append(Read(load, f"Spark, {way}", cost["python"] / changes, cost["java"] / changes))
    return found


def _seconds(file: str, way: str, runs: int) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.processes.decoding", file, way]
    done = subprocess.run(
        [*command, "--runs", str(runs)], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds: list[float] = json.loads(done.stdout)["seconds"]
    return seconds


def _times(found: list[Read], one: Read, *, java: bool = False) -> float:
    theirs = next(each for each in found if (each.load, each.way) == (one.load, THEIRS))
    return theirs.python / (one.python + java * one.java)


def figures(found: list[Read]) -> list[Figure]:
    """Return what has to be reached."""
    return [
        Figure(
            f"{one.load}, the source in {one.way} / mysql-replication",
            Range.of([_times(found, one)]),
            LEAST[one.load],
            at_most=False,
            unit=" times",
        )
        for one in found
        if one.way == _SHAPES[0]
    ]


def table(found: list[Read]) -> str:
    """Return a table for human readers."""
    lines = [
        "\nChanges through the source for Spark, CPU for each, pure",
        f"  {'':52}{'Python µs':>10}{'Java µs':>9}{'times':>8}{'with Java':>11}",
    ]
    for one in found:
        name = f"{one.load}: {one.way}"
        line = f"  {name:52}{one.python:>10.2f}{one.java:>9.2f}{_times(found, one):>8.1f}"
        lines.append(line + (f"{_times(found, one, java=True):>11.1f}" if one.java else ""))
    return "\n".join([*lines, "  times: as fast as mysql-replication in this run"])
