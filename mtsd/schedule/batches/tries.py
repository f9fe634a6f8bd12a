"""Whether to try a way that saves much if it succeeds, and costs much if it fails."""

from typing import Final

_LONGEST_PAUSE: Final = 64


class Tries:
    """Learns from each failure: twice as many are left out after each one; pure."""

    __slots__ = ("_left", "_pause")

    def __init__(self) -> None:
        self._pause = 0
        """How many were left out after the last failure."""
        self._left = 0
        """How many of them are still to come."""

    def may_try(self) -> bool:
        """Return whether it is to be tried the next time."""
        if self._left:
            self._left -= 1
            return False
        return True

    def succeeded(self) -> None:
        """Note that it has succeeded."""
        self._pause = 0

    def failed(self) -> None:
        """Note that it has failed."""
        self._pause = min(max(1, 2 * self._pause), _LONGEST_PAUSE)
        self._left = self._pause
