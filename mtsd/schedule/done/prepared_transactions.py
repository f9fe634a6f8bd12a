"""XA transactions between their prepare and their completion: what a completion has to wait for.

A prepared transaction and its commit or rollback are groups of their own, perhaps far apart. The
completion names no database, but what it makes visible is what was prepared: so it gets the
partitions of its prepare, and with them the policy's dependencies. Besides these, each group of an
xid waits for the one before it: a completion until its prepare has been recorded, and a prepare
that uses an xid again until that one has been completed. These edges, too, point backwards in the
stream, so the argument in `mtsd.schedule.policies.assignment` that some group can always run holds.

Where nothing is known about the prepare, its completion runs alone: it is ordered after everything
that could precede it, and everything that could depend on it comes after.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.xa_xid import XaXid

_MAX_PREPARED: Final = 65_536
"""How many are remembered: the completions of older ones run alone."""
_FORGET_AT: Final = 1024
_PREPARE: Final = GroupKind.XA_PREPARE


class Prepared(NamedTuple):
    """The partitions of a transaction that is prepared; `alone` if they do not tell everything."""

    databases: tuple[str, ...]
    alone: bool
    tables: tuple[str, ...] = ()
    keys: GroupKeys = NO_KEYS


class PreparedTransactions:
    """The prepared transactions of a stream; it begins with those that a previous run has left."""

    __slots__ = ("_forget_at", "_newest", "_prepared")

    def __init__(self, left: Iterable[tuple[XaXid, Prepared]] = ()) -> None:
        self._prepared: dict[XaXid, Prepared] = dict(left)
        self._newest: dict[XaXid, int] = {}
        """The newest group of an xid."""
        self._forget_at = _FORGET_AT

    def __len__(self) -> int:
        """Return how many are prepared, as far as they are remembered."""
        return len(self._prepared)

    def place(self, group: Group, mark: int) -> tuple[Group, int]:
        """Return the next group of an xid with its partitions, and the group that it waits for.

        That is 0 if it waits for none. All groups up to `mark` have committed.
        """
        xid = group.xid
        if xid is None:
            return group, 0
        earlier = self._newest.get(xid, 0)
        if group.kind is _PREPARE:
            self._prepared.pop(xid, None)
            if len(self._prepared) >= _MAX_PREPARED:
                del self._prepared[next(iter(self._prepared))]
            self._prepared[xid] = Prepared(group.databases, group.alone, group.tables, group.keys)
        else:
            known = self._prepared.pop(xid, None)
            if known is None:
                group = replace(group, alone=True)
            else:
                group = replace(
                    group,
                    databases=known.databases,
                    alone=known.alone,
                    tables=known.tables,
                    keys=known.keys,
                )
        if len(self._newest) >= self._forget_at:
            self._newest = {
                other: number for other, number in self._newest.items() if number > mark
            }
            self._forget_at = max(_FORGET_AT, 2 * len(self._newest))
        self._newest[xid] = group.number
        return group, earlier if earlier > mark else 0
