"""In a circle, a group comes back to the server that it began on: it is executed there already.

Example: A and B replicate to each other, and both keep GTIDs. A's transaction A:7 is applied on B,
and B's binlog brings it back to A. A had executed A:1-5 when the run began, so what the run knows
does not say whether A:7 has to be applied: the target is asked, and its answer is learned. Only a
target that has lost A:7, say because it was restored from a copy, gets it back.
"""

from collections.abc import Awaitable, Callable, Iterator
from itertools import chain

from mtsd.model.group import Group, GroupOpened, StreamItem
from mtsd.model.gtid import GtidSet
from mtsd.replica.stages.skipped_groups import GroupStream


class ReturnedGroups:
    """A stream of groups in which those of the target's own UUID wait until it has been asked.

    `executed` is what the target is known to have executed, and `ask` brings it up to date.
    """

    def __init__(
        self,
        stream: GroupStream,
        executed: GtidSet,
        uuid: str,
        ask: Callable[[], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._executed = executed
        self._uuid = uuid
        self._ask = ask
        self._held: StreamItem | None = None
        self._rest: Iterator[StreamItem] = iter(())

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next."""
        held = self._held
        if held is None:
            return self._known(await self._stream.read())
        await self._ask()
        self._held = None
        return chain((held,), self._known(self._rest))

    def _known(self, items: Iterator[StreamItem]) -> Iterator[StreamItem]:
        for item in items:
            if isinstance(item, Group | GroupOpened) and item.gtid is not None:
                gtid = item.gtid
                if gtid.uuid == self._uuid and gtid not in self._executed:
                    self._held, self._rest = item, items
                    return
            yield item
