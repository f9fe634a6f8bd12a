"""The outcome of simulating one configuration."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A complete run over a stream of `groups`, in `seconds`.

    `rate` excludes the first and last twentieth of the run, and is in groups per second.
    `transactions` counts those of the target. Shares of the run's time, from 0 to 1, are given for
    the daemon's `reading` and `sending`, the `target` processors, its `sync`, all workers together
    (`workers`), and, by cause (`mtsd.schedule.wait_cause`), the time in which the next group had no
    room. `waits` is how many seconds otherwise idle workers waited for the groups of others, by
    what waited: databases joined by "+", or a kind of group that runs alone.
    """

    groups: int
    transactions: int
    seconds: float
    rate: float
    reading: float
    sending: float
    target: float
    sync: float
    workers: tuple[float, ...]
    blocked: Mapping[str, float] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """Return the outcome as a JSON object."""
        return asdict(self)

    @property
    def waiting(self) -> float:
        """The share of all workers' time spent waiting for the groups of others."""
        total = self.seconds * len(self.workers)
        return sum(self.waits.values()) / total if total else 0.0
