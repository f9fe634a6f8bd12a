"""What has to be reached, and whether it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.backlog import Applied
from benchmarks.lag import Lag

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: `found` has to be at least `limit`, or `at_most` that."""

    name: str
    found: float
    limit: float
    at_most: bool
    unit: str

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.found <= self.limit if self.at_most else self.found >= self.limit


def ratio(name: str, least: float, native: Sequence[Applied], mtsd: Sequence[Applied]) -> Figure:
    """Return how many times faster mtsd is, by the median runs of both."""
    found = median(run.seconds for run in native) / median(run.seconds for run in mtsd)
    return Figure(f"{name}: mtsd / the server's own", found, least, at_most=False, unit=" times")


def memory(name: str, most: float, mtsd: Sequence[Applied]) -> Figure:
    """Return mtsd's highest peak of resident memory."""
    peak = max(run.peak_memory or 0 for run in mtsd) / MEGABYTE
    return Figure(f"{name}: peak resident memory of mtsd", peak, most, at_most=True, unit=" MB")


def lag(percentile: str, most: float, native: Sequence[Lag], mtsd: Sequence[Lag]) -> Figure:
    """Return how many times the lag of the server's own replica mtsd's is, by the medians."""
    theirs = median(getattr(one, percentile) for one in native)
    ours = median(getattr(one, percentile) for one in mtsd)
    name = f"lag, {percentile}: mtsd / the server's own"
    return Figure(name, ours / theirs, most, at_most=True, unit=" times")
