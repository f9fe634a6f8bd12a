"""Holds back groups whose keys are about to be known, so that they need not count as wholes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain
from typing import Final

from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.model.group import Group, StreamItem
from mtsd.replica.stages.skipped_groups import GroupStream

_LONGEST_S: Final = 1.0
"""A definition that takes longer must not hold back the groups of other databases."""
_POLL_PERIOD_S: Final = 0.02
_AT_ONCE: Final = 128
"""Groups after a definition that are not held back: few are applied before the keys are read."""


class KnownKeysStage:
    """A stream of groups; those after a definition wait for the keys to be read, but not for long.

    `wait` gets a function that returns how many seconds are left, see `DelayStage`.
    """

    def __init__(
        self,
        stream: GroupStream,
        changed: ChangedKeys,
        wait: Callable[[Callable[[], float]], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._changed = changed
        self._wait = wait
        self._held: Group | None = None
        self._rest: Iterator[StreamItem] = iter(())
        self._definition = 0
        """The newest one that has made keys unknown, and how many groups have come since."""
        self._since = 0
        self._waited = False
        """Whether they have been waited for."""

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next."""
        held = self._held
        if held is None:
            return self._known(await self._stream.read())
        clock = asyncio.get_running_loop().time
        until = clock() + _LONGEST_S

        def seconds_left() -> float:
            if not self._changed.redefined(held.databases):
                return 0.0
            return min(until - clock(), _POLL_PERIOD_S)

        await self._wait(seconds_left)
        self._waited = True
        self._held = None
        return chain((held,), self._known(self._rest))

    def _known(self, items: Iterator[StreamItem]) -> Iterator[StreamItem]:
        for item in items:
            if type(item) is Group and (last := self._changed.redefined(item.databases)):
                if last > self._definition:
                    self._definition = last
                    self._since = 0
                    self._waited = False
                self._since += 1
                if self._since > _AT_ONCE and not self._waited:
                    self._held, self._rest = item, items
                    return
            yield item
