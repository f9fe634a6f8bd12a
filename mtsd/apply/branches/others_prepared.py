"""What other channels have prepared on the same target: xids are the whole server's.

Two sources may use the same xid. A target has a transaction only once under it, so what is listed
there may be another channel's, which this one must neither complete nor take for its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.prepared_table import xid_of_row
from mtsd.binlog.sql.xa_statement import xid_of
from mtsd.model.statement_text import StatementText
from mtsd.model.xa_xid import XaXid
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood


@dataclass(frozen=True, slots=True)
class OthersPrepared:
    """By xid, the name of the channel that has prepared it, or is in doubt whether it has."""

    prepared: Mapping[XaXid, str]
    in_doubt: Mapping[XaXid, str]


@understood("target")
async def others_prepared(connection: Connection, tables: PositionTables) -> OthersPrepared:
    """Read what other channels have on record. Raises ServerError, ConnectionLostError."""
    prepared = {
        xid_of_row(*parts): str(channel)
        for channel, *parts in await connection.query(tables.prepared.select_of_others())
    }
    in_doubt = {
        xid_of(StatementText(_bytes(statement))): str(channel)
        for channel, statement in await connection.query(tables.doubts.select_prepares_of_others())
    }
    return OthersPrepared(prepared, in_doubt)


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
