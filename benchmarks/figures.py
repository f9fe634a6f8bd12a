"""The targets to reach, and whether they are reached; and the summary of several runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.parts.lag import Lag
from benchmarks.replicas.runs import Applied, Pair

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Range:
    """The range of several runs' results."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, found: Iterable[float]) -> "Range":
        """Return the range of at least one run."""
        every = list(found)
        return cls(median(every), min(every), max(every))


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: the median of `found` has to be at least `limit`, or at most, if `at_most`."""

    name: str
    found: Range
    limit: float
    at_most: bool
    unit: str

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        found = self.found.median
        return found <= self.limit if self.at_most else found >= self.limit


def ratio(name: str, least: float, pairs: Sequence[Pair]) -> Figure:
    """Return how many times faster mtsd is, pair by pair."""
    found = Range.of(pair.times for pair in pairs)
    return Figure(f"{name}: mtsd / the server's own", found, least, at_most=False, unit=" times")


def memory(name: str, most: float, mtsd: Sequence[Applied]) -> Figure:
    """Return mtsd's highest peak of resident memory, which is limited in every run."""
    peak = max(run.peak_memory or 0 for run in mtsd) / MEGABYTE
    found = Range.of([peak])
    return Figure(f"{name}: peak resident memory of mtsd", found, most, at_most=True, unit=" MB")


def lag(percentile: str, most: float, native: Sequence[Lag], mtsd: Sequence[Lag]) -> Figure:
    """Return the ratio of mtsd's lag to that of the server's own replica, run by run."""
    found = Range.of(
        getattr(of_mtsd, percentile) / getattr(of_native, percentile)
        for of_native, of_mtsd in zip(native, mtsd, strict=True)
    )
    name = f"lag, {percentile}: mtsd / the server's own"
    return Figure(name, found, most, at_most=True, unit=" times")
