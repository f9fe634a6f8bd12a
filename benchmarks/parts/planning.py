"""Compares the predictions of `mtsd plan` with mtsd, and measures how fast a load is recorded.

A round measures the three points that the costs are derived from and, right after that, the
configurations that are predicted from them. Both are compared by their medians over the rounds.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.figures import Figure, Range
from benchmarks.inputs.recording import recorded
from benchmarks.parts import backlog
from benchmarks.parts.cpu import environ, variants
from benchmarks.replicas.machine import DISTURBED
from benchmarks.replicas.throughput import Throughput, processors, throughput
from mtsd.plan.calibration import Point, calibrated
from mtsd.plan.candidate import Candidate
from mtsd.plan.costs import Machines
from mtsd.plan.replayed_group import ReplayedGroup
from mtsd.plan.simulation import Simulation
from mtsd.spark.plan.group_record import replayed_groups
from tests.servers.mysqld import Server
from tests.servers.reaper import register

CALIBRATION: Final = (
    Candidate("database", 1, 1), Candidate("database", 1, 512), Candidate("database", 4, 1),
)  # fmt: skip
PREDICTED: Final = {
    True: (
        Candidate("database", 4, 512), Candidate("database", 2, 32), Candidate("database", 8, 1),
    ),
    False: (Candidate("database", 4, 512), Candidate("database", 8, 8)),
}  # fmt: skip
"""Keyed by whether the target is durable."""
MAX_OFF: Final = 0.25
LEAST_RECORDED: Final = 30_000
_TURNS: Final = 3
_SAMPLE: Final = 200_000
_SIMULATED_S: Final = 8.0
_LEAST_SIMULATED: Final = 8_000


@dataclass(slots=True)
class Prediction:
    """A configuration: its rates by round, in groups per second, and how disturbed the runs were.

    With `is_point`, the costs were derived from its rates.
    """

    durable: bool
    candidate: Candidate
    is_point: bool
    measured: list[float] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)

    @property
    def off(self) -> float:
        """How far the prediction is off: 0.1 is 10% too high."""
        return median(self.predicted) / median(self.measured) - 1.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """Groups recorded per second of CPU time, compiled or pure."""

    variant: str
    rate: float


def recording_rates() -> list[Recorded]:
    """Record the backlog's file, compiled and pure in turn, each in its own process."""
    file = recorded()
    with variants("") as trees:
        best: dict[str, float] = {}
        for _ in range(_TURNS):
            for variant in trees:
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.processes.group_recording", str(file)],
                    cwd=variant.tree, env=environ(variant), stdout=subprocess.PIPE, text=True,
                    check=True,
                )  # fmt: skip
                rate = float(json.loads(done.stdout)["rate"])
                best[variant.name] = max(rate, best.get(variant.name, 0.0))
    return [Recorded(name, rate) for name, rate in best.items()]


@contextmanager
def record_of(source: Server) -> Iterator[list[ReplayedGroup]]:
    """Yield the first groups of the source's backlog, in the form a plan uses."""
    with TemporaryDirectory(prefix="mtsd-planning-") as name:
        register(Path(name), 0)
        file = Path(name, "binlog.000001")
        record = file.with_suffix(".parquet")
        shutil.copyfile(source.datadir / file.name, file)
        # In its own process, because Python would not return its memory to the system.
        command = [
            sys.executable,
            "-m",
            "benchmarks.processes.group_recording",
            str(file),
            str(record),
        ]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        file.unlink()
        groups = list(islice(replayed_groups(str(record)), _SAMPLE))
        yield groups
        register(Path(name), None)


def predictions(transactions: int, databases: int, seconds: float, rounds: int) -> list[Prediction]:
    """Measure and predict, `rounds` times."""
    found: dict[tuple[bool, Candidate], Prediction] = {}
    with backlog.loaded_source(transactions, databases) as source, record_of(source) as groups:
        for _ in range(rounds):
            for durable in PREDICTED:
                _round(source, databases, seconds, durable, groups, found)
    return list(found.values())


def _round(
    source: Server,
    databases: int,
    seconds: float,
    durable: bool,
    groups: Sequence[ReplayedGroup],
    found: dict[tuple[bool, Candidate], Prediction],
) -> None:
    machines = Machines(processors(), source_is_here=True)

    def run(candidate: Candidate) -> Throughput:
        settings = {
            "replica.parallel_workers": candidate.parallel_workers,
            "replica.batch_groups": candidate.batch_groups,
        }
        return throughput(source, databases, seconds, durable=durable, settings=settings)

    runs = {candidate: run(candidate) for candidate in CALIBRATION}
    points = [point(candidate, one) for candidate, one in runs.items()]
    costs, _ = calibrated(points, groups, machines)
    runs |= {candidate: run(candidate) for candidate in PREDICTED[durable]}
    for candidate, one in runs.items():
        most = max(_LEAST_SIMULATED, int(one.rate * _SIMULATED_S))
        outcome = Simulation(candidate, groups[:most], costs, machines).run()
        prediction = found.setdefault(
            (durable, candidate), Prediction(durable, candidate, candidate in CALIBRATION)
        )
        prediction.measured.append(one.rate)
        prediction.predicted.append(outcome.rate)
        prediction.others.append(one.load.others)
        print(
            f"{'durable' if durable else 'not durable'}, {candidate}: measured {one.rate:,.0f},"
            f" predicted {outcome.rate:,.0f}, others {one.load.others:.0%}",
            file=sys.stderr,
        )


def point(candidate: Candidate, run: Throughput) -> Point:
    """Return the measurement as a point for calibration."""
    return Point(
        candidate, run.groups, run.transactions, run.seconds, run.daemon_cpu, run.target_cpu,
        run.source_cpu, run.load.others,
    )  # fmt: skip


def table(recordings: Sequence[Recorded], found: Sequence[Prediction]) -> str:
    """Return recordings and predictions as tables."""
    lines = ["\nRecording a load, groups a second of CPU"]
    lines += [f"  {one.variant:27}{one.rate:>12,.0f}" for one in recordings]
    heads = f"{'workers':>8}{'batch':>7}{'measured':>10}{'predicted':>11}{'off':>7}{'others':>9}"
    lines += [
        "\nPredicted and measured: medians, transactions of the source a second",
        f"  {'':14}{heads}",
    ]
    for one in found:
        mark = "*" if max(one.others) > DISTURBED else " "
        lines.append(
            f"  {'durable' if one.durable else 'not durable':14}"
            f"{one.candidate.parallel_workers:>8}{one.candidate.batch_groups:>7}"
            f"{median(one.measured):>10,.0f}{median(one.predicted):>11,.0f}{one.off:>+7.0%}"
            f"{max(one.others):>8.0%}{mark}{' calibration' if one.is_point else ''}"
        )
    return "\n".join(lines)


def figures(recordings: Sequence[Recorded], found: Sequence[Prediction]) -> list[Figure]:
    """Return the figures that have to be reached."""
    reached = [
        Figure(
            f"recording a load, {one.variant}", Range.of([one.rate]), LEAST_RECORDED,
            at_most=False, unit=" groups/s of CPU",
        )
        for one in recordings
    ]  # fmt: skip
    return reached + [
        Figure(
            f"prediction, {'durable' if one.durable else 'not durable'}, {one.candidate}: off by",
            Range.of([abs(one.off)]), MAX_OFF, at_most=True, unit="",
        )
        for one in found
        if not one.is_point
    ]  # fmt: skip
