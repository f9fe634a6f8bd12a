"""The one place where the scheduler's state is changed, and waiters are woken when it changes.

Everything runs in one event loop without awaits between a change and its wake-ups, so there are no
locks.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence

from mtsd.model.group import Group, PositionReached, StreamItem
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.pulse import Pulse, Wait
from mtsd.schedule.applied import Applied
from mtsd.schedule.limits import Limits
from mtsd.schedule.scheduler import Scheduler
from mtsd.schedule.wait_cause import WaitCause
from mtsd.wire.steady_clock import steady


class Coordinator:
    """Carries the scheduler's decisions to the coroutines that wait for them."""

    def __init__(
        self, scheduler: Scheduler, *, keeps_order: bool = True, applied: Applied | None = None
    ) -> None:
        """`keeps_order`: no group commits without those that it depends on."""
        self.scheduler = scheduler
        self._applied = applied or Applied()
        self.clock_offset: Callable[[], float] = float
        """Returns the seconds that the source's clock is ahead of `steady`."""
        self.keeps_order = keeps_order
        self._work = [asyncio.Event() for _ in scheduler.workers]
        self._room = asyncio.Event()
        self.checkpoint_due = asyncio.Event()
        """Set when the low-water mark should be stored before its period has passed."""
        self.checkpoint_awaited = asyncio.Event()
        """Set when somebody waits until it is stored."""
        self.ended = asyncio.Event()
        """Set when nothing more will begin: after a failure, or when a stop is complete."""
        self.failure: BaseException | None = None
        self.stopping = False
        self.finished = False
        """Whether it has stopped because nothing more is to be applied."""
        self.connections: list[set[int]] = [set() for _ in scheduler.workers]
        """The target's ids of each worker's sessions."""
        self.definitions = 0
        """How many definitions have been applied: what is known about tables may have changed."""
        self.records_left: set[int] = set()
        """The numbers of groups that are done, and still have a record that they are in doubt."""
        self.settlers: list[Callable[[], Awaitable[None]]] = []
        """What settles, for each worker, what it owes."""
        self.after_definition: Callable[[Group], None] | None = None
        """What to call then."""
        self.after_mark: Callable[[int], None] | None = None
        """What to call, with the low-water mark's number, when that may have moved."""
        self.pulse = Pulse()
        """The dispatcher's, for the watchdog."""

    def sessions(self) -> frozenset[int]:
        """Return the target's ids of all workers' sessions."""
        return frozenset().union(*self.connections)

    def defined(self, definition: Group) -> None:
        """Note that a definition has been applied."""
        self.definitions += 1
        if self.after_definition is not None:
            self.after_definition(definition)

    def take_in(self, items: Iterator[StreamItem]) -> StreamItem | None:
        """Give the scheduler as many of `items` as it can add now, see `Scheduler.take_in`.

        Returns the item that needs handling, or None at the end.
        """
        can_begin: set[int] = set()
        try:
            return self.scheduler.take_in(items, can_begin)
        finally:
            for worker in can_begin:
                self._work[worker].set()
            # Groups that need nothing done are done: perhaps the last ones of a stop, or so many
            # that the queue is full of them.
            self._mark_moved()

    async def add(self, group: Group) -> None:
        """Give a group to the scheduler as soon as there is room for it.

        It is dropped after the end, or if it is past what a stop still accepts.
        """
        scheduler = self.scheduler
        if scheduler.blocked(group.size) is not None:
            await self._room_for(group)
        if self.reads_on and (worker := scheduler.add(group)) is not None:
            self._work[worker].set()
        self._mark_moved()

    async def _room_for(self, group: Group) -> None:
        scheduler = self.scheduler
        with self.pulse.waiting(Wait.ROOM):
            while (cause := scheduler.blocked(group.size)) is not None and self.reads_on:
                scheduler.reading_waits(cause)
                self._room.clear()
                await self._room.wait()
        scheduler.reading_waits(None)

    def add_committed(self, group: Group) -> None:
        """Enter a streamed group that has been applied."""
        self.scheduler.add_committed(group)
        self._applied.note((group,), self._source_time())
        self._room.set()
        self._mark_moved()

    def reach(self, reached: PositionReached) -> None:
        """Note a place between groups."""
        self.scheduler.reach(reached.end, reached.gtids, reached.temporary)
        self._mark_moved()

    async def due(self, seconds_left: Callable[[], float]) -> None:
        """Wait until no seconds are left, or groups are no longer accepted."""
        with self.pulse.waiting(Wait.DELAY):
            while self.reads_on and (left := seconds_left()) > 0:
                self._room.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._room.wait(), left)

    async def drained(self, cause: WaitCause | None = None) -> None:
        """Wait until everything that was added has committed, or nothing more will.

        In the first case nothing is owed either: no worker uses its session before there is more
        for it, so others may. The wait is accounted to `cause`, if there is one. Raises ApplyError,
        ConnectionLostError.
        """
        scheduler = self.scheduler
        with self.pulse.waiting(Wait.EARLIER_GROUPS):
            while not scheduler.idle and not self.ended.is_set():
                scheduler.reading_waits(cause)
                self._room.clear()
                await self._room.wait()
        scheduler.reading_waits(None)
        if not self.ended.is_set():
            with self.pulse.waiting(Wait.TARGET):
                for settler in self.settlers:
                    await settler()

    async def turn(self, worker: int, number: int, timeout_s: float | None = None) -> bool:
        """Wait until everything before the worker's group has committed; return whether it has.

        False if nothing more will, or if the low-water mark has not moved for `timeout_s` seconds.
        """
        if self.scheduler.gaq.number >= number - 1:
            return True
        self.scheduler.awaits_turn(worker, waits=True)
        try:
            return await self._turn(number, timeout_s)
        finally:
            self.scheduler.awaits_turn(worker, waits=False)

    async def _turn(self, number: int, timeout_s: float | None) -> bool:
        gaq = self.scheduler.gaq
        while (mark := gaq.number) < number - 1:
            try:
                async with asyncio.timeout(timeout_s):
                    while gaq.number == mark and not self.ended.is_set():
                        self._room.clear()
                        await self._room.wait()
            except TimeoutError:
                return gaq.number >= number - 1
            if self.ended.is_set():
                return gaq.number >= number - 1
        return True

    async def passed_in_order(self, number: int) -> bool:
        """Wait until the target has stored that everything before the group has committed.

        What is not only rows is never applied twice, and what comes before it neither: it would
        meet other definitions. So after a run that keeps no order, this has to be known. Return
        whether the group may begin; false if nothing more will.
        """
        if self.keeps_order:
            return True
        scheduler = self.scheduler
        while scheduler.stored.number < number - 1 and not self.ended.is_set():
            self.checkpoint_awaited.set()
            self.checkpoint_due.set()
            self._room.clear()
            await self._room.wait()
        return scheduler.stored.number >= number - 1

    async def work(self, worker: int, statements: int = 1) -> tuple[Group, ...]:
        """Wait for the worker's next batch; empty when there will be none.

        `statements` is as for `Scheduler.take`.
        """
        event = self._work[worker]
        while not self.ended.is_set():
            batch = self.scheduler.take(worker, statements=statements)
            if batch:
                return batch
            event.clear()
            await event.wait()
        return ()

    def work_ahead(self, worker: int, at_most: int | None = None) -> tuple[Group, ...]:
        """Return the worker's next full batch of rows, if it has one already.

        It has `at_most` so many bytes, unless it is a single group.
        """
        return self.scheduler.take(worker, ahead=True, at_most=at_most)

    def committed(self, worker: int, groups: Sequence[Group]) -> None:
        """Mark groups as committed and wake those waiting for them."""
        scheduler = self.scheduler
        for other in scheduler.commit(worker, groups):
            self._work[other].set()
        self._applied.note(groups, self._source_time())
        self._room.set()
        self._mark_moved()

    def _source_time(self) -> int:
        """Return the time at the source, in µs since 1970."""
        return int((steady() + self.clock_offset()) * 1_000_000)

    def checkpointed(self, mark: LowWaterMark) -> None:
        """Note that the target has stored the low-water mark: the queue has room again."""
        self.scheduler.checkpointed(mark)
        self._room.set()

    async def ends_within(self, seconds: float) -> bool:
        """Wait so long, or until nothing more will begin; return whether that has come."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), seconds)
        return self.ended.is_set()

    async def released(self, worker: int) -> None:
        """Wait until the worker is not frozen, or nothing more will begin."""
        scheduler = self.scheduler
        with self.pulse.waiting(Wait.EARLIER_GROUPS):
            while scheduler.is_frozen(worker) and not self.ended.is_set():
                scheduler.reading_waits(WaitCause.FROZEN)
                self._room.clear()
                await self._room.wait()
        scheduler.reading_waits(None)

    def freeze(self, worker: int, *, frozen: bool) -> None:
        """Have a worker begin nothing more, or continue."""
        self.scheduler.freeze(worker, frozen=frozen)
        self._work[worker].set()
        self._room.set()

    def set_limits(self, limits: Limits) -> None:
        """Continue with other limits, from the next group and the next batch on."""
        self.scheduler.set_limits(limits)
        self._room.set()

    @property
    def reads_on(self) -> bool:
        """Whether groups are still accepted."""
        return self.scheduler.reads_on and not self.ended.is_set()

    def stop(self, *, reading: bool) -> None:
        """Begin nothing past what has begun; `ended` is set when that is committed.

        `reading`: whether the source can still be read, see `Scheduler.stop`.
        """
        self.stopping = True
        self.scheduler.stop(reading=reading)
        self._room.set()
        # Those that were frozen have to finish what they can.
        for event in self._work:
            event.set()
        self._end_if_stopped()

    def finish(self) -> None:
        """Stop because nothing more is to be applied; everything that was added has committed."""
        if not self.ended.is_set():
            self.finished = True
            self.stop(reading=False)

    def fail(self, error: BaseException) -> None:
        """Begin nothing more; the first error is kept."""
        if self.failure is None:
            self.failure = error
        self.scheduler.halt()
        self._end()

    def _mark_moved(self) -> None:
        if self.after_mark is not None:
            self.after_mark(self.scheduler.gaq.number)
        if self.scheduler.checkpoint_is_urgent():
            self.checkpoint_due.set()
        self._end_if_stopped()

    def _end_if_stopped(self) -> None:
        if self.stopping and self.scheduler.stopped:
            self._end()

    def _end(self) -> None:
        self.ended.set()
        self._room.set()
        self.checkpoint_due.set()
        self.checkpoint_awaited.set()
        for event in self._work:
            event.set()
