"""Ordinary loads, each a backlog: by the server's own replica, and by mtsd with its defaults."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.figures import MEGABYTE, Figure, Range, ratio
from benchmarks.inputs.ordinary import AS_SQL, CONNECTIONS, LOADS, NAMES, OrdinaryLoad
from benchmarks.parts import copies
from benchmarks.replicas.kinds import Kind
from benchmarks.replicas.runs import Pair
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server

__all__ = ["NAMES", "Measured", "as_sql", "figures", "measured", "pairs", "table"]


@dataclass(frozen=True, slots=True)
class Measured:
    """Runs of one load under one policy of mtsd, durable or not."""

    kind: Kind
    load: str
    policy: str
    durable: bool
    binlog_bytes: int
    pairs: Sequence[Pair]

    @property
    def variant(self) -> str:
        """What a table calls it."""
        name = f"{self.load}, {self.policy}, {'' if self.durable else 'not '}durable"
        return name if self.kind == copies.MYSQL else f"{self.kind.name}, {name}"

    @property
    def times(self) -> Range:
        """How many times faster mtsd was than the server's own replica."""
        return Range.of(pair.times for pair in self.pairs)

    @property
    def speed(self) -> float:
        """Bytes of the source's binlog that mtsd has applied a second."""
        return self.binlog_bytes / median(pair.mtsd.seconds for pair in self.pairs)


def measured(
    names: Sequence[str],
    workers: int,
    repeat: int,
    *,
    scale: float,
    policies: Sequence[str],
    kind: Kind,
) -> list[Measured]:
    """Run the loads on such servers, `scale` times as long as usual, `repeat` rounds each."""
    found = []
    for load in LOADS:
        if load.name not in names:
            continue
        count = max(CONNECTIONS, round(load.transactions * scale))
        with copies.loaded(load.prepare, partial(_run, load, count), kind=kind) as made:
            for durable in (True, False):
                rounds: dict[str, list[Pair]] = {policy: [] for policy in policies}
                for number in range(repeat):
                    native = made.native(workers, durable=durable) if number % 2 == 0 else None
                    runs = {
                        policy: made.external(
                            workers, durable=durable, settings={"replica.parallel_type": policy}
                        )
                        for policy in policies
                    }
                    # Whichever runs first finds the machine as the previous run has left it.
                    native = native or made.native(workers, durable=durable)
                    for policy, run in runs.items():
                        rounds[policy].append(Pair(native, run))
                for policy, pairs_ in rounds.items():
                    one = Measured(kind, load.name, policy, durable, made.binlog_bytes, pairs_)
                    found.append(one)
                    print(f"{one.variant}: {one.times.median:.2f} times", file=sys.stderr)
    return found


def as_sql(workers: int, *, durable: bool) -> dict[str, Pair]:
    """Run the loads that cost most as SQL; return a pair of each, by its name."""
    found: dict[str, Pair] = {}
    for load in AS_SQL:
        with copies.loaded(load.prepare, partial(_run, load, load.transactions)) as made:
            settings: Mapping[str, Value] = {"target.apply_mode": "sql"}
            found[load.name] = made.pair(workers, durable=durable, settings=settings)
    return found


def table(found: Sequence[Measured]) -> str:
    """Return the loads as a table, and the geometric mean of each policy."""
    width = max(len(one.variant) for one in found) + 2
    heads = (
        f"{'times':>18}{'trx/s':>10}{'MB/s':>8}{'own, µs/trx':>13}{'target + mtsd':>15}{'MB':>6}"
    )
    lines = ["\nOrdinary loads: mtsd beside the server's own replica", f"  {'':{width}}{heads}"]
    for one in found:
        mtsd = [pair.mtsd for pair in one.pairs]
        times = one.times
        spread = f"{times.median:.2f} ({times.lowest:.2f} to {times.highest:.2f})"
        memory = max(run.peak_memory or 0 for run in mtsd) / MEGABYTE
        lines.append(
            f"  {one.variant:{width}}{spread:>18}{median(run.rate for run in mtsd):>10,.0f}"
            f"{one.speed / MEGABYTE:>8.1f}"
            f"{median(pair.native.cpu_each for pair in one.pairs):>13,.0f}"
            f"{median(run.cpu_each for run in mtsd):>15,.0f}{memory:>6.0f}"
        )
    for (policy, durable), mean in _means(found).items():
        name = f"geometric mean, {policy}, {'' if durable else 'not '}durable"
        lines.append(f"  {name:{width}}{mean:>18.2f}")
    return "\n".join(lines)


def figures(found: Sequence[Measured]) -> list[Figure]:
    """Return the figures to reach: no load slower with the defaults, and the means."""
    least = {True: 4.0, False: 2.5}
    whole = {one.load for one in found} == set(NAMES)
    return [
        *(ratio(one.variant, 1, one.pairs) for one in found if one.policy == "database"),
        *(
            Figure(
                f"geometric mean, {'' if durable else 'not '}durable",
                Range(mean, mean, mean),
                least[durable],
                at_most=False,
                unit=" times",
            )
            for (policy, durable), mean in _means(found).items()
            if whole and policy == "database"
        ),
    ]


def pairs(found: Sequence[Measured]) -> dict[str, list[Pair]]:
    """Return the runs by variant."""
    return {one.variant: list(one.pairs) for one in found}


def _means(found: Sequence[Measured]) -> dict[tuple[str, bool], float]:
    logs: dict[tuple[str, bool], list[float]] = {}
    for one in found:
        logs.setdefault((one.policy, one.durable), []).append(math.log(one.times.median))
    return {key: math.exp(sum(each) / len(each)) for key, each in logs.items()}


def _run(load: OrdinaryLoad, count: int, server: Server) -> int:
    return load.run(server, count)
