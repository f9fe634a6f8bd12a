"""What is still to happen in a simulation, in order."""

from heapq import heappush
from typing import Final

SLICE_HERE: Final = 0
"""A slice of a processor of the daemon's machine has ended; for which task, by its number."""
SLICE_THERE: Final = 1
"""The same on the target's machine."""
PIECE_SENT: Final = 2
"""The source has sent a piece of the stream."""
JOB_DONE: Final = 3
"""The daemon has done a job of a worker, or of its reading."""
RAN: Final = 4
"""A worker's session has run a transaction."""
WAITED: Final = 5
"""It has waited for something that only it waits for."""
SYNCED: Final = 6
"""The target's logs have been synced."""
CHECKPOINT: Final = 7
"""A checkpoint is due."""
CHECKPOINT_RAN: Final = 8
"""Its transaction has run."""
BACKGROUND: Final = 9
"""Never happens: what other programs do has no end."""

Event = tuple[float, int, int, int]
"""When it happens, a number that keeps the order of events, what happens, and to whom."""


class Timeline:
    """The events to come."""

    __slots__ = ("events", "now", "number")

    def __init__(self) -> None:
        self.events: list[Event] = []
        """A heap."""
        self.now = 0.0
        """In seconds since the beginning."""
        self.number = 0
        """Of the last event."""

    def at(self, when: float, kind: int, who: int) -> None:
        """Add an event."""
        self.number += 1
        heappush(self.events, (when, self.number, kind, who))
