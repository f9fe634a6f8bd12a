"""What has been received of the source's groups: where reading continues after any interruption.

Pure: it sees each item of the stream once, on its way from the grouper to the scheduler.
"""

from collections.abc import Iterable, Iterator, Sequence

from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import (
    Group,
    GroupClosed,
    GroupDropped,
    PositionReached,
    StreamItem,
)
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import LogFile, LogFiles
from mtsd.source.replaced_file import replaced


class Received:
    """Starts with the contents of a low-water mark; only complete groups count."""

    def __init__(self, mark: LowWaterMark) -> None:
        self.next_number = mark.number + 1
        """The number of the next group."""
        self.position = mark.position
        """Where reading would continue: after the last complete group."""
        self.gtids = mark.gtids.copy() if mark.gtids is not None else None
        """All their GTIDs and the earlier ones; None if unknown."""
        self._log_files = LogFiles(mark.position.file, mark.begun)
        self._group_seen = False

    @property
    def begun(self) -> int:
        """When the source began the file of `position`; see `LowWaterMark.begun`."""
        return self._log_files.begun(self.position.file)

    def connected(self) -> None:
        """Note that what comes next is from another connection."""
        self._group_seen = False

    def items(self, grouper: Grouper, events: Sequence[bytes]) -> Iterator[StreamItem]:
        """Yield the grouper's items for the events, without what has been received before.

        Raises BinlogError as the grouper does, and NeedsPersonError before anything of a file that
        has replaced one of the same name.
        """
        return self.noted(grouper, grouper.groups(events))

    def noted(self, grouper: Grouper, items: Iterable[StreamItem]) -> Iterator[StreamItem]:
        """Yield the items that the grouper has made of one event or more, as `items` does."""
        for item in items:
            group = item.group if isinstance(item, GroupClosed) else item
            if type(group) is Group:
                self._group_seen = True
                self.position = group.end
                gtid = group.gtid
                if gtid is not None and self.gtids is not None and not self.gtids.advance(gtid):
                    # It came from another source before. A dump by GTID would not have sent it,
                    # so it takes no number.
                    grouper.next_number = group.number
                    if item is not group:
                        yield GroupDropped(group.number)
                    yield PositionReached(group.end, temporary=group.temporary)
                    continue
                self.next_number = group.number + 1
            elif isinstance(item, PositionReached):
                # A dump by GTID begins with the header events of a file, before its first group.
                if not self._group_seen and item.end <= self.position:
                    if item.temporary is not None:
                        yield PositionReached(self.position, temporary=item.temporary)
                    continue
                self.position = item.end
                if self.gtids is None and item.gtids is not None:
                    self.gtids = item.gtids.copy()
            elif isinstance(item, LogFile):
                refused = replaced(self.position, self._log_files.begun(item.name), item)
                if refused is not None:
                    raise NeedsPersonError(str(refused))
                self._log_files.add(item, self.position)
            elif isinstance(item, GroupDropped):
                self._group_seen = True
            yield item
