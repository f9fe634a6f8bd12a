"""How no start of a MariaDB is missed: it ends all sessions, and so their temporary tables.

A server says so in the format description of the file that it begins then. Asked by GTID, a MariaDB
begins with the file of the next group and passes over those in between; 11.8 also conceals the
start if it begins with that very file (10.11 does not).
"""

from mtsd.model.position import Position
from mtsd.model.temporary_tables import NOT_KNOWN, TemporaryTables
from mtsd.source.continuation import ByFile, ByGtid
from mtsd.source.read_state import gtids_at
from mtsd.wire.connection import Connection


async def without_missing_a_start(
    connection: Connection, way: ByGtid, position: Position, temporary: TemporaryTables
) -> tuple[ByFile | ByGtid, TemporaryTables]:
    """Return how to continue with a MariaDB, and what remains known about temporary tables.

    Where a start makes a difference it is read by file, from `position`, the end of what has been
    read. If that is not there any more, open tables may have ended in the meantime.
    Raises ServerError, ConnectionLostError.
    """
    if not temporary.ends_with_source:
        return way, temporary
    if position.file:
        async with connection.answering():
            before = await gtids_at(connection, position)
        if before is not None and before.issubset(way.gtids):
            return ByFile(position), temporary
    return way, NOT_KNOWN if temporary.by_thread or temporary.left_out else temporary
