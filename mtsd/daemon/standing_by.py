"""A daemon that stands by: its channel was handed over, and it begins as soon as it comes back.

So a switch does not wait for a process to start: it lifts the fence of the channel, and wakes it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog

from mtsd.apply.position.position_tables import PositionTables
from mtsd.config import Settings
from mtsd.replica.core.endpoints import about_session, endpoint
from mtsd.replica.guards.handed_over import awaited, read_fence
from mtsd.wire.neutral_session import neutral_connection

_LOOK_S: Final = 1.0
"""How often to look by itself."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


async def stand_by(
    settings: Settings, woken: asyncio.Event, stands_by: Callable[[str], None]
) -> None:
    """Return once the channel has no fence; `stands_by` is told why it waits, if it does.

    `woken` is set by whoever lifts it. Raises NeedsPersonError, ServerError, ConnectionLostError.
    """
    tables = PositionTables(settings.target.schema, settings.replica.channel)
    target = endpoint("target", settings.target)
    told = False
    async with neutral_connection(target, about_session(settings, "standby")) as connection:
        while True:
            # What is set from here on is not in the answer.
            woken.clear()
            async with connection.answering():
                fence = await read_fence(connection, tables)
            if fence is None:
                return
            if not told:
                told = True
                log.info("stands by", because=awaited(fence))
            stands_by(awaited(fence))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), _LOOK_S)


async def unless_stopped(work: Coroutine[Any, Any, T], stopping: asyncio.Event) -> T | None:
    """Return what the work comes to; None, with the work cancelled, if the stop comes first."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
            return None
    finally:
        waiting.cancel()
    return working.result()
