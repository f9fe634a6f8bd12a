"""Tables of the target that keep no rows (ENGINE = BLACKHOLE).

Rows that are inserted are logged there and nothing else happens. For the server's own replica each
row that is to be changed or deleted is found, too; for any client, as mtsd is one, none is
(measured with MySQL 9.7).
"""

from collections.abc import Sequence
from typing import Final

from mtsd.apply.sql import literals
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, refuse
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

BLACKHOLE: Final = Reason(
    "table {table} is a BLACKHOLE on the target, in which only the server's own replica finds rows"
    " to change or delete",
    "leave it out ([filter] ignore_table), or give it another engine on the target (ALTER TABLE)",
)
_TABLE_MAP: Final = EventType.TABLE_MAP_EVENT.value


@understood("target")
async def explain_missing_row(
    connection: Connection, error: ServerError, events: Sequence[bytes]
) -> ServerError:
    """Return what it means that these row events have not found a row.

    That is the error itself, unless one of their tables is a BLACKHOLE. Nothing may be open on the
    connection. Raises ServerError, ConnectionLostError.
    """
    maps = {event for event in events if event[4] == _TABLE_MAP}
    if error.number != ER.KEY_NOT_FOUND or not maps:
        return error
    tables = {(table.database, table.table) for table in map(parse_table_map, maps)}
    rows = await connection.query(
        b"SELECT table_schema,table_name FROM information_schema.tables"
        b" WHERE engine='BLACKHOLE' AND (table_schema,table_name) IN (%b)" % literals.tables(tables)
    )
    if not rows:
        return error
    schema, name = rows[0]
    reason = refuse(BLACKHOLE, table=f"{schema!s}.{name!s}")
    explained = ServerError(error.number, error.sqlstate, f"{error.text}: {reason}")
    explained.server, explained.warnings = error.server, error.warnings
    explained.leaves_changes = error.leaves_changes
    return explained
