"""The counters of a simulation."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from mtsd.model.group import Group
from mtsd.plan.simulated_run import SimulatedRun

_EDGE: Final = 0.05
"""The share of the groups at each end that does not count for the rate."""
_FEWEST: Final = 50
"""With fewer transactions between them, the edges are not left out."""


class Tally:
    """The counters of one run; times are in seconds."""

    __slots__ = ("_blocked", "_committed", "_counts", "_waits", "reading", "sending")

    def __init__(self) -> None:
        self.reading = 0.0
        self.sending = 0.0
        self._blocked: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._committed: list[float] = []
        """When the daemon learned that each transaction of the target had committed."""
        self._counts: list[int] = []
        """How many groups had committed by then."""

    def committed(self, groups: int, now: float) -> None:
        """Count a transaction."""
        counts = self._counts
        counts.append(counts[-1] + groups if counts else groups)
        self._committed.append(now)

    def blocked(self, cause: str, seconds: float) -> None:
        """Count how long reading had no room."""
        self._blocked[cause] = self._blocked.get(cause, 0.0) + seconds

    def waited(self, head: Group, seconds: float) -> None:
        """Count how long an otherwise idle worker has waited to begin a group."""
        what = f"alone: {head.kind.value}" if head.alone else "+".join(sorted(head.databases))
        self._waits[what] = self._waits.get(what, 0.0) + seconds

    def outcome(
        self, seconds: float, target: float, synced: float, workers: Sequence[float]
    ) -> SimulatedRun:
        """Return the outcome of a run of `seconds`; the other times are seconds of use."""
        share = 1.0 / seconds if seconds else 0.0
        counts = self._counts
        return SimulatedRun(
            groups=counts[-1] if counts else 0,
            transactions=len(counts),
            seconds=seconds,
            rate=self._rate(seconds),
            reading=self.reading * share,
            sending=self.sending * share,
            target=target * share,
            sync=synced * share,
            workers=tuple([busy * share for busy in workers]),
            blocked={cause: waited * share for cause, waited in self._blocked.items()},
            waits=self._waits,
        )

    def _rate(self, seconds: float) -> float:
        """Return the groups per second, without the edges of the run."""
        counts = self._counts
        if not counts or not seconds:
            return 0.0
        first = bisect_left(counts, int(counts[-1] * _EDGE))
        last = bisect_left(counts, int(counts[-1] * (1 - _EDGE)))
        between = self._committed[last] - self._committed[first]
        if last - first < _FEWEST or between <= 0.0:
            return counts[-1] / seconds
        return (counts[last] - counts[first]) / between
