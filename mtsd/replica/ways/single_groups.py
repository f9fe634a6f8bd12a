"""One group applied by itself, in the way that its kind needs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import Bundle
from mtsd.model.errors import MtsdError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.step import Statement, StatementKind, Step
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.choose import GroupFacts, Question, Way, choose, facts_of
from mtsd.replica.ways.definitions import apply_definition
from mtsd.replica.ways.doubtful import keep
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of
from mtsd.replica.ways.non_transactional import (
    RecordedRows,
    apply_under_its_gtid,
    apply_unprotected,
)
from mtsd.replica.ways.settlements import Settlements
from mtsd.replica.ways.xa_branch import apply_prepare
from mtsd.replica.ways.xa_groups import apply_completion, without_transactions
from mtsd.replica.ways.xa_runs import XaRuns
from mtsd.schedule.batches.in_flight import Batch, Packet
from mtsd.schedule.batches.temporary_runs import temporary_run
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow

log = structlog.get_logger(__name__)


class SingleGroups:
    """Applies groups of one worker one by one, while nothing is in flight.

    `show_themselves`: see `mtsd.replica.recovery.recovery.Recovered`. `again` are groups of rows
    that have committed before, and are applied once more.
    """

    def __init__(
        self,
        applier: Applier,
        progress: WorkerProgress,
        doubts: InDoubtWorker,
        show_themselves: frozenset[int],
        again: ExecutedGroups,
        reached: FaultHook,
    ) -> None:
        self._applier = applier
        self._progress = progress
        self._coordinator = progress.coordinator
        self._flight = progress.flight
        self._doubts = doubts
        self._show_themselves = show_themselves
        self._again = again
        self._runs = XaRuns(applier, doubts, reached)
        self.recorded = RecordedRows(applier, progress, doubts, again, reached)
        self.settlements = Settlements(
            applier.records,
            progress.flight,
            lambda: progress.coordinator.scheduler.stored,
            progress.coordinator.records_left,
            reached,
        )
        progress.coordinator.settlers.append(self.settlements.settle_owed)
        self._reached = reached

    async def apply(self, unit: Batch) -> None:
        """Apply one group, or a pair as one transaction, while nothing is in flight.

        Raises ServerError with nothing left behind, HalfAppliedError.
        """
        group = unit[0]
        if len(unit) > 1:
            await self._apply_bundle(unit)
            return
        try:
            await self._apply_as_its_kind(group)
        except NotSupportedError as error:
            if error.group is not None:
                raise
            later = self._coordinator.scheduler.gaq.highest_done > group.number
            refused = FailedGroup.of(group, later_applied=later)
            raise NotSupportedError(
                f"{refused}, cannot be applied: {error}. {refused.way_past}", group=refused
            ) from error

    async def apply_run(self, groups: Sequence[Group]) -> int:
        """Apply groups of XA transactions in a run; return how many of them: see `XaRuns.apply`."""
        row_after = self._progress.row_after
        applied = await self._runs.apply(groups, row_after)
        if applied:
            self._flight.applied(row_after(groups[:applied]))
        return applied

    async def protected(self, groups: Batch) -> Batch:
        """Return those from the first one on that can be rolled back, and are not applied again.

        They consist of statements, and what they do to temporary tables can be done again, too.
        Raises ServerError.
        """
        found = groups
        # Nearly always all can: to ask about each by itself takes many times as long.
        all_can = await self._can_be_rolled_back(*groups)
        for count, group in enumerate(groups):
            if (
                group.number in self._again
                or not (all_can or await self._can_be_rolled_back(group))
                or not await self._temporary_can_be_rolled_back(group)
            ):
                found = groups[:count]
                break
        alike = self._applier.temporary.creates_alike(self._coordinator.definitions)
        return found[: temporary_run(found, alike).groups]

    async def apply_plain(self, groups: Batch) -> bool:
        """Apply `protected` transactions of statements as one; return whether that was possible.

        Raises ServerError with nothing left behind, HalfAppliedError.
        """
        row = self._progress.row_after(groups)
        try:
            applied = await self._applier.apply_plain(groups, row, self._coordinator.definitions)
        except ServerError as error:
            if error.leaves_changes:
                await self.half_applied(groups, error)
            raise
        if applied:
            self._flight.applied(row)
        return applied

    async def _apply_as_its_kind(self, group: Group) -> None:
        known = facts_of(group, again=group.number in self._again)
        temporary = group.uses_temporary
        if temporary is not None and not known.only_rows and not known.again:
            await self._applier.temporary.use(temporary)
        way = await self._choose(group, known)
        if way is Way.ROWS:
            await self._apply_bundle((group,))
            return
        if way is Way.RECORDED:
            await self.settlements.settle(group)
            return
        if temporary is not None and known.only_rows:
            await self._applier.temporary.use(temporary)
        if way is Way.DEFINITION or way is Way.TABLE:
            await self._apply_definition(group)
        else:
            row = self._progress.row_after((group,))
            await self._apply_in(way, group, row)
            self._flight.applied(row)
        if temporary is not None:
            self._applier.temporary.used(temporary)

    async def _choose(self, group: Group, known: GroupFacts) -> Way:
        """Return the way of a group, and ask the target for what decides. Raises ServerError."""
        while True:
            found = choose(known)
            if found is Question.CAN_BE_ROLLED_BACK:
                known = replace(known, can_be_rolled_back=await self._can_be_rolled_back(group))
            elif found is Question.FITS_ITS_GTID:
                more = self._applier.preserves and self._applier.rows.statement_count(group) > 1
                known = replace(known, is_more_than_its_gtid_holds=more)
            elif isinstance(found, Way):
                return found

    async def _apply_in(self, way: Way, group: Group, row: WorkerRow) -> None:
        applier, worker, reached = self._applier, self._doubts, self._reached
        if way is Way.IN_ORDER:
            await self._apply_in_order(group, row)
        elif way is Way.TEMPORARY:
            await applier.apply_temporary(group, row)
        elif way is Way.BRANCH:
            definitions = self._coordinator.definitions
            await apply_prepare(
                applier, group, row, worker, definitions=definitions, reached=reached
            )
        elif way is Way.COMPLETION:
            await apply_completion(applier, group, row, worker, reached=reached)
        elif way is Way.UNDER_ITS_GTID:
            await apply_under_its_gtid(applier, group, row, worker, reached=reached)
        elif way is Way.AT_ONCE:
            await apply_unprotected(applier, group, row, worker, reached=reached)
        else:
            raise NotSupportedError(
                f"a group of kind {group.kind.value} cannot be applied", group=FailedGroup.of(group)
            )

    async def _apply_definition(self, group: Group) -> None:
        await apply_definition(
            self._applier,
            group,
            self.settlements,
            self._doubts,
            repeats=group.number in self._show_themselves,
            reached=self._reached,
        )
        self._coordinator.defined(group)

    async def _apply_in_order(self, group: Group, row: WorkerRow) -> None:
        try:
            await self._applier.apply_in_order(group, row)
        except ServerError as error:
            if error.leaves_changes:
                await self.half_applied((group,), error)
            raise
        _log_undone(group)

    async def _can_be_rolled_back(self, *groups: Group) -> bool:
        """Return whether everything that groups change can be rolled back on the target.

        What the source says of statements does not tell: it also ends a transaction like one on
        non-transactional tables if that has changed no row, or only a temporary table, and of one
        that has changed transactional tables it says nothing about others.
        """
        definitions = self._coordinator.definitions
        steps = tuple(chain.from_iterable(group.steps for group in groups))
        return not await without_transactions(self._applier, steps, definitions)

    async def _temporary_can_be_rolled_back(self, group: Group) -> bool:
        """Return whether what a group changes in temporary tables can be rolled back."""
        use = group.uses_temporary
        if use is None:
            return True
        applier, definitions = self._applier, self._coordinator.definitions
        created = not use.created or not await applier.tables.may_create_without_transactions(
            group.steps, definitions
        )
        return applier.temporary.roll_back(use, created=created)

    async def _apply_bundle(self, batch: Batch) -> None:
        flight = self._flight
        packet, bundle = self.packet([batch])
        try:
            flight.sent(packet, await self._applier.rows.send(bundle, follows=False))
            await self._applier.packets.answer(flight.due)
        except MtsdError as error:
            flight.failed()
            await self._applier.undo(error, 0)
            if isinstance(error, ServerError) and error.leaves_changes:
                await self.half_applied(batch, error)
            raise
        flight.committed()

    async def half_applied(self, batch: Sequence[Group], error: ServerError) -> None:
        """Put groups in doubt after a transaction left a part of them; raises HalfAppliedError."""
        records = [doubt_of(group, self._doubts.id) for group in batch]
        await keep(self._applier.records, records, error)

    def packet(self, batches: Sequence[Batch]) -> tuple[Packet, Bundle]:
        """Return what to send of batches: all of them, or the first if they do not fit.

        The others remain begun, and wait.
        """
        stored = self._coordinator.scheduler.stored
        packet = self._flight.packet(batches, stored)
        bundle = self._applier.rows.bundle(packet)
        if bundle is None:
            self._flight.give_back(batches[1:])
            packet = self._flight.packet(batches[:1], stored)
            bundle = self._applier.rows.bundle(packet)
        if bundle is None:
            raise TypeError("an applier must return a bundle for a single transaction")
        return packet, bundle


def _log_undone(group: Group) -> None:
    """Log it if the source may have kept what a transaction has undone here.

    A source logs what it has undone only if it cannot undo everything of it, such as changes of
    tables without transactions; temporary tables are another reason.
    """
    if group.uses_temporary is None and (group.rolled_back or any(map(_is_undone, group.steps))):
        log.warning(
            "what is undone on the target may have remained on the source, in tables that have"
            " transactions only here: compare them",
            group=group.number,
            gtid=str(group.gtid or ""),
            position=str(group.end),
            databases=list(group.databases),
        )


def _is_undone(step: Step) -> bool:
    if not isinstance(step, Statement):
        return False
    failed = step.kind is StatementKind.DML and step.query.error_code
    return bool(failed) or step.kind is StatementKind.ROLLBACK_TO
