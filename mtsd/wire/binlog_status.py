"""How far a server has got: the end of its own binlog, and its executed GTIDs."""

import re
from collections.abc import Sequence

from mtsd.model.gtid import GtidSet
from mtsd.wire.connection import Connection


def binlog_status(version: tuple[int, int, int]) -> str:
    """Return the statement whose row has file, offset and more of a server's own binlog."""
    return "SHOW BINARY LOG STATUS" if version >= (8, 2, 0) else "SHOW MASTER STATUS"


async def executed_gtids(connection: Connection) -> GtidSet:
    """Return everything that a server has executed. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(b"SELECT @@global.gtid_executed")
    return GtidSet.parse(str(rows[0][0]))


async def highest_executed(connection: Connection, uuid: str) -> int:
    """Return the highest number of an executed GTID of that UUID, without a tag; 0 if none is.

    Raises ServerError, ConnectionLostError.
    """
    every = f"{uuid}:1-{(1 << 63) - 2}".encode("ascii").hex().encode()
    executed = b"@@global.gtid_executed"
    others = b"GTID_SUBTRACT(%b, X'%b')" % (executed, every)
    rows = await connection.query(b"SELECT GTID_SUBTRACT(%b, %b)" % (executed, others))
    _, colon, numbers = str(rows[0][0]).partition(":")
    return max(map(int, re.findall(r"[-:](\d+)", colon + numbers)), default=0)


async def has_executed(connection: Connection, gtid: str) -> bool:
    """Return whether a server has executed a GTID. Raises ServerError, ConnectionLostError."""
    (executed,) = await have_executed(connection, (gtid,))
    return executed


async def have_executed(connection: Connection, gtids: Sequence[str]) -> tuple[bool, ...]:
    """Return of each of some GTIDs, at least one, what `has_executed` does."""
    # Not a text: the session may have any character set.
    subsets = b",".join(
        b"GTID_SUBSET(X'%b', @@global.gtid_executed)" % gtid.encode("ascii").hex().encode()
        for gtid in gtids
    )
    (row,) = await connection.query(b"SELECT " + subsets)
    return tuple(each == 1 for each in row)
