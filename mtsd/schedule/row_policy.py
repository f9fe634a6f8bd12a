"""The row policy (methods C2 and C3 of WL#4648): in order is what changes the same rows.

Groups of rows tell by the keys of these rows what they depend on. What is not known row by row
counts for a whole table or database. The waits are exact: a group waits for the newest unfinished
ones that it may conflict with, not for everything up to them.

Of each key, only the newest group that changes it is remembered, and those that refer to it since.
That suffices: an older one is waited for by the newer one. What is remembered belongs to unfinished
groups; if that is very much, what a group changes counts as whole tables.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.model.group_keys import GroupKeys
from mtsd.schedule.assignment import Assignment, Need
from mtsd.schedule.first_available import FirstAvailable
from mtsd.schedule.partition_statistics import PartitionStatistics
from mtsd.schedule.schedule_view import ScheduleView

_MOST_KEYS: Final = 1 << 18
"""Of rows, in unfinished groups: about 40 MB."""


class RowPolicy:
    """Assigns groups by the keys of their rows, to whichever worker is available first.

    `most_keys` is how many keys of rows it remembers at most, approximately.
    """

    def __init__(
        self, most_keys: int = _MOST_KEYS, distribution: FirstAvailable | None = None
    ) -> None:
        self.needs = frozenset({Need.KEYS})
        self.by_names = False
        self.distribution = distribution or FirstAvailable()
        self._most_keys = most_keys
        self._changed: dict[int, int] = {}
        """By key of a row, table or database: the newest unfinished group that changes it."""
        self._referred: dict[int, set[int]] = {}
        """By key of a row: the unfinished groups that refer to it since it was changed."""
        self._unfinished: dict[int, tuple[int, GroupKeys]] = {}
        """By number, in the stream's order: worker and keys of the unfinished groups."""
        self._held = 0
        """How many keys of rows these have."""
        self._unconditional: list[Assignment] = []

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by the unfinished groups that change the same; see `Policy`."""
        number = group.number
        keys = group.keys
        rows, references, wholes, parts = keys
        held = self._held + len(rows) + len(references)
        if held <= self._most_keys:
            self._held = held
        else:
            wholes = (*wholes, *parts)
            rows, references, parts = _NO_ROWS, (), ()
            keys = GroupKeys(wholes=wholes)
        changed = self._changed
        earlier: list[int] = []
        for key in parts:
            last = changed.get(key, 0)
            if last:
                earlier.append(last)
        for key in rows:
            last = changed.get(key, 0)
            if last:
                earlier.append(last)
            changed[key] = number
        if self._referred or references:
            self._refer(number, rows, references, earlier)
        if wholes:
            self._change_wholes(number, wholes, earlier)
        worker = forced
        if forced >= 0:
            self.distribution.note(number, group.size, forced)
        elif group.xid is not None:
            worker = self.distribution.place_in_turn(number, group.size, len(view.groups))
        else:
            newest = max(earlier) if earlier else 0
            worker = self.distribution.place(number, group.size, newest, view)
        unfinished = self._unfinished
        unfinished[number] = worker, keys
        if earlier:
            after = frozenset([other for other in earlier if unfinished[other][0] != worker])
            if after:
                return Assignment(worker, after)
        unconditional = self._unconditional
        while len(unconditional) <= worker:
            unconditional.append(Assignment(len(unconditional)))
        return unconditional[worker]

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Do nothing: names do not count here; see `Policy`."""

    def finished(self, groups: Sequence[Group]) -> None:
        """Forget what belongs to them alone; see `Policy`."""
        changed = self._changed
        unfinished = self._unfinished
        held = self._held
        for group in groups:
            number = group.number
            rows, references, wholes, _ = unfinished.pop(number)[1]
            held -= len(rows) + len(references)
            for key in rows:
                if changed.get(key, 0) == number:
                    del changed[key]
            for key in wholes:
                if changed.get(key, 0) == number:
                    del changed[key]
            for key in references:
                referring = self._referred.get(key)
                if referring is not None:
                    referring.discard(number)
                    if not referring:
                        del self._referred[key]
        self._held = held

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        """Return nothing: there are no partitions; see `Policy`."""
        del unfinished
        return ()

    def _refer(
        self, number: int, rows: frozenset[int], references: tuple[int, ...], earlier: list[int]
    ) -> None:
        """Note what a group refers to, and add the groups that it has to wait for because of it."""
        changed = self._changed
        referred = self._referred
        if referred:
            for key in rows:
                if key in referred:
                    earlier.extend(referred.pop(key))
        for key in references:
            last = changed.get(key, 0)
            if last and last != number:
                earlier.append(last)
            referred.setdefault(key, set()).add(number)

    def _change_wholes(self, number: int, wholes: tuple[int, ...], earlier: list[int]) -> None:
        """Note what a group changes as a whole, and add the groups that it has to wait for."""
        changed = self._changed
        unfinished = self._unfinished
        for key in wholes:
            before = changed.get(key, 0)
            if before == number:
                continue
            if before:
                earlier.append(before)
            for other in reversed(unfinished):
                # What came before that one is waited for by it.
                if other <= before:
                    break
                if key in unfinished[other][1].parts:
                    earlier.append(other)
            changed[key] = number


_NO_ROWS: Final[frozenset[int]] = frozenset()
