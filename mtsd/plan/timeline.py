"""The queue of future events in a simulation."""

from heapq import heappush
from typing import Final

SLICE_HERE: Final = 0
"""A slice of a processor of the daemon's machine has ended; the recipient is the task's number."""
SLICE_THERE: Final = 1
"""The same on the target's machine."""
PIECE_SENT: Final = 2
"""The source has sent a piece of the stream."""
JOB_DONE: Final = 3
"""The daemon has done a job of a worker, or of its reading."""
RAN: Final = 4
"""A worker's session has run a transaction."""
WAITED: Final = 5
"""A worker's transaction has waited out its own delay."""
WRITTEN: Final = 6
"""Transactions are written to the target's logs, one after the other."""
SYNCED: Final = 7
"""The target's logs have been synced."""
CHECKPOINT: Final = 8
"""A checkpoint is due."""
CHECKPOINT_RAN: Final = 9
"""The checkpoint's transaction has run."""
BACKGROUND: Final = 10
"""Never happens: the tasks of other programs do not end."""

Event = tuple[float, int, int, int]
"""The time, a number that keeps events in order, the kind of event, and its recipient."""


class Timeline:
    """The future events."""

    __slots__ = ("events", "now", "number")

    def __init__(self) -> None:
        self.events: list[Event] = []
        """A heap."""
        self.now = 0.0
        """Seconds since the beginning."""
        self.number = 0
        """The number of the last event added."""

    def at(self, when: float, kind: int, who: int) -> None:
        """Add an event."""
        self.number += 1
        heappush(self.events, (when, self.number, kind, who))
