"""A batch that is applied on a session and left open there, until it may commit."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import Bundle
from mtsd.model.errors import MtsdError, ServerError
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.schedule.batches.in_flight import Batch, Packet


class Made(NamedTuple):
    """A packet of one batch, and what is sent for it."""

    packet: Packet
    bundle: Bundle

    @property
    def batch(self) -> Batch:
        """Its groups."""
        return self.packet.transactions[0].batch


class Failure(NamedTuple):
    """The first batch that has failed, and why: nothing of it remains, nor of those after it."""

    batch: Batch
    error: ServerError


@dataclass(slots=True)
class Held:
    """A batch that is being applied, or has been and waits for its COMMIT.

    `sent` is done once the target has all of it, and is busy; `applying` once that is answered.
    """

    made: Made
    applier: Applier
    sent: asyncio.Future[None]
    applying: asyncio.Task[None]
    alone: bool
    """Whether nothing else of the worker's has been open at the same time: a failure is its own."""
    seconds: float = 0.0
    """How long the target took to apply it, once it has."""

    @property
    def batch(self) -> Batch:
        """Its groups."""
        return self.made.batch

    @property
    def is_applied(self) -> bool:
        """Whether its rows were answered, or cannot be answered any more."""
        return self.applying.done()

    @property
    def has_failed(self) -> bool:
        """Whether they were answered with an error, or cannot be."""
        return self.applying.done() and self.applying.exception() is not None

    async def roll_back(self) -> None:
        """Leave nothing of it, once it is answered. Raises what `Applier.rollback` does."""
        try:
            await self.applying
        except MtsdError as error:
            await self.applier.undo(error)
        else:
            await self.applier.rollback()


def begin(applier: Applier, made: Made, *, alone: bool) -> Held:
    """Begin to apply a batch, which is left open."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    sent: asyncio.Future[None] = loop.create_future()

    def has_all() -> None:
        if not sent.done():
            sent.set_result(None)

    async def apply() -> None:
        await applier.rows.hold(made.bundle, has_all)
        held.seconds = loop.time() - began

    held = Held(made, applier, sent, asyncio.create_task(apply()), alone)
    return held


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
