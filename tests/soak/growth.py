"""Whether something that is sampled over time grows: pure.

The first third is the warm-up, of caches and of the allocator. What counts is the middle of the
last third beside that of the second one: a leak is in each of them, a peak in one.

>>> growth([9, 9, 10, 10, 11, 10, 10, 11, 10], Allowed(0.1, 0))
Growth(before=10, after=10, bound=11.0)
>>> growth([9, 9, 10, 10, 11, 12, 14, 16, 18], Allowed(0.1, 0)).is_too_much
True
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

FEWEST_SAMPLES = 9


@dataclass(frozen=True, slots=True)
class Allowed:
    """How much more the last third may be than the second: a share of that, and so much."""

    share: float
    more: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The middle of the second third, that of the last one, and the most that it may be."""

    before: float
    after: float
    bound: float

    @property
    def is_too_much(self) -> bool:
        """Whether it grows."""
        return self.after > self.bound

    def __str__(self) -> str:
        """Return it for a person."""
        said = "has grown" if self.is_too_much else "is flat"
        return f"{said}: from {self.before:,.0f} to {self.after:,.0f}, at most {self.bound:,.0f}"


def growth(samples: Sequence[float], allowed: Allowed) -> Growth:
    """Return how much it grows. Raises ValueError if there are too few samples."""
    if len(samples) < FEWEST_SAMPLES:
        raise ValueError(f"{len(samples)} samples; {FEWEST_SAMPLES} are needed")
    third = len(samples) // 3
    before = median(samples[third : 2 * third])
    return Growth(before, median(samples[2 * third :]), before * (1 + allowed.share) + allowed.more)
