"""How long was waited, by cause.

Pure: it is told the time, in seconds of any clock that only goes forward.
"""

from typing import Final

from mtsd.schedule.wait_cause import WaitCause

DISPATCHER: Final = -1
"""The waiter that adds groups; the others are the workers, by their index from 0."""
_NOTHING: Final = dict.fromkeys(WaitCause, 0.0)


class Waits:
    """Adds up what the dispatcher and each worker have waited. Each waits for one cause at most."""

    __slots__ = ("_causes", "_seconds", "_since")

    def __init__(self, workers: int) -> None:
        self._causes: list[WaitCause | None] = [None] * (workers + 1)
        self._since = [0.0] * (workers + 1)
        self._seconds = _NOTHING.copy()

    def set(self, waiter: int, cause: WaitCause | None, now: float) -> None:
        """Note what a waiter waits for from now on; None if it does not wait."""
        before = self._causes[waiter]
        if before is cause:
            return
        if before is not None:
            self._seconds[before] += now - self._since[waiter]
        self._causes[waiter] = cause
        self._since[waiter] = now

    def cause(self, waiter: int) -> WaitCause | None:
        """Return what a waiter waits for; None if it does not wait."""
        return self._causes[waiter]

    def seconds(self, now: float) -> dict[WaitCause, float]:
        """Return the seconds by cause, every one of them, with those of waits that go on."""
        seconds = dict(self._seconds)
        for cause, since in zip(self._causes, self._since, strict=True):
            if cause is not None:
                seconds[cause] += now - since
        return seconds
