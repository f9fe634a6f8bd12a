"""A stream of items that are there already, for what reads from a stream of groups."""

from collections.abc import Iterator, Sequence

from mtsd.model.group import StreamItem
from mtsd.source.stream_end import StreamClosedError


class ItemStream:
    """Gives its items one at a time, and is at its end then."""

    def __init__(self, items: Sequence[StreamItem]) -> None:
        self._items = list(items)

    async def read(self) -> Iterator[StreamItem]:
        """Return the next item; raises StreamClosedError after the last one."""
        if not self._items:
            raise StreamClosedError
        return iter([self._items.pop(0)])
