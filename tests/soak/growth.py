"""Whether something that is sampled over time grows: pure.

The first third is the warm-up, of caches and of the allocator. What counts is the middle of the
last third beside that of the second one: a leak is in each of them, a peak in one.

>>> grown([9, 9, 10, 10, 11, 10, 10, 11, 10], Allowed(0.1, 0))
False
>>> grown([9, 9, 10, 10, 11, 12, 14, 16, 18], Allowed(0.1, 0))
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


def grown(samples: Sequence[float], allowed: Allowed) -> bool:
    """Return whether it grows. Raises ValueError if there are too few samples."""
    if len(samples) < FEWEST_SAMPLES:
        raise ValueError(f"{len(samples)} samples; {FEWEST_SAMPLES} are needed")
    third = len(samples) // 3
    before = median(samples[third : 2 * third])
    return median(samples[2 * third :]) > before * (1 + allowed.share) + allowed.more
