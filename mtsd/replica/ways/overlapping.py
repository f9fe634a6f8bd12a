"""Rows whose commit overlaps: while one transaction waits for the disk, the next is applied.

A queue on one session is applied, then waits for its own commit, in turn: with large transactions
both processor and disk are idle half of the time. So a worker takes turns between two sessions:

    first session     rows 1 | commit 1          | rows 3 ...
    second session           | rows 2 ..........W| commit 2 ...
    mtsd              makes 2         | makes 3          | makes 4 ...

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

What is sent next is made while the target applies what was sent before, on the assumption that this
commits. If it does not, what was made is dropped: it would find no row.

A restart takes the locks of both sessions before it reads the worker's row (see `fencing`).
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import Bundle
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.choose import BatchWay, RowsWay, choose_batch, choose_rows
from mtsd.schedule.batches.in_flight import Batch, Packet

OpenApplier = Callable[[], Awaitable[Applier | None]]


class Made(NamedTuple):
    """A packet of one batch, and what is sent for it."""

    packet: Packet
    bundle: Bundle


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
        self._made: Made | None = None
        """Of the batch behind the one that is being applied."""

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
        self._made = None
        while self._coordinator.failure is None and (batch := self._next()):
            here = await self._free_session()
            if here is None:
                break
            made = self._taken_made() or make(here, self._progress, batch)
            if made is None or not await can_be_held(here, made):
                break
            packet, bundle = made
            first = self._committing is None
            try:
                await here.rows.hold(bundle, partial(self._make_behind, packet, here))
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
        return self._if_overlapping(flight.next_begun()) if flight.has_begun else ()

    def _if_overlapping(self, batch: Batch) -> Batch:
        """Return the batch, or an empty one if it has another way."""
        combined = choose_batch(batch) is BatchWay.COMBINED
        return batch if combined and self.way_of(batch) is RowsWay.OVERLAPPING else ()

    def _taken_made(self) -> Made | None:
        made, self._made = self._made, None
        return made

    def _make_behind(self, packet: Packet, here: Applier) -> None:
        """Make what comes after the packet that is being applied, if that is full already.

        The target works meanwhile, and need not wait for mtsd afterwards.
        """
        other = self._own if here is self._other else self._other
        flight = self._flight
        batch = flight.begun_behind()
        if not batch and (batch := self._coordinator.work_ahead(self._index)):
            flight.begin(batch)
        if other is None or not batch or not self._if_overlapping(batch):
            return
        # If it is too large, that is an error when it is its turn.
        with suppress(NeedsPersonError):
            self._made = make(other, self._progress, batch, packet)

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


def make(
    applier: Applier, progress: WorkerProgress, batch: Batch, after: Packet | None = None
) -> Made | None:
    """Return what to send of a batch for `RowWriter.hold`; `after` as in `InFlight.packet`.

    None if it cannot be held open. Raises RowTooLargeError.
    """
    packet = progress.flight.packet([batch], progress.coordinator.scheduler.stored, after)
    bundle = applier.rows.bundle(packet, held=True)
    return None if bundle is None else Made(packet, bundle)


async def can_be_held(applier: Applier, made: Made) -> bool:
    """Return whether all that is changed can be rolled back. Raises as `are_transactional`."""
    bundle = made.bundle
    return await applier.tables.are_transactional(bundle.table_maps, bundle.steps)
