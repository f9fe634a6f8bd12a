"""The row policy (methods C2 and C3 of WL#4648): in order is what changes the same rows.

Groups of rows tell by the keys of these rows what they depend on. What is not known row by row
counts for a whole table or database. The waits are exact: a group waits for the newest unfinished
ones that it may conflict with, not for everything up to them.

Of each key, only the newest group that changes it is remembered, and those that refer to it since.
That suffices: an older one is waited for by the newer one. What is remembered belongs to unfinished
groups; if that is very much, what a group changes counts as whole tables.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.schedule.policies.assignment import Assignment, Need
from mtsd.schedule.policies.first_available import FirstAvailable, PlacedGroup
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.schedule_view import ScheduleView

_MAX_KEYS: Final = 1 << 18
"""Of rows, in unfinished groups: about 40 MB."""
_FORGOTTEN_KEYS: Final = 1 << 16
"""Each costs less when many are forgotten at once than when its group is finished."""


class _Placed(PlacedGroup):
    """A group that was assigned, and its keys while it is unfinished."""

    __slots__ = ("is_unfinished", "keys")

    def __init__(self, number: int, keys: GroupKeys) -> None:
        super().__init__(number)
        self.keys = keys
        self.is_unfinished = True


class RowPolicy:
    """Assigns groups by the keys of their rows, to whichever worker is available first.

    `max_keys` is how many keys of rows in unfinished groups it remembers at most, approximately;
    `forgotten_keys`, how many others until it forgets them.
    """

    def __init__(
        self,
        max_keys: int = _MAX_KEYS,
        distribution: FirstAvailable | None = None,
        forgotten_keys: int = _FORGOTTEN_KEYS,
    ) -> None:
        self.needs = frozenset({Need.KEYS})
        self.by_names = False
        self.distribution = distribution or FirstAvailable()
        self._max_keys = max_keys
        self._forgotten_keys = forgotten_keys
        self._changed: dict[Hashable, _Placed] = {}
        """By key of a row, table or database: the newest group that changes it, ended or not."""
        self._referred: dict[Hashable, dict[int, _Placed]] = {}
        """By key of a row: the unfinished groups that refer to it since it was changed."""
        self._unfinished: dict[int, _Placed] = {}
        """By number, in the stream's order."""
        self._held = 0
        """How many keys of rows these have."""
        self._unconditional: list[Assignment] = []

    def assign(self, group: Group, view: ScheduleView, forced: int = -1) -> Assignment:
        """Decide by the unfinished groups that change the same; see `Policy`."""
        number = group.number
        keys = group.keys
        rows = keys.rows
        references = keys.references
        wholes = keys.wholes
        parts = keys.parts
        held = self._held + len(rows) + len(references)
        if held <= self._max_keys:
            self._held = held
        else:
            wholes = (*wholes, *parts)
            rows = references = parts = ()
            keys = GroupKeys(wholes=wholes)
        placed = _Placed(number, keys)
        changed = self._changed
        earlier: list[PlacedGroup] = []
        for part in parts:
            last = changed.get(part)
            if last is not None and last.is_unfinished:
                earlier.append(last)
        for key in rows:
            # Most keys are new, or those of a row that is changed again long after.
            last = changed.setdefault(key, placed)
            if last is not placed:
                if last.is_unfinished:
                    earlier.append(last)
                changed[key] = placed
        if self._referred or references:
            self._refer(placed, rows, references, earlier)
        if wholes:
            self._change_wholes(placed, wholes, earlier)
        distribution = self.distribution
        size = group.size
        worker = forced
        if forced >= 0:
            distribution.note(number, size, forced)
        elif group.xid is not None and view.batch_groups == 1:
            worker = distribution.place_in_turn(number, size, len(view.groups))
        elif earlier:
            worker = distribution.place_after(number, size, earlier, view)
        else:
            worker = distribution.place(number, size, 0, view)
        placed.worker = worker
        placed.place = distribution.last_place(worker)
        self._unfinished[number] = placed
        if earlier:
            after = [other.number for other in earlier if other.worker != worker]
            if after:
                return Assignment(worker, frozenset(after))
        unconditional = self._unconditional
        while len(unconditional) <= worker:
            unconditional.append(Assignment(len(unconditional)))
        return unconditional[worker]

    def distribute(self, distribution: Distribution, unfinished: Iterable[Group]) -> None:
        """Do nothing: names do not count here; see `Policy`."""

    def finished(self, groups: Sequence[Group]) -> None:
        """Forget them; see `Policy`."""
        unfinished = self._unfinished
        held = self._held
        for group in groups:
            number = group.number
            placed = unfinished[number]
            del unfinished[number]
            keys = placed.keys
            placed.is_unfinished = False
            placed.keys = NO_KEYS
            references = keys.references
            held -= len(keys.rows) + len(references)
            for key in references:
                referring = self._referred.get(key)
                if referring is not None:
                    referring.pop(number, None)
                    if not referring:
                        del self._referred[key]
        self._held = held
        if len(self._changed) > 2 * held + self._forgotten_keys:
            self._changed = {
                key: placed for key, placed in self._changed.items() if placed.is_unfinished
            }

    def partitions(self, unfinished: Iterable[Group]) -> Sequence[PartitionStatistics]:
        """Return nothing: there are no partitions; see `Policy`."""
        del unfinished
        return ()

    def _refer(
        self,
        placed: _Placed,
        rows: tuple[Hashable, ...],
        references: tuple[Hashable, ...],
        earlier: list[PlacedGroup],
    ) -> None:
        """Note what a group refers to, and add the groups that it has to wait for because of it."""
        changed = self._changed
        referred = self._referred
        if referred:
            for key in rows:
                if key in referred:
                    earlier.extend(referred.pop(key).values())
        for key in references:
            last = changed.get(key)
            if last is not None and last is not placed and last.is_unfinished:
                earlier.append(last)
            referred.setdefault(key, {})[placed.number] = placed

    def _change_wholes(
        self, placed: _Placed, wholes: tuple[Hashable, ...], earlier: list[PlacedGroup]
    ) -> None:
        """Note what a group changes as a whole, and add the groups that it has to wait for."""
        changed = self._changed
        unfinished = self._unfinished
        for key in wholes:
            last = changed.get(key)
            if last is placed:
                continue
            before = 0
            if last is not None:
                before = last.number
                if last.is_unfinished:
                    earlier.append(last)
            for number in reversed(unfinished):
                # What came before that one is waited for by it.
                if number <= before:
                    break
                other = unfinished[number]
                if key in other.keys.parts:
                    earlier.append(other)
            changed[key] = placed
