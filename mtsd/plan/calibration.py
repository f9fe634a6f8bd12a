"""Derives the costs of the stages on given machines from a daemon's measurements there.

Processor time is measured, and divided between groups and transactions by how it grows with each;
and processors slow each other down by how much it grows when more of them are busy. What remains
are syncs, whose costs are those that make the simulation as fast as the daemon was at each point.
If the target's processor time was not measured, it is found in the same way, from the points that
depend on it most.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Final

from mtsd.plan.candidate import DEFAULT_SETTINGS, Candidate, CommonSettings
from mtsd.plan.costs import Costs, Machines, warm
from mtsd.plan.plan import FittedPoint
from mtsd.plan.replayed_group import ReplayedGroup
from mtsd.plan.simulation import Simulation

TYPICAL: Final = Costs(
    read_group=21e-6,
    send=60e-6,
    source_group=3e-6,
    transaction=170e-6,
    group=8e-6,
    row=12e-6,
    sync=300e-6,
    contention=0.3,
)
"""Assumed for whatever was not measured; from a 2.6 GHz processor and a fast disk."""

_FEW: Final = 3_000
"""How many groups to simulate before adding some for each worker's transactions."""
_PER_TRANSACTION: Final = 50
_ROUNDS: Final = 2
_STEPS: Final = 11
_SHARES: Final = 8
_MAX_BACKGROUND: Final = 64
_TOO_FAST: Final = 1.1
_DISTURBED: Final = 0.2
"""The share of the processors used by others from which on they are simulated, too."""
_LEAST_POINTS: Final = 3
_DOUBT: Final = 0.05
"""The error of a rate that outweighs a deviation from the typical costs."""
_TYPICAL_WEIGHT: Final = 0.6
"""The error of logarithms that outweighs the same deviation from the typical contention."""
_CLOSE: Final = 1.04
"""The ratio between the ends of a range at which the search stops."""
_LONGEST_SYNC_S: Final = 0.1
_LONGEST_WRITE_S: Final = 0.001
_LITTLE_S: Final = 20e-6
"""If waits are shorter than this, how they are divided does not matter."""
_OF_GROUP: Final = 0.2
"""The share of a group's cost on the target that does not depend on its rows."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a daemon with a backlog did in `seconds`, in one configuration.

    `daemon`, `target` and `source` are CPU times in seconds, and `others` is the share of all
    processors of the target's machine that other programs used; None if not measured.
    """

    candidate: Candidate
    groups: int
    transactions: int
    seconds: float
    daemon: float | None = None
    target: float | None = None
    source: float | None = None
    others: float | None = None

    @property
    def rate(self) -> float:
        """Groups per second."""
        return self.groups / self.seconds


Make = Callable[[float], Costs]
"""Returns the costs with one or several of them changed."""


class PointsError(ValueError):
    """The points are not sufficient to derive costs."""


def calibrated(
    points: Sequence[Point],
    sample: Sequence[ReplayedGroup],
    machines: Machines,
    settings: CommonSettings = DEFAULT_SETTINGS,
) -> tuple[Costs, tuple[FittedPoint, ...]]:
    """Return the costs, and how the simulation compares at each point; raises PointsError.

    `sample` is the beginning of the load that the points were measured with, or a similar load.
    """
    if not points or not sample:
        raise PointsError("there is no point, or no group, to find costs by")
    for point in points:
        if not (point.groups > 0 and point.transactions > 0 and point.seconds > 0):
            raise PointsError(f"nothing was applied at the point {point.candidate}")
    rows = sum(one.rows for one in sample) / len(sample)
    work = _Work(points)
    contention = _contention(points, work, machines)
    costs = replace(TYPICAL, contention=contention)
    slower = [1.0 + contention * _use(point, machines) for point in points]
    read, send = work.of_daemon(slower)
    if read is not None and send is not None:
        costs = replace(costs, read_group=read, send=send)
    sent = [
        (point.source / times, point.groups)
        for point, times in zip(points, slower, strict=True)
        if point.source is not None
    ]
    if sent:
        costs = replace(costs, source_group=sum(s for s, _ in sent) / sum(g for _, g in sent))
    group, transaction = work.of_target(slower)
    alone = min(points, key=lambda p: (p.candidate.parallel_workers, p.candidate.batch_groups))
    fit = _Fit(sample, machines, settings)
    if group is not None and transaction is not None:
        costs = replace(_with_group(costs, rows, group), transaction=transaction)
        batched = max(points, key=lambda p: p.candidate.batch_groups)
        if (batched.others or 0.0) > _DISTURBED:
            costs = fit.background(fit.waits(costs, points, alone), batched)
        for _ in range(_ROUNDS):
            costs = fit.written(fit.waits(costs, points, alone), batched)
    else:
        costs = fit.everything(costs, points, alone, rows)
    return costs, tuple(
        FittedPoint(point.candidate, point.rate, fit.rate(costs, point.candidate))
        for point in points
    )


class _Work:
    """What was done at the points, and how their CPU times are divided."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._warm = [p.transactions * warm(p.groups / p.transactions) for p in points]

    def of_daemon(self, slower: Sequence[float]) -> tuple[float | None, float | None]:
        """Return the daemon's cost of a group and of a transaction; None if not measured.

        CPU times are divided by `slower`, one factor for each point.
        """
        return self._divided([point.daemon for point in self._points], slower)

    def of_target(self, slower: Sequence[float]) -> tuple[float | None, float | None]:
        """Return the target's cost of a group and of a transaction; None if not measured."""
        return self._divided([point.target for point in self._points], slower)

    def _divided(
        self, spent: Sequence[float | None], slower: Sequence[float]
    ) -> tuple[float | None, float | None]:
        return _divided([
            (groups, point.transactions, cpu and cpu / times)
            for point, groups, cpu, times in zip(
                self._points, self._warm, spent, slower, strict=True
            )
        ])  # fmt: skip

    def unexplained(self, slower: Sequence[float]) -> float:
        """Return by how much the CPU times differ from what the costs come to, as logarithms."""
        off = 0.0
        for (group, transaction), spent in (
            (self.of_daemon(slower), [point.daemon for point in self._points]),
            (self.of_target(slower), [point.target for point in self._points]),
        ):
            if group is None or transaction is None:
                continue
            for point, groups, times, cpu in zip(
                self._points, self._warm, slower, spent, strict=True
            ):
                if cpu:
                    left = times * (group * groups + transaction * point.transactions)
                    off += abs(log(left / cpu))
        return off


def _use(point: Point, machines: Machines) -> float:
    """Return which share of the processors a point used, if all of its parts share them."""
    if machines.target is not None or point.daemon is None or point.target is None:
        return 0.0
    used = point.daemon + point.target + (point.source or 0.0)
    return min(1.0, used / (point.seconds * machines.daemon) + (point.others or 0.0))


def _contention(points: Sequence[Point], work: _Work, machines: Machines) -> float:
    """Return how much slower processors are while all others are busy.

    It is the factor that explains best why the same work takes more time at one point than at
    another, and a typical one if there are too few points to tell.
    """
    if machines.daemon < 2 or len(points) < _LEAST_POINTS:
        return TYPICAL.contention if machines.target is None else 0.0
    uses = [_use(point, machines) for point in points]

    def unexplained(contention: float) -> float:
        slower = [1.0 + contention * use for use in uses]
        return abs(contention - TYPICAL.contention) * _TYPICAL_WEIGHT + work.unexplained(slower)

    return min((number / _STEPS for number in range(2 * _STEPS)), key=unexplained)


def _divided(
    spent: Sequence[tuple[float, int, float | None]],
) -> tuple[float | None, float | None]:
    """Return the cost of a group and of a transaction, by least squares of relative errors.

    Both are None if nothing was measured.
    """
    counted = [(groups / cpu, trx / cpu) for groups, trx, cpu in spent if cpu]
    if not counted:
        return None, None
    gg = sum(g * g for g, _ in counted)
    gt = sum(g * t for g, t in counted)
    tt = sum(t * t for _, t in counted)
    g1 = sum(g for g, _ in counted)
    t1 = sum(t for _, t in counted)
    determinant = gg * tt - gt * gt
    if determinant > 1e-9 * gg * tt:
        group = (g1 * tt - t1 * gt) / determinant
        transaction = (t1 * gg - g1 * gt) / determinant
        if group >= 0.0 and transaction >= 0.0:
            return group, transaction
        return (g1 / gg, 0.0) if transaction < 0.0 else (0.0, t1 / tt)
    # All points have equally many groups per transaction, so the typical ratio has to do.
    share = TYPICAL.read_group / (TYPICAL.read_group + TYPICAL.send)
    return share * len(counted) / g1, (1 - share) * len(counted) / t1


def _with_group(costs: Costs, rows: float, group: float) -> Costs:
    if rows <= 0.0:
        return replace(costs, group=group, row=0.0)
    return replace(costs, group=_OF_GROUP * group, row=(1 - _OF_GROUP) * group / rows)


def _several(points: Sequence[Point]) -> Point:
    """Return the point with the most workers and, among those, the smallest batches."""
    return max(points, key=lambda p: (p.candidate.parallel_workers, -p.candidate.batch_groups))


def _with_waits(costs: Costs, share: float, waits: float) -> Costs:
    return replace(costs, sync=share * waits, delay=(1 - share) * waits, serial=0.0)


def _with_serial(costs: Costs, serial: float) -> Costs:
    return replace(costs, serial=serial)


def _with_written(costs: Costs, written: float) -> Costs:
    return replace(costs, written=written)


def _with_both(costs: Costs, share: float, both: float) -> Costs:
    return replace(costs, sync=share * both, transaction=(1 - share) * both)


class _Fit:
    """Finds costs by simulation."""

    def __init__(
        self, sample: Sequence[ReplayedGroup], machines: Machines, settings: CommonSettings
    ) -> None:
        self._sample = sample
        self._machines = machines
        self._settings = settings

    def rate(self, costs: Costs, candidate: Candidate) -> float:
        """Return the simulated rate of a configuration."""
        most = _FEW + _PER_TRANSACTION * candidate.batch_groups * max(1, candidate.parallel_workers)
        groups = self._sample[:most]
        simulation = Simulation(candidate, groups, costs, self._machines, settings=self._settings)
        return simulation.run().rate

    def background(self, costs: Costs, point: Point) -> Costs:
        """Return the costs with enough background tasks to match a point that has few waits.

        Processor time is measured, so only other programs can explain a longer run.
        """
        low, high = 0, 1
        while high <= _MAX_BACKGROUND and self._is_too_fast(costs, high, point):
            low, high = high, 2 * high
        if not low and not self._is_too_fast(costs, 0, point):
            return costs
        while low + 1 < high:
            middle = (low + high) // 2
            if self._is_too_fast(costs, middle, point):
                low = middle
            else:
                high = middle
        return replace(costs, background=high)

    def _is_too_fast(self, costs: Costs, background: int, point: Point) -> bool:
        busy = replace(costs, background=background)
        return self.rate(busy, point.candidate) > _TOO_FAST * point.rate

    def waits(self, costs: Costs, points: Sequence[Point], alone: Point) -> Costs:
        """Return the costs with the sync and the delay that reproduce the rates of the points.

        A single worker waits for their sum. The larger the sync's share, the slower several are;
        if they are slower still, they keep each other from committing.
        """
        several = _several(points)
        costs = self._as_fast(partial(_with_waits, costs, 1.0), 0.0, _LONGEST_SYNC_S, alone)
        waits = costs.sync
        if several is alone:
            return costs
        if self.rate(costs, several.candidate) > several.rate:
            return self._as_fast(partial(_with_serial, costs), 0.0, _LONGEST_SYNC_S, several)
        if waits < _LITTLE_S:
            return costs

        def distance(share: float) -> float:
            rate = self.rate(_with_waits(costs, share, waits), several.candidate)
            return abs(log(rate / several.rate))

        share = min((number / _SHARES for number in range(_SHARES, -1, -1)), key=distance)
        return _with_waits(costs, share, waits)

    def written(self, costs: Costs, batched: Point) -> Costs:
        """Return the costs with as much time in a sync for each group as its point shows."""
        make = partial(_with_written, costs)
        return self._as_fast(make, 0.0, _LONGEST_WRITE_S, batched)

    def everything(self, costs: Costs, points: Sequence[Point], alone: Point, rows: float) -> Costs:
        """Return costs derived from rates alone, to the extent that the points determine them."""
        batched = max(points, key=lambda p: p.candidate.batch_groups)
        several = _several(points)
        # The sync's share of what a transaction takes in addition to its groups.
        share = typical = costs.sync / (costs.sync + costs.transaction)
        for _ in range(_ROUNDS):
            if batched.candidate.batch_groups > alone.candidate.batch_groups:
                make: Make = partial(_with_group, costs, rows)
                costs = self._as_fast(make, 0.0, 1.0, batched)
            costs = self._as_fast(partial(_with_both, costs, share), 0.0, _LONGEST_SYNC_S, alone)
            if several is alone:
                break
            both = costs.sync + costs.transaction

            def distance(share: float, costs: Costs = costs, both: float = both) -> float:
                rate = self.rate(_with_both(costs, share, both), several.candidate)
                return abs(log(rate / several.rate)) + _DOUBT * abs(share - typical)

            # Too much of either makes the run slow: processors or syncs become the bottleneck.
            share = min((number / _SHARES for number in range(_SHARES + 1)), key=distance)
            costs = _with_both(costs, share, both)
        return costs

    def _as_fast(self, make: Make, low: float, high: float, point: Point) -> Costs:
        """Return `make(number)` for the number that makes the simulation as fast as a point.

        If there is none, use the end of the range that comes closest. Higher numbers are slower.
        """
        if self.rate(make(low), point.candidate) <= point.rate:
            return make(low)
        for _ in range(_STEPS):
            if high < _CLOSE * low:
                break
            # Geometric, because most of the range is far above realistic values.
            middle = (low * high) ** 0.5 if low > 0.0 else low + (high - low) / 16
            if self.rate(make(middle), point.candidate) > point.rate:
                low = middle
            else:
                high = middle
        return make((low + high) / 2)
