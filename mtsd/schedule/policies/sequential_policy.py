"""The sequential mode: parallel_workers = 0, one queue, one group after another."""

from collections.abc import Iterable, Sequence

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.assigned_partition_hash import (
    AssignedPartitionHash,
    oldest_commit_times,
)
from mtsd.schedule.policies.assignment import NO_NEEDS, Assignment
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView

_FIRST = Assignment(worker=0)


class SequentialPolicy:
    """Sends every group to the only worker; the status still shows the databases it updates."""

    def __init__(self) -> None:
        self.needs = NO_NEEDS
        self.by_names = True
        self._aph = AssignedPartitionHash(1)

    def assign(
        self,
        group: Group,
        view: ScheduleView,  # noqa: ARG002 - see `Policy`
        forced: int = -1,  # noqa: ARG002
    ) -> Assignment:
        """Return the only worker."""
        self._aph.assign(group.databases, 0, group.number)
        return _FIRST

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Do nothing: names do not count here; see `Policy`."""

    def finished(self, groups: Sequence[Group]) -> None:
        """Remove the groups from the counts; see `Policy`."""
        for group in groups:
            self._aph.execute(group.databases)

    def partitions(self, unfinished: Iterable[Group]) -> list[PartitionStatistics]:
        """Describe the databases; see `Policy`."""
        waiting = ((group.databases, group.commit_time) for group in unfinished)
        return self._aph.statistics(oldest_commit_times(waiting))
