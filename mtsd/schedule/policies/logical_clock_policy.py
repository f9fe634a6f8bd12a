"""The logical clock policy (WL#7165): groups that held their locks on the source at the same time.

The source numbers its transactions in each binary log file (`sequence_number`), and notes with each
the newest one that it may depend on (`last_committed`). A group may start when everything up to
that one has committed: when the low-water mark has reached it. Groups that are left out count as
committed, and their numbers go on, so within a file a sequence number is a group's number less a
constant offset.

A group waits for everything before it where these numbers tell nothing:

- `last_committed` is 0: its parent is unknown, or it comes from a source without a clock;
- `sequence_number` is 0, not above `last_committed`, or not above the one before, as when the
  counter has wrapped: both count as 0, and everything later waits for the group, too;
- numbers are missing before it, or the group before it has none: everything later, too, waits for
  what is before it;
- it is the first of a file, where the numbers begin again: likewise.
"""

from mtsd.model.group import Group
from mtsd.schedule.policies.first_available import FirstAvailable
from mtsd.schedule.policies.first_available_policy import FirstAvailablePolicy


class LogicalClockPolicy(FirstAvailablePolicy):
    """Assigns groups by the source's logical clock, to whichever worker is available first."""

    def __init__(self, distribution: FirstAvailable | None = None) -> None:
        super().__init__(distribution)
        self._file = ""
        self._offset = 0
        """A group's number less its sequence number, since the clock was last interrupted."""
        self._newest = 0
        """The previous group's sequence number; 0 if it had none, or none in this file."""
        self._floor = 0
        """All further groups wait for everything up to this number."""

    def mark_of(self, group: Group) -> int:
        """Decide by the group's place in the source's clock; see `FirstAvailablePolicy`."""
        number = group.number
        sequence_number = group.sequence_number
        last_committed = group.last_committed
        file = group.end.file
        if file != self._file:
            self._file = file
            self._newest = 0
        if sequence_number <= max(last_committed, self._newest):
            self._newest = 0
            self._floor = number
            return number - 1
        offset = number - sequence_number
        if not self._newest or offset != self._offset:
            self._offset = offset
            self._floor = number - 1
        self._newest = sequence_number
        if last_committed <= 0:
            return number - 1
        return max(self._floor, offset + last_committed)
