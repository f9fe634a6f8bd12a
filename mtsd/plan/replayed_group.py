"""A group as the simulation takes it: what the scheduler sees of it, and what it weighs."""

from typing import NamedTuple

from mtsd.model.group import Group


class ReplayedGroup(NamedTuple):
    """A recorded group: `rows` that it changes, `length` of it in the source's binlog in bytes."""

    group: Group
    rows: int
    length: int
