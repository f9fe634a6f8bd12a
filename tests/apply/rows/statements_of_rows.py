"""The statements that row events of one database become on the same tables of another."""

from collections.abc import Sequence

from mtsd.apply.rows.net_rows import net_events
from mtsd.apply.rows.net_table import LaidOut
from mtsd.apply.rows.row_sql import RowSql, SqlStatement
from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.table_layout import TableLayout, layout_of
from mtsd.apply.tables.table_loading import load_table
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.groups.rewrite import with_database
from mtsd.model.outcome.reason import Refused
from tests.servers.mysqld import Server

MODE = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES'"


async def statements_of(
    session: TargetSession, events: Sequence[bytes], making: RowSql, *, net: bool = False
) -> list[SqlStatement]:
    """Return the statements of row events on `s`, for the same tables of `t`.

    `net`: of what the events come to.
    """
    laid_out: list[LaidOut] = []
    layouts: dict[bytes, TableLayout] = {}
    for event in events:
        if event[4] == EventType.TABLE_MAP_EVENT and event[19:25] not in layouts:
            table = parse_table_map(with_database(event, "t"))
            there = await load_table(session.connection, table.database, table.table)
            layout = layout_of(table, there)
            assert not isinstance(layout, Refused), layout
            layouts[event[19:25]] = layout
        elif event[4] in ROW_EVENTS:
            laid_out.append((event, layouts[event[19:25]]))
    found: list[SqlStatement] = []
    for event, layout in net_events(laid_out) if net else laid_out:
        found += making.statements(event, layout)
    found += making.rest()
    return found


def both(server: Server, definition: str) -> None:
    for database in ("s", "t"):
        server.sql(
            f"SET sql_log_bin = 0; CREATE DATABASE IF NOT EXISTS {database}; USE {database};"
            f" DROP TABLE IF EXISTS {definition.split()[2]}; SET sql_mode = ''; {definition}"
        )
