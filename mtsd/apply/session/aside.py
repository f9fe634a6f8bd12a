"""Long statements, read and made without holding up the event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final, TypeVar

from mtsd.binlog.sql.long_text import LONGEST_READ

T = TypeVar("T")
_MUCH: Final = 1 << 20
"""Bytes of rows."""


async def aside(size: int, read: Callable[[], T]) -> T:
    """Return what `read` returns, which reads `size` bytes: in a thread if they are many."""
    if size > LONGEST_READ:
        return await asyncio.to_thread(read)
    return read()


async def drawn(size: int, items: Iterable[T]) -> AsyncIterator[T]:
    """Yield what `items` makes of `size` bytes of rows: in a thread if they are many."""
    if size <= _MUCH:
        for item in items:
            yield item
        return
    rest = iter(items)
    while made := await asyncio.to_thread(_next, rest):
        yield made[0]


def _next(rest: Iterator[T]) -> tuple[T] | None:
    for item in rest:
        return (item,)
    return None
