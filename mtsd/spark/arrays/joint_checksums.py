"""Verifies the checksums of many events with one CRC32 of all of their bytes.

After an event and its checksum, the register of a CRC32 is always the same, whatever the event was.
The next event's own checksum was made with the register that every CRC32 begins with. The
difference of the two is a constant, and what becomes of it after n more bytes is known. So the
CRC32 of events depends only on where they end: with events that end 500, 300 and 0 bytes before the
end of all, it is RESIDUE ^ after(500) ^ after(300).
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
from zlib_ng.zlib_ng import crc32

from mtsd.binlog.bytes.checksum import RESIDUE
from mtsd.spark.arrays.lockstep import Places

Registers = npt.NDArray[np.uint32]

_TOGETHER: Final = 1 << 18
"""How many bytes of events are verified at once, a power of 2; a larger event is so alone."""


def are_sound(data: bytes, bounds: Places) -> bool:
    """Tell whether events end with their checksums; `bounds` are where they begin and end."""
    shifted = _shifted()
    first = 0
    while first < len(bounds) - 1:
        begin = int(bounds[first])
        last = int(np.searchsorted(bounds, begin + _TOGETHER, "right")) - 1
        last = max(first + 1, last)
        end = int(bounds[last])
        # Each event but the first began with the register of the one before, and not anew.
        expected = int(np.bitwise_xor.reduce(shifted[end - bounds[first + 1 : last]], initial=0))
        if crc32(memoryview(data)[begin:end]) ^ RESIDUE != expected:
            return False
        first = last
    return True


@cache
def _shifted() -> Registers:
    """Return what the register after an event adds to that of n bytes more, for each n."""
    table = np.array([crc32(bytes((byte,))) ^ crc32(b"\0") for byte in range(256)], np.uint32)
    found = np.empty(_TOGETHER, np.uint32)
    found[0] = RESIDUE
    # In each round, what 2**n more bytes do to each of the four bytes of a register.
    step = [_advanced(np.arange(256, dtype=np.uint32) << np.uint32(8 * n), table) for n in range(4)]
    known = 1
    while known < _TOGETHER:
        found[known : 2 * known] = _stepped(found[:known], step)
        step = [_stepped(one, step) for one in step]
        known *= 2
    return found


def _advanced(registers: Registers, table: Registers) -> Registers:
    """Return registers after a byte of zero."""
    found: Registers = (registers >> np.uint32(8)) ^ table[registers & np.uint32(255)]
    return found


def _stepped(registers: Registers, step: Sequence[Registers]) -> Registers:
    found: Registers = step[0][registers & np.uint32(255)]
    for n in range(1, 4):
        found = found ^ step[n][registers >> np.uint32(8 * n) & np.uint32(255)]
    return found
