"""The branches of one split transaction: begun, prepared, decided, committed (P3 of WL#4648).

Each is an XA transaction on the session of a worker of its own. Once all of them are prepared, the
decision to commit is recorded in slave_in_doubt, and then they commit. A restart that finds the
record without the decision rolls back what is prepared; with it, it commits what is left
(`mtsd.schedule.batches.split_settlement`).
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, NoReturn

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.split_table import SPLIT, SplitRecord, branch_xid
from mtsd.apply.session.obstacle import past_obstacles
from mtsd.apply.session.retry import pause_before
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ApplyError, ConnectionLostError, MtsdError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.position import NOWHERE, Position
from mtsd.model.session import RowState
from mtsd.model.step import Rows
from mtsd.replica.ways.doubtful import Doubtful
from mtsd.replica.ways.split_meetings import Meetings, MeetingWatch
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import WHOLE

_BRANCH_LOCK_WAIT_S: Final = 5
"""How long a branch waits for a lock: it may be another branch's, which keeps it until the end."""
_AHEAD: Final = 2
"""How many pieces may wait for each branch."""
_COMMIT_ATTEMPTS: Final = 10
_REVOCABLE: Final = WHOLE._replace(revocable=True)
"""What is prepared is rolled back unless the decision is recorded."""


class SplitFailedError(MtsdError):
    """A transaction could not be applied in branches; nothing of it remains on the target.

    `has_met`: a branch has waited in vain for a lock of another one.
    """

    def __init__(self, text: str, *, has_met: bool = False) -> None:
        super().__init__(text)
        self.has_met = has_met


def _is_deadlock(error: Exception) -> bool:
    return isinstance(error, ServerError) and error.number == ER.LOCK_DEADLOCK


class _State(enum.Enum):
    NONE = "none"
    OPEN = "open"
    PREPARED = "prepared"


class SplitBranches:
    """Applies group `number` in as many branches as there are `appliers`.

    Nothing else uses their sessions. Methods raise SplitFailedError if it has to be applied in
    another way, and ConnectionLostError, after which a restart finds out what has become of it.
    """

    def __init__(
        self,
        appliers: Sequence[Applier],
        number: int,
        source_gtid: str,
        daemon_uuid: str,
        meetings: Meetings,
        reached: FaultHook,
    ) -> None:
        self._appliers = appliers
        self._meetings = meetings
        self._watch: MeetingWatch | None = None
        self._has_met = False
        self._number = number
        record = InDoubt(
            number=number,
            worker_id=1,
            end=NOWHERE,
            kind=SPLIT,
            evidence="",
            source_gtid=source_gtid,
            databases="",
            statement=SplitRecord(len(appliers), decided=False).text(),
        )
        self._doubt = Doubtful(appliers[0].records, record, reached, _REVOCABLE)
        count = range(len(appliers))
        self._xids = [branch_xid(daemon_uuid, number, branch) for branch in count]
        self._states = [_State.NONE for _ in count]
        self._pieces: list[asyncio.Queue[Rows | None]] = [asyncio.Queue(_AHEAD) for _ in count]
        self._errors: dict[int, Exception] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_decided = False
        """Whether it may be on record that all branches are to be committed."""

    async def begin(self, format_description: bytes) -> None:
        """Record that the transaction is split, and begin its branches."""
        await self._doubt.begin()
        await self._with_all(lambda branch: self._begin(branch, format_description))
        self._tasks = [asyncio.create_task(self._run(at)) for at in range(len(self._appliers))]
        self._watch = MeetingWatch(self._meetings, self._appliers)

    async def apply(self, parts: Sequence[tuple[bytes, ...]], state: RowState | None) -> None:
        """Apply the next row events of each branch, as soon as it gets to them.

        `state` is that of their session on the source.
        """
        for pieces, part in zip(self._pieces, parts, strict=True):
            if part:
                await pieces.put(Rows(part, state))
        if self._errors:
            await self._fail()

    async def commit(self, row: WorkerRow, end: Position, databases: Sequence[str]) -> None:
        """Prepare all branches, decide, and commit them; `row` is what the worker's becomes.

        Raises ApplyError if it is decided, and something is left for a restart.
        """
        await self._finish()
        if self._errors:
            await self._fail()
        await self._with_all(self._prepare)
        # Whatever holds up the commits now, they have to come.
        await self._wait_for_locks_as_before()
        decided = replace(
            self._doubt.record,
            end=end,
            databases=",".join(databases),
            statement=SplitRecord(len(self._appliers), decided=True).text(),
        )
        self._is_decided = True
        try:
            await self._doubt.then(WHOLE, decided)
        except ServerError as error:
            self._is_decided = False
            await self.drop()
            raise SplitFailedError(str(error)) from error
        branches = range(len(self._appliers))
        done = await asyncio.gather(*map(self._commit, branches), return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        first = self._appliers[0].branches
        await self._doubt.done(lambda: first.settle_split(row, self._number))

    async def drop(self) -> None:
        """Roll back all branches, and remove the record. Raises ConnectionLostError.

        Once it is decided that they are to be committed, a restart does that with what is left.
        """
        await self._finish()
        if self._is_decided or any(applier.closed for applier in self._appliers):
            return
        try:
            await self._roll_back()
            await self._wait_for_locks_as_before()
            await self._doubt.dropped()
        except ServerError as error:
            # A restart does it.
            raise ConnectionLostError(
                "target", f"group {self._number}, which was split, cannot be rolled back: {error}"
            ) from error

    async def _roll_back(self) -> None:
        for branch, applier in enumerate(self._appliers):
            state = self._states[branch]
            error = self._errors.get(branch)
            if state is _State.PREPARED:
                await applier.branches.wait_for_locks(None)
                await applier.branches.complete(self._xids[branch], "", commits=False)
            elif state is _State.OPEN and isinstance(error, ServerError):
                await applier.undo(error, 0)
            elif state is _State.OPEN:
                await applier.rollback()
            # Only now: the record must not go while its branch is prepared.
            self._states[branch] = _State.NONE

    async def _begin(self, branch: int, format_description: bytes) -> None:
        applier = self._appliers[branch]
        await applier.branches.wait_for_locks(_BRANCH_LOCK_WAIT_S)
        await applier.begin_branch(format_description, self._xids[branch], "", statements=False)
        self._states[branch] = _State.OPEN

    async def _run(self, branch: int) -> None:
        """Apply what comes for a branch; after an error, only take it."""
        pieces = self._pieces[branch]
        while (rows := await pieces.get()) is not None:
            if self._errors:
                continue
            try:
                await self._appliers[branch].apply_steps((rows,))
            except Exception as error:  # noqa: BLE001 - whoever waits for room has to get it
                self._errors[branch] = error
                if self._watch is not None:
                    self._watch.failed()

    async def _finish(self) -> None:
        """Wait until the branches have applied what they have, or do not go on."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        for pieces in self._pieces:
            await pieces.put(None)
        await asyncio.gather(*tasks)
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.end()
            self._has_met = watch.has_met

    async def _prepare(self, branch: int) -> None:
        applier = self._appliers[branch]
        await applier.branches.mark_split(self._number, branch)
        await applier.end_branch(self._xids[branch], "")
        self._states[branch] = _State.PREPARED

    async def _commit(self, branch: int) -> None:
        branches = self._appliers[branch].branches
        attempt = 0
        while True:
            try:
                await past_obstacles(
                    f"branch {branch} of group {self._number}",
                    lambda: branches.complete(self._xids[branch], "", commits=True),
                )
            except ServerError as error:
                attempt += 1
                if attempt > _COMMIT_ATTEMPTS:
                    raise ApplyError(
                        f"group {self._number} was split, and all its branches are prepared and to"
                        f" be committed, but one cannot be: {error}. The next start does that"
                    ) from error
                await asyncio.sleep(pause_before(attempt))
            else:
                self._states[branch] = _State.NONE
                return

    async def _with_all(self, step: Callable[[int], Awaitable[None]]) -> None:
        """Take a step with all branches; if it fails with one, nothing remains of any."""
        branches = range(len(self._appliers))
        done = await asyncio.gather(*map(step, branches), return_exceptions=True)
        for branch, outcome in enumerate(done):
            if isinstance(outcome, Exception):
                self._errors[branch] = outcome
            elif outcome is not None:
                raise outcome
        if self._errors:
            await self._fail()

    async def _fail(self) -> NoReturn:
        """Roll back all branches after errors; raise what they mean."""
        errors = list(self._errors.values())
        for error in errors:
            if isinstance(error, ConnectionLostError) or not isinstance(error, MtsdError):
                raise error
        await self.drop()
        raise SplitFailedError(
            str(errors[0]), has_met=self._has_met or any(map(_is_deadlock, errors))
        ) from errors[0]

    async def _wait_for_locks_as_before(self) -> None:
        for applier in self._appliers:
            await applier.branches.wait_for_locks(None)
