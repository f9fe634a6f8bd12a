"""DECIMAL as it is packed: in row images, user variables and JSON.

The digits before the point and those behind it stand in groups of 9, each in 4 bytes, big-endian; a
shorter group, the first before the point and the last behind it, takes only the bytes it needs. The
highest bit of the whole is inverted, so that positive ones have it set; in a negative number all
bits are inverted then (MySQL documentation, `decimal2bin`).
"""

from decimal import Decimal
from typing import Final

from mtsd.model.errors import BinlogError

_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""That a group of so many digits takes."""
MAX_DIGITS: Final = 65
MAX_SCALE: Final = 38
"""Of MariaDB; MySQL has 30."""


def packed_size(digits: int, scale: int) -> int:
    """Return the bytes of a number of `digits` digits, `scale` of them behind the point.

    Raises BinlogError where no server has such a type.
    """
    if not (0 < digits <= MAX_DIGITS and scale <= min(digits, MAX_SCALE)):
        raise BinlogError(f"there is no DECIMAL({digits},{scale})")
    before = digits - scale
    return before // 9 * 4 + _BYTES[before % 9] + scale // 9 * 4 + _BYTES[scale % 9]


def groups(digits: int, scale: int) -> tuple[tuple[int, int], ...]:
    """Return the (bytes, digits) of each group, in their order."""
    before = digits - scale
    first = ((_BYTES[before % 9], before % 9),) if before % 9 else ()
    last = ((_BYTES[scale % 9], scale % 9),) if scale % 9 else ()
    return first + ((4, 9),) * (before // 9 + scale // 9) + last


def unpack_decimal(raw: bytes, digits: int, scale: int) -> Decimal:
    """Return the number, with all its digits behind the point; its size is `packed_size`'s.

    Raises BinlogError where a group has more digits than fit.
    """
    negative = raw[0] < 0x80
    mask = 0xFF if negative else 0
    bits = bytes((raw[0] ^ 0x80 ^ mask,)) + (
        bytes(byte ^ mask for byte in raw[1:]) if negative else raw[1:]
    )
    value = 0
    at = 0
    for size, count in groups(digits, scale):
        group = int.from_bytes(bits[at : at + size], "big")
        limit = 10**count
        if group >= limit:
            raise BinlogError(f"{raw.hex()} is no DECIMAL({digits},{scale})")
        value = value * limit + group
        at += size
    # By its text: arithmetic would round to the context's precision.
    return Decimal(f"{'-' if negative else ''}{value}E-{scale}")
