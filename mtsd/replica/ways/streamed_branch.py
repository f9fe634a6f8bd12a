"""The XA transaction of a streamed group, prepared at the group's end, or committed in one phase.

Only the end tells which of the two, so in either case it is a branch, with a record that the group
is in doubt. If the end does not come, the branch is rolled back, and leaves no trace.

Where no GTID shows what became of the group, a branch of it that a restart finds prepared is rolled
back, and the group read again (`mtsd.replica.recovery.evidence`). So that a commit in one phase can
be told from that, the branch is prepared first, and committed under another record.
"""

from dataclasses import replace

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.session.obstacle import past_obstacles
from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.model.errors import ApplyError, ServerError
from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import NOWHERE
from mtsd.model.step import Rows, Statement, Step
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, gtid_for
from mtsd.replica.ways.xa_groups import (
    USES_TEMPORARY,
    evidence_of_prepare,
    explained,
    not_settled,
    required_xid,
    settle_prepared,
    without_transactions,
)
from mtsd.schedule.done.worker_row import WorkerRow


class StreamedBranch:
    """Begins with the group's first steps: they decide how it has to be isolated."""

    def __init__(self, applier: Applier, opened: GroupOpened, worker: InDoubtWorker) -> None:
        self._applier = applier
        self._worker = worker
        self._group = _known_of(opened)
        self._gtid = ""
        self._evidence = ""
        self._begun = False
        """Whether there is something to roll back."""

    async def check(self, steps: tuple[Step, ...], definitions: int) -> None:
        """Get ready for the next steps; the branch begins with the first ones.

        `definitions` is that of `Applier.may_change_without_transactions`.
        Raises ServerError, and ApplyError if it cannot be applied, with nothing applied.
        """
        unsafe = await without_transactions(self._applier, steps, definitions)
        if unsafe:
            raise ApplyError(
                f"it changes {unsafe}, which is not transactional on the target, in an XA"
                " transaction that is too large to be held in memory. Raise"
                " replica.pending_jobs_size_max above its size"
            )
        if self._applier.has_branch_sessions and any(map(_uses_temporary, steps)):
            raise ApplyError(USES_TEMPORARY)
        if not self._begun:
            await self._begin(steps)

    async def end(self, group: Group, row: WorkerRow) -> None:
        """Prepare the branch, or commit it, and record that. Raises ServerError."""
        if not self._begun:
            await self._begin(())
        xid = required_xid(self._applier, self._group)
        applier = self._applier
        if group.kind is GroupKind.XA_PREPARE:
            await applier.end_branch(xid, self._gtid)
            self._begun = False
            await settle_prepared(self._applier, group, row, xid, rows=True)
            return
        if self._evidence:
            await applier.end_branch(xid, self._gtid, one_phase=True)
            self._begun = False
        else:
            await applier.end_branch(xid, self._gtid)
            self._begun = False
            await self._commit(xid)
        try:
            await self._applier.settle(row, group.number)
        except ServerError as error:
            raise not_settled(FailedGroup.of(group), error) from error

    async def drop(self) -> None:
        """Roll the branch back. Raises ServerError, ConnectionLostError."""
        if self._begun:
            await self._applier.rollback()
            await self._applier.forget(self._group.number)

    async def failed(self, error: ServerError) -> None:
        """Keep the right record after the branch was rolled back because of an error."""
        if not self._begun:
            return
        if error.leaves_changes:
            kind = GroupKind.NON_TRANSACTIONAL
            await self._applier.note(doubt_of(self._group, self._worker.id, kind=kind), anew=True)
        else:
            await self._applier.forget(self._group.number)

    async def _commit(self, xid: XaXid) -> None:
        """Commit the branch that is prepared, which does not end with the session any more."""
        completes = replace(self._group, kind=GroupKind.XA_COMPLETE)
        try:
            await self._applier.note(doubt_of(completes, self._worker.id), anew=True)
            await past_obstacles(
                f"group {self._group.number}",
                lambda: self._applier.branches.complete(xid, "", commits=True),
            )
        except ServerError as error:
            raise ApplyError(
                f"group {self._group.number}, which is streamed because of its size, is prepared,"
                f" and cannot be committed: {error}. The next start reads it again"
            ) from error

    async def _begin(self, steps: tuple[Step, ...]) -> None:
        applier, group = self._applier, self._group
        xid = required_xid(applier, group)
        self._gtid = await gtid_for(applier, group, self._worker)
        self._evidence = await evidence_of_prepare(applier, xid, self._gtid)
        await applier.note(doubt_of(group, self._worker.id, self._evidence))
        self._begun = True
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


def _uses_temporary(step: Step) -> bool:
    return isinstance(step, Statement) and bool(step.flags & THREAD_SPECIFIC)


def _known_of(opened: GroupOpened) -> Group:
    """Return what is known about a group before its end."""
    return Group(
        number=opened.number,
        kind=GroupKind.XA_PREPARE,
        end=NOWHERE,
        databases=(),
        alone=True,
        steps=(),
        size=0,
        row_flags=None,
        format_description=opened.format_description,
        gtid=opened.gtid,
        last_committed=0,
        sequence_number=0,
        commit_time=opened.commit_time,
        xid=opened.xid,
    )
