"""The group assigned queue (GAQ), and the low-water mark at its head (WL#5569).

Every group of the stream enters it in order, with the worker that it was assigned to; those that
need not be applied enter it as done. All groups up to the low-water mark have committed.
"""

from collections import deque
from dataclasses import dataclass

from mtsd.model.group import Group
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position


@dataclass(frozen=True, slots=True)
class LowWaterMark:
    """All groups up to `number` have committed, and the stream goes on at `position`.

    `gtids` is everything executed up to here; None where it is not known yet (started at a
    position, no Previous_gtids event seen). It is this value's own: nothing changes it later.
    """

    number: int
    position: Position
    gtids: GtidSet | None


@dataclass(slots=True)
class _Entry:
    number: int
    end: Position
    gtid: Gtid | None
    commit_time: int
    done: bool
    gtids: GtidSet | None = None


class GroupAssignedQueue:
    """Holds the groups between the low-water mark and the head of the stream."""

    def __init__(self, mark: LowWaterMark) -> None:
        self._entries: deque[_Entry] = deque()
        self._number = mark.number
        self._position = mark.position
        self._gtids = mark.gtids.copy() if mark.gtids is not None else None
        self._next = mark.number + 1

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def newest(self) -> int:
        """The number of the newest group that has entered."""
        return self._next - 1

    @property
    def number(self) -> int:
        """The low-water mark's group number."""
        return self._number

    @property
    def position(self) -> Position:
        """The low-water mark's position."""
        return self._position

    @property
    def oldest_commit_time(self) -> int | None:
        """When the oldest unfinished group committed on the source, in µs; None where none is."""
        return self._entries[0].commit_time if self._entries else None

    @property
    def highest_done(self) -> int:
        """The highest number that has committed: past a gap where it is over `number`."""
        for entry in reversed(self._entries):
            if entry.done:
                return entry.number
        return self._number

    def mark(self) -> LowWaterMark:
        """Return the low-water mark with a copy of its GTID set."""
        gtids = self._gtids.copy() if self._gtids is not None else None
        return LowWaterMark(self._number, self._position, gtids)

    def enter(self, group: Group, *, done: bool = False) -> None:
        """Take the next group of the stream in. Raises ValueError if a number was left out."""
        if group.number != self._next:
            raise ValueError(f"group {group.number} entered where {self._next} was due")
        self._next += 1
        self._entries.append(_Entry(group.number, group.end, group.gtid, group.commit_time, done))
        if done:
            self._advance()

    def done(self, number: int) -> bool:
        """Mark a group as committed. Returns whether the low-water mark has moved."""
        entry = self._entries[number - self._entries[0].number]
        if entry.done:
            raise ValueError(f"group {number} has committed twice")
        entry.done = True
        return self._advance()

    def reach(self, position: Position, gtids: GtidSet | None) -> None:
        """Move on over what stands between groups: now, or when the groups before it are done."""
        if self._entries:
            self._entries[-1].end = position
            if gtids is not None:
                self._entries[-1].gtids = gtids
            return
        self._position = position
        if self._gtids is None and gtids is not None:
            self._gtids = gtids.copy()

    def _advance(self) -> bool:
        entries = self._entries
        moved = False
        while entries and entries[0].done:
            entry = entries.popleft()
            self._number = entry.number
            self._position = entry.end
            if self._gtids is None:
                self._gtids = entry.gtids.copy() if entry.gtids is not None else None
            elif entry.gtid is not None:
                self._gtids.add(entry.gtid)
            moved = True
        return moved
