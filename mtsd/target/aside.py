"""Reading long statements without holding up the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from mtsd.binlog.long_text import LONGEST_READ

T = TypeVar("T")


async def aside(size: int, read: Callable[[], T]) -> T:
    """Return what `read` returns, which reads `size` bytes: in a thread if they are many."""
    if size > LONGEST_READ:
        return await asyncio.to_thread(read)
    return read()
