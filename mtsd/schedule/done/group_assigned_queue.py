"""The group assigned queue (GAQ), and the low-water mark at its head (WL#5569).

Every group of the stream enters it in order, with the worker that it was assigned to; groups that
need not be applied enter it as done. All groups up to the low-water mark have committed.
"""

from collections import deque
from collections.abc import Sequence

from mtsd.model.group import Group
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import LogFile, LogFiles, Position
from mtsd.model.temporary_tables import TemporaryTables

_Entry = tuple[Position, Gtid | None, int]
"""A group's end, GTID and commit time, so that its events are not held longer than needed."""


class GroupAssignedQueue:
    """Holds the groups between the low-water mark and the head of the stream."""

    def __init__(self, mark: LowWaterMark) -> None:
        self._entries: deque[_Entry] = deque()
        self._done: set[int] = set()
        """Numbers of the entries that have committed."""
        self._reached: dict[int, tuple[Position, GtidSet | None, TemporaryTables | None]] = {}
        """The last place that the stream reached after an entry, and the GTIDs announced there.

        And what is known about temporary tables there, if that has changed.
        """
        self._number = mark.number
        self._position = mark.position
        self._gtids = mark.gtids.copy() if mark.gtids is not None else None
        self._temporary = mark.temporary
        self._log_files = LogFiles(mark.position.file, mark.begun)
        self.newest = mark.number
        """The number of the newest group that has entered."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def number(self) -> int:
        """The low-water mark's group number."""
        return self._number

    @property
    def position(self) -> Position:
        """The low-water mark's position."""
        return self._position

    @property
    def begun(self) -> int:
        """When the source began the file of the low-water mark; see `LowWaterMark.begun`."""
        return self._log_files.begun(self._position.file)

    @property
    def temporary(self) -> TemporaryTables:
        """What is known about the source's temporary tables at the low-water mark."""
        return self._temporary

    @property
    def knows_gtids(self) -> bool:
        """Whether it is known what has been executed, by GTID."""
        return self._gtids is not None

    @property
    def oldest_commit_time(self) -> int | None:
        """When the oldest unfinished group committed on the source, in µs; None if none is."""
        return self._entries[0][2] if self._entries else None

    @property
    def highest_done(self) -> int:
        """The highest number that has committed: beyond a gap if it exceeds `number`."""
        return max(self._done, default=self._number)

    def mark(self) -> LowWaterMark:
        """Return the low-water mark with a copy of its GTID set."""
        gtids = self._gtids.copy() if self._gtids is not None else None
        return LowWaterMark(self._number, self._position, gtids, self._temporary, self.begun)

    def enter(self, group: Group, *, done: bool = False) -> None:
        """Add the next group of the stream. Raises ValueError if a number was left out."""
        number = group.number
        if number != self.newest + 1:
            raise ValueError(f"group {number} entered, but {self.newest + 1} is next")
        self.newest = number
        self._entries.append((group.end, group.gtid, group.commit_time))
        if group.temporary is not None:
            self._reached[number] = group.end, None, group.temporary
        if done:
            self._done.add(number)
            self._advance()

    def commit(self, groups: Sequence[Group]) -> None:
        """Mark groups as committed. Raises ValueError if one has already committed."""
        done = self._done
        passed = self._number
        for group in groups:
            number = group.number
            if number <= passed or number in done:
                raise ValueError(f"group {number} has committed twice")
            done.add(number)
        self._advance()

    def is_committed(self, number: int) -> bool:
        """Return whether a group that has entered has committed."""
        return number <= self._number or number in self._done

    def read_file(self, file: LogFile) -> None:
        """Note in which file the stream is."""
        self._log_files.add(file, self._position)

    def reach(
        self, position: Position, gtids: GtidSet | None, temporary: TemporaryTables | None = None
    ) -> None:
        """Move past what is between groups: now, or when the groups before it are done."""
        if self._entries:
            newest = self.newest
            _, reached_gtids, known = self._reached.get(newest, (position, None, None))
            self._reached[newest] = (
                position,
                reached_gtids if gtids is None else gtids,
                known if temporary is None else temporary,
            )
            return
        self._position = position
        if temporary is not None:
            self._temporary = temporary
        if self._gtids is None and gtids is not None:
            self._gtids = gtids.copy()

    def _advance(self) -> None:
        """Move the low-water mark past what has committed at the head."""
        done = self._done
        number = self._number + 1
        if number not in done:
            return
        entries = self._entries
        gtids = self._gtids
        reached = self._reached
        # The entries have consecutive numbers.
        while number in done:
            done.discard(number)
            position, gtid, _ = entries.popleft()
            if gtids is not None and gtid is not None:
                gtids.advance(gtid)
            if reached and number in reached:
                position, reached_gtids, temporary = reached.pop(number)
                if temporary is not None:
                    self._temporary = temporary
                if gtids is None and reached_gtids is not None:
                    gtids = self._gtids = reached_gtids.copy()
            self._position = position
            number += 1
        self._number = number - 1
