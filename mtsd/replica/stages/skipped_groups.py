"""Whether the groups that a start skips are those that a person has skipped.

A group is skipped by its number, and a number identifies a group only as long as the source's
binlog is the one in which it was counted. A skipped group is on record with its GTID and end, so a
binlog with another group in that place is noticed.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

import structlog

from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import Group, GroupClosed, StreamItem
from mtsd.model.outcome.failed_group import FailedGroup

log = structlog.get_logger(__name__)


class GroupStream(Protocol):
    """What the dispatcher reads from, see `mtsd.source.stream.SourceStream`."""

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next."""


class AsSkipped:
    """A stream of groups in which `skipped` ones have to be those on record."""

    def __init__(self, stream: GroupStream, skipped: Iterable[FailedGroup]) -> None:
        self._stream = stream
        self._left = {group.number: group for group in skipped}

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next; raises NeedsPersonError when read if another group is there."""
        items = await self._stream.read()
        return map(self._compared, items) if self._left else items

    def _compared(self, item: StreamItem) -> StreamItem:
        group = item.group if isinstance(item, GroupClosed) else item
        if isinstance(group, Group) and group.number in self._left:
            skipped = self._left.pop(group.number)
            if not _is_same(skipped, group):
                raise NeedsPersonError(
                    f"{skipped}, was skipped, but the source has another group in its place,"
                    f" {FailedGroup.of(group)}: this is not the binlog that was read before."
                    " Compare the servers, then say where to continue with mtsd position set"
                )
            log.warning("group not applied: skipped by a person", group=str(skipped))
        return item


def _is_same(skipped: FailedGroup, group: Group) -> bool:
    if skipped.gtid and group.gtid is not None:
        return skipped.gtid == str(group.gtid)
    return skipped.end is None or skipped.end == group.end
