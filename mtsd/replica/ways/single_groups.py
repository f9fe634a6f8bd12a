"""One group applied by itself, in the way that its kind needs."""

from collections.abc import Sequence

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import Bundle, table_maps
from mtsd.model.errors import MtsdError, NotSupportedError, ServerError
from mtsd.model.fault_points import Reached
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.step import Rows, Statement, StatementKind, Step
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.ways.definitions import apply_definition
from mtsd.replica.ways.doubtful import keep
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of
from mtsd.replica.ways.non_transactional import apply_under_its_gtid, apply_unprotected
from mtsd.replica.ways.xa_branch import apply_prepare
from mtsd.replica.ways.xa_groups import apply_completion, without_transactions
from mtsd.replica.ways.xa_runs import XaRuns
from mtsd.schedule.batches.in_flight import Batch, InFlight, Packet
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
        coordinator: Coordinator,
        flight: InFlight,
        doubts: InDoubtWorker,
        show_themselves: frozenset[int],
        again: ExecutedGroups,
        reached: Reached,
    ) -> None:
        self._applier = applier
        self._coordinator = coordinator
        self._flight = flight
        self._doubts = doubts
        self._show_themselves = show_themselves
        self._again = again
        self._runs = XaRuns(applier, doubts, reached)
        self._reached = reached

    def row_after(self, unit: Batch) -> WorkerRow:
        """Return what the worker's row becomes with these groups, while nothing is in flight."""
        return self._flight.row.advanced(unit, self._coordinator.scheduler.stored)

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
        flight = self._flight
        stored = self._coordinator.scheduler.stored
        before = flight.row
        applied = await self._runs.apply(groups, lambda done: before.advanced(tuple(done), stored))
        if applied:
            flight.applied(before.advanced(tuple(groups[:applied]), stored))
        return applied

    async def protected(self, groups: Batch) -> Batch:
        """Return those from the first one on that can be rolled back, and are not applied again.

        They consist of statements. Raises ServerError.
        """
        for count, group in enumerate(groups):
            if group.number in self._again or not await self._is_protected(group):
                return groups[:count]
        return groups

    async def apply_plain(self, groups: Batch) -> bool:
        """Apply `protected` transactions of statements as one; return whether that was possible.

        Raises ServerError with nothing left behind, HalfAppliedError.
        """
        row = self.row_after(groups)
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
        kind = group.kind
        if kind in _IN_ROWS and not group.rolled_back and await self._can_be_rolled_back(group):
            await self._apply_bundle((group,))
            return
        row = self.row_after((group,))
        if group.number in self._again:
            # Its changes cannot be rolled back, so they are not made twice.
            await self._applier.settle(row, group.number)
            self._flight.applied(row)
            return
        if group.uses_temporary is not None:
            await self._applier.use_temporary(group.uses_temporary)
        if kind in _XA:
            await self._apply_xa(group, row)
        elif group.uses_temporary is not None and group.uses_temporary.only:
            await self._applier.apply_temporary(group, row)
        elif kind in _DEFINITIONS:
            await apply_definition(
                self._applier,
                group,
                row,
                self._doubts,
                repeats=group.number in self._show_themselves,
                reached=self._reached,
            )
            self._coordinator.defined()
        elif await self._is_protected(group):
            try:
                await self._applier.apply_in_order(group, row)
            except ServerError as error:
                if error.leaves_changes:
                    await self.half_applied((group,), error)
                raise
            _tell_undone(group)
        elif kind is GroupKind.STATEMENTS and self._is_more_than_its_gtid_holds(group):
            await apply_under_its_gtid(
                self._applier, group, row, self._doubts, reached=self._reached
            )
        elif kind in _IN_ROWS or kind is GroupKind.STATEMENTS:
            await apply_unprotected(self._applier, group, row, self._doubts, reached=self._reached)
        else:
            raise NotSupportedError(
                f"a group of kind {kind.value} cannot be applied", group=FailedGroup.of(group)
            )
        self._flight.applied(row)
        if group.uses_temporary is not None:
            self._applier.used_temporary(group.uses_temporary)

    async def _apply_xa(self, group: Group, row: WorkerRow) -> None:
        if group.kind is GroupKind.XA_COMPLETE:
            await apply_completion(self._applier, group, row, self._doubts, reached=self._reached)
            return
        await apply_prepare(
            self._applier,
            group,
            row,
            self._doubts,
            definitions=self._coordinator.definitions,
            reached=self._reached,
        )

    def _is_more_than_its_gtid_holds(self, group: Group) -> bool:
        """Return whether a group keeps its GTID, which holds one statement without transactions."""
        return self._applier.preserves and self._applier.statement_count(group) > 1

    async def _is_protected(self, group: Group) -> bool:
        """Return whether a transaction of statements can be rolled back on the target.

        What the source says does not tell: it also ends a transaction like one on non-transactional
        tables if that has changed no row, or only a temporary table, and of one that has changed
        transactional tables it says nothing about others.
        """
        if all(isinstance(step, Rows) for step in group.steps):
            # It was rolled back, and so it is here.
            return group.rolled_back and await self._can_be_rolled_back(group)
        definitions = self._coordinator.definitions
        return not await without_transactions(self._applier, group.steps, definitions)

    async def _can_be_rolled_back(self, group: Group) -> bool:
        """Return whether everything that a group changes can be rolled back on the target.

        Which tables a statement changes is unknown: the source's information is trusted.
        """
        if not all(isinstance(step, Rows) for step in group.steps):
            return group.kind is not GroupKind.NON_TRANSACTIONAL
        maps = frozenset(table_maps(group.rows))
        return self._applier.are_safe(maps) or not await self._applier.without_transactions(maps)

    async def _apply_bundle(self, batch: Batch) -> None:
        flight = self._flight
        packet, bundle = self.packet([batch])
        try:
            flight.sent(packet, await self._applier.send(bundle, follows=False))
            await self._applier.answer(flight.due)
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
        await keep(self._applier, records, error)

    def packet(self, batches: Sequence[Batch]) -> tuple[Packet, Bundle]:
        """Return what to send of batches: all of them, or the first if they do not fit.

        The others remain begun, and wait.
        """
        stored = self._coordinator.scheduler.stored
        packet = self._flight.packet(batches, stored)
        bundle = self._applier.bundle(packet)
        if bundle is None:
            self._flight.give_back(batches[1:])
            packet = self._flight.packet(batches[:1], stored)
            bundle = self._applier.bundle(packet)
        if bundle is None:
            raise TypeError("an applier must return a bundle for a single transaction")
        return packet, bundle


def _tell_undone(group: Group) -> None:
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


_DEFINITIONS = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})
_XA = frozenset({GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE})
_IN_ROWS = frozenset({GroupKind.ROWS, GroupKind.NON_TRANSACTIONAL})
