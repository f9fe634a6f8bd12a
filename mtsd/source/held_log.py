"""Whether a source keeps its binary log locked while its clients wait for a replica.

A MariaDB with rpl_semi_sync_master_wait_point = AFTER_SYNC does: the client that would be the next
to commit holds the log's lock until the one before it is acknowledged. So long, SHOW BINARY LOGS
and SHOW MASTER STATUS are not answered. A replica that asks these before it acknowledges waits for
itself, and a query that is given up stays on the source as a session.
"""

import asyncio
from typing import Final

from mtsd.model.server import Flavour
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS

_WAITING: Final = "rpl_semi_sync_master_wait_sessions"
_ACKNOWLEDGED: Final = "rpl_semi_sync_master_get_ack"
_COUNTS: Final = (
    b"SHOW GLOBAL STATUS WHERE Variable_name IN ('Rpl_semi_sync_master_wait_sessions',"
    b" 'Rpl_semi_sync_master_get_ack')"
)
HELD: Final = "its clients wait for a replica"
"""Why its files cannot be listed then."""
_MOMENT_S: Final = 0.2
"""Under a load somebody always waits; but where a replica acknowledges, never for that long."""


async def holds_its_log(connection: Connection, flavour: Flavour) -> bool:
    """Return whether its clients wait, and nobody acknowledges anything.

    Raises ServerError, ConnectionLostError.
    """
    if not SERVERS[flavour].has_domains:
        return False
    before = await _counts(connection)
    if not before.get(_WAITING):
        return False
    await asyncio.sleep(_MOMENT_S)
    now = await _counts(connection)
    return bool(now.get(_WAITING)) and now.get(_ACKNOWLEDGED) == before.get(_ACKNOWLEDGED)


async def _counts(connection: Connection) -> dict[str, int]:
    return {str(name).lower(): int(str(value)) for name, value in await connection.query(_COUNTS)}
