"""What becomes of a group when it arrives: nothing, or it is to be placed, with all that it needs.

Nothing is left to do for an empty group, and for one that a former run has committed. What the
policy goes by is filled in, and a group of an XA transaction gets what the other one has.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import NO_KEYS
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue
from mtsd.schedule.done.prepared_transactions import PreparedTransactions
from mtsd.schedule.former_run import FormerRun
from mtsd.schedule.policies.assignment import Need

_EMPTY: Final = GroupKind.EMPTY
_PREPARE: Final = GroupKind.XA_PREPARE
_COMPLETE: Final = GroupKind.XA_COMPLETE

Filler = Callable[[Group], Group]
"""Returns a group with one more field filled in."""
NO_FILLERS: Mapping[Need, Filler] = MappingProxyType({})


class Admission:
    """Enters groups into the `gaq`, in the stream's order; `former` is what was done before.

    `needs` are the policy's, which `fillers` fill in; one that needs nothing costs nothing. Raises
    ValueError if none of them fills in one of these.
    """

    __slots__ = ("_fillers", "_former", "_gaq", "prepared", "skipped")

    def __init__(
        self,
        gaq: GroupAssignedQueue,
        former: FormerRun,
        needs: frozenset[Need],
        fillers: Mapping[Need, Filler],
        prepared: PreparedTransactions,
    ) -> None:
        if unfilled := needs.difference(fillers):
            names = ", ".join(sorted(need.value for need in unfilled))
            raise ValueError(f"the policy needs fields that nothing fills in: {names}")
        self._fillers = [fill for need, fill in fillers.items() if need in needs]
        self._gaq = gaq
        self._former = former
        self.prepared = prepared
        """The XA transactions that are prepared, or about to be, and not completed."""
        self.skipped = 0
        """Groups skipped because a previous run had committed them."""

    @property
    def fills(self) -> bool:
        """Whether anything is filled in, which is in the group and not in what is around it."""
        return bool(self._fillers)

    def admit(self, group: Group) -> tuple[Group, int] | None:
        """Return a group as it is to be placed, and the earlier one of its XA transaction, or 0.

        None if there is nothing to place.
        """
        former = self._former
        if group.number <= former.up_to and former.is_done(group):
            self.skipped += 1
            if group.xid is not None:
                self.prepared.place(group, self._gaq.number)
                former.passes(group.xid, group)
            self._gaq.enter(group, done=True)
            return None
        kind = group.kind
        if kind is _EMPTY:
            self._gaq.enter(group, done=True)
            return None
        earlier = 0
        if kind is _COMPLETE:
            group, earlier = self.prepared.place(group, self._gaq.number)
        # Of what its prepare changed, only the databases may be known.
        if kind is not _COMPLETE or (not group.tables and group.keys == NO_KEYS):
            for fill in self._fillers:
                group = fill(group)
        if kind is _PREPARE:
            group, earlier = self.prepared.place(group, self._gaq.number)
        self._gaq.enter(group)
        return group, earlier

    def pass_committed(self, group: Group) -> None:
        """Enter a group that was applied while it was read, alone, and has committed."""
        if group.kind is GroupKind.CREATE_SELECT:
            # The keys that are known may be those of a former table.
            for fill in self._fillers:
                fill(group)
        if group.xid is not None:
            self.prepared.place(group, self._gaq.number)
        self._gaq.enter(group, done=True)
