"""Which batches of one queue may be applied at the same time, and commit one after the other.

The source's logical clock (WL#7165) tells: a group conflicts with none of the groups whose sequence
number is above its own `last_committed`. For example, with four groups of one file:

    sequence_number  last_committed
    11               8
    12               8
    13               10                 independent of 11 and 12
    14               12                 independent of 13, but perhaps not of 12

So a batch of 13 may be applied beside one of 11 and 12, and a batch of 14 may not.

Databases of the source that are one on the target share no order on its clock. Groups of them come
with a `last_committed` that puts them behind everything before (see `merged_databases`).
"""

from typing import Final

from mtsd.schedule.batches.in_flight import Batch

_LARGE_BYTES: Final = 1 << 14
_LONG_S: Final = 0.0004
"""For a group. Of those, 25 ms have so many that a commit costs each of them a tenth of that."""
_SHORTEST_S: Final = 0.001
"""What an event loop's clock can tell."""


def are_large(batch: Batch) -> bool:
    """Return whether its groups are so large that a shared commit saves little, on the average."""
    return sum(group.size for group in batch) >= _LARGE_BYTES * len(batch)


def are_long(batch: Batch, each_s: float) -> bool:
    """Return whether a shared commit saves little, if the target needs `each_s` for a group.

    Rows of a table with many keys take long, however few bytes they are.
    """
    return are_large(batch) or each_s >= _LONG_S


def size_within(wanted: float, batch: Batch, seconds: float, *, at_least: int) -> int:
    """Return how many bytes take `wanted` seconds, if this batch took `seconds`.

    For example, if one of 60,000 bytes took 0.01 s, then 0.025 s are for 150,000 bytes. An event
    loop's clock may not have moved at all meanwhile.
    """
    size = sum(group.size for group in batch)
    return max(int(size / max(seconds, _SHORTEST_S) * wanted), at_least)


def are_independent(earlier: Batch, later: Batch) -> bool:
    """Return whether by the source's clock no group of `later` conflicts with one of `earlier`.

    False where that is unknown: without a clock, across files, or where the numbers do not rise.
    """
    file = earlier[0].end.file
    first = newest = 0
    for group in earlier:
        if group.sequence_number <= newest or group.end.file != file:
            return False
        newest = group.sequence_number
        first = first or newest
    for group in later:
        if group.sequence_number <= newest or group.end.file != file:
            return False
        newest = group.sequence_number
        if not 0 < group.last_committed < first:
            return False
    return True
