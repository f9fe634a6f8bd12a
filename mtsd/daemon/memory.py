"""Gives the system back what the allocator keeps although it is free.

Transactions have very different sizes, and what is freed in the middle of glibc's heap stays with
the process. Under a mixed load a daemon grew by 8 MB in four minutes, of which it used none.
"""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_PERIOD_S: Final = 60.0
"""It takes half a millisecond."""


@asynccontextmanager
async def memory_given_back() -> AsyncIterator[None]:
    """Do so every minute as long as this is entered."""
    trim = _trim()
    if trim is None:
        yield
        return
    task = asyncio.create_task(_repeated(trim))
    try:
        yield
    finally:
        task.cancel()


async def _repeated(trim: Callable[[int], object]) -> None:
    while True:
        await asyncio.sleep(_PERIOD_S)
        trim(0)


def _trim() -> Callable[[int], object] | None:
    """Return glibc's malloc_trim; None with another C library."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return None
