"""Reads what the target has executed while a run goes on, for groups that come back to it."""

import asyncio
from contextlib import suppress
from typing import Final

from mtsd.apply.session.retry import insist
from mtsd.model.gtid import GtidSet
from mtsd.model.pulse import Pulse, Wait
from mtsd.wire.binlog_status import executed_gtids
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.neutral_session import neutral_connection

_KEPT_S: Final = 2.0
"""How long a connection is kept open for the next question: less than any wait_timeout."""


class ExecutedReadings:
    """Reads it on a connection of its own, whenever somebody asks, and adds it to `executed`."""

    def __init__(self, current: CurrentEndpoint, executed: GtidSet, pulse: Pulse) -> None:
        self._current = current
        self._executed = executed
        self._pulse = pulse
        self._asked = asyncio.Event()
        self._answered = asyncio.Event()

    async def ask(self) -> None:
        """Wait until it has been read, or the run ends."""
        self._answered.clear()
        self._asked.set()
        with self._pulse.waiting(Wait.TARGET):
            await self._answered.wait()

    async def run(self) -> None:
        """Answer until cancelled. Raises ServerError, ConnectionLostError."""
        try:
            while True:
                await self._asked.wait()
                await self._answer()
        finally:
            # Whoever asks must not wait for a run that fails.
            self._answered.set()

    async def _answer(self) -> None:
        async with neutral_connection(self._current.endpoint) as connection:
            with suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(_KEPT_S):
                        await self._asked.wait()
                    self._asked.clear()
                    self._executed.update(
                        await insist(connection, lambda: executed_gtids(connection))
                    )
                    self._answered.set()
