"""The branch of an XA transaction: prepared at the group's end, or committed in one phase.

In memory it is prepared: what is committed in one phase is an ordinary transaction there. Of a
streamed one, only its end tells which of the two, so in either case it is a branch. If the end does
not come, the branch is rolled back, and leaves no trace.

Where no GTID shows what became of the group, a branch of a streamed one that a restart finds
prepared is rolled back, and the group read again (`mtsd.replica.recovery.evidence`). So that a
commit in one phase can be told from that, the branch is prepared first, and committed under
another record, after which a restart commits it.
"""

from dataclasses import replace

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.session.obstacle import past_obstacles
from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.model.errors import ApplyError, NeedsPersonError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.step import Rows, Statement, Step
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.doubtful import Doubtful, HalfAppliedError
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, gtid_for
from mtsd.replica.ways.xa_groups import (
    USES_TEMPORARY,
    evidence_of_prepare,
    explained,
    has_changed,
    prepared_row,
    required_xid,
    without_transactions,
)
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL, WHOLE, Outcome


async def apply_prepare(
    applier: Applier,
    group: Group,
    row: WorkerRow,
    worker: InDoubtWorker,
    *,
    definitions: int,
    reached: FaultHook,
) -> None:
    """Prepare a group's transaction; `row` is what its worker's row becomes.

    `definitions` is that of `TableQuestions.may_change_without_transactions`.
    Raises ServerError with nothing left behind, HalfAppliedError and ConnectionLostError with the
    record left, NeedsPersonError if it cannot be applied at all.
    """
    required_xid(applier, group)
    if group.uses_temporary is not None and applier.has_branch_sessions:
        failed = FailedGroup.of(group)
        raise NotSupportedError(
            f"{failed}, cannot be applied: {USES_TEMPORARY}. {failed.way_past}", group=failed
        )
    unsafe = await without_transactions(applier, group.steps, definitions)
    if unsafe and applier.preserves:
        raise ApplyError(
            f"{FailedGroup.of(group)}, prepares an XA transaction that changes {unsafe}, which is"
            " not transactional on the target: its GTID cannot hold both. Set [target] gtid to a"
            ' value other than "preserve", then start again',
            group=FailedGroup.of(group),
        )
    branch = Branch(applier, group, worker, reached)
    try:
        await branch.begin(group.steps, partial=bool(unsafe))
        await applier.apply_steps(group.steps)
        await branch.end(group, row)
    except ServerError as error:
        await applier.undo(error, 0)
        await branch.failed(error)
        explained_error = explained(error, branch.xid)
        if explained_error.leaves_changes:
            raise HalfAppliedError(group.number, explained_error) from error
        if explained_error is error:
            raise
        raise explained_error from error
    except NeedsPersonError:
        await branch.drop()
        raise


class Branch:
    """The branch of one group; `group` is what is known of it at its beginning.

    The life: `begin`; the steps; `end`. If one of them raises ServerError, `failed` is due, after
    an undo; for other errors, `drop`.
    """

    def __init__(
        self, applier: Applier, group: Group, worker: InDoubtWorker, reached: FaultHook
    ) -> None:
        self._applier = applier
        self._group = group
        self._worker = worker
        self._reached = reached
        self._gtid = ""
        self._doubt: Doubtful | None = None

    @property
    def xid(self) -> XaXid:
        """The transaction's. Raises NeedsPersonError if the target cannot prepare it."""
        return required_xid(self._applier, self._group)

    @property
    def has_begun(self) -> bool:
        """Whether there is a record."""
        return self._doubt is not None

    async def begin(self, steps: tuple[Step, ...], *, partial: bool = False) -> None:
        """Begin the branch with the first steps, which decide how it has to be isolated.

        `partial`: what the steps change cannot be rolled back. Raises ServerError, ApplyError.
        """
        applier, group, xid = self._applier, self._group, self.xid
        self._gtid = "" if partial else await gtid_for(applier, group, self._worker)
        evidence = await evidence_of_prepare(applier, xid, self._gtid)
        kind = GroupKind.NON_TRANSACTIONAL if partial else GroupKind.XA_PREPARE
        record = doubt_of(group, self._worker.id, evidence, kind=kind)
        doubt = Doubtful(applier.records, record, self._reached, PARTIAL if partial else WHOLE)
        await doubt.begin()
        self._doubt = doubt
        try:
            await applier.begin_branch(
                group.format_description,
                xid,
                self._gtid,
                statements=any(not isinstance(step, Rows) for step in steps),
                steps=steps,
            )
        except ServerError as error:
            raise explained(error, xid) from error

    async def end(self, group: Group, row: WorkerRow) -> None:
        """Prepare the branch, or commit it, and settle that. Raises ServerError, ApplyError."""
        applier, doubt, xid = self._applier, self._doubt, self.xid
        if doubt is None:
            raise RuntimeError(f"the branch of group {group.number} has not begun")
        prepares = group.kind is GroupKind.XA_PREPARE
        in_one_phase = not prepares and bool(doubt.record.evidence)
        await applier.end_branch(xid, self._gtid, one_phase=in_one_phase)
        if prepares:
            is_streamed = not self._group.end.file
            changes = has_changed(applier, rows=is_streamed or bool(group.rows))
            prepared = prepared_row(group, xid, changes=changes)
            await doubt.done(lambda: applier.branches.settle_prepared(row, prepared))
            return
        if not in_one_phase:
            await self._commit(doubt, xid)
        await doubt.done(lambda: applier.records.settle(row, group.number))

    async def drop(self) -> None:
        """Roll the branch back. Raises ServerError, ConnectionLostError."""
        if self._doubt is not None:
            await self._applier.rollback()
            await self._doubt.dropped()

    async def failed(self, error: ServerError) -> None:
        """Note that it has failed, after an undo; the error says whether something remains."""
        if self._doubt is not None and self._doubt.is_acting:
            outcome = await self._doubt.failed(error)
            error.leaves_changes = error.leaves_changes or outcome is Outcome.REMAINS

    async def _commit(self, doubt: Doubtful, xid: XaXid) -> None:
        """Commit the branch that is prepared, which does not end with the session any more."""
        completes = replace(self._group, kind=GroupKind.XA_COMPLETE)
        try:
            await doubt.then(WHOLE, doubt_of(completes, self._worker.id))
            await past_obstacles(
                f"group {self._group.number}",
                lambda: self._applier.branches.complete(xid, "", commits=True),
            )
        except ServerError as error:
            raise ApplyError(
                f"group {self._group.number}, which is streamed because of its size, is prepared,"
                f" and cannot be committed: {error}. The next start settles it"
            ) from error


async def check_streamed(applier: Applier, steps: tuple[Step, ...], definitions: int) -> None:
    """Raise ApplyError if steps cannot be applied in the branch of a streamed group.

    `definitions` is that of `TableQuestions.may_change_without_transactions`. Raises ServerError.
    """
    unsafe = await without_transactions(applier, steps, definitions)
    if unsafe:
        raise ApplyError(
            f"it changes {unsafe}, which is not transactional on the target, in an XA"
            " transaction that is too large to be held in memory. Raise"
            " replica.pending_jobs_size_max above its size"
        )
    if applier.has_branch_sessions and any(map(_uses_temporary, steps)):
        raise ApplyError(USES_TEMPORARY)


def _uses_temporary(step: Step) -> bool:
    return isinstance(step, Statement) and bool(step.flags & THREAD_SPECIFIC)
