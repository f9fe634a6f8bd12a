"""Eventual consistency (C0 of WL#4648): any worker takes any group of rows.

It is for loads in which no two groups of rows conflict, or in which it does not matter which of
them comes first. So a group of rows waits for nothing but what runs alone, and what runs alone is
everything else (`AloneRule.all_but_rows`): it may read, or define, whatever rows have changed.

`deletes_in_turn`: a group that deletes rows begins only when everything before it has committed.
Where the newer of two rows stays, whichever comes first, nothing is left of a deleted row that
could be compared with an older one that comes after it. What is later need not wait: it is newer.

Changes of sequences are always in order: they are in conflict in every load that uses one.
"""

from collections.abc import Iterable, Sequence

from mtsd.binlog.events.rows import deletes_rows
from mtsd.binlog.groups.sequences import changes_sequence
from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.schedule.policies.assignment import NO_NEEDS, Assignment
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView

_NOTHING: frozenset[int] = frozenset()


class EventualPolicy:
    """Assigns groups to whichever worker is available first."""

    def __init__(self, *, deletes_in_turn: bool = False) -> None:
        self.needs = NO_NEEDS
        self.by_names = False
        self.distribution = FirstAvailable()
        self._deletes_in_turn = deletes_in_turn
        self._changes_sequence = 0
        """The number of the newest group that changes a sequence."""

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Let the group wait only if it deletes rows or changes a sequence; see `Policy`."""
        number = group.number
        mark = number - 1 if self._deletes_in_turn and deletes_rows(group.rows) else 0
        if changes_sequence(group.rows):
            mark = max(mark, self._changes_sequence)
            self._changes_sequence = number
        worker = forced
        if forced >= 0:
            self.distribution.note(number, group.size, forced)
        elif group.xid is not None:
            worker = self.distribution.place_in_turn(number, group.size, len(view.groups))
        else:
            worker = self.distribution.place(number, group.size, mark, view)
        return Assignment(worker, _NOTHING, mark)

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Do nothing: names do not count here; see `Policy`."""

    def finished(self, groups: Sequence[Group]) -> None:
        """Do nothing: nobody waits for them; see `Policy`."""

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        """Return nothing: there are no partitions; see `Policy`."""
        del unfinished
        return ()
