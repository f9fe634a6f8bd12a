"""Processors that several tasks of a simulation share, a short slice of time each in turn."""

from collections import deque
from heapq import heappush
from math import inf
from typing import Final

from mtsd.plan.timeline import BACKGROUND, Timeline

SLICE_S: Final = 0.000_25
"""Nothing has a processor for longer than that while others wait for it."""


class Processors:
    """`count` of them; `slice_end` is the kind of the events that end a slice of theirs.

    A task is a kind of event and who it is for: the event happens when the task has had its time.
    Besides there are `background` tasks that always want one, until `end_background`.
    Tasks that are `urgent` wait for none of the others: they are short, and mostly wait for events.
    """

    __slots__ = (
        "_changed", "_count", "_owed", "_running", "_slice_end", "_timeline", "_waiting",
        "background", "busy", "free",
    )  # fmt: skip

    def __init__(self, timeline: Timeline, count: int, slice_end: int, background: int = 0) -> None:
        self._timeline = timeline
        self._count = max(1, count)
        self._slice_end = slice_end
        self.free = self._count
        self.busy = 0.0
        """Seconds of processors that were used."""
        self._waiting: deque[tuple[float, int, int]] = deque()
        self._owed = 0.0
        """Seconds in which more tasks had a processor than there are."""
        self._changed = 0.0
        """When `free` changed last."""
        self._running: dict[int, tuple[float, int, int]] = {}
        """What is left after its slice, of tasks that are not done with it."""
        self.background = background
        for _ in range(background):
            self.run(inf, BACKGROUND, 0)

    def run(self, seconds: float, kind: int, who: int, *, urgent: bool = False) -> None:
        """Let a task have its time as soon as a processor is free, or at once if it is urgent.

        While more run than there are processors, one of the others takes as much longer.
        """
        if self.free > 0:
            self._start(seconds, kind, who)
        elif urgent and self.background:
            # Where there is no end of tasks, nothing wakes up at once.
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

    def _begin(self, seconds: float, left: float, kind: int, who: int) -> None:
        timeline = self._timeline
        if self.free < 0:
            self._owed -= self.free * (timeline.now - self._changed)
        self._changed = timeline.now
        self.free -= 1
        self.busy += seconds
        timeline.number += 1
        number = timeline.number
        self._running[number] = (left, kind, who)
        heappush(timeline.events, (timeline.now + seconds, number, self._slice_end, number))

    def end_slice(self, number: int) -> tuple[int, int] | None:
        """Free the processor; return what has happened if a task had all its time.

        `go_on` must follow: what the end of a task makes run has the processor before others.
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
        """Give processors that are free to what waits."""
        waiting = self._waiting
        while waiting and self.free > 0:
            seconds, kind, who = waiting.popleft()
            self._start(seconds, kind, who)
