"""When a batch that is held open has to be rolled back, so that an earlier one can go on.

It holds locks, and an earlier group may need one of them: rows that are independent can share a
gap, a unique key or a parent. The earlier one waits for a lock and the later one for its turn, so
nobody but mtsd can resolve that.
"""

from collections.abc import Collection
from typing import Final

import structlog

from mtsd.apply.appliers.applier import Applier

log = structlog.get_logger(__name__)

_FIRST_LOOK_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 0.4
_TIMEOUT_S: Final = 5.0
"""Without a commit, and with nobody waiting for one of the batch's row locks."""
_BLIND_TIMEOUT_S: Final = 1.0
"""Without a commit, if nobody can tell who waits for the batch's locks."""


class Stall:
    """How long nothing has gone on: after each `pause_s` in which nothing has, somebody looks."""

    def __init__(self) -> None:
        self.pause_s = _FIRST_LOOK_S
        self.seconds = 0.0

    def ended(self) -> None:
        """Note that something has gone on."""
        self.pause_s = _FIRST_LOOK_S
        self.seconds = 0.0

    def paused(self) -> None:
        """Note that nothing has during the pause; the next one is longer."""
        self.seconds += self.pause_s
        self.pause_s = min(2 * self.pause_s, _LONGEST_PAUSE_S)


def must_give_way(
    stalled: float, waiting: Collection[int] | None, earlier: Collection[int]
) -> bool:
    """Return whether a batch that is held open has to be rolled back.

    `stalled` is for how many seconds nothing has committed, `waiting` are the sessions that wait
    for its locks, None if that is unknown, and `earlier` those that apply earlier groups.
    """
    if waiting is None:
        return stalled >= _BLIND_TIMEOUT_S
    return stalled >= _TIMEOUT_S or not set(waiting).isdisjoint(earlier)


async def gives_way(applier: Applier, number: int, stall: Stall, earlier: Collection[int]) -> bool:
    """Return whether the batch that group `number` begins, held there, must; after another pause.

    `earlier` as for `must_give_way`. Raises ServerError, ConnectionLostError.
    """
    stall.paused()
    waiting = await applier.packets.sessions_waiting()
    if not must_give_way(stall.seconds, waiting, earlier):
        return False
    log.info(
        "gives way to an earlier group", group=number, stalled_s=round(stall.seconds, 2),
        locks_readable=waiting is not None,
    )  # fmt: skip
    return True
