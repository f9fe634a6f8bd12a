"""Rows whose commit overlaps: while one transaction waits for the disk, the next is applied.

A queue on one session is applied, then waits for its own commit, in turn: with large transactions
both processor and disk are idle half of the time. So a worker takes turns between sessions:

    first session     rows 1 | commit 1           | rows 4 ...
    second session           | rows 2 |           | commit 2 ...
    third session                     | rows 3 ...
    mtsd              makes 2 | makes 3 | makes 4 ...

Rows 2 are sent once the target has answered rows 1: these hold their locks by then, so whatever of
rows 2 depends on them waits for commit 1, as it would on one session. Where the source's clock says
that rows 2, which are large or take long, do not depend on rows 1, they are sent at once, and both
are applied side by side:

    first session     rows 1      | commit 1 | rows 3 ...
    second session     | rows 2 .............| commit 2 ...

The worker's own row is changed with the COMMIT, and found by the token that the commit before it
has set. So:

1. The later COMMIT is sent after the earlier one was answered: what has committed is a prefix.
2. If the earlier transaction fails, or its session ends, nothing sets that token: the later one is
   rolled back, by the daemon or because it finds no row.
3. There is no deadlock. What commits waits for no lock. What is applied beside an earlier one may
   hold a lock that this one needs, a gap for example: then it gives way (see `giving_way`).
4. A failure while something else of the worker's is open need not be its own: it is rolled back,
   and applied again, with nothing beside it.

What is sent next is made while the target applies what was sent before, on the assumption that this
commits. If it does not, what was made is dropped: it would find no row.

A restart takes the locks of all sessions before it reads the worker's row (see `fencing`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.lock_names import OVERLAPPING_SESSIONS, SessionOf
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.group import GroupKind
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.choose import OVERLAPPING_BYTES, BatchWay, RowsWay, choose_batch, choose_rows
from mtsd.replica.ways.giving_way import Stall, gives_way
from mtsd.replica.ways.held_batches import Failure, Held, Made, begin, can_be_held, make
from mtsd.schedule.batches.in_flight import Batch
from mtsd.schedule.batches.side_by_side import are_independent, are_long, size_within
from mtsd.schedule.batches.tries import Tries

OpenApplier = Callable[[SessionOf], Awaitable[Applier | None]]

_LONG_ENOUGH_S: Final = 0.025
"""To apply a batch: what is longer saves little, as commits overlap."""


class Overlapping:
    """Applies batches of a worker on its own session and on further ones.

    `open_other` opens one of these when it is first needed, and returns None if the target has no
    room for it.
    """

    def __init__(self, own: Applier, open_other: OpenApplier, progress: WorkerProgress) -> None:
        self._open_other = open_other
        self._sessions = [own]
        self._most_sessions = 1 + len(OVERLAPPING_SESSIONS)
        self._index = progress.index
        self._coordinator = progress.coordinator
        self._flight = progress.flight
        self._progress = progress
        self._held: deque[Held] = deque()
        """In order: at most two, while another one commits."""
        self._committing: Held | None = None
        self._answer: asyncio.Task[None] | None = None
        """The wait for the answer to its COMMIT."""
        self._made: tuple[Applier, Made] | None = None
        """Of the batch behind those that are held, for this session."""
        self._begins_more = True
        """Whether the next batch may be held, as far as is known."""
        self._side_by_side = Tries()
        self._stall = Stall()
        self._decided = 0, False
        """The first group of a batch, and whether that may be applied beside the one before it."""
        self._each_s = 0.0
        """How long the target was last busy with a group, on the average of a batch."""
        self._at_most: int | None = None
        """How many bytes the next batch may have, unless it is a single group; None: any."""
        self.gave_way = 0
        """Batches rolled back, and applied again, for the locks of one that they were beside."""

    @property
    def appliers(self) -> tuple[Applier, ...]:
        """Those of the sessions that are open."""
        return tuple(self._sessions)

    def way_of(self, batch: Batch) -> RowsWay:
        """Return the way of a combined batch."""
        return choose_rows(
            sum(group.size for group in batch),
            is_its_turn=self._coordinator.scheduler.may_commit(batch[0].number),
            may_overlap=self._most_sessions > 1
            and batch[0].kind is not GroupKind.NON_TRANSACTIONAL,
        )

    async def apply(self) -> Failure | None:
        """Apply what is begun, and what follows, until one has another way or has failed.

        A batch that is left begun is to be applied in another way. Raises ConnectionLostError, and
        RowTooLargeError.
        """
        self._made = None
        self._begins_more = True
        try:
            return await self._apply()
        finally:
            await self._abandon()

    async def _apply(self) -> Failure | None:
        while True:
            await self._begin()
            if not self._held:
                return await self._committed()
            await self._something()
            if self._answer is not None and self._answer.done():
                failed = await self._committed()
                if failed is not None:
                    await self._drop_held()
                    return failed
            first = self._held[0]
            if first.has_failed:
                return await self._first_failed()
            if first.is_applied and self._committing is None:
                self._at_most = self._size_after(first)
                await self._commit(self._held.popleft())

    async def _begin(self) -> None:
        """Begin what may be applied now, and make what comes after that."""
        while self._begins_more and self._coordinator.failure is None and (batch := self._next()):
            last = self._held[-1] if self._held else None
            if last is not None and not (last.sent.done() or last.is_applied):
                # While something is made here, nothing of the rest would go out.
                return
            here = await self._free_session()
            if here is None or not self._may_follow(last, batch):
                self._make_behind(here, batch)
                return
            made = self._taken_made(here, batch) or self._make(here, batch)
            if made is None or not await can_be_held(here, made):
                self._begins_more = False
                return
            if last is not None and not last.is_applied:
                last.alone = False
            self._held.append(begin(here, made, alone=last is None and self._committing is None))

    def _may_follow(self, last: Held | None, batch: Batch) -> bool:
        """Return whether a batch may begin behind the last one that is held."""
        if last is None:
            return True
        if len(self._held) > 1:
            return False
        if last.is_applied:
            return not last.has_failed
        number = batch[0].number
        if self._decided[0] != number:
            independent = are_long(batch, self._each_s) and are_independent(last.batch, batch)
            self._decided = number, independent and self._side_by_side.may_try()
        return self._decided[1]

    async def _something(self) -> None:
        """Wait for something that is sent, answered or committed; or look who waits for whom."""
        first, last = self._held[0], self._held[-1]
        # It may have come while a session was opened; then there may be nothing to wait for.
        if first.has_failed or (first.is_applied if self._answer is None else self._answer.done()):
            return
        overtaken = last.is_applied and not first.is_applied
        if await self._news(within=self._stall.pause_s if overtaken else None):
            self._stall.ended()
            return
        number = last.batch[0].number
        if await gives_way(last.applier, number, self._stall, self._sessions_beside(last)):
            self.gave_way += 1
            self._not_side_by_side()
            await self._held.pop().roll_back()

    async def _news(self, *, within: float | None) -> bool:
        """Wait until something more is sent, answered or committed; return whether anything is."""
        awaited: list[asyncio.Future[None]] = [] if self._answer is None else [self._answer]
        for each in self._held:
            awaited += (each.sent, each.applying)
        done, _ = await asyncio.wait(
            [each for each in awaited if not each.done()],
            timeout=within,
            return_when=asyncio.FIRST_COMPLETED,
        )
        return bool(done)

    def _size_after(self, held: Held) -> int | None:
        """Return how many bytes the next batch may have, by how long the target took for this one.

        A long one depends on the one before it more often. None where none run side by side.
        """
        batch, seconds = held.batch, held.seconds
        self._each_s = seconds / len(batch)
        if not (batch[-1].sequence_number and are_long(batch, self._each_s)):
            return None
        return size_within(_LONG_ENOUGH_S, batch, seconds, at_least=2 * OVERLAPPING_BYTES)

    def _sessions_beside(self, held: Held) -> frozenset[int]:
        """Return the ids of all sessions of workers but the one on which a batch is held."""
        return self._coordinator.sessions() - {held.applier.session.connection.thread_id}

    def _not_side_by_side(self) -> None:
        self._side_by_side.failed()
        self._decided = 0, False

    async def _commit(self, held: Held) -> None:
        """Send the COMMIT of what has been applied."""
        self._flight.take_begun()
        packet, bundle = held.made
        self._flight.sent(packet, await held.applier.packets.send_commit(bundle))
        self._committing = held
        self._answer = asyncio.create_task(held.applier.packets.answer(self._flight.due))

    async def _committed(self) -> Failure | None:
        """Await the answer to the COMMIT that was sent, if there is one."""
        committing, self._committing = self._committing, None
        answer, self._answer = self._answer, None
        if committing is None or answer is None:
            return None
        try:
            await answer
        except ServerError as error:
            (batch,) = self._flight.failed()
            self._flight.give_back([batch])
            await committing.applier.undo(error)
            return Failure(batch, error)
        self._progress.committed(self._flight.committed().batch)
        return None

    async def _first_failed(self) -> Failure | None:
        """Leave nothing of what is held, after the first of it has failed."""
        first = self._held[0]
        error = first.applying.exception()
        if not first.alone:
            self._not_side_by_side()
        await self._drop_held()
        failed = await self._committed()
        if failed is not None:
            return failed
        if isinstance(error, ServerError):
            # It may have met what was open besides: it is applied again, by itself.
            return Failure(first.batch, error) if first.alone or error.leaves_changes else None
        first.applying.result()
        return None

    async def _drop_held(self) -> None:
        # What is still being applied may wait for a lock of what has been.
        self._held = deque(sorted(self._held, key=lambda each: not each.is_applied))
        while self._held:
            await self._held.popleft().roll_back()

    async def _abandon(self) -> None:
        """Wait for nothing any more: only after an error is there something."""
        left = [each.applying for each in self._held]
        if self._answer is not None:
            left.append(self._answer)
        self._held.clear()
        self._committing = self._answer = None
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _next(self) -> Batch:
        """Return the next batch, begun, if there is one and it overlaps; else an empty one."""
        flight = self._flight
        batch = flight.begun_after(len(self._held))
        if not batch and (batch := self._coordinator.work_ahead(self._index, self._at_most)):
            flight.begin(batch)
        if not batch or choose_batch(batch) is not BatchWay.COMBINED:
            return ()
        return batch if self.way_of(batch) is RowsWay.OVERLAPPING else ()

    def _make(self, here: Applier, batch: Batch) -> Made | None:
        """Return what to send of a batch behind what is held; None if it cannot be held as well.

        Raises RowTooLargeError if nothing is held.
        """
        after = self._held[-1].made.packet if self._held else None
        try:
            return make(here, self._progress, batch, after)
        except NeedsPersonError:
            if after is None:
                raise
            # It is an error when it is its turn.
            return None

    def _taken_made(self, here: Applier, batch: Batch) -> Made | None:
        session, made = self._made or (None, None)
        self._made = None
        return made if session is here and made is not None and made.batch is batch else None

    def _make_behind(self, here: Applier | None, batch: Batch) -> None:
        """Make what comes after what the target is at: it need not wait for mtsd afterwards.

        It is for the session `here`, or for the one that is free next.
        """
        if not self._held or self._made is not None:
            return
        here = here or (self._committing or self._held[0]).applier
        made = self._make(here, batch)
        self._made = None if made is None else (here, made)

    async def _free_session(self) -> Applier | None:
        """Return a session on which nothing is open; None if there is no room for another one."""
        busy = [each.applier for each in self._held]
        if self._committing is not None:
            busy.append(self._committing.applier)
        for session in self._sessions:
            if session not in busy:
                return session
        if len(self._sessions) >= self._most_sessions:
            return None
        other = await self._open_other(OVERLAPPING_SESSIONS[len(self._sessions) - 1])
        if other is None:
            self._most_sessions = len(self._sessions)
            return None
        self._sessions.append(other)
        self._coordinator.connections[self._index].add(other.session.connection.thread_id)
        return other
