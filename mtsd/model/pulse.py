"""Whether a coroutine that never ends makes progress: it reports, and others check.

Does not read the clock: the checker compares two moments of its own.
"""

import enum
from types import TracebackType


class Wait(enum.StrEnum):
    """What may take arbitrarily long."""

    SOURCE = "source"
    """The source has nothing to send, or cannot be reached."""
    ROOM = "room"
    """The queues are full, because the target is slower than the source."""
    EARLIER_GROUPS = "earlier_groups"
    """A group that runs alone waits for all groups before it."""
    DELAY = "delay"
    """The next group is not applied yet, on purpose."""
    TARGET = "target"
    """The target is working on a group that is applied while it is read."""
    END = "end"
    """There is nothing left to do."""


class Pulse:
    """Counts the turns of one coroutine and holds what it is waiting for, or None."""

    __slots__ = ("turns", "waits_for")

    def __init__(self) -> None:
        self.turns = 0
        self.waits_for: Wait | None = None

    def turn(self) -> None:
        """Report progress."""
        self.turns += 1

    def waiting(self, wait: Wait) -> "_Waiting":
        """Return a context manager for a wait; it may be nested."""
        return _Waiting(self, wait)


class _Waiting:
    # Not a generator: this is entered for every piece read.
    __slots__ = ("_before", "_pulse", "_wait")

    def __init__(self, pulse: Pulse, wait: Wait) -> None:
        self._pulse = pulse
        self._wait = wait
        self._before: Wait | None = None

    def __enter__(self) -> None:
        self._before = self._pulse.waits_for
        self._pulse.waits_for = self._wait

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pulse.waits_for = self._before
        self._pulse.turns += 1
