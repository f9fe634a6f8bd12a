"""The assigned partition hash (APH): which group is last on a partition, and how many use it.

After WL#5569: the hash holds (partition, usage count, worker). The partitions of the group that is
being assigned are its CGAP (current group assigned partitions); those that its commit counts down
are its CGEP (current group executed partitions).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mtsd.schedule.policies.partition_statistics import PartitionStatistics

_MAX_REMEMBERED = 16_384
"""The number of entries above which those not in use are dropped."""


@dataclass(slots=True)
class PartitionEntry:
    """One partition: `usage` unfinished groups, of which `last`, the newest, is at `worker`.

    It counts as `weight` partitions. An entry that is not in use only keeps the number of groups
    that have `committed`.
    """

    worker: int
    usage: int
    last: int
    committed: int = 0
    weight: int = 1

    def join(self, number: int) -> None:
        """Count another group, the newest."""
        self.usage += 1
        self.last = number


def _one(_: str) -> int:
    return 1


class AssignedPartitionHash:
    """Partitions by name, and how many of those in use each worker holds, by their weights."""

    __slots__ = ("_entries", "_fewest", "_forget_at", "_held", "_weight_of")

    def __init__(self, workers: int) -> None:
        self._entries: dict[str, PartitionEntry] = {}
        self._held = [0] * workers
        self._fewest = 0
        """The number of partitions held by the worker with the fewest in use."""
        self._forget_at = _MAX_REMEMBERED
        self._weight_of: Callable[[str], int] = _one

    def weigh(self, weight_of: Callable[[str], int]) -> None:
        """Let each partition count as many as the function returns for its name."""
        self._weight_of = weight_of
        held = [0] * len(self._held)
        for name, entry in self._entries.items():
            entry.weight = weight_of(name)
            if entry.usage:
                held[entry.worker] += entry.weight
        self._held = held
        self._fewest = min(held)

    def owner(self, partition: str) -> PartitionEntry | None:
        """Return the entry of a partition that unfinished groups use, else None."""
        entry = self._entries.get(partition)
        return entry if entry is not None and entry.usage else None

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self._held)

    def worker(self, partition: str) -> int:
        """Return the worker that had the partition last, in use or not; -1 if it is not known."""
        entry = self._entries.get(partition)
        return -1 if entry is None else entry.worker

    def weight(self, partition: str) -> int:
        """Return how many partitions it counts for."""
        return self._weight_of(partition)

    def held(self, worker: int) -> int:
        """Return how many partitions in use belong to the worker."""
        return self._held[worker]

    def is_crowded(self, entry: PartitionEntry) -> bool:
        """Return whether the partition should move to a worker that holds fewer.

        Even with it, that worker then holds fewer than its present one does now.
        """
        return self._held[entry.worker] - entry.weight > self._fewest

    def least_occupied(self, groups: Sequence[int], frozen: Sequence[bool]) -> int:
        """Return the worker with the fewest partitions in use, and of those with fewest groups.

        `groups` are the unfinished groups of each worker. One of the `frozen` workers is chosen
        only if all are.
        """
        held = self._held
        best = 0
        for worker in range(1, len(held)):
            if (frozen[worker], held[worker], groups[worker]) < (
                frozen[best],
                held[best],
                groups[best],
            ):
                best = worker
        return best

    def assign(self, cgap: Iterable[str], worker: int, number: int) -> None:
        """Count a group on its partitions and make `worker` their owner."""
        for partition in cgap:
            entry = self._entries.get(partition)
            if entry is None:
                self._forget_unused()
                weight = self._weight_of(partition)
                entry = PartitionEntry(worker, 0, number, weight=weight)
                self._entries[partition] = entry
            if not entry.usage:
                self._take_up(worker, entry.weight)
            elif entry.worker != worker:
                self._let_go(entry.worker, entry.weight)
                self._take_up(worker, entry.weight)
            entry.worker = worker
            entry.join(number)

    def execute(self, cgep: Iterable[str]) -> None:
        """Remove a committed group from the counts of its partitions."""
        for partition in cgep:
            entry = self._entries[partition]
            entry.committed += 1
            entry.usage -= 1
            if not entry.usage:
                self._let_go(entry.worker, entry.weight)

    def usage(self) -> dict[str, tuple[int, int]]:
        """Return (worker, unfinished groups) of each partition in use."""
        return {
            name: (entry.worker, entry.usage)
            for name, entry in self._entries.items()
            if entry.usage
        }

    def statistics(self, oldest_commit_times: Mapping[str, int]) -> list[PartitionStatistics]:
        """Describe the partitions, ordered by name.

        `oldest_commit_times`, in µs since 1970, are those of the unfinished groups of each.
        """
        return [
            PartitionStatistics(
                name=name,
                worker=entry.worker + 1 if entry.usage else 0,
                pending_groups=entry.usage,
                oldest_commit_time=oldest_commit_times.get(name),
                groups=entry.committed,
            )
            for name, entry in sorted(self._entries.items())
        ]

    def _take_up(self, worker: int, weight: int) -> None:
        held = self._held
        held[worker] += weight
        if held[worker] - weight == self._fewest:
            self._fewest = min(held)

    def _let_go(self, worker: int, weight: int) -> None:
        held = self._held
        held[worker] -= weight
        self._fewest = min(self._fewest, held[worker])

    def _forget_unused(self) -> None:
        """Keep memory bounded, however many names there are."""
        if len(self._entries) < self._forget_at:
            return
        self._entries = {name: entry for name, entry in self._entries.items() if entry.usage}
        self._forget_at = max(_MAX_REMEMBERED, 2 * len(self._entries))


def last_of(entry: PartitionEntry) -> int:
    """Return the number of the partition's newest group."""
    return entry.last


def oldest_commit_times(unfinished: Iterable[tuple[Iterable[str], int]]) -> dict[str, int]:
    """Return the lowest commit time of each partition, from (partitions, commit time) pairs."""
    oldest: dict[str, int] = {}
    for partitions, commit_time in unfinished:
        for name in partitions:
            oldest[name] = min(commit_time, oldest.get(name, commit_time))
    return oldest
