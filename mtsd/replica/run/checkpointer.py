"""Stores the low-water mark: every checkpoint_period, and sooner when the GAQ fills up."""

import asyncio
import contextlib
from collections.abc import Sequence

from mtsd.apply.position.position_schema import ROW_LOST
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.retry import ROW_GONE, insist, write
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import refuse
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.gtid_mode import GtidRecorder
from mtsd.replica.guards.domain_watch import DomainWatch
from mtsd.replica.guards.guard import CHECK_PERIOD_S, Guard
from mtsd.wire.connection import Connection

_PING_PERIOD_S = 5.0
"""Shows a daemon that wants to take over that this one is alive (`signs_of_life`)."""
_PING_TIMEOUT_S = 30.0
_LEAST_PERIOD_S = 0.05


class Checkpointer:
    """Writes on the channel's session, which holds its lock.

    `stale` are rows of workers of previous runs, (Id, highest group number that it proves): they
    are removed as soon as the low-water mark has passed them, as is the record of the group
    `stopped`, which stopped a previous run (0: none). `gtids` records on the target what it has to
    know of the source's GTIDs; `domains` is shown those that are stored. The `guard` looks at the
    target in between. With `rests`, a few empty groups are no reason to write.
    """

    def __init__(
        self,
        connection: Connection,
        tables: PositionTables,
        coordinator: Coordinator,
        period: float,
        stale: Sequence[tuple[int, int]],
        stopped: int,
        gtids: GtidRecorder,
        guard: Guard,
        domains: DomainWatch,
        reached: FaultHook,
        *,
        rests: bool,
    ) -> None:
        self._gtids = gtids
        self.guard = guard
        self._rests = rests
        self._domains = domains
        self._connection = connection
        self._tables = tables
        self._coordinator = coordinator
        self.period = period
        """Maximum seconds between two checkpoints; may be changed at any time."""
        self._stale = list(stale)
        self._stopped = stopped
        self._reached = reached
        self.checkpoints = 0
        self.in_doubt = 0
        """Groups with an in-doubt record, at the last look: as a definition has while it runs."""

    async def run(self) -> None:
        """Store the low-water mark repeatedly until the coordinator has ended."""
        due = self._coordinator.checkpoint_due
        clock = asyncio.get_running_loop().time
        last_use = last_check = clock()
        while not self._coordinator.ended.is_set():
            try:
                # However long that takes, the session has to show that it is alive.
                async with asyncio.timeout(min(self.period, _PING_PERIOD_S)):
                    await due.wait()
            except TimeoutError:
                pass
            due.clear()
            if await self.store():
                last_use = clock()
                # However fast the groups are, most of the target's commits should be theirs.
                await self._rest()
            if self.guard.is_due or clock() - last_check > CHECK_PERIOD_S:
                await self.guard.check_target()
                await self._count_in_doubt()
                last_use = last_check = clock()
            elif clock() - last_use > _PING_PERIOD_S:
                # Also keeps the session, and so the lock, from being idle for too long.
                async with self._connection.answering(_PING_TIMEOUT_S):
                    await self._connection.query(b"SELECT 1")
                last_use = clock()

    async def _count_in_doubt(self) -> None:
        done = self._coordinator.records_left
        connection, query = self._connection, self._tables.doubts.count(sorted(done))
        async with connection.answering(_PING_TIMEOUT_S):
            # A person's KILL QUERY, say, is no reason to stop.
            ((count,),) = await insist(connection, lambda: connection.query(query))
        self.in_doubt = int(str(count))

    async def _rest(self) -> None:
        awaited = self._coordinator.checkpoint_awaited
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAST_PERIOD_S):
                await awaited.wait()
        awaited.clear()

    async def store(self, *, at_end: bool = False) -> bool:
        """Store the low-water mark if it has moved; return whether it had.

        `at_end`: also where it rests. Raises NeedsPersonError if the channel's row is gone.
        """
        mark = self._coordinator.scheduler.checkpoint(rests=self._rests and not at_end)
        if mark is None:
            return False
        await self._reached(FaultPoint.BEFORE_CHECKPOINT)
        if mark.gtids is not None and not self._gtids.at_every_start:
            # The next start takes it that the target has all GTIDs up to what is stored.
            await self._gtids.record(mark.gtids)
        await self._write(mark)
        if mark.gtids is not None and self._gtids.at_every_start:
            # Not before: the next start takes what is past the position for somebody else's.
            await self._gtids.record(mark.gtids)
        await self._reached(FaultPoint.AFTER_CHECKPOINT)
        self._coordinator.checkpointed(mark)
        self.checkpoints += 1
        if mark.gtids is not None:
            self._domains.check(mark.gtids)
        return True

    async def end(self) -> None:
        """Record that nothing past the low-water mark has committed, if so, after `store`."""
        if self._coordinator.scheduler.nothing_past_stored:
            await write(self._connection, [self._tables.update_ordered(ordered=True)])

    async def _write(self, mark: LowWaterMark) -> None:
        passed = [id_ for id_, highest in self._stale if highest <= mark.number]
        statements = [self._tables.update_mark(mark), self._tables.present()]
        statements += [
            self._tables.prepared.delete_before(xid, number)
            for xid, number in self._coordinator.scheduler.former.passed_completions(mark.number)
        ]
        if passed:
            statements.append(self._tables.workers.delete(passed))
        settled = [number for number in self._coordinator.records_left if number <= mark.number]
        if settled:
            statements.append(self._tables.doubts.delete(*settled))
        if 0 < self._stopped <= mark.number:
            statements.append(self._tables.failed.delete_stopped())
            self._stopped = 0
        try:
            await write(self._connection, statements)
        except ServerError as error:
            if error.number != ROW_GONE:
                raise
            tables = self._tables
            gone = refuse(ROW_LOST, schema=tables.schema, channel=tables.channel)
            raise NeedsPersonError(str(gone)) from error
        self._coordinator.records_left.difference_update(settled)
        self._stale = [(id_, highest) for id_, highest in self._stale if id_ not in passed]
