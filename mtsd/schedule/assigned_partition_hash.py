"""The assigned partition hash (APH): who is last on a partition, and how many groups use it.

After WL#5569: the hash holds (partition, usage count, worker). The partitions of the group that is
being assigned are its CGAP (current group assigned partitions); those that its commit counts down
are its CGEP (current group executed partitions).
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class PartitionEntry:
    """One partition in use: `usage` unfinished groups, of which `last` is the newest."""

    worker: int
    usage: int
    last: int

    def join(self, number: int) -> None:
        """Count one more group in, the newest."""
        self.usage += 1
        self.last = number


class AssignedPartitionHash:
    """Partition names in use, and how many of them each worker holds."""

    __slots__ = ("_entries", "_held")

    def __init__(self, workers: int) -> None:
        self._entries: dict[str, PartitionEntry] = {}
        self._held = [0] * workers

    def owner(self, partition: str) -> PartitionEntry | None:
        """Return the entry of a partition that unfinished groups use, else None."""
        return self._entries.get(partition)

    def held(self, worker: int) -> int:
        """Return how many partitions in use belong to the worker."""
        return self._held[worker]

    def excess(self, worker: int) -> int:
        """Return how many more partitions the worker holds than the one with the fewest."""
        return self._held[worker] - min(self._held)

    def assign(self, cgap: Iterable[str], worker: int, number: int) -> None:
        """Count a group in on its partitions and make `worker` their owner."""
        for partition in cgap:
            entry = self._entries.get(partition)
            if entry is None:
                self._entries[partition] = PartitionEntry(worker, 1, number)
                self._held[worker] += 1
            else:
                if entry.worker != worker:
                    self._held[entry.worker] -= 1
                    self._held[worker] += 1
                    entry.worker = worker
                entry.join(number)

    def execute(self, cgep: Iterable[str]) -> None:
        """Count a committed group out of its partitions; an unused one is forgotten."""
        for partition in cgep:
            entry = self._entries[partition]
            entry.usage -= 1
            if not entry.usage:
                del self._entries[partition]
                self._held[entry.worker] -= 1

    def usage(self) -> dict[str, tuple[int, int]]:
        """Return (worker, unfinished groups) of each partition in use, for the status."""
        return {name: (entry.worker, entry.usage) for name, entry in self._entries.items()}
