"""Consecutive groups of XA transactions in one worker's queue: recorded together.

By itself, such a group costs three durable commits: that it is in doubt, what it does, and that it
is settled. In a run all groups are put in doubt by one transaction, each is prepared or completed,
and one transaction settles them. What shows after a crash how far the run has come is the evidence
of each group (`mtsd.replica.ways.xa_groups`): none says anything about another. For that, no xid
may occur twice in a run; the second group of an xid waits until the first has been settled, so the
scheduler never puts it into the same batch.

Groups that wait for one of a run wait until all of it is settled. A target may have one of the run
wait for a lock that one of those would release, although the source saw no dependency between them
(a table without a key, for example). Therefore the run waits for locks only briefly; then what it
has done is settled, and the rest is applied one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.rows.bundle import table_maps
from mtsd.model.errors import NeedsPersonError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Rows
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.doubtful import HalfAppliedError, carry_out_run
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, evidence_gtid
from mtsd.replica.ways.xa_groups import has_changed, prepared_row, required_xid
from mtsd.schedule.batches.xa_pairs import commits
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import Outcome

RowAfter = Callable[[Sequence[Group]], WorkerRow]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A group of a run, the GTID that it runs under, "" if automatic, and its record."""

    group: Group
    xid: XaXid
    gtid: str
    doubt: InDoubt


class XaRuns:
    """Applies runs of groups of XA transactions on one worker's applier."""

    def __init__(self, applier: Applier, worker: InDoubtWorker, reached: FaultHook) -> None:
        self._applier = applier
        self._worker = worker
        self._reached = reached

    async def apply(self, groups: Sequence[Group], row_after: RowAfter) -> int:
        """Apply the first groups in a run; return how many of them are applied and settled.

        Nothing is left of the next one, and that is to be applied alone: it has failed, or does not
        fit in a run. `row_after` returns what the worker's row becomes with groups.
        Raises ServerError before anything is done, HalfAppliedError, and ConnectionLostError with
        the records of the run left.
        """
        run = await self._plan(groups)
        if len(run) < 2:
            return 0
        changed: list[bool] = []
        half: ServerError | None = None

        async def act(at: int) -> Outcome:
            nonlocal half
            try:
                changes = await self._apply_one(run[at])
            except (ServerError, NeedsPersonError) as error:
                log.info("applied one by one", group=run[at].group.number, error=str(error))
                if isinstance(error, ServerError) and error.leaves_changes:
                    half = error
                    return Outcome.REMAINS
                return Outcome.UNDONE
            changed.append(changes)
            return Outcome.DONE

        async def settle(done: int, forgotten: int) -> None:
            await self._settle(run[:done], run[forgotten:], changed, row_after)

        records = [each.doubt for each in run]
        done = await carry_out_run(self._applier.records, records, act, settle, self._reached)
        if half is not None:
            raise HalfAppliedError(run[done].group.number, half) from half
        return done

    async def _plan(self, groups: Sequence[Group]) -> list[_Planned]:
        """Return the first groups, as many as can be applied in a run.

        What is unusual about a group, or stops the replica, is left to whoever applies it alone.
        """
        fit: list[tuple[Group, XaXid, str]] = []
        for group in groups:
            if not await self._is_fit(group):
                break
            try:
                xid = required_xid(self._applier, group)
            except NotSupportedError:
                break
            if any(xid == other for _, other, _ in fit):
                break
            fit.append((group, xid, self._gtid(group)))
        if len(fit) < 2:
            return []
        applier = self._applier
        if applier.session.has_gtids:
            executed = await applier.records.have_executed([gtid for _, _, gtid in fit])
            if True in executed:
                # Under a GTID that is used up, the server silently skips a group.
                del fit[executed.index(True) :]
        del fit[await self._of_this_channel(fit) :]
        shown = applier.session.has_gtids and (applier.session.is_logged or applier.preserves)
        if not shown:
            prepared = await applier.branches.prepared()
            for at, (group, xid, _) in enumerate(fit):
                if (xid in prepared) is (group.kind is GroupKind.XA_PREPARE):
                    del fit[at:]
                    break
        return [
            _Planned(group, xid, gtid, doubt_of(group, self._worker.id, gtid if shown else ""))
            for group, xid, gtid in fit
        ]

    async def _of_this_channel(self, fit: Sequence[tuple[Group, XaXid, str]]) -> int:
        """Return how many of the groups come before a completion of what is not on record."""
        completions = [
            (at, xid)
            for at, (group, xid, _) in enumerate(fit)
            if group.kind is GroupKind.XA_COMPLETE
        ]
        if completions:
            records = await self._applier.branches.records_of([xid for _, xid in completions])
            for at, xid in completions:
                record = records.get(xid)
                if record is None or not record.changes:
                    return at
        return len(fit)

    async def _is_fit(self, group: Group) -> bool:
        """Return whether a group is a completion, or prepares rows of transactional tables."""
        applier = self._applier
        if group.alone or group.uses_temporary is not None:
            return False
        if applier.preserves and group.gtid is None:
            return False
        if group.kind is not GroupKind.XA_PREPARE:
            return True
        if not applier.branches.may_wait_briefly:
            return False
        if not all(isinstance(step, Rows) for step in group.steps):
            # Its locks, and how long it waits for others, are those of the source's statements.
            return False
        maps = frozenset(table_maps(group.rows))
        return await applier.tables.are_transactional(maps, group.steps)

    def _gtid(self, group: Group) -> str:
        if not self._applier.session.has_gtids:
            return ""
        if self._applier.preserves:
            return str(group.gtid)
        return evidence_gtid(self._worker.daemon_uuid, group.number)

    async def _apply_one(self, planned: _Planned) -> bool:
        """Prepare or complete what a group does; return whether it may have changed anything.

        Raises ServerError and NeedsPersonError with nothing left open.
        """
        group, xid, gtid = planned.group, planned.xid, planned.gtid
        applier = self._applier
        if group.kind is GroupKind.XA_COMPLETE:
            await applier.branches.complete(xid, gtid, commits=commits(group))
            return True
        try:
            await applier.begin_branch(
                group.format_description,
                xid,
                gtid,
                statements=False,
                steps=group.steps,
                briefly=True,
            )
            await applier.apply_steps(group.steps)
            await applier.end_branch(xid, gtid)
        except ServerError as error:
            await applier.undo(error, 0)
            raise
        except NeedsPersonError:
            await applier.rollback()
            raise
        return has_changed(applier, rows=bool(group.rows))

    async def _settle(
        self,
        done: Sequence[_Planned],
        forgotten: Sequence[_Planned],
        changed: Sequence[bool],
        row_after: RowAfter,
    ) -> None:
        """Record what is done of a run, and that of what is forgotten nothing is there."""
        prepared = [
            prepared_row(each.group, each.xid, changes=changes)
            for each, changes in zip(done, changed, strict=True)
            if each.group.kind is GroupKind.XA_PREPARE
        ]
        completed = [each.xid for each in done if each.group.kind is GroupKind.XA_COMPLETE]
        numbers = [each.group.number for each in (*done, *forgotten)]
        row = row_after([each.group for each in done]) if done else None
        await self._applier.branches.settle_run(row, numbers, prepared, completed)
