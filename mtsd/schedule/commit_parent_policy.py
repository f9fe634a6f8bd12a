"""The commit parent policy: groups that a source committed together may be applied together.

It is the older scheme that WL#7165 describes, with the intervals that the source has logged:

- MySQL: successive groups of a file with the same `last_committed`. Each of them was ready to
  commit before the first of them had committed.
- MariaDB: successive groups with the same commit id, that of their group commit.

A group waits for everything before the interval that it belongs to. One without a parent, or one
whose numbers cannot be, is an interval by itself; so is DDL of MariaDB.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.assignment import NO_NEEDS, Assignment
from mtsd.schedule.first_available import FirstAvailable
from mtsd.schedule.partition_statistics import PartitionStatistics
from mtsd.schedule.schedule_view import ScheduleView

_NOTHING: frozenset[int] = frozenset()
_DDL: Final = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})


class CommitParentPolicy:
    """Assigns groups by the intervals of the source, to whichever worker is available first."""

    def __init__(self) -> None:
        self.needs = NO_NEEDS
        self.distribution = FirstAvailable()
        self._file = ""
        self._parent = 0
        """Of the current interval, in `_file`; 0 if nothing more can belong to it."""
        self._first = 0
        """The number of the first group of the interval."""
        self._newest = 0
        """The previous group's sequence number."""

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by the interval that the group belongs to; see `Policy`."""
        parent = _parent_of(group)
        file = group.end.file
        sequence_number = group.sequence_number
        if parent and sequence_number and file == self._file and sequence_number <= self._newest:
            parent = 0
        self._newest = sequence_number
        if not parent or parent != self._parent or file != self._file:
            self._file = file
            self._parent = parent
            self._first = group.number
        mark = self._first - 1
        if forced >= 0:
            self.distribution.note(group.number, group.size, forced)
            return Assignment(forced, _NOTHING, mark)
        worker = self.distribution.place(group.number, group.size, mark, view)
        return Assignment(worker, _NOTHING, mark)

    def finished(self, groups: Sequence[Group]) -> None:
        """Do nothing: the low-water mark tells what has committed; see `Policy`."""

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        """Return nothing: there are no partitions; see `Policy`."""
        del unfinished
        return ()


def _parent_of(group: Group) -> int:
    """Return what the groups of an interval have in common; 0 if it is not known."""
    if group.sequence_number:
        known = group.sequence_number > group.last_committed > 0
        return group.last_committed if known else 0
    return 0 if group.kind in _DDL else group.commit_id
