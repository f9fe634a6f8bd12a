"""How large a backlog has to be for measuring, and how long one lasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.plan.calibration import TYPICAL
from mtsd.plan.candidate import DEFAULT_SETTINGS, Candidate, CommonSettings
from mtsd.plan.costs import Machines
from mtsd.plan.replayed_group import ReplayedGroup, repeated
from mtsd.plan.simulation import Simulation

_BEFORE_S: Final = 2.0
"""What a daemon replicates of the backlog before and after it is measured, in seconds."""
_LEAST: Final = 4_000
"""How many groups to simulate: a queue has to be as full as that of a backlog."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """A backlog of `size` bytes of binary logs, and what each point takes of it, in transactions.

    `size` is None if it is not known. `length` is the size of a transaction of the load in bytes.
    """

    size: int | None
    length: float
    taken: tuple[int, ...]

    @property
    def points(self) -> int:
        """For how many of the points it lasts, if its size is known."""
        left = int((self.size or 0) / self.length)
        for number, taken in enumerate(self.taken):
            left -= taken
            if left < 0:
                return number
        return len(self.taken)

    def __str__(self) -> str:
        needed = sum(self.taken)
        each = ", ".join(f"{taken:,}" for taken in self.taken)
        takes = f"with typical costs, the points take about {each} of them, {needed:,} in total"
        if self.size is None:
            return f"how many transactions the backlog has is not known; {takes}"
        groups = int(self.size / self.length)
        size = f"the backlog has {self.size / 1e6:,.1f} MB, about {groups:,} transactions; {takes}"
        if self.points == len(self.taken):
            return size
        return (
            f"{size}: it may last for {self.points} of {len(self.taken)} points only; stop the"
            " replica for longer first, or measure for a shorter time"
        )


def backlog_of(
    size: int | None,
    points: Sequence[Candidate],
    seconds: float,
    sample: Sequence[ReplayedGroup],
    machines: Machines,
    settings: CommonSettings = DEFAULT_SETTINGS,
) -> Backlog:
    """Return a backlog of `size` bytes, or an unknown one, measured at these points.

    Each of them takes `seconds`. `sample` is a part of the load; it is not empty.
    """
    taken = []
    for point in points:
        # How transactions depend on each other matters little here, and may not be recorded.
        like = Candidate("database", point.parallel_workers, point.batch_groups)
        groups = repeated(lambda: sample, _LEAST)
        outcome = Simulation(like, groups, TYPICAL, machines, settings=settings).run()
        taken.append(int(outcome.rate * (seconds + _BEFORE_S)))
    length = sum(one.length for one in sample) / len(sample)
    return Backlog(size, max(1.0, length), tuple(taken))
