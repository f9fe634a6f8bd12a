"""The database policy of WL#5569: groups of different databases run in parallel.

It differs from the worklog in one thing: where the worklog's coordinator waits until another
worker has released a partition, the group names that worker's last group on it and only its own
queue waits. The dependencies are the same.
"""

from collections.abc import Iterable, Sequence

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.assigned_partition_hash import oldest_commit_times
from mtsd.schedule.policies.assignment import NO_NEEDS, Assignment
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.foreign_key_families import (
    ForeignKeys,
    disjoint,
    joined_with,
    may_change_foreign_keys,
)
from mtsd.schedule.policies.partition_placement import PartitionPlacement
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView


class DatabasePolicy:
    """Assigns groups by the databases that they update.

    `bind` lists sets of databases that count as one partition, named by their names joined by "+".
    So do databases that `foreign_keys` of the target join, and those that a definition may join
    from then on. Without them, the source has groups run alone that change what others refer to.

    Which worker a group gets, with a `distribution` or without, is told in `PartitionPlacement`.
    """

    def __init__(
        self,
        workers: int,
        bind: Sequence[Sequence[str]] = (),
        foreign_keys: ForeignKeys | None = None,
        distribution: FirstAvailable | None = None,
    ) -> None:
        self._given = Distribution(bind=tuple(map(tuple, bind)))
        """What a person has decided."""
        self._follows_keys = foreign_keys is not None
        self._joined = [] if foreign_keys is None else disjoint(foreign_keys.databases)
        """Databases that foreign keys join."""
        self._partition_of = self._given.with_joined(self._joined).partitions
        self.needs = NO_NEEDS
        self.by_names = True
        self.placement = PartitionPlacement(workers, distribution)
        self.aph = self.placement.aph
        self._counted: dict[int, Sequence[str]] = {}
        """By number: the partitions of unfinished groups, if these are or may be others by now."""

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by the owners of the group's partitions; see `Policy`."""
        if self._follows_keys and len(group.databases) > 1 and may_change_foreign_keys(group):
            self._join(frozenset(group.databases))
        cgap = self._cgap(group)
        if self._follows_keys:
            self._counted[group.number] = cgap
        return self.placement.assign(group, view, forced, cgap)

    def finished(self, groups: Sequence[Group]) -> None:
        """Remove the groups from the counts of their partitions; see `Policy`."""
        execute = self.aph.execute
        if self._counted:
            for group in groups:
                number = group.number
                known = number in self._counted
                execute(self._counted.pop(number) if known else self._cgap(group))
            return
        for group in groups:
            execute(self._cgap(group))

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Go on with other binds, pins and weights; see `Policy`."""
        for group in unfinished:
            self._counted.setdefault(group.number, self._cgap(group))
        self._given = distribution
        distribution = distribution.with_joined(self._joined)
        before = self._partition_of
        self._partition_of = now = distribution.partitions
        weights = distribution.weights
        self.placement.distribute(
            distribution.workers,
            lambda partition: weights.get(partition, 1),
            {
                now.get(names[0], names[0]): [before.get(each, each) for each in names]
                for names in distribution.sets(before)
            },
        )

    def partitions(self, unfinished: Iterable[Group]) -> list[PartitionStatistics]:
        """Describe the databases, or the bound sets of them; see `Policy`."""
        counted = self._counted
        waiting = (
            (counted.get(group.number, ()) or self._cgap(group), group.commit_time)
            for group in unfinished
        )
        return self.aph.statistics(oldest_commit_times(waiting))

    def _join(self, databases: frozenset[str]) -> None:
        if not any(databases <= each for each in self._joined):
            self._joined = joined_with(self._joined, databases)
            self.distribute(self._given, ())

    def _cgap(self, group: Group) -> Sequence[str]:
        if not self._partition_of:
            return group.databases
        return tuple(dict.fromkeys(self._partition_of.get(d, d) for d in group.databases))
