"""Rows whose commit overlaps: while one transaction waits for the disk, the next is applied.

A queue on one session is applied, then waits for its own commit, in turn: with large transactions
both processor and disk are idle half of the time. So a worker takes turns between two sessions:

    first session     rows 1 | commit 1          | rows 3 ...
    second session           | rows 2 ..........W| commit 2 ...

Rows 2 are sent once the target has answered rows 1: these hold their locks by then, so whatever of
rows 2 depends on them waits for commit 1 (W), as it would on one session. Where rows are passed on
undecoded, the worker's own row is the last of them: rows 2 find it by the token that rows 1 set,
and so wait there (W) for commit 1, if for nothing else. So:

1. The later COMMIT is sent after the earlier one was answered: what has committed is a prefix.
2. If the earlier transaction fails, or its session ends, nothing sets that token: the later one is
   rolled back, by the daemon or because it finds no row.
3. There is no deadlock: a transaction that waits for its commit waits for no lock, and no later one
   begins before all its rows are answered.
4. A failure of the later one, while the earlier one has not been answered, need not be its own: it
   is rolled back, and applied again, with nothing before it.

A restart takes the locks of both sessions before it reads the worker's row (see `fencing`).
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import Bundle
from mtsd.model.errors import MtsdError, ServerError
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.choose import BatchWay, RowsWay, choose_batch, choose_rows
from mtsd.schedule.batches.in_flight import Batch, Packet

OpenApplier = Callable[[], Awaitable[Applier | None]]


class Failure(NamedTuple):
    """The first batch that has failed, and why: nothing of it remains, nor of those after it."""

    batch: Batch
    error: ServerError


class Overlapping:
    """Applies batches of a worker on its own session and on another one, in turn.

    `open_other` opens that when it is first needed, and returns None if the target has no room for
    it.
    """

    def __init__(self, own: Applier, open_other: OpenApplier, progress: WorkerProgress) -> None:
        self._own = own
        self._open_other = open_other
        self._other: Applier | None = None
        self._has_room = True
        self._index = progress.index
        self._coordinator = progress.coordinator
        self._flight = progress.flight
        self._progress = progress
        self._committing: Applier | None = None
        """The session whose COMMIT was sent and is not answered."""

    @property
    def appliers(self) -> tuple[Applier, ...]:
        """Those of the sessions that are open."""
        return (self._own,) if self._other is None else (self._own, self._other)

    def way_of(self, batch: Batch) -> RowsWay:
        """Return the way of a combined batch."""
        return choose_rows(
            sum(group.size for group in batch),
            is_its_turn=self._coordinator.scheduler.may_commit(batch[0].number),
            has_other_session=self._has_room,
        )

    async def apply(self) -> Failure | None:
        """Apply what is begun, and what follows, until one has another way or has failed.

        A batch that is left begun is to be applied in another way. Raises ConnectionLostError, and
        RowTooLargeError.
        """
        while self._coordinator.failure is None and (batch := self._next()):
            here = await self._free_session()
            held = None if here is None else await to_be_held(here, self._progress)
            if here is None or held is None:
                break
            packet, bundle = held
            first = self._committing is None
            try:
                await here.rows.hold(bundle)
            except MtsdError as error:
                await here.undo(error)
                failed = await self._answered()
                if failed is not None:
                    return failed
                if not isinstance(error, ServerError):
                    raise
                # It may have met what was committing: it is applied again, after that.
                return Failure(batch, error) if first or error.leaves_changes else None
            failed = await self._answered()
            if failed is not None:
                await here.rollback()
                return failed
            self._flight.take_begun()
            self._flight.sent(packet, await here.packets.send_commit(bundle))
            self._committing = here
        return await self._answered()

    def _next(self) -> Batch:
        """Return the next batch, begun, if there is one and it overlaps; else an empty one."""
        flight = self._flight
        if not flight.has_begun and (ahead := self._coordinator.work_ahead(self._index)):
            flight.begin(ahead)
        if not flight.has_begun:
            return ()
        batch = flight.next_begun()
        combined = choose_batch(batch) is BatchWay.COMBINED
        return batch if combined and self.way_of(batch) is RowsWay.OVERLAPPING else ()

    async def _free_session(self) -> Applier | None:
        """Return the session that commits nothing; None if there is no room for a second one."""
        if self._committing is not self._own:
            return self._own
        if self._other is None:
            self._other = await self._open_other()
            if self._other is None:
                self._has_room = False
                return None
            self._coordinator.connections[self._index].add(self._other.session.connection.thread_id)
        return self._other

    async def _answered(self) -> Failure | None:
        """Await the answer to the COMMIT that was sent, if there is one."""
        committing, self._committing = self._committing, None
        if committing is None:
            return None
        try:
            await committing.packets.answer(self._flight.due)
        except ServerError as error:
            (batch,) = self._flight.failed()
            self._flight.give_back([batch])
            await committing.undo(error)
            return Failure(batch, error)
        self._progress.committed(self._flight.committed().batch)
        return None


async def to_be_held(applier: Applier, progress: WorkerProgress) -> tuple[Packet, Bundle] | None:
    """Return what to send of the next batch for `RowWriter.hold`; None if it cannot be held open.

    Raises ServerError, ConnectionLostError.
    """
    flight = progress.flight
    packet = flight.packet([flight.next_begun()], progress.coordinator.scheduler.stored)
    bundle = applier.rows.bundle(packet, held=True)
    if bundle is None or not await applier.tables.are_transactional(
        bundle.table_maps, bundle.steps
    ):
        return None
    return packet, bundle
