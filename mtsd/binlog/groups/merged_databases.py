"""Databases of the target that are several on the source: by `rewrite_db`, or by their case.

On the source their rows have nothing to do with each other. So neither its clock nor its group
commits tell in which order they were changed: here that is the order of the stream.
"""

from dataclasses import replace
from typing import TypeVar

from mtsd.binlog.events.gtid_event import GtidEvent
from mtsd.model.group import Group

_Clocked = TypeVar("_Clocked", GtidEvent, Group)


class MergedDatabases:
    """Learns of them from what is read, also over several connections to the source."""

    __slots__ = ("_pairs", "names")

    def __init__(self) -> None:
        self.names: set[str] = set()
        """Those of which changes from several databases have been read, in every spelling."""
        self._pairs: dict[str, set[tuple[str, str]]] = {}
        """By the name as the target compares it: what it is on the source, and on the target."""

    def learn(self, source: str, target: str, folded: str) -> None:
        """Note a change in a database, by its names on both.

        `folded` is the one on the target as that compares it: names that differ by case may be one.
        """
        pairs = self._pairs.setdefault(folded, set())
        if (source, target) in pairs:
            return
        pairs.add((source, target))
        if len({on_source for on_source, _ in pairs}) > 1:
            self.names.update(on_target for _, on_target in pairs)

    def in_order(self, head: _Clocked, databases: tuple[str, ...]) -> _Clocked:
        """Return what begins a transaction that changes these databases of the target, or is it.

        If one of them is made of several, it depends on everything before it.
        """
        if self.names.isdisjoint(databases):
            return head
        last_committed = max(head.last_committed, head.sequence_number - 1)
        return replace(head, last_committed=last_committed, commit_id=0)
