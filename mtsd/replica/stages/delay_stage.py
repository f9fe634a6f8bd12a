"""The Delay stage (WL#5569, "Skip, Until, Delay"): a target that stays behind on purpose."""

from collections.abc import Awaitable, Callable, Iterator
from itertools import chain

from mtsd.model.group import Group, GroupOpened, StreamItem
from mtsd.replica.stages.skipped_groups import GroupStream
from mtsd.wire.steady_clock import steady


class DelayStage:
    """A stream of groups, each not before `delay` seconds after its commit on the source.

    `clock_offset` returns the source's clock minus `steady`, in seconds. `wait` gets a function
    that returns how many seconds are left; it returns when none are, or nothing more is accepted.
    """

    def __init__(
        self,
        stream: GroupStream,
        delay: float,
        clock_offset: Callable[[], float],
        wait: Callable[[Callable[[], float]], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self.delay = delay
        """Seconds; may be changed at any time."""
        self._clock_offset = clock_offset
        self._wait = wait
        self._held: Group | GroupOpened | None = None
        self._rest: Iterator[StreamItem] = iter(())
        self._read_at = 0.0

    @property
    def held_commit_time(self) -> int | None:
        """The commit time of the group that is not due yet, in µs; None if there is none."""
        return self._held.commit_time if self._held is not None else None

    @property
    def held_groups(self) -> int:
        """How many groups are not due yet: of those, the rest is not read."""
        return 0 if self._held is None else 1

    @property
    def held_bytes(self) -> int:
        """Their size; nothing of a streamed one is in memory."""
        return self._held.size if isinstance(self._held, Group) else 0

    def seconds_left(self) -> float:
        """Return how long the group that is held has to wait; 0 if none is held."""
        return self._left(self._held) if self._held is not None else 0.0

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next and is due."""
        held = self._held
        if held is None:
            items = await self._stream.read()
            self._read_at = steady()
            return self._due(items) if self.delay else items
        await self._wait(self.seconds_left)
        self._held = None
        return chain((held,), self._due(self._rest))

    def _due(self, items: Iterator[StreamItem]) -> Iterator[StreamItem]:
        for item in items:
            if isinstance(item, Group | GroupOpened) and self._left(item) > 0:
                self._held, self._rest = item, items
                return
            yield item

    def _left(self, group: Group | GroupOpened) -> float:
        """Return the seconds until `group` is due.

        A group was committed before it was read, whatever its timestamp says.
        """
        now = steady()
        age = now + self._clock_offset() - group.commit_time / 1_000_000
        return max(0.0, self.delay - max(age, now - self._read_at))
