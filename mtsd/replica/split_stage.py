"""The stage that picks out what is large enough to be split (`split_transactions`)."""

from collections.abc import Iterator

from mtsd.model.group import Group, GroupKind, LargeGroup, StreamItem
from mtsd.replica.skipped_groups import GroupStream


class SplitStage:
    """A stream of groups in which those of rows of more than `largest` bytes are `LargeGroup`s."""

    def __init__(self, stream: GroupStream, largest: int) -> None:
        self._stream = stream
        self._largest = largest

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next."""
        return map(self._picked, await self._stream.read())

    def _picked(self, item: StreamItem) -> StreamItem:
        if (
            type(item) is Group
            and item.size > self._largest
            and item.kind is GroupKind.ROWS
            and not item.unsupported
        ):
            return LargeGroup(item)
        return item
