"""The layouts of the target's tables, for rows that are written as SQL."""

from typing import Final

from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.rows.row_states import keeps_zones
from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.table_layout import NO_TABLE, TableLayout, layout_of
from mtsd.binlog.events.dialect import dialect_of
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.rows import DUMMY_TABLE_ID
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.error_numbers import ER
from mtsd.model.errors import BinlogError, NotSupportedError, ServerError
from mtsd.model.outcome.reason import Refused
from mtsd.wire.connection import Connection

_DUMMY: Final = DUMMY_TABLE_ID.to_bytes(6, "little")
_MANY_TABLES: Final = 1024


class RowLayouts:
    """The layouts of the tables whose row events come, as their table maps say.

    `newer` is for `ConvergentSql`.
    """

    def __init__(self, session: TargetSession, tables: TableQuestions, newer: str) -> None:
        self._connection = session.connection
        self._tables = tables
        self._known = tables.known
        self._zoned = keeps_zones(session.traits.server, newer)
        """Whether rows can be written in another time zone than UTC."""
        self._format = b""
        self._of_mariadb = False
        """Whether the source is a MariaDB."""
        self._current: dict[bytes, TableLayout] = {}
        """By table id."""

    def describe(self, format_description: bytes) -> None:
        """Note the family of the source."""
        if format_description and format_description != self._format:
            self._format = format_description
            version = parse_format_description(format_description).server_version
            self._of_mariadb = dialect_of(version).tables_of_mariadb
            self._known.describe(format_description)

    def start_over(self) -> None:
        """Forget the table ids of the last transaction."""
        self._current.clear()

    async def take(self, table_map: bytes) -> None:
        """Know the table of a map for the row events that follow it.

        Raises ServerError: 1146 without the table, 1677 if it does not fit.
        """
        self._current[table_map[19:25]] = await self._layout(table_map)

    def of(self, event: bytes) -> TableLayout | None:
        """Return that of a row event; None if it is only the end of a statement without rows.

        Raises BinlogError without a table map.
        """
        table_id = event[19:25]
        layout = self._current.get(table_id)
        if layout is None and table_id != _DUMMY:
            number = int.from_bytes(table_id, "little")
            raise BinlogError(f"a row event of table id {number}, which has no table map")
        return layout

    async def _layout(self, event: bytes) -> TableLayout:
        remembered = self._known.layouts.get(event)
        if remembered is not None:
            return remembered
        if len(self._known.layouts) >= _MANY_TABLES:
            self._known.clear()
        table = parse_table_map(event, mariadb=self._of_mariadb)
        known = there = None
        # A definition of another worker may let it be forgotten meanwhile.
        while known is None or there is None:
            await self._tables.learn([event], None)
            there = await self._tables.read(table.database, table.table)
            known = self._known.of([event]).get(event)
        computed = known.computed
        try:
            layout = layout_of(table, there, computed=computed, zoned=computed and self._zoned)
        except (BinlogError, NotSupportedError) as error:
            raise target_error(self._connection, ER.SLAVE_CONVERSION_FAILED, str(error)) from error
        if isinstance(layout, Refused):
            missing = layout.reason is NO_TABLE
            number = ER.NO_SUCH_TABLE if missing else ER.SLAVE_CONVERSION_FAILED
            raise target_error(self._connection, number, str(layout))
        self._known.layouts[event] = layout
        return layout


def target_error(connection: Connection, number: int, text: str) -> ServerError:
    """Return an error as the target would report it, had it seen what mtsd has."""
    error = ServerError(number, "HY000", text)
    error.server = f"target {connection.endpoint}"
    return error
