"""What the appliers have in common: everything but how rows become statements."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from mtsd.apply.branches.branch_sessions import BranchSessions
from mtsd.apply.branches.branches import Branches
from mtsd.apply.position.position_tables import InDoubt, PositionTables
from mtsd.apply.rows.bundle import BASE64_SHARE, Bundle, table_maps
from mtsd.apply.rows.row_states import RowStates
from mtsd.apply.session.lock_waits import sessions_waiting
from mtsd.apply.session.pace import Pace
from mtsd.apply.session.retry import insist, with_retries
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.xa import unusable
from mtsd.apply.statements.definitions import (
    apply_definition,
    begin_table,
    commit_definition,
    definition_of,
    make_table,
)
from mtsd.apply.statements.file_loads import FileLoads
from mtsd.apply.statements.plain_statements import NotPlainError, begin_plain, plain_run
from mtsd.apply.statements.session_tables import SessionTables
from mtsd.apply.statements.statements import apply_statement
from mtsd.apply.statements.unprotected import apply_unprotected
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.apply.tables.table_layout import TargetTable
from mtsd.apply.tables.table_loading import load_table
from mtsd.binlog.events.table_map import name_of
from mtsd.model.error_numbers import ER
from mtsd.model.errors import MtsdError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached, nothing
from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.session import RowState
from mtsd.model.step import LoadFile, Rows, Statement, StatementKind, Step
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.batches.in_flight import Due, Packet
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.binlog_status import has_executed, have_executed, highest_executed
from mtsd.wire.exchange import Awaited

_LARGEST_COMMAND_SHARE = 0.96
_KEPT_S = 60.0
"""For how long the end of the target's binlog is kept: a file that old is hardly purged."""


class SessionApplier(ABC):
    """Applies groups on its own session, rows by `_apply_rows`: an `Applier`.

    `batch_bytes`: maximum row bytes of one statement. With `preserves`, each group commits under
    its own GTID, which it must have. `known` are the tables that all appliers know.
    """

    _states: RowStates

    def __init__(
        self,
        session: TargetSession,
        tables: PositionTables,
        batch_bytes: int,
        *,
        known: KnownTables | None = None,
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
        self._known = known or KnownTables(session.traits.server)
        self._last_bundled: Sequence[Group] = ()
        """The groups that were put into a bundle last."""
        self._branches = Branches(session, tables, reached)
        self._branch = self._branches
        """Of the session that the open branch is on."""
        self._branch_rows = 0
        self._temporary = SessionTables(session)
        self._loads = FileLoads(session, self._temporary)
        self._pace = Pace()
        self._made = 0
        """The last group whose table was created by itself."""
        self._used_up_to: int | None = None
        """See `has_used`; None before the first question."""
        self._log_position: tuple[str, int] | None = None
        self._asked_log = 0.0
        """When, on the loop's clock."""
        self._is_piece_by_piece = False
        """Whether each statement of the group commits by itself."""
        self._began = 0.0
        """When the server can have begun the packet that is due, on the loop's clock."""

    @property
    def preserves(self) -> bool:
        """See `Applier`."""
        return self._preserves

    @property
    def has_gtids(self) -> bool:
        """See `Applier`."""
        return self._session.has_gtids

    @property
    def is_logged(self) -> bool:
        """See `Applier`."""
        return self._session.is_logged

    @property
    @abstractmethod
    def creates_and_fills(self) -> bool:
        """See `Applier`."""

    @property
    def connection_id(self) -> int:
        """See `Applier`."""
        return self._connection.thread_id

    @property
    def is_sending(self) -> bool:
        """See `Applier`."""
        return self._connection.is_sending

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

    @abstractmethod
    def bundle(self, packet: Packet, *, held: bool = False) -> Bundle | None:
        """See `Applier`."""

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """See `Applier`."""
        return self._known.are_safe(table_maps)

    async def without_transactions(
        self, table_maps: Collection[bytes], steps: Sequence[Step] = ()
    ) -> tuple[str, ...]:
        """See `Applier`."""
        await self._learn_of(table_maps, steps or self._bundled())
        found = self._known.of(table_maps)
        return tuple(sorted({name_of(each) for each in found if found[each].without_transactions}))

    async def _learn_of(self, maps: Collection[bytes], steps: Iterable[Step]) -> None:
        """Find out about tables whose rows are in these steps; see `_learn`."""
        left = set(maps).difference(self._known.of(maps))
        alike: dict[tuple[bytes, bytes], set[bytes]] = {}
        for step in steps:
            if not left:
                break
            if isinstance(step, Rows) and (found := left.intersection(table_maps(step.events))):
                alike.setdefault(self._states.opening(step.state), set()).update(found)
                left -= found
        if left:
            alike.setdefault(self._states.opening(None), set()).update(left)
        for opening, found in alike.items():
            await self._known.learn(self._own.connection, found, opening)
        # A definition of another worker may have let some be forgotten meanwhile.
        await self._learn(maps, None)

    def _bundled(self) -> Iterator[Step]:
        """Yield the steps of what was put into a bundle last."""
        return chain.from_iterable(group.steps for group in self._last_bundled)

    async def _learn(self, maps: Collection[bytes], state: RowState | None) -> None:
        """Find out about tables, of which rows with that state come next.

        Nothing may be in flight on the worker's session. Raises ServerError, ConnectionLostError.
        """
        await self._known.learn(self._own.connection, maps, self._states.opening(state))

    async def may_change_without_transactions(
        self, steps: Sequence[Step], definitions: int
    ) -> bool:
        """See `Applier`."""
        statements = [step.query for step in steps if isinstance(step, Statement)]
        return await self._known.engines.may_change(self._own.connection, statements, definitions)

    @abstractmethod
    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """See `Applier`."""

    @abstractmethod
    async def hold(self, bundle: Bundle) -> None:
        """See `Applier`."""

    async def send_commit(self, bundle: Bundle) -> int:
        """See `Applier`."""
        await self._reached(FaultPoint.BEFORE_COMMIT)
        self._connection.send(b";".join(bundle.ending))
        await self._reached(FaultPoint.COMMIT_SENT)
        return len(bundle.ending)

    async def sessions_waiting(self) -> frozenset[int] | None:
        """See `Applier`."""
        return await sessions_waiting(self._connection, self._session.traits.server.flavour)

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

    @abstractmethod
    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """See `Applier`."""

    async def read_table(self, database: str, table: str) -> TargetTable:
        """See `Applier`."""
        return await load_table(self._connection, database, table)

    async def has_row(self, worker: int) -> bool:
        """See `Applier`."""
        return bool(await self._connection.query(self._tables.workers.select_token(worker)))

    async def apply_in_order(self, group: Group, row: WorkerRow, *, in_doubt: bool = False) -> None:
        """See `Applier`."""
        self._start_over()
        try:
            await self.describe_format(group.format_description)
            await self._session.set_up_for(group.steps)
            await self._set_gtid(str(group.gtid))
            await self._session.begin_statements()
            await self.apply_steps(group.steps)
            if group.rolled_back:
                await self._session.rollback()
                await self._set_gtid(str(group.gtid))
                await self._connection.run(b"BEGIN", 1)
            tables = self._tables
            record = tables.settled(row, group.number) if in_doubt else tables.advanced(row)
            await self._session.commit(record)
            await self._set_gtid("")
        except MtsdError as error:
            await self._undo(error)
            raise

    async def apply_plain(self, groups: Sequence[Group], row: WorkerRow, definitions: int) -> bool:
        """See `Applier`."""
        self._start_over()
        queries = [
            step.query for group in groups for step in group.steps if isinstance(step, Statement)
        ]
        try:
            engines = self._known.engines
            if await engines.may_run_routines(self._own.connection, queries, definitions):
                return False
            run = await plain_run(self._session, groups)
        except NotPlainError:
            return False
        gtid = str(groups[0].gtid) if self._preserves else ""
        try:
            await begin_plain(self._session, run, gtid, self._command_limit, self._reached)
            await self._session.commit_left(self._tables.advanced(row))
            await self._set_gtid("")
        except NotPlainError as error:
            text = f"{error}; they were rolled back, but a table without transactions has changed"
            undone = ServerError(ER.WARNING_NOT_COMPLETE_ROLLBACK, "HY000", text)
            await self._undo(undone)
            if undone.leaves_changes:
                raise undone from error
            return False
        except MtsdError as error:
            await self._undo(error)
            raise
        return True

    async def use_temporary(self, use: TemporaryUse) -> None:
        """See `Applier`."""
        await self._temporary.use(use)

    def used_temporary(self, use: TemporaryUse) -> None:
        """See `Applier`."""
        self._temporary.used(use)

    async def end_thread(self, thread_id: int) -> None:
        """See `Applier`."""
        await self._temporary.end(thread_id)

    @property
    def can_repeat(self) -> bool:
        """See `Applier`."""
        return not self._temporary.are_spent

    async def apply_temporary(self, group: Group, row: WorkerRow) -> None:
        """See `Applier`."""
        update = self._tables.advanced(row)

        async def record() -> None:
            # A ROLLBACK uses the GTID up.
            await self._set_gtid(str(group.gtid))
            await self._connection.run(b"BEGIN", 1)
            await self._session.commit(update)

        try:
            await self.describe_format(group.format_description)
            await self.apply_steps(group.steps)
            await with_retries(self._connection, record, update[0])
            await self._set_gtid("")
        except MtsdError as error:
            await self._undo(error)
            raise

    async def begin(
        self,
        format_description: bytes,
        gtid: Gtid | None,
        *,
        timestamp_defaults: bool | None = None,
    ) -> None:
        """See `Applier`.

        Whether it contains statements is not known yet.
        """
        self._start_over()
        await self.describe_format(format_description)
        await self._session.set_timestamp_defaults(timestamp_defaults)
        await self._set_gtid(str(gtid))
        await self._session.begin_statements()

    @property
    def branches(self) -> Branches:
        """See `Applier`."""
        return self._branches

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
        """See `Applier`."""
        if self._branch_sessions is not None:
            self._use(await self._branch_sessions.open())
        self._start_over()
        self._session.changed_rows = 0
        try:
            await self.describe_format(format_description)
            await self._session.set_up_for(steps)
            await self._branch.begin(xid, gtid, statements=statements, briefly=briefly)
        except ServerError:
            await self._leave_branch()
            raise

    async def end_branch(self, xid: XaXid, gtid: str, *, one_phase: bool = False) -> None:
        """See `Applier`."""
        await self._branch.end(xid, gtid, one_phase=one_phase)
        try:
            await self._leave_branch()
        except ServerError as error:
            # It is prepared: a restart finds that out, and nobody may take it for a failure.
            raise unusable(self._connection, error) from error

    @property
    def may_find_nothing(self) -> bool:
        """See `Applier`."""
        return False

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
        await self._session.commit(self._tables.advanced(row))
        await self._set_gtid("")

    async def commit_part(self) -> None:
        """See `Applier`."""
        await self._session.commit([])

    async def commit_in_doubt(self, doubt: InDoubt) -> None:
        """See `Applier`."""
        former = self._tables.delete_in_doubt(doubt.number)
        await self._session.commit([former, self._tables.insert_in_doubt(doubt)])
        self._loads.unprotected = self._is_piece_by_piece = True

    async def rollback(self) -> None:
        """See `Applier`."""
        await self._session.rollback()
        await self._return_from_rows()
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
                await self._apply_rows(step)
            elif isinstance(step, LoadFile):
                await self._loads.take(step.event)
            elif step.file is not None:
                await self._loads.run(step, step.file)
            elif self._is_piece_by_piece and step.kind is StatementKind.DML:
                await self._apply_piece(step)
            else:
                await apply_statement(self._session, step, self._temporary)

    async def _apply_piece(self, statement: Statement) -> None:
        """Apply a statement that commits by itself; after an error, undo is required."""
        if not self._session.traits.loses_cascade_errors:
            await apply_statement(self._session, statement, self._temporary)
            return
        await self._session.begin_statements()
        await apply_statement(self._session, statement, self._temporary)
        await self._session.unguard()
        await self._connection.run(b"COMMIT", 1)

    def _start_over(self, *, unprotected: bool = False) -> None:
        """Forget what belongs to the last group: another one begins.

        `unprotected`: it cannot be rolled back.
        """
        self._loads.start_over(unprotected=unprotected)
        self._is_piece_by_piece = False

    @abstractmethod
    async def _apply_rows(self, rows: Rows) -> None:
        """Apply row events inside the open transaction."""

    @abstractmethod
    async def _return_from_rows(self) -> None:
        """Undo what an error among rows may have left of the session's state."""

    async def has_executed(self, gtid: str) -> bool:
        """See `Applier`."""
        return await insist(self._connection, lambda: has_executed(self._connection, gtid))

    async def has_used(self, uuid: str, number: int) -> bool:
        """See `Applier`."""
        if self._used_up_to is None:
            self._used_up_to = await insist(
                self._connection, lambda: highest_executed(self._connection, uuid)
            )
        if number > self._used_up_to:
            self._used_up_to = number
            return False
        return await self.has_executed(f"{uuid}:{number}")

    async def have_executed(self, gtids: Sequence[str]) -> tuple[bool, ...]:
        """See `Applier`."""
        return await have_executed(self._connection, gtids)

    def thread_of_its_own(self) -> int:
        """See `Applier`."""
        return self._session.thread_of_its_own()

    async def log_position(self, *, recent: bool = True) -> tuple[str, int]:
        """See `Applier`."""
        now = asyncio.get_running_loop().time()
        if recent or self._log_position is None or now - self._asked_log > _KEPT_S:
            self._log_position = await self._session.log_position()
            self._asked_log = now
        return self._log_position

    async def note(self, doubt: InDoubt, *, anew: bool = False) -> None:
        """See `Applier`."""
        former = [self._tables.delete_in_doubt(doubt.number)] if anew else []
        await self._session.record([*former, self._tables.insert_in_doubt(doubt)])

    async def note_all(self, doubts: Sequence[InDoubt]) -> None:
        """See `Applier`."""
        await self._session.record([self._tables.insert_in_doubt(doubt) for doubt in doubts])

    async def forget(self, number: int) -> None:
        """See `Applier`."""
        await self._session.record([self._tables.delete_in_doubt(number)])

    async def settle(self, row: WorkerRow, number: int) -> None:
        """See `Applier`."""
        await self._session.record(self._tables.settled(row, number))

    async def run_definition(self, group: Group, gtid: str, thread: int) -> None:
        """See `Applier`."""
        definition = definition_of(group, thread)
        self._start_over()
        # A format description would reset the GTID, so it comes first.
        await self.describe_format(group.format_description)
        await apply_definition(self._session, definition, gtid, self.apply_steps, self._reached)

    async def make_table(self, group: Group) -> None:
        """See `Applier`."""
        await make_table(self._session, definition_of(group), self._reached)
        self._made = group.number

    def has_made_table(self, number: int) -> bool:
        """See `Applier`."""
        return self._made == number

    async def commit_settled(self, row: WorkerRow, number: int) -> None:
        """See `Applier`."""
        await self._session.commit(self._tables.settled(row, number))
        await self._set_gtid("")

    async def begin_table(self, group: Group, gtid: str, thread: int) -> None:
        """See `Applier`."""
        self._start_over()
        await self._get_ready_to_create(group.format_description)
        await begin_table(self._session, definition_of(group, thread), gtid)

    async def commit_table(self) -> None:
        """See `Applier`."""
        await commit_definition(self._session, self._reached)

    @abstractmethod
    def statement_count(self, group: Group) -> int:
        """See `Applier`."""

    async def apply_unprotected(self, group: Group, gtid: str, row: WorkerRow) -> None:
        """See `Applier`."""
        self._start_over(unprotected=True)
        try:
            await self.describe_format(group.format_description)
            await apply_unprotected(
                self._session,
                group,
                gtid,
                self._tables.settled(row, group.number),
                self.apply_steps,
                statement_bytes=self._largest_statement,
                command_bytes=self._command_limit,
                step_by_step=await self._goes_step_by_step(group),
                reached=self._reached,
            )
        except ServerError:
            await self._return_from_rows()
            raise

    @abstractmethod
    async def _goes_step_by_step(self, group: Group) -> bool:
        """Get ready for the rows of a group; return whether its steps are applied one by one.

        Only where none of them needs anything else may all be sent at once.
        """

    @abstractmethod
    async def describe_format(self, format_description: bytes) -> None:
        """Get ready for events that have the source's format description."""

    async def _get_ready_to_create(self, format_description: bytes) -> None:
        """Get ready for a table that is created together with rows of that format."""
        await self.describe_format(format_description)

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
        await self._return_from_rows()
        # Also of a group that has one of mtsd's own.
        await self._session.set_gtid("")
        await self._leave_branch()

    def _use(self, session: TargetSession) -> None:
        """Apply what comes now on that session."""
        self._session = session
        self._connection = session.connection
        self._format = b""
        self._loads = FileLoads(session, self._temporary)
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
