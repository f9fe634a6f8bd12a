"""What a range of a binary log file consists of."""

from collections.abc import Iterator, Sequence, Sized
from typing import NamedTuple, Protocol, TypeVar

from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.step import Step
from mtsd.model.xa_xid import XaXid


class PlacedEvent(NamedTuple):
    """An event without its checksum, and where it ends in its file.

    The events in a transaction payload are `inner`, and their end is that of the payload.
    """

    end: int
    event: bytes
    inner: bool


class GroupPart(NamedTuple):
    """A group, or the next steps of a large one, in order.

    `begin` and `end` are the whole group's offsets in its file; `gtid` and `commit_time` are those
    of the group. The last part also has the `group` itself, without its steps if the group has
    several parts; its `end` names no file. `xid` is that of an XA transaction in several parts.
    """

    begin: int
    end: int
    gtid: Gtid | None
    commit_time: int
    steps: tuple[Step, ...]
    group: Group | None
    xid: XaXid | None = None


StretchOfGroups = TypeVar("StretchOfGroups", bound=Sized)
"""Whole groups that follow each other; its length is how many they are."""
_Found_co = TypeVar("_Found_co", bound=Sized, covariant=True)


class Splits(Protocol[_Found_co]):
    """Finds groups in events that are looked at together, which is faster than one by one."""

    def split(
        self, data: bytes, places: Sequence[int], at: int, /
    ) -> Iterator[tuple[int, int, _Found_co | None]]:
        """Yield the number of the first event of a stretch, of the one after it, and the groups.

        `places` are where events begin in `data`, and where the last one ends; byte 0 is byte `at`
        of the file. All events are in a stretch, in order. Of one without groups nothing is known.
        """
        ...
