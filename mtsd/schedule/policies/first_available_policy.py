"""What policies have in common that wait for the low-water mark: first-available distribution.

WL#7165 calls it that: a group goes to whichever worker is available first.
"""

from collections.abc import Iterable, Sequence

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.assignment import NO_NEEDS, Assignment
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView

_NOTHING: frozenset[int] = frozenset()


class FirstAvailablePolicy:
    """Assigns groups to whichever worker is available first; a subclass says what they wait for."""

    def __init__(self, distribution: FirstAvailable | None = None) -> None:
        self.needs = NO_NEEDS
        self.by_names = False
        self.distribution = distribution or FirstAvailable()

    def mark_of(self, group: Group) -> int:
        """Return the number up to which everything has to have committed before the group starts.

        Called once for each group, in the stream's order.
        """
        raise NotImplementedError

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by `mark_of`; see `Policy`."""
        mark = self.mark_of(group)
        if forced >= 0:
            self.distribution.note(group.number, group.size, forced)
            return Assignment(forced, _NOTHING, mark)
        if group.xid is not None and view.batch_groups == 1:
            worker = self.distribution.place_in_turn(group.number, group.size, len(view.groups))
        else:
            worker = self.distribution.place(group.number, group.size, mark, view)
        return Assignment(worker, _NOTHING, mark)

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Do nothing: names do not count here; see `Policy`."""

    def finished(self, groups: Sequence[Group]) -> None:
        """Do nothing: the low-water mark tells what has committed; see `Policy`."""

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        """Return nothing: there are no partitions; see `Policy`."""
        del unfinished
        return ()
