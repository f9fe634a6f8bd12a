"""The database policy of WL#5569: groups of different databases run side by side.

It differs from the worklog in one thing: where the worklog's coordinator waits until another
worker has let go of a partition, the group names that worker's last group on it and only its own
queue waits. The edges are the same.
"""

from collections.abc import Sequence

from mtsd.model.group import Group
from mtsd.schedule.assigned_partition_hash import AssignedPartitionHash
from mtsd.schedule.assignment import NOTHING, Assignment

_CROWDED = 2
"""A partition moves on to another worker when its own holds this many more of them."""


class DatabasePolicy:
    """Assigns groups by the databases that they update.

    `bind` lists databases that count as one partition. A group that is `alone` (OVER_MAX,
    unknown databases, a foreign key across databases) waits for the newest group of every queue,
    and everything after it waits for it.

    A group of several partitions brings them together on one worker. While they are in use they
    would stay there for good; so the next group of one of them goes to the least occupied worker,
    after the last one, when its own has become crowded.
    """

    def __init__(self, workers: int, bind: Sequence[Sequence[str]] = ()) -> None:
        self._workers = workers
        self._partition_of = {name: together[0] for together in bind for name in together}
        self.partitions = AssignedPartitionHash(workers)
        self._queued = [0] * workers
        self._newest = [0] * workers
        self._worker_of_alone = 0
        self._alone = 0
        """The number of the newest group that runs alone, 0 once it has committed."""
        self._placed: dict[int, int] = {}
        self._unconditional = [Assignment(worker) for worker in range(workers)]

    def assign(self, group: Group) -> Assignment:
        """Decide by the owners of the group's partitions; see `Policy`."""
        cgap = self._cgap(group) if self._partition_of else group.databases
        if len(cgap) == 1 and not (self._alone or group.alone):
            entry = self.partitions.owner(cgap[0])
            if entry is not None and self.partitions.excess(entry.worker) < _CROWDED:
                # Behind the last group on its only partition, in the same queue.
                entry.join(group.number)
                self._place(group.number, entry.worker)
                return self._unconditional[entry.worker]
        worker = -1
        newest = 0
        others: list[int] = []
        for partition in cgap:
            entry = self.partitions.owner(partition)
            if entry is None:
                continue
            if entry.last > newest:
                newest = entry.last
                worker = entry.worker
            others.append(entry.last)
        if worker < 0 or (len(cgap) == 1 and self.partitions.excess(worker) >= _CROWDED):
            worker = self._least_occupied()
        if group.alone:
            after = frozenset(
                self._newest[other]
                for other in range(self._workers)
                if other != worker and self._queued[other]
            )
            self._alone = group.number
            self._worker_of_alone = worker
        else:
            after = NOTHING
            if others:
                after = frozenset(n for n in others if self._placed[n] != worker)
            if self._alone and self._worker_of_alone != worker:
                after |= {self._alone}
        self.partitions.assign(cgap, worker, group.number)
        self._place(group.number, worker)
        return Assignment(worker, after) if after else self._unconditional[worker]

    def finished(self, groups: Sequence[Group]) -> None:
        """Count the groups out of their partitions; see `Policy`."""
        bound = bool(self._partition_of)
        execute = self.partitions.execute
        queued = self._queued
        placed = self._placed
        for group in groups:
            execute(self._cgap(group) if bound else group.databases)
            queued[placed.pop(group.number)] -= 1
            if self._alone == group.number:
                self._alone = 0

    def _place(self, number: int, worker: int) -> None:
        self._queued[worker] += 1
        self._newest[worker] = number
        self._placed[number] = worker

    def _cgap(self, group: Group) -> Sequence[str]:
        return tuple(dict.fromkeys(self._partition_of.get(d, d) for d in group.databases))

    def _least_occupied(self) -> int:
        held = self.partitions.held
        best = 0
        for worker in range(1, self._workers):
            if (held(worker), self._queued[worker]) < (held(best), self._queued[best]):
                best = worker
        return best
