"""The Until stage (WL#5569, "Skip, Until, Delay"): the stream ends where a person wants it to."""

from collections.abc import Iterator

from mtsd.model.group import StreamItem
from mtsd.model.until import Goal
from mtsd.replica.stages.skipped_groups import GroupStream


class UntilReachedError(Exception):
    """Everything up to the goal has been read: nothing more follows."""


class UntilStage:
    """A stream of groups that ends at `goal`."""

    def __init__(self, stream: GroupStream, goal: Goal) -> None:
        self._stream = stream
        self._goal = goal

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next; raises UntilReachedError at the goal, and as Goal does."""
        if self._goal.reached:
            raise UntilReachedError
        return self._up_to_goal(await self._stream.read())

    def _up_to_goal(self, items: Iterator[StreamItem]) -> Iterator[StreamItem]:
        goal = self._goal
        for item in items:
            if goal.is_past(item):
                return
            yield item
            goal.passed(item)
            if goal.reached:
                return
