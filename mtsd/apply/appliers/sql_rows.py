"""Rows turned into SQL: where BINLOG is not allowed, or rows are rewritten.

The rows of a transaction are sent first, with the worker's row and the COMMIT behind them in a
packet of their own: only once each statement has found the rows that it must find.

Of a transaction that is there as a whole, what its rows come to is tried first
(`mtsd.apply.rows.net_rows`), in few statements. If that fails, for whatever reason but a passing
one, it is rolled back, and the rows are applied in their order, one change after another: that
decides what is an error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final

import structlog

from mtsd.apply.appliers.packets import send_commit
from mtsd.apply.appliers.row_checks import UNCHECKED, checked
from mtsd.apply.appliers.row_layouts import target_error
from mtsd.apply.appliers.row_writer import nothing_else
from mtsd.apply.appliers.statements_of_rows import StatementsOfRows
from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.bundle import (
    LARGEST_COMMAND_SHARE,
    Bundle,
    Command,
    RowTooLargeError,
    table_maps,
)
from mtsd.apply.rows.convergent_sql import ChangeMode
from mtsd.apply.rows.row_sql import SqlStatement
from mtsd.apply.session.retry import worth_a_retry
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.sql import literals
from mtsd.apply.tables.blackholes import explain_missing_row
from mtsd.binlog.bytes.event_type import EventType
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.group import Group
from mtsd.model.step import Rows, state_of_rows
from mtsd.schedule.batches.in_flight import Packet
from mtsd.schedule.batches.tries import Tries
from mtsd.schedule.done.executed_groups import NO_GROUPS, ExecutedGroups

log = structlog.get_logger(__name__)

ROW_MODE: Final = literals.text("NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES")
"""The sql_mode of its sessions: a value is stored as it is, or not at all."""
_TABLE_MAP: Final = EventType.TABLE_MAP_EVENT.value
_MANY_STATEMENTS: Final = 1000
_COMMAND_BYTES: Final = 1 << 20
_STATEMENT_BYTES: Final = 1 << 18
_MAX_EXPANDED: Final = 8
"""Text of a value, by its bytes in an event: hexadecimal is 2, and JSON documents are more."""
_ROW_MISSING: Final = ER.KEY_NOT_FOUND
_OUT_OF_RANGE: Final = ER.DATA_OUT_OF_RANGE
_OF_OTHER_ROWS: Final = frozenset({
    ER.DUP_ENTRY, ER.NO_REFERENCED_ROW, ER.ROW_IS_REFERENCED, ER.ROW_IS_REFERENCED_2,
    ER.NO_REFERENCED_ROW_2, ER.FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO,
})  # fmt: skip
"""Errors of a change that another row is in the way of, or has to be there for."""


@dataclass(frozen=True, slots=True)
class RowCommands:
    """Stands for the commands of a bundle, which depend on the target's tables."""

    groups: tuple[tuple[Rows, bool], ...]
    """Rows, and whether they have been applied before."""
    gtid: str

    def __iter__(self) -> Iterator[Command]:
        """Return no commands: they are made when the bundle is sent."""
        return iter(())


class SqlRows:
    """Writes rows as SQL, on a session that counts found rows and has `ROW_MODE`: a `RowWriter`.

    `change` says how. In a repair, `again` are groups that have committed before, whose rows of
    tables without a key are left out. `newer` is for `ConvergentSql`. With `preserves`, each group
    commits under its own GTID, which it must have.
    """

    def __init__(
        self,
        session: TargetSession,
        position: PositionTables,
        tables: TableQuestions,
        *,
        preserves: bool = False,
        change: ChangeMode = ChangeMode.STRICT,
        again: ExecutedGroups | None = None,
        newer: str = "",
        reached: FaultHook = nothing,
    ) -> None:
        self._session = session
        self._connection = session.connection
        self._position = position
        self._tables = tables
        self._states = tables.states
        self._preserves = preserves
        self._reached = reached
        self._command_limit = int(session.traits.max_allowed_packet * LARGEST_COMMAND_SHARE)
        self._change = change
        self._again = again or NO_GROUPS
        self._repairs = again is not None
        self._statements = StatementsOfRows(
            session, tables, change=change, repairs=self._repairs, newer=newer
        )
        self._checks_may_differ = False
        """Whether an error may have left the session without them."""
        self._joined = Tries()

    @property
    def creates_and_fills(self) -> bool:
        """See `RowWriter`."""
        return False

    @property
    def may_find_nothing(self) -> bool:
        """See `RowWriter`."""
        return self._change is not ChangeMode.STRICT

    @property
    def needs_guard(self) -> bool:
        """See `RowWriter`."""
        return True

    def use(self, session: TargetSession) -> None:
        """See `RowWriter`."""
        self._session = session
        self._connection = session.connection
        self._statements.use(session)

    def bundle(self, packet: Packet, *, held: bool = False) -> Bundle | None:
        """See `RowWriter`: what commits it is always sent separately."""
        del held
        if len(packet.transactions) > 1:
            return None
        (transaction,) = packet.transactions
        groups = transaction.groups
        after = [self._position.workers.update(transaction.row), b"COMMIT"]
        if self._preserves:
            after.append(next_gtid(""))
        maps = frozenset(chain.from_iterable(table_maps(each.rows) for each in groups))
        again = self._again
        alike = groupby(groups, lambda group: (group.number in again, state_of_rows(group.steps)))
        parts = tuple(
            (Rows(tuple(chain.from_iterable(group.rows for group in run)), state), before)
            for (before, state), run in alike
        )
        # The target skips what comes again under a GTID.
        own = self._preserves and groups[0].number not in again
        commands = RowCommands(parts, str(groups[0].gtid) if own else "")
        return Bundle(
            groups[0].format_description, commands, maps, groups=groups, ending=tuple(after)
        )

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """See `RowWriter`."""
        if follows:
            raise TypeError("only one bundle of rows at a time can be sent as SQL")
        await self.hold(bundle)
        return await send_commit(self._session, bundle, self._reached)

    async def hold(self, bundle: Bundle, meanwhile: Callable[[], None] = nothing_else) -> None:
        """See `RowWriter`: what follows takes little to make, so it may be begun at once."""
        meanwhile()
        rows = bundle.commands
        if not isinstance(rows, RowCommands):
            raise TypeError("only rows can be sent as SQL")
        self._statements.layouts.describe(bundle.format_description)
        await self._reached(FaultPoint.BEFORE_BUNDLE)
        await self._set_gtid(rows.gtid)
        await self._apply_groups(rows)
        await self._session.unguard()
        await self._reached(FaultPoint.BUNDLE_SENT)

    async def explain(self, error: ServerError, rows: Sequence[bytes]) -> ServerError:
        """See `RowWriter`: other errors of SQL explain themselves."""
        try:
            return await explain_missing_row(self._connection, error, rows)
        except ServerError:
            return error

    def statement_count(self, group: Group) -> int:
        """See `RowWriter`: more than one, because a row may be a statement."""
        return max(len(group.rows), 2)

    async def goes_step_by_step(self, group: Group) -> bool:
        """See `RowWriter`."""
        await self._check_sizes(Rows(group.rows, state_of_rows(group.steps)))
        return True

    async def begin(self, format_description: bytes, *, creates: bool = False) -> None:
        """See `RowWriter`: tables are created by themselves."""
        del creates
        self._statements.layouts.start_over()
        self._statements.layouts.describe(format_description)

    async def write(self, rows: Rows) -> None:
        """See `RowWriter`.

        Errors: 1032 if a row is missing, 1146 without the table, 1677 if it does not fit.
        """
        await self._apply_rows(rows)

    async def restore(self) -> None:
        """See `RowWriter`."""
        if self._checks_may_differ and not self._connection.closed:
            await self._connection.run(checked(self._session) + b";" + self._states.back, 2)
            self._checks_may_differ = False

    async def _apply_groups(self, rows: RowCommands) -> None:
        joins = self._change is ChangeMode.STRICT and self._joined.may_try()
        try:
            await self._apply_all(rows, joins=joins)
        except ServerError as error:
            forced = error.number in _OF_OTHER_ROWS and self._repairs
            if not forced and (not joins or worth_a_retry(error)):
                raise
            # What comes later may have been applied already: rows that a foreign key or a unique
            # one needs are there then, or gone.
            what = "without checks of other rows" if forced else "one change after another"
            log.info("applied again", how=what, error=str(error))
            await self._session.undo(error)
            if error.leaves_changes:
                raise
            await self.restore()
            await self._set_gtid(rows.gtid)
            await self._apply_all(rows, forced=forced)
            if joins:
                self._joined.failed()
            return
        if joins:
            self._joined.succeeded()

    async def _apply_all(
        self, rows: RowCommands, *, joins: bool = False, forced: bool = False
    ) -> None:
        """Begin a transaction, and apply all its rows; see `_apply_rows`."""
        opening: tuple[SqlStatement, ...] = _BEGIN
        if self._session.traits.loses_cascade_errors:
            await self._connection.run(b"BEGIN", 1)
            await self._session.guard()
            opening = ()
        for each, before in rows.groups:
            await self._apply_rows(each, opening, before=before, forced=forced, joins=joins)
            opening = ()

    async def _apply_rows(
        self,
        rows: Rows,
        opening: tuple[SqlStatement, ...] = (),
        *,
        before: bool = False,
        forced: bool = False,
        joins: bool = False,
    ) -> None:
        """Run the statements of row events in a transaction, and check what they find.

        The transaction is open, or `opening` opens it. `before`: they have been applied before;
        `forced`: they do not depend on other rows; `joins`: only what they come to is applied.
        """
        self._checks_may_differ = True
        pending = list(opening)
        size = 0
        # Later, the session may already be in the state of some of the rows.
        await self._tables.learn(
            [event for event in rows.events if event[4] == _TABLE_MAP], rows.state
        )
        try:
            found = self._statements.of(rows, before=before, forced=forced, joins=joins)
            async for statement in found:
                pending.append(statement)
                size += len(statement.sql)
                if size > _COMMAND_BYTES or len(pending) >= _MANY_STATEMENTS:
                    await self._run_rows(pending, exactly=joins)
                    pending = []
                    size = 0
            await self._run_rows(pending, exactly=joins)
        except ServerError as error:
            # A row may be missing because of an error that the target has lost.
            if error.number == _ROW_MISSING:
                await self._session.unguard()
            raise
        self._checks_may_differ = False

    async def _check_sizes(self, rows: Rows) -> None:
        """Raise RowTooLargeError if one of the rows needs a larger statement than is accepted.

        Before the first of a group that cannot be rolled back.
        """
        if max(map(len, rows.events), default=0) < self._command_limit // _MAX_EXPANDED:
            return
        async for statement in self._statements.of(rows):
            self._check_size(len(statement.sql))

    def _check_size(self, size: int) -> None:
        if size > self._command_limit:
            raise RowTooLargeError(size, self._command_limit)

    async def _run_rows(self, statements: Sequence[SqlStatement], *, exactly: bool) -> None:
        """Run statements; `exactly`: none may find more rows than it has to, either."""
        at = 0
        while at < len(statements):
            end = at
            size = 0
            while end < len(statements) and (
                end == at or size + len(statements[end].sql) < _COMMAND_BYTES
            ):
                size += len(statements[end].sql) + 1
                end += 1
            self._check_size(size)
            part = statements[at:end]
            sql = b";".join(each.sql for each in part)
            try:
                counts = await self._connection.run_counted(sql, len(part))
            except ServerError as error:
                if error.number != _OUT_OF_RANGE or self._change is not ChangeMode.CONVERGENT:
                    raise
                tables = ", ".join(sorted({each.table for each in part} - {""}))
                text = f"Duplicate entry: another row has a unique value of one that is in {tables}"
                raise target_error(self._connection, ER.DUP_ENTRY, text) from error
            self._session.changed_rows += sum(counts)
            for statement, count in zip(part, counts, strict=True):
                wanted = statement.rows
                missing = wanted != UNCHECKED and (count < wanted or (exactly and count > wanted))
                if missing and self._change is ChangeMode.STRICT:
                    table = statement.table.rpartition(".")[2]
                    raise target_error(
                        self._connection, _ROW_MISSING, f"Can't find record in '{table}'"
                    )
            at = end

    async def _set_gtid(self, gtid: str) -> None:
        if self._preserves:
            await self._session.set_gtid(gtid)


_BEGIN: Final = (SqlStatement(b"BEGIN", UNCHECKED, ""),)
