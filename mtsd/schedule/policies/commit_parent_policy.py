"""The commit parent policy: groups that a source committed together may be applied together.

It is the older scheme that WL#7165 describes, with the intervals that the source has logged:

- MySQL: successive groups of a file with the same `last_committed`. Each of them was ready to
  commit before the first of them had committed.
- MariaDB: successive groups with the same commit id, that of their group commit.

A group waits for everything before the interval that it belongs to. One without a parent, or one
whose numbers cannot be, is an interval by itself; so is DDL of MariaDB. Within an interval of
MariaDB, changes of sequences keep their order, see `mtsd.binlog.groups.sequences`.
"""

from typing import Final

from mtsd.binlog.groups.sequences import changes_sequence
from mtsd.model.group import Group, GroupKind
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.first_available_policy import FirstAvailablePolicy

_DDL: Final = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})


class CommitParentPolicy(FirstAvailablePolicy):
    """Assigns groups by the intervals of the source, to whichever worker is available first."""

    def __init__(self, distribution: FirstAvailable | None = None) -> None:
        super().__init__(distribution)
        self._file = ""
        self._parent = 0
        """Of the current interval, in `_file`; 0 if nothing more can belong to it."""
        self._first = 0
        """The number of the first group of the interval."""
        self._newest = 0
        """The previous group's sequence number."""
        self._changes_sequence = 0
        """The number of the newest group of a group commit that changes a sequence."""

    def mark_of(self, group: Group) -> int:
        """Decide by the interval that the group belongs to; see `FirstAvailablePolicy`."""
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
        if group.commit_id and changes_sequence(group.rows):
            mark = max(mark, self._changes_sequence)
            self._changes_sequence = group.number
        return mark


def _parent_of(group: Group) -> int:
    """Return what the groups of an interval have in common; 0 if it is not known."""
    if group.sequence_number:
        known = group.sequence_number > group.last_committed > 0
        return group.last_committed if known else 0
    return 0 if group.kind in _DDL else group.commit_id
