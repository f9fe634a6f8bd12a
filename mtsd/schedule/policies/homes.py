"""Homes: partitions that keep being changed together have one worker, which waits for no other.

A group of several partitions waits for what other workers have of them, and what comes later on
these waits for the group. Where that happens often, each worker can combine only a few groups until
the next wait, and all of them together are slower than one. So these partitions get a worker.

For example, four workers, and so many of the last 512 groups changed two partitions at once:

    a and b 60, b and c 50, c and d 3     113 groups may have to wait: more than one in 16, 32
    a and b are one                       53
    a, b and c are one                    3: less than one in 128, 4
    home                                  of a, b, c: the worker that has most of them; d has none

It begins at one in 16, and with more workers later: at one in 4 with 16 of them. Where fewer wait,
workers side by side are faster than one. Once it has begun, it does not end there: some apart, and
waiting, is slower than none or all of them apart.

Only what may have waited counts, a group of which two partitions were in use; and only small ones:
the work of large ones outweighs the waits. What was long ago counts less and less, so partitions
that are no longer changed together have no home any more.

Where partitions go has no effect on what waits for what: on one worker it is in order anyway.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from mtsd.schedule.policies.assigned_partition_hash import AssignedPartitionHash

_PERIOD: Final = 512
"""Groups of the stream until it is looked again."""
_TOO_MANY: Final = 64
"""If more than one in so many groups may wait for each worker, partitions are joined,"""
_FEW: Final = 128
"""until no more than one in so many may."""
SMALL: Final = 8192
"""Bytes of a group that counts."""
_ONE: Final = 16
"""It counts for so many: of one there is something left when it has been halved."""
_MOST_PAIRS: Final = 1024
"""Of different partitions that are counted between two looks."""

Pair = tuple[str, str]


class Homes:
    """By partition: its home. It is looked every `period` groups which partitions have one."""

    __slots__ = ("_period", "_together", "due", "of")

    def __init__(self, workers: int, period: int = _PERIOD) -> None:
        self.of: dict[str, int] = {}
        """By partition: the worker that is its home."""
        self.due = period if workers > 1 else sys.maxsize
        """The number of the group before which to look again."""
        self._period = period
        self._together: dict[Pair, int] = {}
        """How often two partitions were changed by one group, in earlier periods by halves."""

    def note(self, partitions: Sequence[str]) -> None:
        """Count a group of several partitions that may have to wait."""
        first, *others = sorted(partitions)
        together = self._together
        for other in others:
            pair = (first, other)
            if pair in together or len(together) < _MOST_PAIRS:
                together[pair] = together.get(pair, 0) + _ONE

    def look(self, number: int, aph: AssignedPartitionHash) -> None:
        """Give partitions the homes that they have from group `number` on."""
        self.due = number + self._period
        together = self._together
        if together or self.of:
            # Of a steady load, this period's groups and the halves of earlier ones are twice it.
            groups = 2 * _ONE * self._period
            clusters: list[frozenset[str]] = []
            if sum(together.values()) > groups * aph.workers // _TOO_MANY:
                clusters = joined(together, groups // _FEW)
            self.of = placed(clusters, self.of, aph)
            self._together = {pair: count // 2 for pair, count in together.items() if count > 1}

    def forget(self) -> None:
        """Have no homes: partitions have other names from now on."""
        self.of = {}
        self._together = {}


def joined(together: Mapping[Pair, int], most: int) -> list[frozenset[str]]:
    """Return sets of partitions that are to be on one worker each, in the order of their names.

    At most so many groups are left that change partitions of several sets, or in none.
    """
    cluster_of: dict[str, frozenset[str]] = {}
    for pair in together:
        for name in pair:
            cluster_of[name] = frozenset((name,))
    between = dict(together)
    while sum(between.values()) > most:
        # Of equal ones it is always the same, whatever the order in which they were counted.
        one, other = max(between, key=lambda pair: (between[pair], pair))
        both = cluster_of[one] | cluster_of[other]
        for name in both:
            cluster_of[name] = both
        left: dict[Pair, int] = {}
        for (a, b), count in between.items():
            first, second = min(cluster_of[a]), min(cluster_of[b])
            if first != second:
                pair = (first, second) if first < second else (second, first)
                left[pair] = left.get(pair, 0) + count
        between = left
    return sorted({each for each in cluster_of.values() if len(each) > 1}, key=min)


def placed(
    clusters: Sequence[frozenset[str]], former: Mapping[str, int], aph: AssignedPartitionHash
) -> dict[str, int]:
    """Return the home of each partition of the clusters.

    The largest come first, by weights. Each stays where it was, or where most of it is, unless
    larger ones are there and another worker has less of them.
    """
    homes: dict[str, int] = {}
    load = [0] * aph.workers
    weights = [sum(map(aph.weight, cluster)) for cluster in clusters]
    for at in sorted(range(len(clusters)), key=lambda at: -weights[at]):
        cluster = clusters[at]
        here = [0] * aph.workers
        for name in cluster:
            worker = former.get(name, -1)
            if worker < 0:
                worker = aph.worker(name)
            if worker >= 0:
                here[worker] += aph.weight(name)
        home = here.index(max(here))
        if load[home] > min(load):
            home = load.index(min(load))
        load[home] += weights[at]
        homes.update(dict.fromkeys(cluster, home))
    return homes
