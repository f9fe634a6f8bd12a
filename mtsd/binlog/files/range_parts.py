"""What a range of a binary log file consists of."""

from typing import NamedTuple

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
