"""What earlier runs have committed past the low-water mark: it is skipped, or applied once more."""

from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.repair import Repair, again_of

_ROWS: Final = GroupKind.ROWS
_COMPLETE: Final = GroupKind.XA_COMPLETE


class FormerRun:
    """The groups up to `up_to` that are `executed`, or that a `repair` applies again."""

    __slots__ = ("_again", "_executed", "_first_again", "_passed_completions", "up_to")

    def __init__(self, executed: ExecutedGroups, repair: Repair | None) -> None:
        self._executed = executed
        self._again = again_of(repair)
        self._first_again = 0 if repair is None else repair.first
        self.up_to = executed.highest if repair is None else repair.last
        self._passed_completions: list[tuple[XaXid, int]] = []

    def has(self, number: int) -> bool:
        """Return whether a group has been committed."""
        return number in self._executed or number in self._again

    def must_apply_again(self, number: int) -> bool:
        """Return whether a group has to be applied once more because others before it are.

        Of the first one of a repair nothing has changed: it may be one that ran alone, as every
        streamed one.
        """
        return number in self._again and number > self._first_again

    def is_done(self, group: Group) -> bool:
        """Return whether a group has been committed and is not applied again."""
        if group.number in self._executed:
            return True
        # Of a streamed group nothing is left to apply here.
        can_repeat = group.kind is _ROWS and bool(group.steps)
        return group.number in self._again and not can_repeat

    def passes(self, xid: XaXid, group: Group) -> None:
        """Note that a group of an XA transaction is skipped."""
        if group.kind is _COMPLETE:
            self._passed_completions.append((xid, group.number))

    def passed_completions(self, up_to: int) -> list[tuple[XaXid, int]]:
        """Return, once, the completions that were skipped, by xid and number."""
        passed = [each for each in self._passed_completions if each[1] <= up_to]
        self._passed_completions = self._passed_completions[len(passed) :]
        return passed
