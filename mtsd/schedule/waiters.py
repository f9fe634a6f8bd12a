"""Which groups wait for which: told of each commit once, it says whose turn has come."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue


class Waiters:
    """The queued groups that wait for others, each with the worker in whose queue it is.

    What a group waits for is counted exactly once, and only if it has yet to happen: so its commit
    encounters each of them exactly once.
    """

    __slots__ = ("_by_group", "_by_mark", "_gaq")

    def __init__(self, gaq: GroupAssignedQueue) -> None:
        self._gaq = gaq
        self._by_group: dict[int, list[tuple[int, int]]] = {}
        """By a group that has yet to commit: worker and number of the groups waiting for it."""
        self._by_mark: list[tuple[int, int, int]] = []
        """A heap: low-water mark, number and worker of the groups waiting for it."""

    def add(self, worker: int, number: int, after: Iterable[int], mark: int) -> tuple[int, int]:
        """Note that group `number` waits for the groups `after` and for the low-water mark `mark`.

        Returns how many of the groups have yet to commit, and the mark, 0 if it is reached. Raises
        ValueError if the group would wait for itself or for a later one.
        """
        gaq = self._gaq
        unmet = 0
        for earlier in after:
            if earlier >= number:
                raise ValueError(f"group {number} would wait for group {earlier}")
            if not gaq.is_committed(earlier):
                self._by_group.setdefault(earlier, []).append((worker, number))
                unmet += 1
        if mark >= number:
            raise ValueError(f"group {number} would wait for all groups up to {mark}")
        if mark <= gaq.number:
            return unmet, 0
        heappush(self._by_mark, (mark, number, worker))
        return unmet, mark

    def committed(self, number: int) -> Sequence[tuple[int, int]]:
        """Return worker and number of the groups that were waiting for this group's commit."""
        return self._by_group.pop(number, ()) if self._by_group else ()

    def reached(self) -> Sequence[tuple[int, int]]:
        """Return worker and number of the groups whose low-water mark has been reached."""
        marks = self._by_mark
        mark = self._gaq.number
        if not marks or marks[0][0] > mark:
            return ()
        reached: list[tuple[int, int]] = []
        while marks and marks[0][0] <= mark:
            _, number, worker = heappop(marks)
            reached.append((worker, number))
        return reached
