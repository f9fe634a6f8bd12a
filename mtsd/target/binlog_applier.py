"""The applier that passes row events on undecoded, using the BINLOG statement."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice

from mtsd.binlog.invoker import with_invoker
from mtsd.binlog.statement import classify, disable_on_replica, without_start_transaction
from mtsd.binlog.temporary_tables import drop_if_there, is_rename
from mtsd.model.errors import MtsdError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached, nothing
from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.server import Flavour, ServerVersion
from mtsd.model.step import (
    LoadFile,
    Rows,
    Statement,
    StatementKind,
    Step,
)
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.in_flight import Due, Packet, Transaction
from mtsd.schedule.worker_row import WorkerRow
from mtsd.target.branch_sessions import BranchSessions
from mtsd.target.branches import Branches
from mtsd.target.bundle import (
    BASE64_SHARE,
    ENOUGH,
    Bundle,
    Command,
    RowTooLargeError,
    binlog_statement,
    commands,
    row_statements,
    table_maps,
    together,
)
from mtsd.target.file_loads import FileLoads
from mtsd.target.pace import Pace
from mtsd.target.position_tables import InDoubt, PositionTables
from mtsd.target.retry import patiently
from mtsd.target.session import STATEMENTS_READ, TargetSession, next_gtid
from mtsd.target.session_tables import SessionTables
from mtsd.target.streaming import RowStream
from mtsd.target.table_columns import explain_row_failure
from mtsd.target.table_engines import TableEngines
from mtsd.target.unprotected import apply_unprotected, statement_count
from mtsd.target.worker_info import TABLE_ID, RowChange
from mtsd.wire.binlog_status import has_executed
from mtsd.wire.connection import Awaited

_LARGEST_COMMAND_SHARE = 0.96
_KNOWS_REPLICAS = (8, 2, 0)
"""Versions of MySQL from here on; before that, and in MariaDB, they know slaves."""
_EXCERPT = 200
_DEFINITIONS = frozenset({StatementKind.DDL, StatementKind.EVENT_DDL})


class BinlogApplier:
    """Applies groups on its own session (`mtsd.target.applier.Applier`).

    `batch_bytes`: maximum row bytes of one BINLOG statement. With `preserves`, each group
    commits under its own GTID, which it must have.
    """

    def __init__(
        self,
        session: TargetSession,
        tables: PositionTables,
        batch_bytes: int,
        *,
        preserves: bool = False,
        branch_sessions: BranchSessions | None = None,
        reached: Reached = nothing,
    ) -> None:
        self._session = session
        self._connection = session.connection
        self._own = session
        """The worker's session, which is also in use unless a branch has one of its own."""
        self._branch_sessions = branch_sessions
        self._tables = tables
        self._preserves = preserves
        self._reached = reached
        packet = session.traits.max_allowed_packet
        self._largest_statement = int(packet * BASE64_SHARE)
        self._chunk_bytes = min(batch_bytes, self._largest_statement)
        self._command_limit = int(packet * _LARGEST_COMMAND_SHARE)
        self._format = b""
        self._stream = RowStream(self._chunk_bytes)
        self._engines = TableEngines(session.connection)
        self._branches = Branches(session, tables, reached)
        self._branch = self._branches
        """Of the session that the open branch is on."""
        self._branch_rows = 0
        self._disabled = _disabled(session.traits.server)
        self._loads = FileLoads(session)
        self._temporary = SessionTables(session)
        self._pace = Pace()
        self._began = 0.0
        """When the server can have begun the packet that is due, on the loop's clock."""

    @property
    def preserves(self) -> bool:
        """See `Applier`."""
        return self._preserves

    @property
    def has_gtids(self) -> bool:
        """See `Applier`."""
        return self._session.traits.gtid_mode

    @property
    def is_logged(self) -> bool:
        """See `Applier`."""
        return self._session.is_logged

    @property
    def creates_and_fills(self) -> bool:
        """See `Applier`.

        MySQL keeps CREATE TABLE … START TRANSACTION open for the rows only if it logs them.
        """
        return self.is_logged and self._session.traits.server.flavour is Flavour.MYSQL

    @property
    def connection_id(self) -> int:
        """See `Applier`."""
        return self._connection.thread_id

    @property
    def awaited(self) -> Awaited | None:
        """See `Applier`."""
        return self._connection.awaited

    @property
    def closed(self) -> bool:
        """See `Applier`."""
        return self._connection.closed or self._own.connection.closed

    def close(self) -> None:
        """See `Applier`."""
        self._connection.close()
        self._own.connection.close()
        self._loads.start_over()

    def bundle(self, packet: Packet) -> Bundle | None:
        """See `Applier`.

        One command, if its size allows it: then the server does not wait for mtsd between its
        parts. A single BINLOG statement is autocommitted: it is applied as a whole or not at all.
        """
        bundles = [self._bundle(each) for each in packet.transactions]
        if len(bundles) > 1 and not all(bundle.is_single_statements for bundle in bundles):
            return None
        return together(bundles)

    def _bundle(self, transaction: Transaction) -> Bundle:
        groups = transaction.batch
        change = RowChange(self._tables.workers, transaction.row, transaction.before)
        maps: set[bytes] = set()
        rows = row_statements(groups, self._chunk_bytes, change, maps)
        first = list(islice(rows, 2))
        whole: Iterable[Command]
        if self._preserves:
            before = [next_gtid(str(groups[0].gtid)), b"BEGIN"]
            after = [b"COMMIT", next_gtid("")]
            whole = commands(before, chain(first, rows), after, self._command_limit)
        elif len(first) == 1:
            whole = commands([], first, [], self._command_limit)
        else:
            whole = commands([b"BEGIN"], chain(first, rows), [b"COMMIT"], self._command_limit)
        if sum(group.size for group in groups) <= ENOUGH:
            whole = tuple(whole)
        else:
            maps.update(event for group in groups for event in table_maps(group.rows))
        others = frozenset(event for event in maps if event[19:25] != TABLE_ID)
        return Bundle(groups[0].format_description, whole, others)

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """See `Applier`."""
        return self._engines.are_safe(table_maps)

    async def without_transactions(self, table_maps: Collection[bytes]) -> tuple[str, ...]:
        """See `Applier`."""
        return await self._engines.without_transactions(table_maps)

    async def may_change_without_transactions(
        self, steps: Sequence[Step], definitions: int
    ) -> bool:
        """See `Applier`."""
        statements = [step.query for step in steps if isinstance(step, Statement)]
        return await self._engines.may_change(statements, definitions)

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """See `Applier`."""
        if not follows:
            await self.describe_format(bundle.format_description)
        await self._reached(FaultPoint.BEFORE_BUNDLE)
        statements = 0
        try:
            for command in bundle.commands:
                if statements:
                    await self._connection.receive(statements)
                self._connection.send(command.sql)
                statements = command.statements
                await self._reached(FaultPoint.BUNDLE_SENT)
        except RowTooLargeError:
            # The server finds it while the previous command is in flight.
            with suppress(ServerError):
                await self._connection.receive(statements)
            raise
        return statements // bundle.transactions

    async def answer(self, due: Due) -> None:
        """See `Applier`."""
        shared = due.transactions > 1
        clock = asyncio.get_running_loop().time
        if shared and due.first:
            self._began = clock()
            self._connection.rest(self._pace.rest(due.transactions))
        await self._connection.receive(due.statements, more=not due.last)
        if shared and due.last:
            self._pace.learn(due.transactions, clock() - self._began)
        await self._reached(FaultPoint.AFTER_BUNDLE)

    async def undo(self, error: MtsdError, behind: int) -> None:
        """See `Applier`."""
        for _ in range(behind):
            if self.closed:
                return
            try:
                await self._connection.receive(1)
            except ServerError:
                continue
            raise RuntimeError(f"a bundle was committed after one that failed: {error}")
        await self._undo(error)

    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """See `Applier`."""
        try:
            return await explain_row_failure(self._connection, error, rows)
        except ServerError:
            return error

    async def apply_in_order(self, group: Group, row: WorkerRow) -> None:
        """See `Applier`."""
        self._loads.start_over()
        try:
            await self.describe_format(group.format_description)
            await self._set_gtid(str(group.gtid))
            await self._connection.run(STATEMENTS_READ + b";BEGIN", 2)
            await self.apply_steps(group.steps)
            if group.rolled_back:
                await self._session.rollback()
                await self._set_gtid(str(group.gtid))
                await self._connection.run(b"BEGIN", 1)
            await self.commit(row)
        except MtsdError as error:
            await self._undo(error)
            raise

    async def use_temporary(self, use: TemporaryUse) -> None:
        """See `Applier`."""
        await self._temporary.use(use)

    def used_temporary(self, use: TemporaryUse) -> None:
        """See `Applier`."""
        self._temporary.used(use)

    @property
    def can_repeat(self) -> bool:
        """See `Applier`."""
        return not self._temporary.are_spent

    async def apply_temporary(self, group: Group, row: WorkerRow) -> None:
        """See `Applier`."""
        update = self._tables.workers.update(row)

        async def record() -> None:
            # A ROLLBACK uses the GTID up.
            await self._set_gtid(str(group.gtid))
            await self._connection.run(b"BEGIN", 1)
            await self._session.commit([update])

        try:
            await self.describe_format(group.format_description)
            await self.apply_steps(group.steps)
            await patiently(self._connection, record, update)
            await self._set_gtid("")
        except MtsdError as error:
            await self._undo(error)
            raise

    async def begin(self, format_description: bytes, gtid: Gtid | None) -> None:
        """See `Applier`.

        Whether it contains statements is not known yet.
        """
        self._loads.start_over()
        await self.describe_format(format_description)
        await self._set_gtid(str(gtid))
        self._stream = RowStream(self._chunk_bytes)
        await self._connection.run(STATEMENTS_READ + b";BEGIN", 2)

    @property
    def branches(self) -> Branches:
        """See `Applier`."""
        return self._branches

    async def begin_branch(
        self, format_description: bytes, xid: XaXid, gtid: str, *, statements: bool
    ) -> None:
        """See `Applier`."""
        if self._branch_sessions is not None:
            self._use(await self._branch_sessions.open())
        self._loads.start_over()
        self._session.changed_rows = 0
        self._stream = RowStream(self._chunk_bytes)
        try:
            await self.describe_format(format_description)
            await self._branch.begin(xid, gtid, statements=statements)
        except ServerError:
            await self._leave_branch()
            raise

    async def end_branch(self, xid: XaXid, gtid: str, *, one_phase: bool = False) -> None:
        """See `Applier`."""
        await self._branch.end(xid, gtid, one_phase=one_phase)
        await self._leave_branch()

    @property
    def branch_rows(self) -> int:
        """See `Applier`."""
        return self._branch_rows

    @property
    def has_branch_sessions(self) -> bool:
        """See `Applier`."""
        return self._branch_sessions is not None

    async def commit(self, row: WorkerRow) -> None:
        """See `Applier`."""
        await self._session.commit([self._tables.workers.update(row)])
        await self._set_gtid("")

    async def commit_in_doubt(self, doubt: InDoubt) -> None:
        """See `Applier`."""
        await self._session.commit([self._tables.insert_in_doubt(doubt)])
        self._loads.unprotected = True

    async def rollback(self) -> None:
        """See `Applier`."""
        await self._session.rollback()
        await self._session.set_gtid("")
        await self._leave_branch()

    async def apply_steps(self, steps: Sequence[Step]) -> None:
        """See `Applier`.

        Before the transaction began, the session was given the format description: inside it
        the server refuses anything that includes one (error 1766).
        """
        for step in steps:
            if isinstance(step, Rows):
                await self._reached(FaultPoint.BEFORE_CHUNK)
                rows = self._stream.statements(step.events)
                for command in commands([], rows, [], self._command_limit):
                    await self._connection.run(command.sql, command.statements)
            elif isinstance(step, LoadFile):
                await self._loads.take(step.event)
            elif step.file is not None:
                await self._loads.run(step, step.file)
            else:
                await self._run(step)

    async def has_executed(self, gtid: str) -> bool:
        """See `Applier`."""
        return await has_executed(self._connection, gtid)

    async def log_position(self) -> tuple[str, int]:
        """See `Applier`."""
        return await self._session.log_position()

    async def note(self, doubt: InDoubt, *, anew: bool = False) -> None:
        """See `Applier`."""
        former = [self._tables.delete_in_doubt(doubt.number)] if anew else []
        await self._session.record([*former, self._tables.insert_in_doubt(doubt)])

    async def forget(self, number: int) -> None:
        """See `Applier`."""
        await self._session.record([self._tables.delete_in_doubt(number)])

    async def settle(self, row: WorkerRow, number: int) -> None:
        """See `Applier`."""
        await self._session.record(self._tables.settled(row, number))

    async def run_definition(self, group: Group, gtid: str, thread: int) -> None:
        """See `Applier`.

        Between `CREATE TABLE … START TRANSACTION` and COMMIT the server accepts nothing but BINLOG
        statements, so the session state is reset after that.
        """
        first, *rows = group.steps
        definition = _of_thread(_statement(first), thread)
        # A format description would reset the GTID, so it comes first.
        await self.describe_format(group.format_description)
        try:
            await self._session.set_gtid(gtid)
            if definition.kind is StatementKind.CREATE_SELECT:

                async def fill() -> None:
                    await self.apply_steps(rows)
                    await self._connection.run(b"COMMIT", 1)

                await self._connection.run(b"BEGIN", 1)
                await self._session.run_statement(definition, definition.query.statement, then=fill)
            else:
                await self._run(definition)
            # Also releases the GTID of a statement that wrote nothing.
            await self._connection.run(b"COMMIT", 1)
            await self._reached(FaultPoint.AFTER_STATEMENT)
            await self._session.set_gtid("")
        except ServerError as error:
            await self._session.undo(error)
            await self._session.set_gtid("")
            raise

    async def make_table(self, group: Group) -> None:
        """See `Applier`."""
        created = _statement(group.steps[0])
        table, context = created.query.statement, created.query.context
        if classify(table, context=context) is StatementKind.CREATE_SELECT:
            # MariaDB's statement says nothing of the rows.
            table = without_start_transaction(table, context)
        try:
            await self._session.run_statement(created, table)
            await self._reached(FaultPoint.AFTER_STATEMENT)
        except ServerError as error:
            await self._session.undo(error)
            raise

    async def fill_table(self, group: Group, row: WorkerRow) -> None:
        """See `Applier`."""
        try:
            await self.describe_format(group.format_description)
            await self._connection.run(b"BEGIN", 1)
            await self.apply_steps(group.steps[1:])
            await self._session.commit(self._tables.settled(row, group.number))
        except MtsdError as error:
            await self._undo(error)
            raise

    def statement_count(self, group: Group) -> int:
        """See `Applier`."""
        return statement_count(group, self._largest_statement, self._command_limit)

    async def apply_unprotected(self, group: Group, gtid: str, row: WorkerRow) -> None:
        """See `Applier`."""
        self._loads.start_over(unprotected=True)
        await self.describe_format(group.format_description)
        await apply_unprotected(
            self._session,
            group,
            gtid,
            self._tables.settled(row, group.number),
            self.apply_steps,
            statement_bytes=self._largest_statement,
            command_bytes=self._command_limit,
            reached=self._reached,
        )

    async def describe_format(self, format_description: bytes) -> None:
        """Give the session the source's format description, unless it already has it."""
        if format_description == self._format:
            return
        statements = [binlog_statement(format_description)]
        if self._session.traits.server.flavour is Flavour.MYSQL:
            # The description leaves the session with an anonymous GTID: then error 1782 if the
            # target has GTIDs, and 1837 after the next implicit commit if it does not even have a
            # binlog.
            statements.append(next_gtid(""))
        await self._connection.run(b";".join(statements), len(statements))
        self._format = format_description

    async def _run(self, statement: Statement) -> None:
        """Run a statement in its own session state.

        An event of the event scheduler is created disabled: it runs on the source, and its changes
        are replicated.
        """
        query = statement.query
        text = query.statement
        if (
            statement.kind is StatementKind.DDL
            and self._temporary.are_in_use
            and self._session.traits.server.flavour is Flavour.MYSQL
            and is_rename(query)
        ):
            raise NotSupportedError(
                "RENAME TABLE of a temporary table, which MySQL does not have:"
                f" {query.statement[:_EXCERPT].decode('utf-8', 'replace')}"
            )
        if statement.kind in _DEFINITIONS:
            text = with_invoker(text, query.invoker, query.context)
        if statement.kind is StatementKind.DROP_TEMPORARY:
            text = drop_if_there(text, query.context)
        if statement.kind is StatementKind.EVENT_DDL:
            text = disable_on_replica(text, query.context, self._disabled)
        await self._session.run_statement(statement, text)
        self._temporary.ran(statement)

    async def _set_gtid(self, gtid: str) -> None:
        if self._preserves:
            await self._session.set_gtid(gtid)

    async def _undo(self, error: MtsdError) -> None:
        if self.closed:
            return
        if isinstance(error, ServerError):
            await self._session.undo(error)
        else:
            await self._session.rollback()
        # Also of a group that has one of mtsd's own.
        await self._session.set_gtid("")
        await self._leave_branch()

    def _use(self, session: TargetSession) -> None:
        """Apply what comes now on that session."""
        self._session = session
        self._connection = session.connection
        self._format = b""
        self._loads = FileLoads(session)
        own = session is self._own
        self._branch = self._branches if own else Branches(session, self._tables, self._reached)

    async def _leave_branch(self) -> None:
        """Return to the worker's session once that of the branch has ended, if it has one."""
        self._branch_rows = self._session.changed_rows
        if self._branch_sessions is None or self._session is self._own:
            return
        ended = self._session
        self._use(self._own)
        await self._branch_sessions.end(ended, self._connection)


def _statement(step: Step) -> Statement:
    if not isinstance(step, Statement):
        raise NotSupportedError(f"a step of kind {type(step).__name__} instead of a statement")
    return step


def _disabled(server: ServerVersion) -> bytes:
    """Return the clause of an event that is disabled because it runs on the source."""
    if server.flavour is Flavour.MYSQL and server.number >= _KNOWS_REPLICAS:
        return b"DISABLE ON REPLICA"
    return b"DISABLE ON SLAVE"


def _of_thread(statement: Statement, thread: int) -> Statement:
    """Return a statement that has this thread id in the target's own binlog."""
    if not thread:
        return statement
    return replace(statement, query=replace(statement.query, thread_id=thread))
