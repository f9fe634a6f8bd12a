"""What a group changes and needs, so that it can be told which others it may conflict with."""

from typing import Final, NamedTuple


class GroupKeys(NamedTuple):
    """Keys of rows, tables and databases, each as a number; two with the same number are one.

    A number stands for what it is named by and for the values: of different keys, a few may share
    one, which makes groups wait that need not. Two groups may conflict if one has in `rows` what
    the other has in `rows` or `references`, or in `wholes` what the other has in `wholes` or
    `parts`.
    """

    rows: frozenset[int] = frozenset()
    """Values of unique and referenced keys of the rows that it changes, before and after."""
    references: tuple[int, ...] = ()
    """Values of keys, as in `rows`, that foreign keys of its rows refer to."""
    wholes: tuple[int, ...] = ()
    """Tables and databases that it may change anywhere."""
    parts: tuple[int, ...] = ()
    """Tables and databases that it changes in those rows, or refers to by those keys, only."""


NO_KEYS: Final = GroupKeys()
