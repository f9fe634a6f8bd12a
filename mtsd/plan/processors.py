"""Processors that the tasks of a simulation share in turn, one short time slice each."""

from collections import deque
from heapq import heappush
from math import inf
from typing import Final

from mtsd.plan.timeline import BACKGROUND, Timeline

SLICE_S: Final = 0.000_25
"""The longest that a task keeps a processor while others wait."""


class Processors:
    """A number of processors; `slice_end` is the kind of event that ends one of their slices.

    A task is an event's kind and recipient; the event happens when the task has had its time.
    In addition, `background` tasks always want a processor, until `end_background`. Tasks that are
    `urgent` do not wait for other tasks: they are short, and mostly wait for events. While all
    others are busy, a processor takes longer by the factor `contention`, and by less while some
    are.
    """

    __slots__ = (
        "_changed", "_contention", "_count", "_owed", "_running", "_slice_end", "_timeline",
        "_waiting", "background", "busy", "free", "given",
    )  # fmt: skip

    def __init__(
        self,
        timeline: Timeline,
        count: int,
        slice_end: int,
        background: int = 0,
        contention: float = 0.0,
    ) -> None:
        self._timeline = timeline
        self._count = max(1, count)
        self._contention = contention / (count - 1) if count > 1 else 0.0
        self._slice_end = slice_end
        self.free = self._count
        self.busy = 0.0
        """Processor seconds used."""
        self.given = 0.0
        """What these would have been without contention."""
        self._waiting: deque[tuple[float, int, int]] = deque()
        self._owed = 0.0
        """Processor seconds given to tasks beyond the number of processors."""
        self._changed = 0.0
        """When `free` last changed."""
        self._running: dict[int, tuple[float, int, int]] = {}
        """The time left after its slice, for each unfinished task that is running."""
        self.background = background
        for _ in range(background):
            self.run(inf, BACKGROUND, 0)

    @property
    def stretch(self) -> float:
        """How much longer everything has taken because of contention, as a factor."""
        return self.busy / self.given if self._contention and self.given else 1.0

    def run(self, seconds: float, kind: int, who: int, *, urgent: bool = False) -> None:
        """Run a task as soon as a processor is free, or at once if it is urgent.

        While more tasks run than there are processors, another task takes longer by that time.
        """
        if self.free > 0:
            self._start(seconds, kind, who)
        elif urgent and self.background:
            # If the processors never run idle, even an urgent task waits for the end of a slice.
            self._waiting.appendleft((seconds, kind, who))
        elif urgent:
            self._begin(seconds, 0.0, kind, who)
        else:
            self._waiting.append((seconds, kind, who))

    def _start(self, seconds: float, kind: int, who: int) -> None:
        part = min(seconds, SLICE_S)
        owed, self._owed = self._owed, 0.0
        self._begin(part + owed, seconds - part, kind, who)
        self.busy -= owed
        self.given -= owed

    def _begin(self, seconds: float, left: float, kind: int, who: int) -> None:
        timeline = self._timeline
        if self.free < 0:
            self._owed -= self.free * (timeline.now - self._changed)
        self._changed = timeline.now
        self.free -= 1
        self.given += seconds
        if self._contention:
            seconds *= 1.0 + self._contention * (self._count - 1 - max(0, self.free))
        self.busy += seconds
        timeline.number += 1
        number = timeline.number
        self._running[number] = (left, kind, who)
        heappush(timeline.events, (timeline.now + seconds, number, self._slice_end, number))

    def end_slice(self, number: int) -> tuple[int, int] | None:
        """Free the processor; return the event if the task has had all its time.

        `go_on` must follow: tasks that become ready at the end of this one go before the others.
        """
        left, kind, who = self._running.pop(number)
        now = self._timeline.now
        if self.free < 0:
            self._owed -= self.free * (now - self._changed)
        self._changed = now
        self.free += 1
        if left > 0.0:
            if kind != BACKGROUND or self.background:
                self._waiting.append((left, kind, who))
            return None
        return kind, who

    def end_background(self) -> None:
        """Leave the processors to the tasks of the simulation."""
        self.background = 0
        self._waiting = deque([task for task in self._waiting if task[1] != BACKGROUND])

    def go_on(self) -> None:
        """Give free processors to waiting tasks."""
        waiting = self._waiting
        while waiting and self.free > 0:
            seconds, kind, who = waiting.popleft()
            self._start(seconds, kind, who)
