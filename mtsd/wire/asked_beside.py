"""What a server is asked beside replication, by one session and one statement at a time.

A statement may wait on the server for as long as a backup takes. If its session is closed
meanwhile, the server goes on waiting with it, and each further attempt would wait beside it, up to
max_connections.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeVar

from mtsd.model.errors import ConnectionLostError

T = TypeVar("T")

_LOOK_S: Final = 1.0


async def answered(
    role: str,
    work: Coroutine[object, object, T],
    *,
    late_after: float,
    late: Callable[[], None],
    connected: Callable[[], bool],
) -> T:
    """Return what `work` returns, however long that takes as long as the server is `connected`.

    `late` is called once after `late_after` seconds. Raises what it raises, ConnectionLostError.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=late_after)
        if not task.done():
            late()
        while not task.done():
            if not connected():
                raise ConnectionLostError(role, "it does not answer")
            await asyncio.wait({task}, timeout=_LOOK_S)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
