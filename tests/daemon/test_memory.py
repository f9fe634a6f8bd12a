"""What the allocator keeps free goes back to the system."""

import asyncio
from pathlib import Path

import pytest

from mtsd.daemon import memory


def heap_kib() -> int:
    """Return what of the heap is in memory."""
    of_heap = Path("/proc/self/smaps").read_text(encoding="ascii", errors="replace")
    _, _, mapping = of_heap.partition("[heap]")
    return int(mapping.partition("Rss:")[2].split(maxsplit=1)[0])


async def test_what_is_freed_below_something_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_PERIOD_S", 0.01)
    freed = [bytes(60_000) for _ in range(500)]
    last = bytes(60_000)
    full = heap_kib()
    freed.clear()
    async with memory.memory_given_back():
        await asyncio.sleep(0.1)
        assert heap_kib() < full - 20_000
    assert len(last) == 60_000
