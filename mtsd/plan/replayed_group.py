"""A group as the simulation takes it: what the scheduler sees of it, and what it weighs."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mtsd.model.group import Group


class ReplayedGroup(NamedTuple):
    """A recorded group: `rows` that it changes, `length` of it in the source's binlog in bytes."""

    group: Group
    rows: int
    length: int


def repeated(read: Callable[[], Iterable[ReplayedGroup]], least: int) -> Iterator[ReplayedGroup]:
    """Yield what `read` returns as often as makes `least` groups, numbered through.

    A short load would be over before its queues are as full as those of a long one.
    """
    number = 0
    while True:
        before = number
        for one in read():
            number += 1
            yield one if not before else one._replace(group=one.group._replace(number=number))
        if number >= least or number == before:
            return
