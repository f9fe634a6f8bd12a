"""What a partition comes after: databases that have been bound anew keep their order.

A group of the new partition waits for what was newest, at that moment, on each partition that its
databases had before. What is newest there later does not concern it.
"""

from collections.abc import Iterable, Mapping

from mtsd.schedule.policies.assigned_partition_hash import AssignedPartitionHash

Predecessor = tuple[int, int]
"""Number and worker of a group that was the newest on a partition."""


class Succession:
    """By partition: the groups before it that may be unfinished. Mostly there are none."""

    __slots__ = ("_before", "_newest")

    def __init__(self) -> None:
        self._before: dict[str, frozenset[Predecessor]] = {}
        self._newest = 0

    def is_over(self, mark: int) -> bool:
        """Return whether all of these groups have committed: those up to `mark` have."""
        if self._before and self._newest <= mark:
            self._before = {}
        return not self._before

    def follow(self, changed: Mapping[str, Iterable[str]], aph: AssignedPartitionHash) -> None:
        """Have partitions come after what is now on others, and what these come after."""
        predecessors = dict(self._before)
        for partition, others in changed.items():
            before = set(self._before.get(partition, ()))
            for other in others:
                before |= self._before.get(other, frozenset())
                entry = aph.owner(other)
                if entry is not None:
                    before.add((entry.last, entry.worker))
                    self._newest = max(self._newest, entry.last)
            if before:
                predecessors[partition] = frozenset(before)
        self._before = predecessors

    def before(self, partitions: Iterable[str]) -> list[Predecessor]:
        """Return the groups that one of these partitions comes after, in the stream's order."""
        predecessors: set[Predecessor] = set()
        for partition in partitions:
            predecessors |= self._before.get(partition, frozenset())
        return sorted(predecessors)
