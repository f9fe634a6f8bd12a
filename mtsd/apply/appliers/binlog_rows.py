"""Rows passed on undecoded, using the BINLOG statement."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Final

from mtsd.apply.appliers.row_writer import nothing_else
from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.worker_info import TABLE_ID, WorkerRowChange, is_of_workers_row
from mtsd.apply.rows.bundle import (
    BASE64_SHARE,
    ENOUGH,
    LARGEST_COMMAND_SHARE,
    Bundle,
    Command,
    RowTooLargeError,
    Setting,
    binlog_statement,
    commands,
    each_after,
    row_statements,
    table_maps,
    together,
)
from mtsd.apply.rows.streaming import RowStream
from mtsd.apply.rows.unchecked_updates import UncheckedUpdates
from mtsd.apply.session.aside import drawn
from mtsd.apply.session.lost_changes import row_gone
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.statements.unprotected import statement_count
from mtsd.apply.tables.blackholes import explain_missing_row
from mtsd.apply.tables.generated_keys import too_old, version_statement
from mtsd.apply.tables.table_columns import explain_row_failure
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.errors import ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.group import Group
from mtsd.model.session import RowState
from mtsd.model.step import Rows, state_of_rows
from mtsd.schedule.batches.in_flight import Packet, Transaction

_LONG_TEXT: Final = 1 << 16
"""Bytes of rows from which on two more statements are worth what they save the server's parser."""


class BinlogRows:
    """Writes rows as BINLOG statements: a `RowWriter`.

    `batch_bytes`: maximum row bytes of one statement. With `preserves`, each group commits under
    its own GTID, which it must have. `by_clock`: the source's clock tells which groups keep their
    order within a transaction.
    """

    def __init__(
        self,
        session: TargetSession,
        position: PositionTables,
        tables: TableQuestions,
        batch_bytes: int,
        *,
        preserves: bool = False,
        by_clock: bool = False,
        reached: FaultHook = nothing,
    ) -> None:
        self._session = session
        self._connection = session.connection
        self._position = position
        self._tables = tables
        self._known = tables.known
        self._states = tables.states
        self._unchecked = UncheckedUpdates(self._known.keyed)
        self._preserves = preserves
        self._by_clock = by_clock
        self._reached = reached
        packet = session.traits.max_allowed_packet
        self._largest_statement = int(packet * BASE64_SHARE)
        self._chunk_bytes = min(batch_bytes, self._largest_statement)
        self._command_limit = int(packet * LARGEST_COMMAND_SHARE)
        self._format = b""
        self._stream = RowStream(self._chunk_bytes)
        self._expects_plain = True
        """Whether the last bundle had no such tables: then its statements are made first."""
        self._state_may_differ = False
        """Whether an error may have left the session in the state of rows."""
        self._computes = False
        """Whether rows of the open transaction are of such tables."""
        self._is_creating = False
        """Whether rows are of a CREATE TABLE … SELECT, whose columns are the source's."""
        self._before = b""
        """What goes before each statement of rows in the open transaction."""

    @property
    def creates_and_fills(self) -> bool:
        """See `RowWriter`."""
        return self._session.is_logged and self._session.family.creates_and_fills

    @property
    def may_find_nothing(self) -> bool:
        """See `RowWriter`: the server reports each of them."""
        return False

    @property
    def needs_guard(self) -> bool:
        """See `RowWriter`."""
        return False

    def use(self, session: TargetSession) -> None:
        """See `RowWriter`."""
        self._session = session
        self._connection = session.connection
        self._format = b""

    def bundle(self, packet: Packet, *, held: bool = False) -> Bundle | None:
        """See `RowWriter`.

        One command, if its size allows it: then the server does not wait for mtsd between its
        parts. A single BINLOG statement is autocommitted: it is applied as a whole or not at all.
        """
        bundles = [self._bundle(each, held=held) for each in packet.transactions]
        if len(bundles) > 1 and not all(bundle.is_single_statements for bundle in bundles):
            return None
        return together(bundles)

    def _bundle(self, transaction: Transaction, *, held: bool) -> Bundle:
        groups = transaction.groups
        change = WorkerRowChange(self._position.workers, transaction.row, transaction.before)
        last = None if held else change
        maps: set[bytes] = set()
        rest = self._statements(groups, last, maps)
        size = sum(group.size for group in groups)
        is_small = size <= ENOUGH
        first: list[bytes] = []
        # What is large is made while it is sent, aside.
        if self._expects_plain and is_small:
            first += rest
        if not (is_small and self._expects_plain):
            maps.update(event for group in groups for event in table_maps(group.rows))
        others = frozenset(event for event in maps if event[19:25] != TABLE_ID)
        is_plain = self._expects_plain = self._known.are_plain(others)
        rows: Iterable[bytes | Setting]
        if is_plain:
            if is_small:
                first += islice(rest, 2)
            rows = chain(first, rest)
        else:
            rows = self._states.of_groups(groups, lambda run: self._rows_of(run, groups, last))
            # Also if its tables turn out to be plain before it is sent.
            self._state_may_differ = True
        before, after = [b"BEGIN"], [b"COMMIT"]
        if self._preserves:
            before.insert(0, next_gtid(str(groups[0].gtid)))
            after.append(next_gtid(""))
        elif len(first) == 1 and not held and is_plain:
            before, after = [], []
        if before and is_plain and size >= _LONG_TEXT:
            rows = self._states.in_single_bytes(rows)
            self._state_may_differ = True
        ending: tuple[bytes, ...] = ()
        if held:
            ending = (binlog_statement(b"".join(change.events(groups[-1].rows[-1], 0))), *after)
        whole: Iterable[Command]
        whole = commands(before, rows, [] if held else after, self._command_limit)
        if is_small:
            whole = tuple(whole)
        return Bundle(groups[0].format_description, whole, others, groups=groups, ending=ending)

    def _rows_of(
        self, run: Sequence[Group], groups: Sequence[Group], change: WorkerRowChange | None
    ) -> Iterable[bytes]:
        """Return the statements of a run of groups, the last one with the change."""
        last = change if run[-1] is groups[-1] else None
        return self._statements(run, last)

    def _statements(
        self, run: Sequence[Group], last: WorkerRowChange | None, maps: set[bytes] | None = None
    ) -> Iterator[bytes]:
        return row_statements(
            run, self._chunk_bytes, last, maps, by_clock=self._by_clock, unchecked=self._unchecked
        )

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """See `RowWriter`."""
        whole = bundle.commands
        # What is small has been made.
        size = 0 if isinstance(whole, tuple) else ENOUGH
        if not follows:
            await self._describe(bundle.format_description)
            if not self._known.are_safe(bundle.table_maps):
                await self._tables.learn_of(bundle.table_maps, bundle.steps)
            if before := self._statement_before(bundle.table_maps):
                whole = each_after(whole, before)
        await self._reached(FaultPoint.BEFORE_BUNDLE)
        statements = 0
        try:
            async for command in drawn(size, whole):
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

    async def hold(self, bundle: Bundle, meanwhile: Callable[[], None] = nothing_else) -> None:
        """See `RowWriter`."""
        statements = await self.send(bundle, follows=False)
        # The server begins when it has all of it.
        await self._connection.drained()
        meanwhile()
        await self._connection.receive(statements)

    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """See `RowWriter`."""
        if is_of_workers_row(error, rows):
            return row_gone(error)
        try:
            error = await explain_missing_row(self._connection, error, rows)
            return await explain_row_failure(self._connection, error, rows)
        except ServerError:
            return error

    async def begin(self, format_description: bytes, *, creates: bool = False) -> None:
        """See `RowWriter`."""
        self._stream = RowStream(self._chunk_bytes)
        self._is_creating = creates
        self._computes = False
        self._before = b""
        await self._describe(format_description)
        # Inside CREATE TABLE … START TRANSACTION the server answers no queries.
        if creates and (version := version_statement(self._format, self._session.traits.server)):
            await self._connection.run(version, 1)

    def statement_count(self, group: Group) -> int:
        """See `RowWriter`."""
        return statement_count(group, self._largest_statement, self._command_limit)

    async def goes_step_by_step(self, group: Group) -> bool:
        """See `RowWriter`."""
        await self._learn(frozenset(table_maps(group.rows)), state_of_rows(group.steps))
        return bool(self._before) or self._computes

    async def _describe(self, format_description: bytes) -> None:
        """Give the session the source's format description, unless it already has it."""
        if format_description == self._format:
            return
        statements = [binlog_statement(format_description)]
        if self._session.family.described_with_gtid:
            # The description leaves the session with an anonymous GTID: then error 1782 if the
            # target has GTIDs, and 1837 after the next implicit commit if it does not even have a
            # binlog.
            statements.append(next_gtid(""))
        await self._connection.run(b";".join(statements), len(statements))
        self._format = format_description
        self._known.describe(format_description)

    async def write(self, rows: Rows) -> None:
        """See `RowWriter`."""
        if not self._is_creating:
            await self._learn(frozenset(table_maps(rows.events)), rows.state)
        statements = self._stream.statements(rows.events)
        around: Iterable[bytes | Setting] = statements
        size = sum(map(len, rows.events))
        if self._computes:
            around = self._states.around(statements, rows.state)
            self._state_may_differ = True
        elif size >= _LONG_TEXT and not self._is_creating:
            around = self._states.in_single_bytes(statements)
            self._state_may_differ = True
        whole = commands([], around, [], self._command_limit)
        made = each_after(whole, self._before) if self._before else whole
        async for command in drawn(size, made):
            await self._connection.run(command.sql, command.statements)

    async def restore(self) -> None:
        """See `RowWriter`."""
        if self._state_may_differ and not self._connection.closed:
            await self._connection.run(self._states.back, 1)
            self._state_may_differ = False

    async def _learn(self, maps: frozenset[bytes], state: RowState | None) -> None:
        await self._tables.learn(maps, state)
        # Rows of a streamed transaction may follow later than the table maps that they belong to.
        self._before = self._statement_before(maps) or self._before
        self._computes = self._computes or not self._known.are_plain(maps)

    def _statement_before(self, maps: Collection[bytes]) -> bytes:
        """Return the statement that each BINLOG statement with rows of these tables needs first.

        b"" if they need none. They have been learned. Raises ServerError 1677, 1142 or 1044 if rows
        of one of them may not be applied so.
        """
        if self._known.are_safe(maps):
            return b""
        known = self._known.of(maps)
        wrong = {event: error for event in known if (error := known[event].error) is not None}
        if wrong:
            # It may have been put right before the next attempt.
            self._known.forget_these(wrong)
            raise self._refusal(wrong[min(wrong)])
        needing = [event for event in known if known[event].needs_version]
        if not needing:
            return b""
        before = version_statement(self._format, self._session.traits.server)
        if not before:
            raise self._refusal(too_old(parse_table_map(min(needing)), self._format))
        return before

    def _refusal(self, error: ServerError) -> ServerError:
        error.server = f"target {self._connection.endpoint}"
        return error
