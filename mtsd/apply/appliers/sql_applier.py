"""The applier that turns row events into SQL: where BINLOG is not allowed, or rows are rewritten.

The rows of a transaction are sent first, with the worker's row and the COMMIT behind them in a
packet of their own: only once each statement has found the rows that it must find.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final

import structlog

from mtsd.apply.appliers.session_applier import SessionApplier
from mtsd.apply.branches.branch_sessions import BranchSessions
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.bundle import Bundle, Command, RowTooLargeError, table_maps
from mtsd.apply.rows.convergent_sql import ChangeMode, ConvergentSql
from mtsd.apply.rows.repeated_cascades import KnownCascades, cascaded
from mtsd.apply.rows.row_sql import RowSql, SqlStatement
from mtsd.apply.rows.row_states import RowStates, keeps_zones
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.session.session_state import LOCK_WAIT_S, changes
from mtsd.apply.session.statement_states import FOREVER
from mtsd.apply.sql import literals
from mtsd.apply.tables.blackholes import explain_missing_row
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.apply.tables.table_layout import NO_TABLE, TableLayout, layout_of
from mtsd.apply.tables.table_loading import load_table
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.dialect import dialect_of
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.rows import (
    DUMMY_TABLE_ID,
    NO_CHECK_CONSTRAINT_CHECKS,
    NO_FOREIGN_KEY_CHECKS,
    RELAXED_UNIQUE_CHECKS,
    USE_SQL_FOREIGN_KEY,
)
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.error_numbers import ER
from mtsd.model.errors import BinlogError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached, nothing
from mtsd.model.group import Group
from mtsd.model.outcome.reason import Refused
from mtsd.model.step import Rows, Step, state_of_rows
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.batches.in_flight import Packet
from mtsd.schedule.done.executed_groups import NO_GROUPS, ExecutedGroups

log = structlog.get_logger(__name__)

ROW_MODE: Final = literals.text("NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES")
"""The sql_mode of its sessions: a value is stored as it is, or not at all."""
_TABLE_MAP: Final = EventType.TABLE_MAP_EVENT.value
_DUMMY: Final = DUMMY_TABLE_ID.to_bytes(6, "little")
_MANY_TABLES: Final = 1024
_MANY_STATEMENTS: Final = 1000
_COMMAND_BYTES: Final = 1 << 20
_STATEMENT_BYTES: Final = 1 << 18
_MOST_EXPANDED: Final = 8
"""Text of a value, by its bytes in an event: hexadecimal is 2, and JSON documents are more."""
_ROW_MISSING: Final = ER.KEY_NOT_FOUND
_NO_SUCH_TABLE: Final = ER.NO_SUCH_TABLE
_CORRUPT: Final = ER.SLAVE_CORRUPT_EVENT
_DOES_NOT_FIT: Final = ER.SLAVE_CONVERSION_FAILED
_UNCHECKED: Final = -1
_NOW: Final = b"DEFAULT"
"""The session's timestamp, unless a row event's time counts."""
_FOREIGN_DUPLICATE: Final = ER.FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO
_DUPLICATE: Final = ER.DUP_ENTRY
_OUT_OF_RANGE: Final = ER.DATA_OUT_OF_RANGE
_OF_OTHER_ROWS: Final = frozenset({
    ER.DUP_ENTRY, ER.NO_REFERENCED_ROW, ER.ROW_IS_REFERENCED, ER.ROW_IS_REFERENCED_2,
    ER.NO_REFERENCED_ROW_2, _FOREIGN_DUPLICATE,
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


class SqlApplier(SessionApplier):
    """Applies groups on its own session, which counts found rows and has `ROW_MODE`.

    `change` says how. In a repair, `again` are groups that have committed before, whose rows of
    tables without a key are left out. `newer` is for `ConvergentSql`.
    """

    def __init__(
        self,
        session: TargetSession,
        tables: PositionTables,
        batch_bytes: int,
        *,
        known: KnownTables | None = None,
        preserves: bool = False,
        change: ChangeMode = ChangeMode.STRICT,
        again: ExecutedGroups | None = None,
        newer: str = "",
        branch_sessions: BranchSessions | None = None,
        reached: Reached = nothing,
    ) -> None:
        super().__init__(
            session,
            tables,
            batch_bytes,
            known=known or KnownTables(session.traits.server, by_binlog=False),
            preserves=preserves,
            branch_sessions=branch_sessions,
            reached=reached,
        )
        self._change = change
        self._again = again or NO_GROUPS
        self._repairs = again is not None
        self._newer = newer
        self._of_mariadb = False
        """Whether the source is a MariaDB."""
        self._layouts = self._known.layouts
        self._current: dict[bytes, TableLayout] = {}
        """By table id."""
        self._cascades = KnownCascades(
            session.connection, fold_case=session.traits.lower_case_table_names
        )
        self._cascades_of = 0
        """What `KnownTables.forgotten` was when they were read."""
        self._states = RowStates(session.states.own, session.traits.server, as_sql=True)
        self._zoned = keeps_zones(session.traits.server, newer)
        """Whether rows can be written in another time zone than UTC."""
        self._checks_may_differ = False
        """Whether an error may have left the session without them."""

    @property
    def creates_and_fills(self) -> bool:
        """See `Applier`."""
        return False

    async def describe_format(self, format_description: bytes) -> None:
        """Note the family of the source."""
        if format_description and format_description != self._format:
            self._format = format_description
            version = parse_format_description(format_description).server_version
            self._of_mariadb = dialect_of(version).tables_of_mariadb
            self._known.describe(format_description)

    def bundle(self, packet: Packet, *, held: bool = False) -> Bundle | None:
        """See `Applier`: what commits it is always sent separately."""
        del held
        if len(packet.transactions) > 1:
            return None
        (transaction,) = packet.transactions
        groups = transaction.groups
        self._last_bundled = groups
        after = [self._tables.workers.update(transaction.row), b"COMMIT"]
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
        return Bundle(groups[0].format_description, commands, maps, ending=tuple(after))

    async def send(self, bundle: Bundle, *, follows: bool) -> int:
        """See `Applier`."""
        if follows:
            raise TypeError("only one bundle of rows at a time can be sent as SQL")
        await self.hold(bundle)
        return await self.send_commit(bundle)

    async def hold(self, bundle: Bundle) -> None:
        """See `Applier`."""
        rows = bundle.commands
        if not isinstance(rows, RowCommands):
            raise TypeError("only rows can be sent as SQL")
        await self.describe_format(bundle.format_description)
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
        """See `Applier`: other errors of SQL explain themselves."""
        try:
            return await explain_missing_row(self._connection, error, rows)
        except ServerError:
            return error

    def statement_count(self, group: Group) -> int:
        """See `Applier`: more than one, because a row may be a statement."""
        return max(len(group.rows), 2)

    async def _goes_step_by_step(self, group: Group) -> bool:
        await self._check_sizes(Rows(group.rows, state_of_rows(group.steps)))
        return True

    def _start_over(self, *, unprotected: bool = False) -> None:
        super()._start_over(unprotected=unprotected)
        self._current.clear()

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
            await self._undo(error)
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

        Raises ServerError: 1032 if a row is missing, 1146 without the table, 1677 if it does not
        fit.
        """
        self._checks_may_differ = True
        pending = list(opening)
        size = 0
        # Later, the session may already be in the state of some of the rows.
        await self._learn([event for event in rows.events if event[4] == _TABLE_MAP], rows.state)
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
        if max(map(len, rows.events), default=0) < self._command_limit // _MOST_EXPANDED:
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
        checks = self._checked
        now = own = self._states.own
        for event in rows.events:
            if event[4] == _TABLE_MAP:
                self._current[event[19:25]] = await self._layout(event)
                continue
            layout = self._current.get(event[19:25])
            if layout is None:
                if event[19:25] == _DUMMY:
                    continue
                number = int.from_bytes(event[19:25], "little")
                raise BinlogError(f"a row event of table id {number}, which has no table map")
            if before and not layout.keys:
                continue
            wanted = self._checks_of(event, layout, forced=forced)
            computing = own
            if layout.computed:
                computing = self._states.of(rows.state, zoned=layout.zoned)
            try:
                if wanted != checks or computing != now:
                    for statement in making.rest():
                        yield statement
                    for setting in _between((checks, now), (wanted, computing)):
                        yield setting
                    checks, now = wanted, computing
                for statement in making.statements(event, layout):
                    yield statement
                if late := await self._cascaded(event, layout):
                    for statement in making.rest():
                        yield statement
                    for setting in _between((checks, now), (self._checked, now)):
                        yield setting
                    checks = self._checked
                    for statement in late:
                        yield statement
            except (BinlogError, NotSupportedError) as error:
                raise self._error(_CORRUPT, f"table {layout.label}: {error}") from error
        for statement in making.rest():
            yield statement
        for setting in _between((checks, now), (self._checked, own)):
            yield setting

    async def _cascaded(self, event: bytes, layout: TableLayout) -> list[SqlStatement]:
        """Return what the source's cascades have changed, and those of the target may not find."""
        if not self._repairs or self._newer or not _checks_keys(event):
            return []
        if self._cascades_of != self._known.forgotten:
            # A definition may have changed some.
            self._cascades_of = self._known.forgotten
            self._cascades.forget()
        return list(cascaded(event, layout, await self._cascades.of(layout.name)))

    @property
    def _checked(self) -> bytes:
        """What the session has between the statements of rows."""
        return _set_checks(self._session, keys=True, unique=True)

    def _checks_of(self, event: bytes, layout: TableLayout, *, forced: bool) -> bytes:
        """Return the SET statement for a row event: for its flags, and for its time if that counts.

        If the source logs what a foreign key's cascade has changed, it must not happen here again.
        """
        time = b"%d" % int.from_bytes(event[:4], "little") if layout.takes_time else _NOW
        if forced:
            return _set_checks(self._session, keys=False, unique=True, time=time)
        flags = event[25] | event[26] << 8
        unique = not flags & RELAXED_UNIQUE_CHECKS
        constraints = not flags & NO_CHECK_CONSTRAINT_CHECKS
        keys = _checks_keys(event)
        return _set_checks(
            self._session, keys=keys, unique=unique, constraints=constraints, time=time
        )

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
        await super().begin_branch(
            format_description, xid, gtid, statements=statements, steps=steps, briefly=briefly
        )
        if not statements:
            await self._session.guard()

    @property
    def may_find_nothing(self) -> bool:
        """See `Applier`."""
        return self._change is not ChangeMode.STRICT

    async def _return_from_rows(self) -> None:
        if self._checks_may_differ and not self.closed:
            await self._connection.run(self._checked + b";" + self._states.back, 2)
            self._checks_may_differ = False

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
                raise self._error(_DUPLICATE, text) from error
            self._session.changed_rows += sum(counts)
            for statement, count in zip(part, counts, strict=True):
                missing = statement.rows != _UNCHECKED and count < statement.rows
                if missing and self._change is ChangeMode.STRICT:
                    table = statement.table.rpartition(".")[2]
                    raise self._error(_ROW_MISSING, f"Can't find record in '{table}'")
            at = end

    async def _layout(self, event: bytes) -> TableLayout:
        found = self._layouts.get(event)
        if found is not None:
            return found
        if len(self._layouts) >= _MANY_TABLES:
            self._known.clear()
        table = parse_table_map(event, mariadb=self._of_mariadb)
        known = there = None
        # A definition of another worker may let it be forgotten meanwhile.
        while known is None or there is None:
            await self._learn([event], None)
            there = await load_table(self._connection, table.database, table.table)
            known = self._known.of([event]).get(event)
        computed = known.computed
        try:
            layout = layout_of(table, there, computed=computed, zoned=computed and self._zoned)
        except (BinlogError, NotSupportedError) as error:
            raise self._error(_DOES_NOT_FIT, str(error)) from error
        if isinstance(layout, Refused):
            number = _NO_SUCH_TABLE if layout.reason is NO_TABLE else _DOES_NOT_FIT
            raise self._error(number, str(layout))
        self._layouts[event] = layout
        return layout

    def _error(self, number: int, text: str) -> ServerError:
        error = ServerError(number, "HY000", text)
        error.server = f"target {self._connection.endpoint}"
        return error


def _checks_keys(event: bytes) -> bool:
    """Return whether foreign keys cascade from the rows of an event, and nothing else tells it."""
    flags = event[25] | event[26] << 8
    return not flags & (NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY)


def _between(
    now: tuple[bytes, dict[bytes, bytes]], wanted: tuple[bytes, dict[bytes, bytes]]
) -> Iterator[SqlStatement]:
    """Yield what leads from one state, of checks and of what is computed, to another."""
    if now[0] != wanted[0]:
        yield SqlStatement(wanted[0], _UNCHECKED, "")
    if setting := changes(now[1], wanted[1]):
        yield SqlStatement(setting, _UNCHECKED, "")


def _set_checks(
    session: TargetSession,
    *,
    keys: bool,
    unique: bool,
    constraints: bool = True,
    time: bytes = _NOW,
) -> bytes:
    checks = (
        b"SET @@session.foreign_key_checks=%d, @@session.unique_checks=%d, @@session.timestamp=%b"
        % (keys, unique, time)
    )
    if session.family.sets_constraint_checks:
        checks += b", @@session.check_constraint_checks=%d" % constraints
    if session.traits.loses_cascade_errors and not session.limits_lock_waits:
        # Nothing tells of a cascade that has waited too long: the row would count as missing.
        checks += b", @@session.innodb_lock_wait_timeout=%b" % (
            FOREVER if keys else b"%d" % LOCK_WAIT_S
        )
    return checks


_BEGIN: Final = (SqlStatement(b"BEGIN", _UNCHECKED, ""),)
