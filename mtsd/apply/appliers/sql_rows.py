"""Rows turned into SQL: where BINLOG is not allowed, or rows are rewritten.

The rows of a transaction are sent first, with the worker's row and the COMMIT behind them in a
packet of their own: only once each statement has found the rows that it must find.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final

import structlog

from mtsd.apply.appliers.packets import send_commit
from mtsd.apply.appliers.row_checks import UNCHECKED, between, checked, checks_keys, checks_of
from mtsd.apply.appliers.row_layouts import RowLayouts, target_error
from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.bundle import (
    LARGEST_COMMAND_SHARE,
    Bundle,
    Command,
    RowTooLargeError,
    table_maps,
)
from mtsd.apply.rows.convergent_sql import ChangeMode, ConvergentSql
from mtsd.apply.rows.repeated_cascades import KnownCascades, cascaded
from mtsd.apply.rows.row_sql import RowSql, SqlStatement
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.sql import literals
from mtsd.apply.tables.blackholes import explain_missing_row
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.model.error_numbers import ER
from mtsd.model.errors import BinlogError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.group import Group
from mtsd.model.step import Rows, state_of_rows
from mtsd.schedule.batches.in_flight import Packet
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
        self._known = tables.known
        self._states = tables.states
        self._preserves = preserves
        self._reached = reached
        self._command_limit = int(session.traits.max_allowed_packet * LARGEST_COMMAND_SHARE)
        self._change = change
        self._again = again or NO_GROUPS
        self._repairs = again is not None
        self._newer = newer
        self._layouts = RowLayouts(session, tables, newer)
        self._cascades = KnownCascades(
            session.connection, fold_case=session.traits.lower_case_table_names
        )
        self._cascades_of = 0
        """What `KnownTables.forgotten` was when they were read."""
        self._checks_may_differ = False
        """Whether an error may have left the session without them."""

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

    async def hold(self, bundle: Bundle) -> None:
        """See `RowWriter`."""
        rows = bundle.commands
        if not isinstance(rows, RowCommands):
            raise TypeError("only rows can be sent as SQL")
        self._layouts.describe(bundle.format_description)
        await self._reached(FaultPoint.BEFORE_BUNDLE)
        await self._set_gtid(rows.gtid)
        opening: tuple[SqlStatement, ...] = _BEGIN
        if self._session.traits.loses_cascade_errors:
            await self._connection.run(b"BEGIN", 1)
            await self._session.guard()
            opening = ()
        await self._apply_groups(rows, opening)
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
        self._layouts.start_over()
        self._layouts.describe(format_description)

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

    async def _apply_groups(self, rows: RowCommands, opening: tuple[SqlStatement, ...]) -> None:
        try:
            for each, before in rows.groups:
                await self._apply_rows(each, opening, before=before)
                opening = ()
        except ServerError as error:
            if error.number not in _OF_OTHER_ROWS or not self._repairs:
                raise
            # What comes later may have been applied already: rows that a foreign key or a unique
            # one needs are there then, or gone.
            log.info("applied without checks of other rows", error=str(error))
            await self._session.undo(error)
            await self.restore()
            await self._set_gtid(rows.gtid)
            opening = _BEGIN
            for each, before in rows.groups:
                await self._apply_rows(each, opening, before=before, forced=True)
                opening = ()

    async def _apply_rows(
        self,
        rows: Rows,
        opening: tuple[SqlStatement, ...] = (),
        *,
        before: bool = False,
        forced: bool = False,
    ) -> None:
        """Run the statements of row events in a transaction, and check what they find.

        The transaction is open, or `opening` opens it. `before`: they have been applied before;
        `forced`: they do not depend on other rows.
        """
        self._checks_may_differ = True
        pending = list(opening)
        size = 0
        # Later, the session may already be in the state of some of the rows.
        await self._tables.learn(
            [event for event in rows.events if event[4] == _TABLE_MAP], rows.state
        )
        try:
            async for statement in self._statements(rows, before=before, forced=forced):
                pending.append(statement)
                size += len(statement.sql)
                if size > _COMMAND_BYTES or len(pending) >= _MANY_STATEMENTS:
                    await self._run_rows(pending)
                    pending = []
                    size = 0
            await self._run_rows(pending)
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
        async for statement in self._statements(rows):
            self._check_size(len(statement.sql))

    def _check_size(self, size: int) -> None:
        if size > self._command_limit:
            raise RowTooLargeError(size, self._command_limit)

    def _making(self, *, forced: bool) -> RowSql:
        limit = min(_STATEMENT_BYTES, self._command_limit // 4)
        family = self._session.family
        if self._change is ChangeMode.CONVERGENT:
            return ConvergentSql(
                limit, family, newer=self._newer, forced=forced, repairs=self._repairs
            )
        return RowSql(limit, family, idempotent=self._change is ChangeMode.IDEMPOTENT)

    async def _statements(
        self, rows: Rows, *, before: bool = False, forced: bool = False
    ) -> AsyncIterator[SqlStatement]:
        """Yield the statements of row events; `before` and `forced` as for `_apply_rows`."""
        making = self._making(forced=forced)
        checks = checked(self._session)
        now = own = self._states.own
        for event in rows.events:
            if event[4] == _TABLE_MAP:
                await self._layouts.take(event)
                continue
            layout = self._layouts.of(event)
            if layout is None or (before and not layout.keys):
                continue
            wanted = checks_of(self._session, event, layout, forced=forced)
            computing = own
            if layout.computed:
                computing = self._states.of(rows.state, zoned=layout.zoned)
            try:
                if wanted != checks or computing != now:
                    for statement in making.rest():
                        yield statement
                    for setting in between((checks, now), (wanted, computing)):
                        yield setting
                    checks, now = wanted, computing
                for statement in making.statements(event, layout):
                    yield statement
                if late := await self._cascaded(event, layout):
                    for statement in making.rest():
                        yield statement
                    for setting in between((checks, now), (checked(self._session), now)):
                        yield setting
                    checks = checked(self._session)
                    for statement in late:
                        yield statement
            except (BinlogError, NotSupportedError) as error:
                raise target_error(
                    self._connection, ER.SLAVE_CORRUPT_EVENT, f"table {layout.label}: {error}"
                ) from error
        for statement in making.rest():
            yield statement
        for setting in between((checks, now), (checked(self._session), own)):
            yield setting

    async def _cascaded(self, event: bytes, layout: TableLayout) -> list[SqlStatement]:
        """Return what the source's cascades have changed, and those of the target may not find."""
        if not self._repairs or self._newer or not checks_keys(event):
            return []
        if self._cascades_of != self._known.forgotten:
            # A definition may have changed some.
            self._cascades_of = self._known.forgotten
            self._cascades.forget()
        return list(cascaded(event, layout, await self._cascades.of(layout.name)))

    async def _run_rows(self, statements: Sequence[SqlStatement]) -> None:
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
                missing = statement.rows != UNCHECKED and count < statement.rows
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
