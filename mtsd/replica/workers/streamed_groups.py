"""Groups that are too large to be held in memory: applied while they are read.

A streamed group has no place in the queues: it waits until everything before it has committed and
is applied by the first worker, chunk by chunk, in one transaction. Its size is known before it is
read; what it changes is known only as it arrives. If it changes a non-transactional table of the
target, what is open is committed together with a record that the group is in doubt: from there on
it is applied piece by piece, can no longer be undone, and is finished even if a stop is requested.
XA transactions have a module of their own (`xa_branch`), and so has CREATE TABLE … SELECT
(`created_table`).
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final, NoReturn

import structlog

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.rows.bundle import RowTooLargeError, table_maps
from mtsd.apply.session.obstacle import obstacle_of, obstacles_here
from mtsd.apply.session.retry import worth_a_retry
from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.fault_points import Reached, nothing
from mtsd.model.group import Group, GroupChunk, GroupKind, GroupOpened
from mtsd.model.gtid import GtidSet
from mtsd.model.position import NOWHERE
from mtsd.model.pulse import Wait
from mtsd.model.step import Statement, StatementKind, Step, row_events
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.report import tables_of, wrong_position
from mtsd.replica.ways import created_table, xa_branch
from mtsd.replica.ways.choose import Way, choose_streamed
from mtsd.replica.ways.created_table import CreatedTable
from mtsd.replica.ways.doubtful import Doubtful, keep_record
from mtsd.replica.ways.in_doubt import InDoubtWorker, beginning_of
from mtsd.replica.ways.streamed_failures import (
    StreamedGroupError,
    failed_stream,
    stopped,
    stopped_half,
    streamed,
)
from mtsd.replica.ways.xa_branch import Branch
from mtsd.replica.ways.xa_groups import without_transactions
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL
from mtsd.schedule.wait_cause import WaitCause

log = structlog.get_logger(__name__)

_APPLIED = frozenset({
    GroupKind.ROWS, GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL, GroupKind.XA_PREPARE,
})  # fmt: skip


_UNDONE: Final = (
    "it was rolled {what}. Such groups are rolled back here, too, if replica.pending_jobs_size_max"
    " is larger than they are"
)


class StreamedGroups:
    """Applies the streamed groups of a stream, one after another, with the first worker.

    `preserved`: if each group keeps its GTID, those that the target has executed.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        worker: Worker,
        preserved: GtidSet | None = None,
        *,
        reached: Reached = nothing,
    ) -> None:
        self._coordinator = coordinator
        self._reached = reached
        self._worker = worker
        self._applier = worker.applier
        self._preserved = preserved
        self._opened: GroupOpened | None = None
        self._passing = False
        """The group was committed by a previous run: its chunks are skipped."""
        self._is_in_pieces = False
        """Whether the group is applied piece by piece: a part of it has committed."""
        self._pieces: Doubtful | None = None
        """The doubt about it then, unless it creates a table: that has it."""
        self._skips: ServerError | None = None
        """The error of skip_errors because of which the rest of the group is passed over."""
        self._branch: Branch | None = None
        """The branch that an XA transaction is applied in."""
        self._table: CreatedTable | None = None
        """The table that the group creates and fills."""

    @property
    def at_work(self) -> Collection[int]:
        """The indexes of the workers that apply a large group now: it is in no queue."""
        return () if self._opened is None or self._passing else (self._worker.index,)

    def passes(self, opened: GroupOpened) -> bool:
        """Return whether a group is skipped: it has already been applied, or was skipped."""
        return self._coordinator.scheduler.executed_before(opened.number) or (
            self._preserved is not None
            and opened.gtid is not None
            and opened.gtid in self._preserved
        )

    async def split(self, group: Group) -> bool:
        """Apply a large group that is in memory in branches; return whether that was done."""
        del group
        return False

    async def open(self, opened: GroupOpened) -> None:
        """Begin a group that can be applied. Raises what an applier does, and NeedsPersonError."""
        self._passing = self.passes(opened)
        if self._coordinator.scheduler.must_apply_again(opened.number):
            raise NeedsPersonError(
                f"group {opened.number}, beginning at {opened.begin}, has to be applied once more,"
                " in order, because the last run ended without order. It is larger than"
                " replica.pending_jobs_size_max, which has been lowered since: set that to what it"
                " was, or more, for this start"
            )
        await self._coordinator.drained(WaitCause.STREAMED)
        if not self._passing:
            await self._coordinator.released(self._worker.index)
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._coordinator.passed_in_order(opened.number)
        if self._passing:
            self._opened = opened
            return
        if not self._coordinator.reads_on:
            # After a failure, the worker may still be using its session.
            return
        self._opened = opened
        log.info("streaming a large group", group=opened.number, bytes=opened.length)
        worker = InDoubtWorker(self._worker.index + 1, self._worker.settings.daemon_uuid)
        way = choose_streamed(opened)
        if way is Way.TABLE:
            shows_itself = opened.number in self._worker.settings.show_themselves
            self._table = CreatedTable(
                self._applier,
                beginning_of(opened, GroupKind.CREATE_SELECT),
                worker,
                self._reached,
                repeats=shows_itself,
            )
            return
        if way is Way.BRANCH:
            known = beginning_of(opened, GroupKind.XA_PREPARE)
            self._branch = Branch(self._applier, known, worker, self._reached)
            return
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._applier.begin(
                opened.format_description,
                opened.gtid,
                timestamp_defaults=opened.timestamp_defaults,
            )

    async def chunk(self, chunk: GroupChunk) -> None:
        """Apply the next part of the group.

        Raises StreamedGroupError if the group has to be read again, ApplyError.
        """
        opened = self._opened
        if opened is None or self._passing or self._skips or not self._coordinator.reads_on:
            return
        steps = chunk.steps
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                if self._table is not None:
                    steps = await self._after_creation(self._table, steps)
                if self._branch is not None:
                    await self._prepare_for(self._branch, steps)
                elif self._is_in_pieces:
                    if _rolls_back(steps):
                        await self._fail(opened, _UNDONE.format(what="back to a savepoint"))
                elif (self._table is None or self._table.is_apart) and not await self._look_at(
                    opened, steps
                ):
                    return
                if self._uses_other_session(steps):
                    await self._fail(
                        opened,
                        "it uses temporary tables that are in the session of another worker. Raise"
                        " replica.pending_jobs_size_max above its size, or set"
                        " replica.parallel_workers = 0",
                    )
                await self._applier.apply_steps(steps)
        except ServerError as error:
            await self._failed(opened, error, row_events(chunk.steps))
        except RowTooLargeError as error:
            named = ", ".join(tables_of(row_events(chunk.steps))) or "not known"
            await self._fail(opened, f"{error}. Tables of the part that contains it: {named}")
        except NeedsPersonError as error:
            if error.group is not None:
                raise
            await self._fail(opened, str(error))

    async def close(self, group: Group) -> None:
        """Commit the group with its record. Raises as `chunk` does."""
        opened = self._opened
        if opened is None:
            return
        if self._passing:
            self._opened = None
            await self._coordinator.add(group)
            return
        if not self._coordinator.reads_on:
            return
        if group.xid is not None and self._coordinator.scheduler.looks_inside:
            # Triggers of the target, say, may have changed what its databases do not tell.
            group = replace(group, alone=True)
        row = self._worker.progress.row_after((group,))
        if group.rolled_back and self._is_in_pieces:
            self._opened = None
            raise stopped_half(
                opened,
                _UNDONE.format(what="back on the source, which only its end says"),
            )
        if self._skips is None:
            await self._commit(opened, group, row)
        skipped, self._skips = self._skips, None
        if skipped is not None:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._applier.records.settle(row, group.number)
        if self._table is not None:
            group = replace(group, steps=self._table.steps)
            self._coordinator.defined(group)
        self._opened = self._pieces = self._branch = self._table = None
        self._is_in_pieces = False
        if group.uses_temporary is not None and skipped is None:
            self._coordinator.scheduler.sessions.assigned(group.uses_temporary, self._worker.index)
            self._applier.temporary.used(group.uses_temporary)
        if (obstacles := obstacles_here()) is not None:
            obstacles.passed(streamed(group.number))
        self._worker.progress.applied(group, row, skipped=skipped)

    async def _commit(self, opened: GroupOpened, group: Group, row: WorkerRow) -> None:
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                if group.rolled_back:
                    await self._applier.rollback()
                    await self._applier.begin(group.format_description, group.gtid)
                if self._branch is not None:
                    if not self._branch.has_begun:
                        await self._branch.begin(())
                    await self._branch.end(group, row)
                elif self._table is not None:
                    await self._table.end(group, row)
                elif self._pieces is not None:
                    await self._pieces.done(lambda: self._applier.records.settle(row, group.number))
                else:
                    await self._applier.commit(row)
        except ServerError as error:
            await self._failed(opened, error)

    async def drop(self) -> None:
        """Leave no trace of a group that does not end. Raises ApplyError if that is impossible."""
        opened, self._opened = self._opened, None
        self._skips = None
        if opened is None or self._passing or self._applier.closed:
            return
        if self._is_in_pieces:
            raise stopped_half(opened, "its end has not arrived")
        begun = self._branch or self._table
        self._branch = self._table = None
        with self._coordinator.pulse.waiting(Wait.TARGET):
            if begun is not None:
                await begun.drop()
            else:
                await self._applier.rollback()

    def can_apply(self, group: Group) -> bool:
        """Return whether a group of that kind can be streamed, now that its end has arrived."""
        creates = self._table is not None or self._skips is not None
        applied = group.kind in _APPLIED or (group.kind is GroupKind.CREATE_SELECT and creates)
        return self._passing or (not group.unsupported and applied)

    def lacks(self, use: TemporaryUse) -> str:
        """Return why a group cannot be applied in this worker's session; "" if it can.

        Only at its end is it known which session of the source it concerns.
        """
        if self._coordinator.scheduler.sessions.excluded(use.thread, self._worker.index):
            return (
                "a session with the same id as another server's, whose temporary tables are where"
                " large transactions are applied (raise replica.pending_jobs_size_max above its"
                " size)"
            )
        return ""

    def _uses_other_session(self, steps: tuple[Step, ...]) -> bool:
        sessions = self._coordinator.scheduler.sessions
        return any(
            isinstance(step, Statement)
            and bool(step.flags & THREAD_SPECIFIC)
            and sessions.elsewhere(step.query.thread_id, self._worker.index)
            for step in steps
        )

    async def _look_at(self, opened: GroupOpened, steps: tuple[Step, ...]) -> bool:
        """Continue piece by piece if the steps change non-transactional tables of the target.

        Return whether they are still to be applied: a stop may have come before that.
        """
        named = await without_transactions(self._applier, steps, self._coordinator.definitions)
        if not named:
            return True
        if _rolls_back(steps):
            await self._fail(
                opened,
                f"it changes {named}, which is not transactional on the target, and rolls back to a"
                " savepoint. Raise replica.pending_jobs_size_max above its size",
            )
        if self._applier.preserves:
            await self._fail(
                opened,
                f"it changes {named}, which is not transactional on the target, and is"
                " too large for one statement, which is all that its GTID can hold. Raise"
                " replica.pending_jobs_size_max here and max_allowed_packet on the target above"
                ' its size, or set [target] gtid to a value other than "preserve"',
            )
        if not self._coordinator.reads_on:
            return False
        # A stop still accepts everything that has begun, also one that comes during the commit.
        self._coordinator.scheduler.begin_streamed(opened.number)
        record = _doubt(opened, self._worker.index + 1, _databases_of(steps))
        if self._table is not None:
            await self._table.go_by_pieces(record)
        else:
            # A former attempt may have left one.
            pieces = Doubtful(self._applier.records, record, self._reached, PARTIAL, repeats=True)
            await pieces.begin(self._applier.commit_in_doubt)
            self._pieces = pieces
        self._is_in_pieces = True
        return True

    async def _after_creation(
        self, table: CreatedTable, steps: tuple[Step, ...]
    ) -> tuple[Step, ...]:
        """Create the table, if these are the first steps; return what comes after that."""
        if not table.steps:
            await table.create(created_table.definition_of_streamed(steps))
            if table.is_apart:
                await table.fill(partial=False)
            steps = steps[1:]
        return () if table.is_there else steps

    async def _prepare_for(self, branch: Branch, steps: tuple[Step, ...]) -> None:
        """Get ready for the next steps of an XA transaction: the first ones begin its branch."""
        definitions = self._coordinator.definitions
        await xa_branch.check_streamed(self._applier, steps, definitions)
        if not branch.has_begun:
            await branch.begin(steps)

    async def _failed(
        self, opened: GroupOpened, error: ServerError, rows: tuple[bytes, ...] = ()
    ) -> None:
        """Undo what is open; raise what has failed, unless the group is skipped because of it."""
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._applier.undo(error, 0)
            explained = await self._applier.rows.explain(error, rows)
        self._opened = None
        # Its record says so.
        is_half, self._is_in_pieces, self._pieces = self._is_in_pieces, False, None
        branch, self._branch = self._branch, None
        table, self._table = self._table, None
        begun = branch or table
        if begun is not None and not is_half:
            await begun.failed(error)
        elif error.leaves_changes and not is_half:
            await keep_record(self._applier.records, _doubt(opened, self._worker.index + 1, ()))
        if is_half or error.leaves_changes:
            raise stopped_half(opened, str(explained), error.number) from error
        group = failed_stream(opened, explained.number)
        if worth_a_retry(explained):
            if obstacle_of(explained) and (obstacles := obstacles_here()) is not None:
                obstacles.met(streamed(opened.number), explained, 0.0)
            raise StreamedGroupError(group, explained) from error
        if branch is None and explained.number in self._worker.settings.skip_errors:
            self._opened = opened
            self._skips = explained
            return
        reason = ". ".join(filter(None, (str(explained), error.warnings)))
        first = wrong_position(explained, group.number, self._worker.settings.first_groups)
        raise stopped(group, reason, f"{first}Fix the target and start again")

    async def _fail(self, opened: GroupOpened, reason: str) -> NoReturn:
        """Undo what is open, and raise the error that needs a person."""
        if self._is_in_pieces:
            self._opened = None
            raise stopped_half(opened, reason)
        await self.drop()
        raise stopped(failed_stream(opened), reason, "Start again then")


def _rolls_back(steps: tuple[Step, ...]) -> bool:
    """Return whether some of what the group has changed before is undone."""
    return any(
        isinstance(step, Statement) and step.kind is StatementKind.ROLLBACK_TO for step in steps
    )


def _databases_of(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Return the databases that steps change, as far as the source says."""
    found: dict[str, None] = {}
    for event in table_maps(row_events(steps)):
        found[parse_table_map(event).database] = None
    for step in steps:
        if isinstance(step, Statement):
            query = step.query
            found |= dict.fromkeys(query.updated_databases or (query.database,))
    return tuple(filter(None, found))


def _doubt(opened: GroupOpened, worker_id: int, databases: tuple[str, ...]) -> InDoubt:
    return InDoubt(
        number=opened.number,
        worker_id=worker_id,
        end=NOWHERE,
        kind=GroupKind.NON_TRANSACTIONAL.value,
        evidence="",
        source_gtid=str(opened.gtid or ""),
        databases=",".join(databases),
        statement=b"",
    )
