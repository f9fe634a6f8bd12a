"""Ends the wait for an answer that will never come: the target's session does nothing any more.

A server looks between two statements of one packet whether the query is to be killed, and ends
there without an error (measured on MySQL 9.7, with KILL QUERY): more results were promised, and
none follow. The transaction stays open, and its locks are held.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog

from mtsd.apply.sql import literals
from mtsd.model.errors import MtsdError
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.exchange import Awaited
from mtsd.wire.neutral_session import make_neutral


@dataclass(frozen=True, slots=True)
class AnswerTimeouts:
    """How often to look, and how long an answer may take; in seconds.

    `awaited`: since when an answer has been awaited before the target is asked. `idle`: for how
    long the session has done nothing there. What arrives there slowly looks the same to it.
    """

    look_period: float = 10.0
    awaited: float = 60.0
    idle: int = 30


ANSWER_TIMEOUTS: Final = AnswerTimeouts()

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
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._timeouts.look_period)
            before = clock() - self._timeouts.awaited
            long = {
                each.id: each.awaited
                for each in self._sessions()
                if each.awaited is not None and each.awaited.since <= before
            }
            if not long:
                continue
            try:
                idle = await self._idle()
            except (MtsdError, OSError):
                continue
            for each in self._sessions():
                # It may have been answered while the target was asked.
                awaited = long.get(each.id)
                if each.id in idle and awaited is not None and each.awaited == awaited:
                    log.warning(
                        "the target does not answer any more in a session that is idle there:"
                        " closed",
                        connection=each.id,
                    )
                    each.close()

    async def _idle(self) -> frozenset[int]:
        """Return the ids of the target's sessions that have done nothing for a while."""
        connection = await Connection.open(self._current.endpoint)
        try:
            async with connection.answering():
                await make_neutral(connection)
                rows = await connection.query(b"SHOW PROCESSLIST")
        finally:
            connection.close()
        return frozenset(
            literals.number(row[0])
            for row in rows
            if row[4] == "Sleep" and literals.number(row[5] or 0) >= self._timeouts.idle
        )
