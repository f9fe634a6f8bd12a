"""Applies groups on one session of the target, each transaction with the row of its worker."""

from collections.abc import Sequence
from itertools import chain

from mtsd.apply.appliers.own_definitions import OwnDefinitions
from mtsd.apply.appliers.packets import Packets
from mtsd.apply.appliers.row_writer import RowWriter
from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.branches.branch_sessions import BranchSessions
from mtsd.apply.branches.branches import Branches
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.worker_records import WorkerRecords
from mtsd.apply.rows.bundle import BASE64_SHARE, LARGEST_COMMAND_SHARE
from mtsd.apply.session.retry import with_retries
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.session.xa import unusable
from mtsd.apply.statements.definitions import begin_table, commit_definition, definition_of
from mtsd.apply.statements.file_loads import FileLoads
from mtsd.apply.statements.plain_statements import NotPlainError, begin_plain, plain_run
from mtsd.apply.statements.session_tables import SessionTables
from mtsd.apply.statements.statements import apply_statement
from mtsd.apply.statements.unprotected import apply_unprotected
from mtsd.model.error_numbers import ER
from mtsd.model.errors import MtsdError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.step import LoadFile, Rows, Statement, StatementKind, Step
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.batches.temporary_runs import temporary_run
from mtsd.schedule.done.worker_row import WorkerRow


class Applier:
    """The transactions of a worker on its session, and what they consist of.

    Packets of rows are sent by `rows` and answered by `packets`; all other transactions are methods
    here. `position` are the position tables. With `preserves`, each group commits under its own
    GTID, which it must have. An XA transaction has a session of `branch_sessions`, if there are
    any: that is the `session` in use until it ends.

    Unless stated otherwise, a method raises ServerError after a ROLLBACK if the server returns an
    error; its `leaves_changes` says whether some changes could not be rolled back. It raises
    ConnectionLostError if it is unknown what has become of the transaction.
    """

    def __init__(
        self,
        session: TargetSession,
        position: PositionTables,
        tables: TableQuestions,
        rows: RowWriter,
        *,
        preserves: bool = False,
        branch_sessions: BranchSessions | None = None,
        reached: FaultHook = nothing,
    ) -> None:
        self.session = session
        """The one in use."""
        self._own = session
        """The worker's, which is also in use unless a branch has one of its own."""
        self._branch_sessions = branch_sessions
        self._position = position
        self._reached = reached
        self.preserves = preserves
        self.rows = rows
        self.tables = tables
        self.packets = Packets(session, position, reached)
        self.records = WorkerRecords(session, position)
        self.branches = Branches(session, position, reached)
        """Completes XA transactions on the worker's session, and records them."""
        self._branch = self.branches
        """Of the session that the open branch is on."""
        self.branch_rows = 0
        """How many rows the statements of the last branch have changed."""
        self.temporary = SessionTables(session)
        """The temporary tables of the source's sessions."""
        self.definitions = OwnDefinitions(session, rows, self.temporary, reached)
        packet = session.traits.max_allowed_packet
        self._largest_statement = int(packet * BASE64_SHARE)
        self._command_limit = int(packet * LARGEST_COMMAND_SHARE)
        self._loads = FileLoads(session, self.temporary)
        self._is_piece_by_piece = False
        """Whether each statement of the group commits by itself."""

    @property
    def has_branch_sessions(self) -> bool:
        """Whether a branch has a session of its own, without the worker's temporary tables."""
        return self._branch_sessions is not None

    @property
    def closed(self) -> bool:
        """Whether this side of the session is closed."""
        return self.session.connection.closed or self._own.connection.closed

    def close(self) -> None:
        """Close the session immediately; whoever waits for it is woken."""
        self.session.connection.close()
        self._own.connection.close()
        self._loads.start_over()

    # Whole groups

    async def apply_in_order(self, group: Group, row: WorkerRow, *, in_doubt: bool = False) -> None:
        """Apply a transaction's steps in their order, and commit it, or roll it back like it.

        With `in_doubt`, its commit removes its record.
        """
        self._start_over()
        try:
            await self.rows.begin(group.format_description)
            await self.session.set_up_for(group.steps)
            await self._set_gtid(str(group.gtid))
            await self.session.begin_statements()
            await self.apply_steps(group.steps)
            if group.rolled_back:
                await self.session.rollback()
                await self._set_gtid(str(group.gtid))
                await self.session.connection.run(b"BEGIN", 1)
            tables = self._position
            record = tables.settled(row, group.number) if in_doubt else tables.advanced(row)
            await self.session.commit(record)
            await self._set_gtid("")
        except MtsdError as error:
            await self.undo(error)
            raise

    async def apply_plain(self, groups: Sequence[Group], row: WorkerRow, definitions: int) -> bool:
        """Apply transactions of statements as one, each one that `is_of_statements`.

        Returns whether that was done: if not, nothing of them remains, and they have to be applied
        one by one. On an error nothing remains either, unless it `leaves_changes`. `definitions` is
        as for `TableQuestions.may_change_without_transactions`.
        """
        self._start_over()
        steps = tuple(chain.from_iterable(group.steps for group in groups))
        temporary = temporary_run(groups, self.temporary.creates_alike(definitions))
        uses = [group.uses_temporary for group in groups if group.uses_temporary is not None]
        try:
            if await self.tables.may_run_routines(steps, definitions):
                return False
            run = await plain_run(self.session, groups, temporary)
        except NotPlainError:
            return False
        gtid = str(groups[0].gtid) if self.preserves else ""
        await self.temporary.use_run(uses)
        try:
            await begin_plain(self.session, run, gtid, self._command_limit, self._reached)
            then = self.temporary.dropping(temporary.drops)
            if then and self.preserves:
                then = [next_gtid(""), *then]
            await self.session.commit_left(self._position.advanced(row), then)
            await self._set_gtid("")
        except NotPlainError as error:
            text = f"{error}; they were rolled back, but a table without transactions has changed"
            undone = ServerError(ER.WARNING_NOT_COMPLETE_ROLLBACK, "HY000", text)
            await self._undo_run(undone, uses)
            if undone.leaves_changes:
                raise undone from error
            return False
        except MtsdError as error:
            await self._undo_run(error, uses)
            raise
        self.temporary.used_run(groups, definitions)
        return True

    async def _undo_run(self, error: MtsdError, uses: Sequence[TemporaryUse]) -> None:
        await self.undo(error)
        if not self.closed:
            await self.temporary.undo_run(uses)

    async def apply_temporary(self, group: Group, row: WorkerRow) -> None:
        """Apply a group that changes nothing but temporary tables, and record it.

        If the session ends in between, the tables are gone, and the group can be applied again.
        """
        update = self._position.advanced(row)

        async def record() -> None:
            # A ROLLBACK uses the GTID up.
            await self._set_gtid(str(group.gtid))
            await self.session.connection.run(b"BEGIN", 1)
            await self.session.commit(update)

        try:
            await self.rows.begin(group.format_description)
            await self.apply_steps(group.steps)
            await with_retries(self.session.connection, record, update[0])
            await self._set_gtid("")
        except MtsdError as error:
            await self.undo(error)
            raise

    async def apply_unprotected(self, group: Group, gtid: str, row: WorkerRow) -> None:
        """Apply a group on non-transactional tables, then settle it.

        Raises NotSettledError if it is applied but the record of that could not be written.
        """
        self._start_over(unprotected=True)
        try:
            await self.rows.begin(group.format_description)
            await apply_unprotected(
                self.session,
                group,
                gtid,
                self._position.settled(row, group.number),
                self.apply_steps,
                statement_bytes=self._largest_statement,
                command_bytes=self._command_limit,
                step_by_step=await self.rows.goes_step_by_step(group),
                reached=self._reached,
            )
        except ServerError:
            await self.rows.restore()
            raise

    # Transactions whose steps arrive chunk by chunk

    async def begin(
        self,
        format_description: bytes,
        gtid: Gtid | None,
        *,
        timestamp_defaults: bool | None = None,
    ) -> None:
        """Begin a transaction whose steps arrive chunk by chunk; perhaps some are statements.

        `timestamp_defaults` is the explicit_defaults_for_timestamp of its statements, if known.
        """
        self._start_over()
        await self.rows.begin(format_description)
        await self.session.set_timestamp_defaults(timestamp_defaults)
        await self._set_gtid(str(gtid))
        await self.session.begin_statements()

    async def commit(self, row: WorkerRow) -> None:
        """Commit the open transaction."""
        await self.session.commit(self._position.advanced(row))
        await self._set_gtid("")

    async def commit_part(self) -> None:
        """Commit the open transaction, without any record of it."""
        await self.session.commit([])

    async def commit_in_doubt(self, doubt: InDoubt) -> None:
        """Commit the open part of a streamed group, with the record that it is only a part."""
        await self.session.commit(self._position.doubts.replace(doubt))
        self._loads.unprotected = self._is_piece_by_piece = True

    async def rollback(self) -> None:
        """Roll back the open transaction, or the open branch."""
        await self.session.rollback()
        await self.rows.restore()
        await self.session.set_gtid("")
        await self._leave_branch()

    async def apply_steps(self, steps: Sequence[Step]) -> None:
        """Apply steps inside the open transaction; after an error, `undo` is required.

        Before the transaction began, the session was given the format description: inside it
        the server refuses anything that includes one (error 1766).
        """
        for step in steps:
            if isinstance(step, Rows):
                await self._reached(FaultPoint.BEFORE_CHUNK)
                await self.rows.write(step)
            elif isinstance(step, LoadFile):
                await self._loads.take(step.event)
            elif step.file is not None:
                await self._loads.run(step, step.file)
            elif self._is_piece_by_piece and step.kind is StatementKind.DML:
                await self._apply_piece(step)
            else:
                await apply_statement(self.session, step, self.temporary)

    async def _apply_piece(self, statement: Statement) -> None:
        """Apply a statement that commits by itself; after an error, undo is required."""
        if not self.session.traits.loses_cascade_errors:
            await apply_statement(self.session, statement, self.temporary)
            return
        await self.session.begin_statements()
        await apply_statement(self.session, statement, self.temporary)
        await self.session.unguard()
        await self.session.connection.run(b"COMMIT", 1)

    async def commit_settled(self, row: WorkerRow, number: int) -> None:
        """Commit the open transaction, and settle its group in it."""
        await self.session.commit(self._position.settled(row, number))
        await self._set_gtid("")

    async def begin_table(self, group: Group, gtid: str, thread: int) -> None:
        """Create the table of a CREATE TABLE … SELECT whose rows arrive chunk by chunk.

        If this fails, `undo` is required.
        """
        self._start_over()
        await self.rows.begin(group.format_description, creates=True)
        await begin_table(self.session, definition_of(group, thread), gtid)

    async def commit_table(self) -> None:
        """Commit it together with the rows that have been applied since."""
        await commit_definition(self.session, self._reached)

    async def undo(self, error: MtsdError, behind: int = 0, *, unsure: bool = False) -> None:
        """Leave nothing open after an error; `behind` packets were in flight after it.

        `unsure` as for `TargetSession.undo`.
        """
        for _ in range(behind):
            if self.closed:
                return
            try:
                await self.session.connection.receive(1)
            except ServerError:
                continue
            raise RuntimeError(f"a bundle was committed after one that failed: {error}")
        if self.closed:
            return
        if isinstance(error, ServerError):
            await self.session.undo(error, unsure=unsure)
        else:
            await self.session.rollback()
        await self.rows.restore()
        # Also of a group that has one of mtsd's own.
        await self.session.set_gtid("")
        await self._leave_branch()

    # XA transactions

    async def begin_branch(
        self,
        format_description: bytes,
        xid: XaXid,
        gtid: str,
        *,
        statements: bool,
        steps: Sequence[Step] = (),
        briefly: bool = False,
    ) -> None:
        """Begin the branch of an XA transaction, for `apply_steps`; see `Branches.begin`."""
        if self._branch_sessions is not None:
            self._use(await self._branch_sessions.open())
        self._start_over()
        self.session.changed_rows = 0
        try:
            await self.rows.begin(format_description)
            await self.session.set_up_for(steps)
            await self._branch.begin(xid, gtid, statements=statements, briefly=briefly)
        except ServerError:
            await self._leave_branch()
            raise
        if self.rows.needs_guard and not statements:
            await self.session.guard()

    async def end_branch(self, xid: XaXid, gtid: str, *, one_phase: bool = False) -> None:
        """Prepare the open branch, or commit it in one phase; see `Branches.end`."""
        await self._branch.end(xid, gtid, one_phase=one_phase)
        try:
            await self._leave_branch()
        except ServerError as error:
            # It is prepared: a restart finds that out, and nobody may take it for a failure.
            raise unusable(self.session.connection, error) from error

    async def _set_gtid(self, gtid: str) -> None:
        if self.preserves:
            await self.session.set_gtid(gtid)

    def _start_over(self, *, unprotected: bool = False) -> None:
        """Forget what belongs to the last group: another one begins.

        `unprotected`: it cannot be rolled back.
        """
        self._loads.start_over(unprotected=unprotected)
        self._is_piece_by_piece = False

    def _use(self, session: TargetSession) -> None:
        """Apply what comes now on that session."""
        self.session = session
        self.rows.use(session)
        self._loads = FileLoads(session, self.temporary)
        own = session is self._own
        self._branch = self.branches if own else Branches(session, self._position, self._reached)

    async def _leave_branch(self) -> None:
        """Return to the worker's session once that of the branch has ended, if it has one."""
        self.branch_rows = self.session.changed_rows
        if self._branch_sessions is None or self.session is self._own:
            return
        ended = self.session
        self._use(self._own)
        await self._branch_sessions.end(ended, self.session.connection)
