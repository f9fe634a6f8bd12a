"""A policy whose answers are laid down beforehand, to try every answer that a policy may give."""

from collections.abc import Iterable, Sequence

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.assignment import NO_NEEDS, Assignment, Need
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView


class PlannedPolicy:
    """Answers `plan[number - 1]`."""

    def __init__(self, plan: Sequence[Assignment] = (), needs: frozenset[Need] = NO_NEEDS) -> None:
        self.needs = needs
        self.by_names = False
        self._plan = plan
        self.asked: list[Group] = []
        self.told: list[Group] = []

    def assign(
        self,
        group: Group,
        view: ScheduleView,  # noqa: ARG002 - see `Policy`
        forced: int = -1,  # noqa: ARG002
    ) -> Assignment:
        self.asked.append(group)
        return self._plan[group.number - 1] if self._plan else Assignment(0)

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        pass

    def finished(self, groups: Sequence[Group]) -> None:
        self.told += groups

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        del unfinished
        return ()
