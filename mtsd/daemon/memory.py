"""What is freed is used again, and goes back to the system once a minute.

By itself, glibc gives the end of its heap back as soon as 128 kB of it are free, and what is larger
at once. The next packet then takes a page fault, 1 to 2 µs, for each 4 kB of what it is made of.

What is freed in the middle of the heap stays with the process anyway, as transactions have very
different sizes. Under a mixed load a daemon grew by 8 MB in four minutes, of which it used none.
"""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_PERIOD_S: Final = 60.0
"""It takes half a millisecond."""
_KEPT: Final = 32 << 20
"""Bytes: a few packets of the default `batch_bytes`, and what they are made of."""
_LARGEST_KEPT: Final = 16 << 20
"""Bytes: what is larger is mapped by itself, and given back when it is freed."""
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt (malloc.h)."""


def keep_freed_memory() -> None:
    """Let glibc keep what is freed until `memory_given_back` gives it back; or not, without it."""
    try:
        set_parameter = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    set_parameter(_TRIM_THRESHOLD, _KEPT)
    set_parameter(_MMAP_THRESHOLD, _LARGEST_KEPT)


@asynccontextmanager
async def memory_given_back() -> AsyncIterator[None]:
    """Give back what is free every minute as long as this is entered."""
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
