"""Which groups past the low-water mark have committed: as a bitmap, and from the workers' rows.

The bitmap of slave_worker_info (WL#5599): bit i, counted from the lowest bit of the first byte,
stands for group `Checkpoint_seqno` + i. Numbers count from the channel's beginning, so rebasing a
bitmap is a shift.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutedGroups:
    """A set of group numbers: bit i of `bits` stands for number `base` + i."""

    base: int
    bits: int = 0

    @classmethod
    def from_bitmap(cls, base: int, bitmap: bytes) -> "ExecutedGroups":
        """Decode the bytes of a Checkpoint_group_bitmap."""
        return cls(base, int.from_bytes(bitmap, "little"))

    def bitmap(self) -> bytes:
        """Return the bytes of a Checkpoint_group_bitmap, without trailing zero bytes."""
        return self.bits.to_bytes((self.bits.bit_length() + 7) // 8, "little")

    def rebased(self, base: int) -> "ExecutedGroups":
        """Return the same numbers from `base` on; lower ones are dropped."""
        shift = base - self.base
        if shift == 0:
            return self
        return ExecutedGroups(base, self.bits >> shift if shift > 0 else self.bits << -shift)

    def with_numbers(self, numbers: Iterable[int]) -> "ExecutedGroups":
        """Return the set with more numbers, none below `base`."""
        # Collected separately, starting at the lowest number: the numbers are close together but
        # far from the base, and each step costs the length of what it changes.
        more = 0
        lowest = -1
        for number in numbers:
            if lowest < 0:
                lowest = number
            elif number < lowest:
                more <<= lowest - number
                lowest = number
            more |= 1 << (number - lowest)
        if lowest < 0:
            return self
        return ExecutedGroups(self.base, self.bits | more << (lowest - self.base))

    def union(self, other: "ExecutedGroups") -> "ExecutedGroups":
        """Return the numbers of both from this set's base on."""
        return ExecutedGroups(self.base, self.bits | other.rebased(self.base).bits)

    @property
    def highest(self) -> int:
        """The highest number, or `base` - 1 if there is none."""
        return self.base + self.bits.bit_length() - 1

    def __contains__(self, number: int) -> bool:
        return number >= self.base and bool(self.bits >> (number - self.base) & 1)

    def __iter__(self) -> Iterator[int]:
        bits = self.bits
        while bits:
            lowest = bits & -bits
            yield self.base + lowest.bit_length() - 1
            bits ^= lowest

    def __len__(self) -> int:
        return self.bits.bit_count()


NO_GROUPS = ExecutedGroups(0)
"""None."""


def recovered(low_water_mark: int, rows: Iterable[ExecutedGroups]) -> ExecutedGroups:
    """Return what the workers' rows prove done past the low-water mark.

    `low_water_mark` is the number up to which, inclusive, every group has committed. A restart
    begins after it and skips the numbers of the result. The result is closed under dependencies:
    a group starts only after all that it depends on have committed, so a number in it has its
    dependencies in it or below the mark, whichever policy and number of workers produced it.
    """
    result = ExecutedGroups(low_water_mark + 1)
    for row in rows:
        result = result.union(row)
    return result
