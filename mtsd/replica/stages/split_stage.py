"""The stage that picks out what is large enough to be split (`split_transactions`)."""

from collections.abc import Callable, Iterator

from mtsd.model.group import Group, GroupKind, LargeGroup, StreamItem
from mtsd.model.step import Rows
from mtsd.replica.stages.skipped_groups import GroupStream


class SplitStage:
    """A stream of groups in which those of rows of more than `largest()` bytes are `LargeGroup`s.

    With `all_engines`, also those on tables without transactions.
    """

    def __init__(
        self, stream: GroupStream, largest: Callable[[], int], *, all_engines: bool = False
    ) -> None:
        self._stream = stream
        self._largest = largest
        self._kinds = {GroupKind.ROWS, *([GroupKind.NON_TRANSACTIONAL] if all_engines else [])}

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next."""
        return map(self._picked, await self._stream.read())

    def _picked(self, item: StreamItem) -> StreamItem:
        if (
            type(item) is Group
            and item.size > self._largest()
            and item.kind in self._kinds
            and not item.unsupported
            and not item.rolled_back
            and all(type(step) is Rows for step in item.steps)
        ):
            return LargeGroup(item)
        return item
