"""What remains of a split transaction if completing its branches fails."""

from contextlib import nullcontext
from typing import Final, cast

import pytest

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.model.errors import ApplyError, ConnectionLostError, ServerError
from mtsd.model.fault_points import nothing
from mtsd.model.gtid import GtidSet
from mtsd.model.position import NOWHERE
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways import split_branches
from mtsd.replica.ways.split_branches import SplitBranches, SplitFailedError
from mtsd.replica.ways.split_meetings import Meetings
from mtsd.schedule.done.executed_groups import NO_GROUPS
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.connection import Connection

ATTEMPTS: Final = 11
"""How often a commit is tried."""
INTERRUPTED = ServerError(1317, "70100", "Query execution was interrupted")


class Target:
    """What a target shows: transactions that are prepared, and records of groups in doubt."""

    def __init__(self) -> None:
        self.prepared: set[XaXid] = set()
        self.committed = 0
        self.in_doubt: set[int] = set()
        self.refuses = 0
        """How many completions are still to fail."""


class BranchesOf:
    """The branches of one session."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def wait_for_locks(self, seconds: int | None) -> None:
        """Do nothing."""

    async def mark_split(self, number: int, branch: int) -> None:
        """Do nothing."""

    async def complete(self, xid: XaXid, gtid: str, *, commits: bool) -> None:
        """Commit, roll back, or fail."""
        del gtid
        if self._target.refuses:
            self._target.refuses -= 1
            raise INTERRUPTED
        self._target.prepared.remove(xid)
        self._target.committed += commits


class Session:
    """An applier on a session that stays open."""

    closed = False
    awaited = None
    connection_id = 1

    def __init__(self, target: Target, *, prepares: bool) -> None:
        self._target = target
        self._prepares = prepares
        self.branches = BranchesOf(target)
        self.records = self

    async def note(self, doubt: InDoubt, *, anew: bool = False) -> None:
        """Write a record."""
        del anew
        self._target.in_doubt.add(doubt.number)

    async def forget(self, number: int) -> None:
        """Remove it."""
        self._target.in_doubt.remove(number)

    async def begin_branch(self, *_: object, **__: object) -> None:
        """Do nothing."""

    async def end_branch(self, xid: XaXid, gtid: str) -> None:
        """Prepare, or fail."""
        del gtid
        if not self._prepares:
            raise INTERRUPTED
        self._target.prepared.add(xid)

    async def undo(self, error: ServerError, behind: int) -> None:
        """Do nothing."""


async def unreachable() -> Connection:
    """Refuse to look: nothing here takes long enough to be looked at."""
    raise ConnectionLostError("target", "nobody is there")


MEETINGS = Meetings(set(), unreachable)
ROW = WorkerRow(1, None, NOWHERE, NO_GROUPS, GtidSet())


async def begun(target: Target, *prepares: bool) -> SplitBranches:
    sessions = [Session(target, prepares=each) for each in prepares]
    split = SplitBranches(cast("list[Applier]", sessions), 7, "", "uuid", MEETINGS, nothing)
    await split.begin(b"")
    return split


@pytest.mark.parametrize("refuses", [0, 1, 2])
async def test_no_branch_stays_prepared_without_its_record(refuses: int) -> None:
    """What a failure has not rolled back, the dispatcher drops once more."""
    target = Target()
    target.refuses = refuses
    split = await begun(target, True, False)
    with pytest.raises(ConnectionLostError if refuses else SplitFailedError):
        await split.commit(ROW, NOWHERE, ())
    with pytest.raises(ConnectionLostError) if refuses > 1 else nullcontext():
        await split.drop()
    assert len(target.prepared) == len(target.in_doubt) == (refuses > 1)


async def test_what_is_decided_is_not_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_branches, "pause_before", lambda _: 0)
    target = Target()
    split = await begun(target, True, True)
    target.refuses = 2 * ATTEMPTS - 1
    with pytest.raises(ApplyError, match="The next start does that"):
        await split.commit(ROW, NOWHERE, ())
    assert (target.committed, len(target.prepared)) == (1, 1)
    await split.drop()
    assert (target.committed, len(target.prepared)) == (1, 1)
    assert target.in_doubt == {7}
