"""A target that takes no change for a while: its disk is full, it is read-only, or it hangs.

A disk is full for an hour, and read_only is set by whoever moves a server. Nothing of what fails
because of that remains, so it is tried again without end. A server that hangs is waited for, since
nobody knows what it has done. All who meet the obstacle say so in one place: the log has one line
for all workers, the status a state.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, Self

import structlog

from mtsd.model.error_numbers import FULL_NUMBERS
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.wire.link import LinkError, Outage
from mtsd.wire.refusal import is_read_only, remedy_of

FULL: Final = "the target's disk is full"
READ_ONLY: Final = "the target is read-only"
SILENT: Final = "the target does not answer"
_NO_SPACE: Final = re.compile(
    r"No space left on device|Disk quota exceeded|\b(?:errno|error|Errcode):? 28\b"
)
"""The system's error, which other errors of a server quote (1005, 1025, 1030)."""
_LONGEST_PAUSE_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.05

log = structlog.get_logger(__name__)


def obstacle_of(error: ServerError) -> str:
    """Return what keeps the target from taking any change, in words; "" for another error."""
    if error.server.startswith("source"):
        return ""
    if is_read_only(error):
        return READ_ONLY
    if error.number in FULL_NUMBERS or error.says(_NO_SPACE):
        return FULL
    return ""


def obstacle_pause(attempt: int, longest: float = _LONGEST_PAUSE_S) -> float:
    """Return the seconds to wait before attempt `attempt`; the first retry is 1."""
    return min(_FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16), longest)


class Obstacles:
    """Those who wait until the target takes changes again, by a name for each: `who`."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._waiting: dict[str, str] = {}
        """Who waits, and for what to be over."""
        self._outage: Outage | None = None
        self.error: LinkError | None = None
        """What the target said last; None once it takes changes again."""
        self.is_wait_told = False
        """Whether the log says already what workers wait for: the same holds up others, too."""

    @property
    def what(self) -> str:
        """What is in the way, in words; "" if nothing is."""
        return next(iter(self._waiting.values()), "")

    def of(self, who: str) -> str:
        """Return what is in the way of `who`; "" if nothing is."""
        return self._waiting.get(who, "")

    def met(self, who: str, error: ServerError, pause: float) -> None:
        """Note that `who` tries again after `pause` seconds because of an error."""
        what = obstacle_of(error)
        waited = self._noted(who, what, LinkError(error.number, error.text, self._wall()))
        if waited is not None:
            event = f"waiting: {what}"
            log.warning(
                event, error=error.number, text=error.text, waited_s=waited,
                remedy=remedy_of(error), again_in_s=round(pause, 2),
            )  # fmt: skip

    def silent(self, who: str, error: ConnectionLostError) -> None:
        """Note that sessions wait for the target, and that it takes no new one, as `who` finds."""
        waited = self._noted(who, SILENT, LinkError(0, str(error), self._wall()))
        if waited is not None:
            event = f"waiting: {SILENT}"
            log.warning(
                event, text=str(error), waited_s=waited,
                remedy="It hangs, or the network is cut: see whether anybody can log in there",
            )  # fmt: skip

    def _noted(self, who: str, what: str, error: LinkError) -> int | None:
        """Return for how many seconds that has lasted, where it is to be told now."""
        self._waiting[who] = what
        self.error = error
        now = self._clock()
        if self._outage is None:
            self._outage = Outage(now)
        return round(now - self._outage.began) if self._outage.is_due(what, now) else None

    def passed(self, who: str) -> None:
        """Note that the target has taken what `who` has tried again."""
        if self._waiting.pop(who, "") and not self._waiting and self._outage is not None:
            waited = round(self._clock() - self._outage.began)
            log.warning("the target takes changes again", waited_s=waited)
            self._outage = self.error = None

    def left(self, who: str) -> None:
        """Note that `who` no longer tries, for another reason; the obstacle may still be there."""
        if self._waiting.pop(who, "") and not self._waiting:
            self._outage = self.error = None


_OBSTACLES: ContextVar[Obstacles | None] = ContextVar("obstacles", default=None)


def wait_out_obstacles(obstacles: Obstacles) -> None:
    """Have what runs in this context from now on wait for the end of obstacles, however long.

    A command, in whose context nobody has called this, gives up after some attempts.
    """
    _OBSTACLES.set(obstacles)


def obstacles_here() -> Obstacles | None:
    """Return those of this context; None in a command."""
    return _OBSTACLES.get()


class Retrying:
    """One transaction that is tried again; as a context manager it notes what became of that."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._obstacles = obstacles_here()
        self.attempts = 0
        """Those that have failed because of an obstacle."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._obstacles is not None and self.attempts:
            if kind is None:
                self._obstacles.passed(self._who)
            else:
                self._obstacles.left(self._who)

    def waits_for(self, error: ServerError) -> float | None:
        """Return the seconds to wait before trying again; None if no obstacle is waited for."""
        if self._obstacles is None or not obstacle_of(error):
            return None
        self.attempts += 1
        pause = obstacle_pause(self.attempts)
        self._obstacles.met(self._who, error, pause)
        return pause

    async def waited_for(self, error: ServerError) -> bool:
        """Wait a while if that is an obstacle; return whether it was."""
        pause = self.waits_for(error)
        if pause is None:
            return False
        await asyncio.sleep(pause)
        return True


async def past_obstacles(who: str, act: Callable[[], Awaitable[None]]) -> None:
    """Await `act`, and again after each obstacle; raises any other ServerError."""
    with Retrying(who) as retrying:
        while True:
            try:
                await act()
            except ServerError as error:
                if not await retrying.waited_for(error):
                    raise
            else:
                return
