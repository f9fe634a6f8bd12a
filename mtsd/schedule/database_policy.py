"""The database policy of WL#5569: groups of different databases run in parallel.

It differs from the worklog in one thing: where the worklog's coordinator waits until another
worker has released a partition, the group names that worker's last group on it and only its own
queue waits. The dependencies are the same.
"""

from collections.abc import Iterable, Sequence

from mtsd.model.group import Group
from mtsd.schedule.assigned_partition_hash import (
    AssignedPartitionHash,
    PartitionEntry,
    oldest_commit_times,
)
from mtsd.schedule.assignment import NO_NEEDS, Assignment
from mtsd.schedule.first_available import FirstAvailable
from mtsd.schedule.partition_statistics import PartitionStatistics
from mtsd.schedule.schedule_view import ScheduleView


class DatabasePolicy:
    """Assigns groups by the databases that they update.

    `bind` lists sets of databases that count as one partition, named by their names joined by "+".

    A group of several partitions brings them together on one worker. As long as they are in use
    they would stay there forever; so when that worker has become crowded, the next group of one of
    them goes to the least occupied worker, after the partition's last group.

    With a `distribution`, that chooses the workers, and only the dependencies are by partition.
    """

    def __init__(
        self,
        workers: int,
        bind: Sequence[Sequence[str]] = (),
        distribution: FirstAvailable | None = None,
    ) -> None:
        self._distribution = distribution
        self._partition_of = {name: "+".join(together) for together in bind for name in together}
        self.needs = NO_NEEDS
        self.by_names = True
        self.aph = AssignedPartitionHash(workers)
        self._unconditional = [Assignment(worker) for worker in range(workers)]

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by the owners of the group's partitions; see `Policy`."""
        cgap = self._cgap(group)
        aph = self.aph
        distribution = self._distribution
        if len(cgap) == 1 and forced < 0 and distribution is None:
            entry = aph.owner(cgap[0])
            if entry is not None and not aph.is_crowded(entry.worker):
                # After the last group on its only partition, in the same queue.
                entry.join(group.number)
                return self._unconditional[entry.worker]
        worker = -1
        newest = 0
        in_use: list[PartitionEntry] = []
        for partition in cgap:
            entry = aph.owner(partition)
            if entry is not None:
                in_use.append(entry)
                if entry.last > newest:
                    newest = entry.last
                    worker = entry.worker
        if forced >= 0:
            worker = forced
            if distribution is not None:
                distribution.note(group.number, group.size, worker)
        elif distribution is not None:
            worker = distribution.place(group.number, group.size, newest, view)
        elif worker < 0 or (len(cgap) == 1 and aph.is_crowded(worker)):
            worker = aph.least_occupied(view.groups)
        after = [entry.last for entry in in_use if entry.worker != worker]
        aph.assign(cgap, worker, group.number)
        return Assignment(worker, frozenset(after)) if after else self._unconditional[worker]

    def finished(self, groups: Sequence[Group]) -> None:
        """Remove the groups from the counts of their partitions; see `Policy`."""
        execute = self.aph.execute
        for group in groups:
            execute(self._cgap(group))

    def partitions(self, unfinished: Iterable[Group]) -> list[PartitionStatistics]:
        """Describe the databases, or the bound sets of them; see `Policy`."""
        waiting = ((self._cgap(group), group.commit_time) for group in unfinished)
        return self.aph.statistics(oldest_commit_times(waiting))

    def _cgap(self, group: Group) -> Sequence[str]:
        if not self._partition_of:
            return group.databases
        return tuple(dict.fromkeys(self._partition_of.get(d, d) for d in group.databases))
