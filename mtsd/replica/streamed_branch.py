"""The XA transaction of a streamed group, prepared at the group's end, or committed in one phase.

Only the end tells which of the two, so in either case it is a branch, with a record that the group
is in doubt. If the end does not come, the branch is rolled back, and leaves no trace.
"""

from mtsd.model.errors import ApplyError, ServerError
from mtsd.model.failed_group import FailedGroup
from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.position import Position
from mtsd.model.step import Rows, Step
from mtsd.replica.in_doubt import InDoubtWorker, doubt_of, gtid_for
from mtsd.replica.xa_groups import (
    explained,
    is_prepared,
    not_settled,
    required_xid,
    settle_prepared,
    without_transactions,
)
from mtsd.schedule.worker_row import WorkerRow
from mtsd.target.applier import Applier
from mtsd.target.xa import XID_EXISTS


class StreamedBranch:
    """Begins with the group's first steps: they decide how it has to be isolated."""

    def __init__(self, applier: Applier, opened: GroupOpened, worker: InDoubtWorker) -> None:
        self._applier = applier
        self._worker = worker
        self._group = _known_of(opened)
        self._gtid = ""
        self._begun = False

    async def check(self, steps: tuple[Step, ...]) -> None:
        """Get ready for the next steps; the branch begins with the first ones.

        Raises ServerError, and ApplyError if it cannot be applied, with nothing applied.
        """
        unsafe = await without_transactions(self._applier, steps)
        if unsafe:
            raise ApplyError(
                f"it changes {unsafe}, which is not transactional on the target, in an XA"
                " transaction that is too large to be held in memory. Raise"
                " replica.pending_jobs_size_max above its size"
            )
        if not self._begun:
            await self._begin(statements=any(not isinstance(step, Rows) for step in steps))

    async def end(self, group: Group, row: WorkerRow) -> None:
        """Prepare the branch, or commit it, and record that. Raises ServerError."""
        if not self._begun:
            await self._begin(statements=False)
        xid = required_xid(self._applier, self._group)
        prepares = group.kind is GroupKind.XA_PREPARE
        await self._applier.branches.end(xid, self._gtid, one_phase=not prepares)
        if prepares:
            await settle_prepared(self._applier, group, row, xid, rows=True)
            return
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

    async def _begin(self, *, statements: bool) -> None:
        applier, group = self._applier, self._group
        xid = required_xid(applier, group)
        self._gtid = await gtid_for(applier, group, self._worker)
        if not self._gtid and await is_prepared(applier, xid):
            raise explained(ServerError(XID_EXISTS, "XAE08", "XAER_DUPID"), xid)
        await applier.note(doubt_of(group, self._worker.id, self._gtid))
        self._begun = True
        try:
            await applier.begin_branch(
                group.format_description, xid, self._gtid, statements=statements
            )
        except ServerError as error:
            raise explained(error, xid) from error


def _known_of(opened: GroupOpened) -> Group:
    """Return what is known about a group before its end."""
    return Group(
        number=opened.number,
        kind=GroupKind.XA_PREPARE,
        end=Position("", 0),
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
