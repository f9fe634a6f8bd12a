"""Groups on non-transactional tables: what they have changed cannot be undone.

If one fails or is interrupted after its first effect, its record stays: every start stops and asks,
until a person has said what is there (`mtsd.apply.statements.unprotected`).
"""

from collections.abc import Sequence

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.rows.bundle import Bundle, table_maps
from mtsd.apply.rows.recorded_rows import RecordedPacket
from mtsd.model.errors import ApplyError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.doubtful import Doubtful, HalfAppliedError, carry_out_run, not_settled
from mtsd.replica.ways.held_batches import Failure
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, gtid_for
from mtsd.schedule.batches.in_flight import Due, Packet
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL, Outcome

_AT_ONCE = PARTIAL._replace(settles=True)
"""Both are settled by the packet that ends them."""


async def apply_unprotected(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: FaultHook
) -> None:
    """Apply a group on non-transactional tables; `row` is what its worker's row becomes.

    Raises ServerError with nothing left behind, HalfAppliedError and ConnectionLostError with the
    record left, NeedsPersonError if it cannot be applied as a whole.
    """
    gtid = ""
    if group.rolled_back and applier.preserves:
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, GTID {group.gtid}, was rolled back on"
            " the source after it had changed non-transactional tables, which a server does not"
            " do under a GTID: apply it manually, then skip it, or set [target] gtid to a value"
            ' other than "preserve"',
            group=FailedGroup.of(group),
        )
    if applier.rows.statement_count(group) == 1 and not group.rolled_back:
        gtid = await gtid_for(applier, group, worker, executed=applier.records.has_used)
    elif applier.preserves:
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, GTID {group.gtid}, changes"
            " non-transactional tables and is too large for one statement, which is all that its"
            " GTID can hold: raise max_allowed_packet on the target, or set [target] gtid to"
            ' a value other than "preserve", then start again',
            group=FailedGroup.of(group),
        )
    doubtful = await _doubtful(applier, group, worker, gtid, reached)
    await doubtful.carry_out(lambda: applier.apply_unprotected(group, gtid, row))


async def apply_under_its_gtid(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: FaultHook
) -> None:
    """Apply a transaction of statements under its own GTID, perhaps on non-transactional tables.

    The first statement on such a table would commit the GTID, and a restart would take the group
    for applied: so it is recorded. `row` is what its worker's row becomes. Raises as
    `apply_unprotected` does.
    """
    gtid = await gtid_for(applier, group, worker, executed=applier.records.has_used)
    doubtful = await _doubtful(applier, group, worker, gtid, reached)
    await doubtful.carry_out(lambda: applier.apply_in_order(group, row, in_doubt=True))


async def _doubtful(
    applier: Applier, group: Group, worker: InDoubtWorker, gtid: str, reached: FaultHook
) -> Doubtful:
    log = ("", 0)
    if gtid and applier.session.is_logged:
        log = await applier.records.log_position(is_read=False)
    record = doubt_of(group, worker.id, gtid, log, kind=GroupKind.NON_TRANSACTIONAL)
    return Doubtful(applier.records, record, reached, _AT_ONCE)


class RecordedRows:
    """Packets of rows, some of which cannot be rolled back on the target.

    By itself, such a group costs three durable commits: that it is in doubt, what it does, and that
    it is settled. Here the records of all of them are the first statement of the packet, each group
    brings its own place in the worker's row, and their records go with the next checkpoint. So a
    packet of 16 takes 17 commits, and one round trip. The server stops at the first statement that
    fails. For example, with the rows A and C of tables without transactions, and B of others:

        the records of A and C | A, row | B, row | C, row

    If the row has B, then A is applied, and C is in doubt. If the row has A, then B is not applied,
    and C has not begun, whatever its record says (`mtsd.schedule.doubt`, the ninth point).
    """

    def __init__(
        self,
        applier: Applier,
        progress: WorkerProgress,
        worker: InDoubtWorker,
        again: ExecutedGroups,
        reached: FaultHook,
    ) -> None:
        """`again` are groups that have committed before, and are applied once more."""
        self._applier = applier
        self._progress = progress
        self._coordinator = progress.coordinator
        self._flight = progress.flight
        self._worker = worker
        self._again = again
        self._reached = reached
        self._log = ("", 0)
        """Where the target's own binlog ended shortly before the packet."""

    async def lasting(self, packet: Packet, bundle: Bundle) -> frozenset[int]:
        """Return the groups of a packet that cannot be rolled back; none if it may not go so.

        All its tables have been learned. What is unusual is left to whoever applies it alone. So is
        everything on a target whose binlog does not tell whether the one that is in doubt has
        begun. Raises ServerError.
        """
        session = self._applier.session
        if (
            not bundle.is_single_statements
            or self._applier.preserves
            or not self._coordinator.keeps_order
            or not session.is_logged
            or not session.family.logs_threads_of_rows
        ):
            return frozenset()
        self._log = await self._applier.records.log_position(is_read=True)
        if not self._log[0]:
            return frozenset()
        known = self._applier.tables.known.of(bundle.table_maps)
        if len(known) < len(bundle.table_maps) or any(
            each.computed or each.needs_version or each.error for each in known.values()
        ):
            return frozenset()
        lasting: set[int] = set()
        for transaction in packet.transactions:
            maps = {event for group in transaction.groups for event in table_maps(group.rows)}
            undone = {not known[event].without_transactions for event in maps}
            if False not in undone:
                continue
            (first, *others) = transaction.groups
            if (
                undone == {True, False}
                or others
                or first.kind is not GroupKind.NON_TRANSACTIONAL
                or first.number in self._again
            ):
                return frozenset()
            lasting.add(first.number)
        return frozenset(lasting)

    async def apply(
        self, packet: Packet, bundle: Bundle, lasting: frozenset[int]
    ) -> Failure | None:
        """Apply a packet, of which these groups cannot be rolled back.

        Returns what has failed: nothing of it, and of what follows, is there. Raises
        HalfAppliedError and ConnectionLostError with records left, ApplyError if one cannot be
        removed.
        """
        notes = self._notes(packet, lasting)
        prepared = self._applier.packets.recorded(packet, bundle, lasting, notes)
        run = _Run(self._applier, self._progress, packet, prepared)
        records_left = self._coordinator.records_left

        async def act(at: int) -> Outcome:
            number = notes[at].number
            failure = await run.answers(number)
            if failure is None:
                records_left.add(number)
                return Outcome.DONE
            return Outcome.REMAINS if self._remains(failure, lasting) else Outcome.UNDONE

        async def settle(done: int, forgotten: int) -> None:
            # What remains, if anything does, is between them.
            numbers = [each.number for each in (*notes[:done], *notes[forgotten:])]
            if numbers:
                await self._applier.records.forget(*numbers)
                records_left.difference_update(numbers)

        try:
            await carry_out_run(run, notes, act, settle, self._reached, settles=True)
        except ServerError as error:
            # Of the records: nothing has begun.
            return await run.failed(error)
        failure = await run.answers()
        if failure is not None and self._remains(failure, lasting):
            raise HalfAppliedError(failure.batch[0].number, failure.error) from failure.error
        return failure

    @staticmethod
    def _remains(failure: Failure, lasting: frozenset[int]) -> bool:
        return failure.batch[0].number in lasting and failure.error.leaves_changes

    def _notes(self, packet: Packet, lasting: frozenset[int]) -> list[InDoubt]:
        thread = self._applier.session.thread
        return [
            doubt_of(group, self._worker.id, "", self._log, thread)
            for transaction in packet.transactions
            for group in transaction.groups
            if group.number in lasting
        ]


class _Run:
    """A packet on its way, whose first statement records what cannot be rolled back."""

    def __init__(
        self, applier: Applier, progress: WorkerProgress, packet: Packet, prepared: RecordedPacket
    ) -> None:
        self._applier = applier
        self._connection = applier.session.connection
        self._progress = progress
        self._flight = progress.flight
        self._packet = packet
        self._prepared = prepared
        self._answered = 0
        self._failure: Failure | None = None
        self._doubts: Sequence[InDoubt] = ()
        self.note = applier.records.note
        self.forget = applier.records.forget
        self.has_executed = applier.records.has_executed

    async def note_all(self, doubts: Sequence[InDoubt]) -> None:
        """Send the packet; return when the groups are recorded."""
        self._doubts = doubts
        await self._applier.rows.send(self._prepared.bundle, follows=False)
        self._flight.sent(self._packet, 1)
        await self._connection.receive(1, more=True)

    async def answers(self, number: int = 0) -> Failure | None:
        """Await the answers up to that group, which cannot be rolled back, or all of them.

        Returns the first that has failed, now or earlier.
        """
        flight = self._flight
        while self._failure is None and not flight.is_empty:
            is_last = flight.awaited[0].number == number
            self._failure = await self._answer(unsure=is_last)
            if is_last:
                break
        return self._failure

    async def _answer(self, *, unsure: bool) -> Failure | None:
        """Await those of the next transaction."""
        rows, place = self._prepared.answers[self._answered]
        count = len(self._packet.transactions)
        is_last = self._answered + 1 == count
        due = Due(rows, count, self._answered == 0, is_last and not place)
        try:
            await self._applier.packets.answer(due)
        except ServerError as error:
            return await self.failed(error, unsure=unsure)
        stopped: ServerError | None = None
        if place:
            try:
                await self._connection.receive(place, more=not is_last)
            except ServerError as error:
                stopped = error
                await self._placed_late()
        self._answered += 1
        self._progress.committed(self._flight.committed().batch)
        return await self.failed(stopped) if stopped is not None and not is_last else None

    async def _placed_late(self) -> None:
        """Record by itself the place of a group whose rows are there."""
        await self._applier.session.rollback()
        transaction = self._packet.transactions[self._answered]
        try:
            await self._applier.packets.place(transaction.row)
        except ServerError as error:
            number = transaction.groups[0].number
            doubt = next(each for each in self._doubts if each.number == number)
            raise not_settled(doubt, error) from error

    async def failed(self, error: ServerError, *, unsure: bool = False) -> Failure:
        """Note that the transaction that is due has failed: nothing of those after it is there.

        `unsure` as for `TargetSession.undo`.
        """
        (first, *_) = self._flight.failed() or [self._packet.transactions[0].batch]
        await self._applier.undo(error, unsure=unsure)
        return Failure(first, error)
