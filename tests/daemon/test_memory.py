"""What is freed is used again, and what the allocator keeps free goes back to the system."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from mtsd.daemon import memory

PAGES_OF_ALL_PACKETS = """
import resource
from mtsd.daemon.memory import keep_freed_memory

def packet():
    pieces = [bytes(90_000) for _ in range(20)]
    return len(b"".join(pieces))

keep_freed_memory()
packet()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    packet()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Each of the 20 has 880 pages of 4 kB."""


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


def test_the_next_packet_takes_no_new_pages() -> None:
    command = [sys.executable, "-c", PAGES_OF_ALL_PACKETS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 880
