"""How far a server has got: the end of its own binlog, and its executed GTIDs."""

from mtsd.model.gtid import GtidSet
from mtsd.wire.connection import Connection


def binlog_status(version: tuple[int, int, int]) -> str:
    """Return the statement whose row has file, offset and more of a server's own binlog."""
    return "SHOW BINARY LOG STATUS" if version >= (8, 2, 0) else "SHOW MASTER STATUS"


async def executed_gtids(connection: Connection) -> GtidSet:
    """Return everything that a server has executed. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(b"SELECT @@global.gtid_executed")
    return GtidSet.parse(str(rows[0][0]))


async def has_executed(connection: Connection, gtid: str) -> bool:
    """Return whether a server has executed a GTID. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(
        # Not a text: the session may have any character set.
        b"SELECT GTID_SUBSET(X'%b', @@global.gtid_executed)" % gtid.encode("ascii").hex().encode()
    )
    return rows[0][0] == 1
