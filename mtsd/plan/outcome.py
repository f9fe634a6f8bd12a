"""What came out of simulating one configuration."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole run over a stream of `groups`, in `seconds`.

    `rate` is that of the run without its first and last twentieth, in groups a second.
    `transactions` are those of the target. Shares are of the run's time, 0 to 1: the daemon's
    `reading` and `sending`, the `target` processors' work, its `sync`, the workers' work
    (`workers`, of all of them), and by cause (`mtsd.schedule.wait_cause`) how long the next group
    had no room. `waits` is how long workers that had nothing else to do waited for the groups of
    others, in seconds, by what waited: databases joined by "+", or a kind of group that runs
    alone.
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
        """Return it as JSON has it."""
        return asdict(self)

    @property
    def waiting(self) -> float:
        """The share of all workers' time in which they waited for the groups of others."""
        total = self.seconds * len(self.workers)
        return sum(self.waits.values()) / total if total else 0.0
