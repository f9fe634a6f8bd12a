"""A worker: applies the batches of its queue to the target, retries, and reports."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import RowTooLargeError
from mtsd.apply.session.obstacle import Retrying, obstacles_here
from mtsd.apply.session.retry import ROW_GONE, pause_before, worth_a_retry
from mtsd.model.errors import (
    ApplyError,
    ConnectionLostError,
    MtsdError,
    NeedsPersonError,
    ServerError,
)
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.group import Group
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.report import SPENT, contents, failed, half_applied
from mtsd.replica.ways.choose import BatchWay, choose_batch
from mtsd.replica.ways.doubtful import HalfAppliedError
from mtsd.replica.ways.in_doubt import InDoubtWorker
from mtsd.replica.ways.single_groups import SingleGroups
from mtsd.replica.ways.xa_groups import record_skipped
from mtsd.replica.workers.commit_order import CommitOrder
from mtsd.replica.workers.failing_row import failing_row
from mtsd.replica.workers.target_waits import TargetWait, kind_in_words
from mtsd.schedule.batches.in_flight import Batch, InFlight
from mtsd.schedule.batches.statement_runs import StatementRuns
from mtsd.schedule.batches.xa_pairs import is_one_transaction
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.refusal import remedy_of

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings that a worker needs."""

    transaction_retries: int
    skip_errors: frozenset[int]
    daemon_uuid: str
    show_themselves: frozenset[int]
    """See `mtsd.replica.recovery.recovery.Recovered`."""
    again: ExecutedGroups
    """Groups of rows that have committed before."""
    first_groups: int
    """See `mtsd.replica.core.report.first_groups`."""


class Worker:
    """Worker `index` (its Id in the tables is one more), with an applier of its own."""

    def __init__(
        self,
        index: int,
        applier: Applier,
        coordinator: Coordinator,
        row: WorkerRow,
        settings: WorkerSettings,
        reached: Reached,
    ) -> None:
        self.index = index
        self.applier = applier
        self._coordinator = coordinator
        coordinator.connections[index] = applier.session.connection.thread_id
        self._order = CommitOrder(index, coordinator, applier)
        self._flight = InFlight(row)
        self._singly = SingleGroups(
            applier,
            coordinator,
            self._flight,
            InDoubtWorker(index + 1, settings.daemon_uuid),
            settings.show_themselves,
            settings.again,
            reached,
        )
        self._runs = StatementRuns()
        self.settings = settings
        """May be changed at any time: takes effect with the next attempt."""
        self._reached = reached
        self._obstacles = obstacles_here()
        self.transactions = 0
        """Target transactions committed."""
        self.groups = 0
        self.retries = 0
        self.skipped = 0
        """Groups skipped because of skip_errors."""
        self._busy_seconds = 0.0
        self._busy_since: float | None = None
        self.last: Group | None = None

    async def run(self) -> None:
        """Apply batch after batch until the coordinator has no more. Raises MtsdError."""
        async with self._singly.settlements.nothing_left():
            await self._run()

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        flight = self._flight
        while batch := await self._singly.settlements.while_waiting(
            lambda: self._coordinator.work(self.index, self._most_statements)
        ):
            self._busy_since = clock()
            flight.begin(batch)
            try:
                while flight.has_begun and self._coordinator.failure is None:
                    way = choose_batch(flight.next_begun())
                    if way is BatchWay.COMBINED:
                        await self._apply_rows()
                        continue
                    batch = flight.take_begun()
                    together = way is BatchWay.TOGETHER
                    apply = self._apply_statements if together else self._apply_singly
                    if not await apply(batch):
                        return
            except RowTooLargeError as error:
                raise self._failed(self._largest_running(), error, "Do that") from error
            except HalfAppliedError as error:
                remedy = half_applied(error.number)
                raise self._failed(self._running(error.number), error, remedy) from error
            finally:
                self._busy_seconds = self.busy_seconds
                self._busy_since = None

    @property
    def _who(self) -> str:
        return f"worker {self.index + 1}"

    @property
    def obstacle(self) -> str:
        """What keeps the target from taking what it applies, in words; "" if nothing does."""
        return "" if self._obstacles is None else self._obstacles.of(self._who)

    @property
    def busy_seconds(self) -> float:
        """How long it has been applying, what it applies now included."""
        since = self._busy_since
        now = 0.0 if since is None else asyncio.get_running_loop().time() - since
        return self._busy_seconds + now

    def target_wait(self, at_least: float = 0.0) -> TargetWait | None:
        """Return how long the target has not answered, and at what; None where none is waited for.

        `at_least`: or not for so many seconds.
        A packet's transactions are answered one by one: it is the wait for one of them.
        """
        awaited = self.applier.session.connection.awaited
        now = asyncio.get_running_loop().time()
        if awaited is None or now - awaited.since < at_least:
            return None
        running = self._coordinator.scheduler.workers[self.index].running
        return TargetWait(
            self.index + 1,
            self.applier.session.connection.thread_id,
            now - awaited.since,
            kind_in_words(awaited.packet, awaited.answered),
            running[0].number if running else 0,
            running[0].kind.value if running else "",
            running[0].databases if running else (),
        )

    @property
    def _most_statements(self) -> int:
        # Where no order is kept, each waits until the target has stored what came before it.
        return self._runs.most if self._coordinator.keeps_order else 1

    @property
    def gave_way(self) -> int:
        """Batches rolled back, and applied again at their turn, for an earlier group's locks."""
        return self._order.gave_way

    def row_after(self, group: Group) -> WorkerRow:
        """Return what this worker's row becomes with a group, while nothing is in flight."""
        return self._singly.row_after((group,))

    def applied(self, group: Group, row: WorkerRow, *, skipped: ServerError | None = None) -> None:
        """Note that a group without a place in the queue has committed with that row.

        `skipped`: only its row has, because of this error.
        """
        self._flight.applied(row)
        if skipped is not None:
            self._log_skipped(group, skipped)
        self._count((group,))
        self._coordinator.add_committed(group)

    async def _apply_rows(self) -> None:
        """Apply batches of rows, one packet ahead, until one has to wait or there are none."""
        flight = self._flight
        number = flight.next_begun()[0].number
        if not self._coordinator.scheduler.may_commit(number):
            if await self._apply_held():
                return
            if not await self._coordinator.turn(self.index, number):
                return
        packet, bundle = self._singly.packet(self._gather())
        if not self.applier.tables.are_safe(bundle.table_maps) and (
            await self.applier.tables.without_transactions(bundle.table_maps, bundle.steps)
        ):
            for unit in self._all_begun(pairs=False):
                await self._apply_alone(unit)
            return
        try:
            flight.sent(packet, await self.applier.rows.send(bundle, follows=False))
            while not flight.is_empty:
                if flight.wants_more:
                    await self._send_ahead()
                await self.applier.packets.answer(flight.due)
                self._committed(flight.committed().batch)
        except MtsdError as error:
            await self.applier.undo(error, max(flight.packets - 1, 0))
            if not isinstance(error, ServerError):
                raise
            left = flight.failed() or [packet.transactions[0].batch]
            await self._replay(left[0], error)

    async def _apply_held(self) -> bool:
        """Apply the next batch before its turn and commit it then; return whether that succeeded.

        If not, nothing of it remains, and it is still to be applied, at its turn. Until then a
        failure is not its own: an earlier group may hold a lock, or have failed itself.
        """
        flight = self._flight
        batch = flight.next_begun()
        packet = flight.packet([batch], self._coordinator.scheduler.stored)
        bundle = self.applier.rows.bundle(packet, held=True)
        if bundle is None or (
            not self.applier.tables.are_safe(bundle.table_maps)
            and await self.applier.tables.without_transactions(bundle.table_maps, bundle.steps)
        ):
            return False
        try:
            await self.applier.rows.hold(bundle)
            if not await self._order.comes(batch[0].number):
                await self.applier.rollback()
                return False
            statements = await self.applier.packets.send_commit(bundle)
            flight.take_begun()
            flight.sent(packet, statements)
            await self.applier.packets.answer(flight.due)
        except MtsdError as error:
            flight.give_back(flight.failed())
            await self.applier.undo(error, 0)
            if not isinstance(error, ServerError):
                raise
            if error.leaves_changes:
                await self._singly.half_applied(batch, error)
            return False
        self._committed(flight.committed().batch)
        return True

    async def _send_ahead(self) -> None:
        """Send the next packet while the server works on one, if there is a full one.

        The server then does not wait for mtsd between them.
        """
        if self._coordinator.failure is not None:
            return
        flight = self._flight
        batches = self._gather()
        if not batches:
            return
        try:
            packet, bundle = self._singly.packet(batches)
        except NeedsPersonError:
            # Raised again later: at this point an answer is still due on the connection.
            flight.give_back(batches)
            return
        if not (
            flight.may_send(packet, single_statements=bundle.is_single_statements)
            and self.applier.tables.are_safe(bundle.table_maps)
        ):
            flight.give_back([each.batch for each in packet.transactions])
            return
        flight.sent(packet, await self.applier.rows.send(bundle, follows=True))

    def _gather(self) -> list[Batch]:
        return self._flight.gather(
            lambda: self._coordinator.work_ahead(self.index), shared=not self.applier.preserves
        )

    async def _replay(self, failed: Batch, error: ServerError) -> None:
        """Apply what has begun one by one after a batch has failed; the others left nothing."""
        if error.leaves_changes:
            await self._singly.half_applied(failed, error)
        units = self._all_begun(pairs=True)
        if len(units) == 1:
            await self._retry(units[0], error)
            return
        await self._reached(FaultPoint.BEFORE_REPLAY)
        for unit in units:
            await self._apply_alone(unit)

    def _all_begun(self, *, pairs: bool) -> list[Batch]:
        while self._flight.has_begun:
            self._flight.take_begun()
        return self._coordinator.scheduler.workers[self.index].replay(pairs=pairs)

    async def _apply_singly(self, batch: Batch) -> bool:
        """Apply groups each of which commits by itself: several only of XA transactions.

        Returns whether others may follow; False if the replica ends.
        """
        coordinator = self._coordinator
        alone = False
        """Whether the first one is not to be tried in a run: one has ended before it."""
        while batch and coordinator.failure is None:
            if not await coordinator.passed_in_order(batch[0].number):
                return False
            applied = 0
            if len(batch) > 1 and coordinator.keeps_order and not alone:
                applied = await self._apply_run(batch)
            alone = 0 < applied < len(batch)
            if applied:
                self._committed(batch[:applied])
                self.transactions += applied - 1
            else:
                applied = 1
                await self._apply_alone(batch[:1])
            batch = batch[applied:]
        return True

    async def _apply_statements(self, batch: Batch) -> bool:
        """Apply transactions of statements, as one if that succeeds; see `_apply_singly`."""
        coordinator = self._coordinator
        if not await coordinator.passed_in_order(batch[0].number):
            return False
        clock = asyncio.get_running_loop().time
        tries = self._runs.may_try()
        while batch and coordinator.failure is None:
            applied = await self._apply_plain(batch) if tries else 0
            tries = tries and applied is not None
            if not applied:
                applied = 1
                began = clock()
                await self._apply_alone(batch[:1])
                self._runs.took(clock() - began)
            batch = batch[applied:]
        return True

    async def _apply_plain(self, batch: Batch) -> int | None:
        """Apply those from the first one on that can be rolled back, as one; return how many.

        None if that has failed: nothing of them is applied.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            run = await self._singly.protected(batch)
            applied = bool(run) and await self._singly.apply_plain(run)
        except ServerError as error:
            self._runs.failed()
            if len(batch) == 1 and worth_a_retry(error):
                await self._retry(batch, error)
                return 1
            log.info("applied one by one", group=batch[0].number, error=str(error))
            return None
        if applied:
            self._runs.succeeded(len(run), clock() - began)
            self._committed(run)
        elif run:
            self._runs.failed()
            return None
        return len(run)

    async def _apply_run(self, batch: Batch) -> int:
        try:
            return await self._singly.apply_run(batch)
        except ServerError as error:
            log.info("applied one by one", group=batch[0].number, error=str(error))
            return 0

    async def _apply_alone(self, unit: Batch) -> None:
        """Apply a group by itself, or a pair as one transaction."""
        try:
            await self._singly.apply(unit)
        except ServerError as error:
            await self._retry(unit, error)
        else:
            self._committed(unit)

    async def _retry(self, unit: Batch, error: ServerError) -> None:
        group = unit[0]
        attempt = 0
        with Retrying(self._who) as retrying:
            while True:
                plain, error = error, await self.applier.rows.explain(error, group.rows)
                if self.applier.preserves and not worth_a_retry(error):
                    behind = error.number == ROW_GONE != plain.number
                    await self._look_for_gtids(group, behind=behind)
                skips = error.number in self.settings.skip_errors
                spent = group.uses_temporary is not None and self.applier.temporary.are_spent
                if spent:
                    break
                if not skips and (pause := retrying.waits_for(error)) is not None:
                    self.retries += 1
                    if await self._coordinator.ends_within(pause):
                        raise error
                elif worth_a_retry(error) and attempt < self.settings.transaction_retries:
                    attempt += 1
                    self.retries += 1
                    log.info(
                        "retrying", worker=self.index + 1, group=group.number, attempt=attempt,
                        error=error.number, text=error.text, changes=contents(group),
                    )  # fmt: skip
                    await asyncio.sleep(pause_before(attempt))
                elif not await self._at_its_turn(group):
                    break
                try:
                    await self._singly.apply(unit)
                except ServerError as again:
                    error = again
                    continue
                self._committed(unit)
                return
        if error.number not in self.settings.skip_errors:
            remedy = remedy_of(error) or "Fix the target"
            if spent:
                remedy = SPENT
            where = "" if spent or len(unit) > 1 else await failing_row(self.applier, group, error)
            raise self._failed(group, error, remedy, where) from error
        row = self._singly.row_after(unit)
        await record_skipped(self.applier, unit, row)
        self._flight.applied(row)
        for each in unit:
            self._log_skipped(each, error)
        self._committed(unit)

    async def _look_for_gtids(self, group: Group, *, behind: bool) -> None:
        """Raise ConnectionLostError if a group has failed because the target has skipped one.

        A target skips in silence what comes under a GTID that somebody else has used up since the
        start: then it has not found the rows of this group, or, if that was an earlier one, the
        worker's row is `behind`. A new start passes over what the target has executed. What is
        applied again has another GTID than the one that it has used up itself.
        """
        applier = self.applier
        again = group.number in self.settings.again
        if not again and await applier.records.has_executed(str(group.gtid)):
            passed = f"GTID {group.gtid}"
        elif behind and await applier.records.has_row(self.index + 1):
            passed = f"the GTID of a group before {group.number}"
        else:
            return
        raise ConnectionLostError("target", f"somebody else has executed {passed} there")

    async def _at_its_turn(self, group: Group) -> bool:
        """Wait until all earlier groups have committed; return whether it had to wait.

        What a group only reads or refers to is not one of its partitions: a definition may need
        one in another database that is not yet applied. Only after this wait is a failure its own.
        """
        coordinator = self._coordinator
        if coordinator.scheduler.gaq.number >= group.number - 1:
            return False
        await coordinator.turn(self.index, group.number)
        return coordinator.scheduler.gaq.number >= group.number - 1

    def _log_skipped(self, group: Group, error: ServerError) -> None:
        log.warning(
            "group skipped by skip_errors", worker=self.index + 1, group=group.number,
            position=str(group.end), gtid=str(group.gtid or ""), error=str(error),
        )  # fmt: skip
        self.skipped += 1

    def _committed(self, batch: Sequence[Group]) -> None:
        self._count(batch)
        self._coordinator.committed(self.index, batch)

    def _count(self, batch: Sequence[Group]) -> None:
        self.transactions += 1
        self.groups += len(batch)
        self.last = batch[-1]

    def _running(self, number: int) -> Group:
        running = self._coordinator.scheduler.workers[self.index].running
        return next(group for group in running if group.number == number)

    def _largest_running(self) -> Group:
        running = self._coordinator.scheduler.workers[self.index].running
        if not is_one_transaction(running):
            # Several are of XA transactions, which are applied one after another.
            return running[0]
        return max(running, key=lambda group: max(map(len, group.rows), default=0))

    def _failed(self, group: Group, error: MtsdError, remedy: str, row: str = "") -> ApplyError:
        highest_done = self._coordinator.scheduler.gaq.highest_done
        first = self.settings.first_groups
        return failed(group, self.index + 1, highest_done, error, remedy, first, row)
