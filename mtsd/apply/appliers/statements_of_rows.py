"""The SQL statements of row events, with what the session has to be set to before each."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from mtsd.apply.appliers.row_checks import between, checked, checks_keys, checks_of
from mtsd.apply.appliers.row_layouts import RowLayouts, target_error
from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.rows.bundle import LARGEST_COMMAND_SHARE
from mtsd.apply.rows.convergent_sql import ChangeMode, ConvergentSql
from mtsd.apply.rows.net_rows import net_events
from mtsd.apply.rows.net_table import LaidOut
from mtsd.apply.rows.repeated_cascades import KnownCascades, cascaded
from mtsd.apply.rows.row_sql import RowSql, SqlStatement
from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import UPDATES
from mtsd.model.error_numbers import ER
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.step import Rows

_TABLE_MAP: Final = EventType.TABLE_MAP_EVENT.value
_STATEMENT_BYTES: Final = 1 << 18


class StatementsOfRows:
    """Makes them for one session: `change` says how, `repairs` and `newer` are as for `SqlRows`."""

    def __init__(
        self,
        session: TargetSession,
        tables: TableQuestions,
        *,
        change: ChangeMode,
        repairs: bool,
        newer: str,
    ) -> None:
        self._session = session
        self._connection = session.connection
        self._known = tables.known
        self._states = tables.states
        self._change = change
        self._repairs = repairs
        self._newer = newer
        self._limit = min(
            _STATEMENT_BYTES,
            int(session.traits.max_allowed_packet * LARGEST_COMMAND_SHARE) // 4,
        )
        self.layouts = RowLayouts(session, tables, newer)
        """Of the tables whose rows come."""
        self._cascades = KnownCascades(
            session.connection, fold_case=session.traits.lower_case_table_names
        )
        self._cascades_of = 0
        """What `KnownTables.forgotten` was when they were read."""

    def use(self, session: TargetSession) -> None:
        """Make them for that session from now on."""
        self._session = session
        self._connection = session.connection

    async def of(
        self, rows: Rows, *, before: bool = False, forced: bool = False, joins: bool = False
    ) -> AsyncIterator[SqlStatement]:
        """Yield the statements of row events.

        `before`: they have been applied before; `forced`: they do not depend on other rows;
        `joins`: only what they come to is applied. Raises ServerError, ConnectionLostError.
        """
        making = self._making(forced=forced, joins=joins)
        checks = checked(self._session)
        now = own = self._states.own
        events = await self._laid_out(rows, before=before)
        if joins:
            events = self._net(events)
        for event, layout in events:
            # A row that has both its keys again, the old one and the new, loses the old one here:
            # rows that refer to it follow it by a statement of their own.
            cascades = not (event[4] in UPDATES and self._repeats_cascades(event))
            wanted = checks_of(self._session, event, layout, forced=forced, cascades=cascades)
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

    def _making(self, *, forced: bool, joins: bool) -> RowSql:
        family = self._session.family
        if self._change is ChangeMode.CONVERGENT:
            return ConvergentSql(
                self._limit, family, newer=self._newer, forced=forced, repairs=self._repairs
            )
        idempotent = self._change is ChangeMode.IDEMPOTENT
        return RowSql(self._limit, family, idempotent=idempotent, joins=joins)

    async def _laid_out(self, rows: Rows, *, before: bool) -> list[LaidOut]:
        """Return the row events, each with its table's layout."""
        found: list[LaidOut] = []
        for event in rows.events:
            if event[4] == _TABLE_MAP:
                await self.layouts.take(event)
                continue
            layout = self.layouts.of(event)
            if layout is not None and not (before and not layout.keys):
                found.append((event, layout))
        return found

    def _net(self, events: Sequence[LaidOut]) -> list[LaidOut]:
        try:
            return net_events(events)
        except (BinlogError, NotSupportedError) as error:
            raise target_error(self._connection, ER.SLAVE_CORRUPT_EVENT, str(error)) from error

    async def _cascaded(self, event: bytes, layout: TableLayout) -> list[SqlStatement]:
        """Return what the source's cascades have changed, and those of the target may not find."""
        if not self._repeats_cascades(event):
            return []
        if self._cascades_of != self._known.forgotten:
            # A definition may have changed some.
            self._cascades_of = self._known.forgotten
            self._cascades.forget()
        return list(cascaded(event, layout, await self._cascades.of(layout.name)))

    def _repeats_cascades(self, event: bytes) -> bool:
        return self._repairs and not self._newer and checks_keys(event)
