"""A worker's settlements of groups in doubt, of which one may be owed (`mtsd.schedule.doubt`).

A definition is done when the server says so. Its place in the worker's row comes with what the
worker commits next: its next transaction, the next record, or `settle_owed`, where nothing comes.
A low-water mark that passes the group says the same. So between two definitions there is one
commit, not two, and between a definition and a transaction of rows none.

A worker that waits for more may use its session at any time to settle what it owes. Whoever else
wants to use it, as large groups do that are streamed, has to wait until nothing is owed
(`Coordinator.drained`): a BEGIN of the settlement would commit what is open there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.worker_records import WorkerRecords
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import Group
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.replica.ways.doubtful import not_settled
from mtsd.schedule.batches.in_flight import Batch, InFlight
from mtsd.schedule.done.worker_row import WorkerRow

_OWED_S: Final = 1.0
"""For how long a settlement waits for what it could come with: about a few checkpoints."""


class Settlements:
    """Those of one worker, while nothing of it is in flight.

    `stored` returns the low-water mark that the target has stored. `records_left` are the numbers
    of groups that are done and have a record: who stores a mark removes those that it passes.
    """

    def __init__(
        self,
        records: WorkerRecords,
        flight: InFlight,
        stored: Callable[[], LowWaterMark],
        records_left: set[int],
        reached: FaultHook,
    ) -> None:
        self._records = records
        self._flight = flight
        self._stored = stored
        self._records_left = records_left
        self._settling = asyncio.Lock()
        """Held while the session is used for what is owed: the worker is not alone in asking."""
        self._record: InDoubt | None = None
        """Of what is owed, or was owed last."""
        self._reached = reached

    def row_after(self, groups: Batch) -> WorkerRow:
        """Return what the worker's row becomes with groups, and with what is owed."""
        return self._flight.row_after(groups, self._stored())

    async def note(self, record: InDoubt, then: Sequence[bytes], *, anew: bool) -> None:
        """Write the record of a group in doubt, and settle what is owed in the same commit.

        `then` is as for `WorkerRecords.note`. Raises ServerError, and nothing has changed.
        """
        number = self._flight.owed
        if not number:
            await self._records.note(record, anew=anew, then=then)
            return
        row = self.row_after(())
        await self._records.note(record, anew=anew, settled=(row, number), then=then)
        self.settled(row)
        self._records_left.discard(number)
        await self._reached(FaultPoint.AFTER_SETTLED)

    def owe(self, group: Group, record: InDoubt) -> None:
        """Let a group that has that record be settled with what comes next."""
        self._flight.owe(group, self._stored())
        self._record = record
        self._records_left.add(group.number)

    async def settle(self, group: Group) -> None:
        """Settle a group in doubt by itself. Raises ServerError, and nothing has changed."""
        row = self.row_after((group,))
        await self._records.settle(row, group.number)
        self.settled(row)

    def settled(self, row: WorkerRow) -> None:
        """Note that the target has the worker's row like that."""
        self._flight.applied(row)

    async def while_waiting(self, next_batch: Callable[[], Awaitable[Batch]]) -> Batch:
        """Wait for the worker's next batch; settle what is owed if none comes soon.

        `next_batch` may be cancelled while it waits. Raises as `settle_owed` does.
        """
        if self.is_owed:
            try:
                async with asyncio.timeout(_OWED_S):
                    return await next_batch()
            except TimeoutError:
                # Mostly a low-water mark has passed it by now.
                await self.settle_owed()
        return await next_batch()

    @asynccontextmanager
    async def nothing_left(self) -> AsyncIterator[None]:
        """Settle what is owed when the block has ended, also if the worker has failed."""
        try:
            yield
        except NeedsPersonError:
            # What it has failed at comes first.
            with suppress(MtsdError):
                await self.settle_owed()
            raise
        await self.settle_owed()

    @property
    def is_owed(self) -> bool:
        """Whether something is owed that no stored low-water mark has passed."""
        return self._flight.owed > self._stored().number

    async def settle_owed(self) -> None:
        """Settle by itself what is owed, if anything is.

        Raises ApplyError if that is impossible; ConnectionLostError.
        """
        async with self._settling:
            if self.is_owed and self._record is not None:
                await self._settle_owed(self._record)

    async def _settle_owed(self, record: InDoubt) -> None:
        number = self._flight.owed
        row = self.row_after(())
        await self._reached(FaultPoint.BEFORE_SETTLED)
        try:
            await self._records.settle(row, number)
        except ServerError as error:
            raise not_settled(record, error) from error
        self.settled(row)
        self._records_left.discard(number)
        await self._reached(FaultPoint.AFTER_SETTLED)
