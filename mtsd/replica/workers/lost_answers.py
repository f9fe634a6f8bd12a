"""Looks at the target while an answer of it is awaited for long.

The wait is ended if the answer will never come, as the session does nothing any more. A server
looks between two statements of one packet whether the query is to be killed, and ends there without
an error (measured on MySQL 9.7, with KILL QUERY): more results were promised, and none follow. The
transaction stays open, and its locks are held.

A target that does not answer that question either hangs, or is cut off behind something that keeps
the connections. That is told, and nothing is ended: an ALTER TABLE may go on there for hours.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog

from mtsd.apply.session.obstacle import Obstacles, obstacles_here
from mtsd.apply.sql import literals
from mtsd.model.errors import ConnectionLostError, MtsdError
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.exchange import Awaited
from mtsd.wire.neutral_session import neutral_connection


@dataclass(frozen=True, slots=True)
class AnswerTimeouts:
    """How often to look, and how long an answer may take; in seconds.

    `asked`: since when an answer has been awaited before the target is asked, `awaited`: before the
    wait may be ended. `idle`: for how long the session has done nothing there. What arrives there
    slowly looks the same to it.
    """

    look_period: float = 10.0
    asked: float = 20.0
    awaited: float = 60.0
    idle: int = 30


ANSWER_TIMEOUTS: Final = AnswerTimeouts()
_WHO: Final = "lost answers"

log = structlog.get_logger(__name__)


class OpenSession(NamedTuple):
    """A session on the target by its id there, what it awaits, and how to close it.

    `awaited` is None while something is still being sent: so long, the target is idle.
    """

    id: int
    awaited: Awaited | None
    close: Callable[[], None]


class LostAnswers:
    """Looks again and again at `sessions`; what waits on one that is closed loses its connection.

    It asks on a connection of its own, to the endpoint that is `current` then.
    """

    def __init__(
        self,
        current: CurrentEndpoint,
        sessions: Callable[[], Iterable[OpenSession]],
        timeouts: AnswerTimeouts = ANSWER_TIMEOUTS,
    ) -> None:
        self._current = current
        self._sessions = sessions
        self._timeouts = timeouts

    async def run(self) -> None:
        """Look until cancelled; what cannot be asked now is asked later."""
        obstacles = obstacles_here() or Obstacles()
        try:
            while True:
                await asyncio.sleep(self._timeouts.look_period)
                await self._look(obstacles)
        finally:
            obstacles.left(_WHO)

    async def _look(self, obstacles: Obstacles) -> None:
        now = asyncio.get_running_loop().time()
        waits = {each.id: each.awaited for each in self._sessions() if each.awaited is not None}
        if not any(each.since <= now - self._timeouts.asked for each in waits.values()):
            obstacles.passed(_WHO)
            return
        try:
            idle = await self._idle()
        except ConnectionLostError as error:
            obstacles.silent(_WHO, error)
            return
        except (MtsdError, OSError):
            idle = frozenset()
        obstacles.passed(_WHO)
        for each in self._sessions():
            # It may have been answered while the target was asked.
            awaited = waits.get(each.id)
            if (
                each.id in idle
                and awaited is not None
                and awaited.since <= now - self._timeouts.awaited
                and each.awaited == awaited
            ):
                log.warning(
                    "the target does not answer any more in a session that is idle there: closed",
                    connection=each.id,
                )
                each.close()

    async def _idle(self) -> frozenset[int]:
        """Return the ids of the target's sessions that have done nothing for a while."""
        async with neutral_connection(self._current.endpoint) as connection, connection.answering():
            rows = await connection.query(b"SHOW PROCESSLIST")
        return frozenset(
            literals.number(row[0])
            for row in rows
            if row[4] == "Sleep" and literals.number(row[5] or 0) >= self._timeouts.idle
        )
