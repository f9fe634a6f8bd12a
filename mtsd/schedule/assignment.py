"""What a policy decides about a group."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mtsd.model.group import Group


class Assignment(NamedTuple):
    """Where a group goes and what it waits for.

    `worker` is the index of the worker whose queue the group joins, from 0. `after` holds the
    numbers of unfinished groups, all earlier in the stream, that must have committed before the
    group may start. Every queue keeps the stream's order, so what stands before the group in its
    own queue need not be named.

    There is always a group that can run: of all unfinished groups, the one with the lowest number
    is the head of its queue, and whatever it waits for would have a lower number.
    """

    worker: int
    after: frozenset[int] = frozenset()


class Policy(Protocol):
    """Decides which groups may run side by side. One policy is one file behind this interface."""

    def assign(self, group: Group) -> Assignment:
        """Take the next group of the stream in; its number is higher than any before."""
        ...

    def finished(self, groups: Sequence[Group]) -> None:
        """Learn that groups that were assigned have committed."""
        ...


NOTHING: frozenset[int] = frozenset()
