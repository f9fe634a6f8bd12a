"""A group in a simulation: what the scheduler sees of it, and its size."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from mtsd.model.group import Group


class ReplayedGroup(NamedTuple):
    """A recorded group: the `rows` it changes, and its `length` in the source's binlog in bytes."""

    group: Group
    rows: int
    length: int


def repeated(read: Callable[[], Iterable[ReplayedGroup]], least: int) -> Iterator[ReplayedGroup]:
    """Yield what `read` returns, repeated to make `least` groups, and number them throughout.

    A short load would end before its queues are as full as those of a long one.
    """
    number = 0
    while True:
        before = number
        for one in read():
            number += 1
            yield one if not before else one._replace(group=replace(one.group, number=number))
        if number >= least or number == before:
            return
