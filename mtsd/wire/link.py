"""Whether a server is connected: since when, and if it is not, why, and when it is tried again."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_FIRST_MINUTES_S: Final = (60.0, 300.0)
_PERIOD_S: Final = 1800.0
_MAX_REASONS: Final = 8
"""A reason may contain what is different each time."""


class Outage:
    """Something that lasts, and when it is worth a line in the log.

    At once, after 1 and 5 minutes, and then every 30; another reason is told at once, too. Times
    are seconds of a monotonic clock.
    """

    __slots__ = ("_next", "_reported", "began")

    def __init__(self, now: float) -> None:
        self.began = now
        self._next = now
        self._reported: set[str] = set()

    def is_due(self, reason: str, now: float) -> bool:
        """Return whether it is to be told now, for this reason; it counts as told then."""
        is_new = reason not in self._reported and len(self._reported) < _MAX_REASONS
        if not is_new and now < self._next:
            return False
        self._reported.add(reason)
        lasts = now - self.began
        later = next((each for each in _FIRST_MINUTES_S if each > lasts), None)
        self._next = self.began + (later or _PERIOD_S * (lasts // _PERIOD_S + 1))
        return True


@dataclass(frozen=True, slots=True)
class LinkError:
    """Why a server is not connected, or takes nothing; `number` is its own, 0 if it said nothing.

    `time` is in seconds since 1970.
    """

    number: int
    text: str
    time: float


class Link:
    """The daemon's connection to one server, as a person sees it; it may be several sessions."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall = wall
        self.connected = False
        self.since = wall()
        """Since when it is connected, or is not, in seconds since 1970."""
        self.attempts = 0
        """Those that have failed since it was last connected and of use."""
        self.error: LinkError | None = None
        """What is wrong now; None once that is over."""
        self._next_at: float | None = None
        self._outage: Outage | None = None

    @property
    def next_in(self) -> float | None:
        """Seconds until the next attempt to connect; None while there is none to wait for."""
        return None if self._next_at is None else max(0.0, self._next_at - self._clock())

    def up(self) -> None:
        """Note that it is connected."""
        self._set(connected=True)
        self._next_at = None

    def works(self) -> float | None:
        """Note that the connection is of use; return for how long there was none, in seconds.

        None if that was not lost before. A server that accepts each connection and ends it again
        has not come back.
        """
        outage, self._outage = self._outage, None
        self.attempts = 0
        self.error = None
        return None if outage is None else self._clock() - outage.began

    def lost(self, number: int, text: str, pause: float) -> bool:
        """Note that it is lost, or could not be made, and is tried again after `pause` seconds.

        Returns whether that is worth a line in the log.
        """
        now = self._clock()
        self._set(connected=False)
        self.attempts += 1
        self.error = LinkError(number, text, self._wall())
        self._next_at = now + pause
        if self._outage is None:
            self._outage = Outage(now)
        return self._outage.is_due(text, now)

    def tries(self) -> None:
        """Note that the next attempt begins."""
        self._next_at = None

    def closed(self) -> None:
        """Note that mtsd itself has closed it; what was wrong before stays."""
        self._set(connected=False)
        self._next_at = None

    def _set(self, *, connected: bool) -> None:
        if connected is not self.connected:
            self.connected = connected
            self.since = self._wall()


@dataclass(frozen=True, slots=True)
class Links:
    """Both servers'."""

    source: Link
    target: Link

    def of(self, server: str) -> Link:
        """Return that of a server, as errors name it."""
        return self.source if server.startswith("source") else self.target

    @classmethod
    def new(cls) -> "Links":
        """Return those of a daemon that begins."""
        return cls(Link(), Link())
