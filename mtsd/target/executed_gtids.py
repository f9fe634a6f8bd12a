"""The target's own set of executed GTIDs, to which the source's are added.

`SET GLOBAL gtid_purged = '+…'` adds GTIDs without a transaction; it refuses one that is executed
already (error 3546), and a replica that reads from the target by GTID can no longer do so.
"""

from mtsd.model.errors import ServerError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.target import literals
from mtsd.wire.connection import Connection

_NOT_DISJOINT = 3546
_ATTEMPTS = 5


async def executed_gtids(connection: Connection) -> GtidSet:
    """Return everything that the target has executed. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(b"SELECT @@global.gtid_executed")
    return GtidSet.parse(str(rows[0][0]))


async def execute_empty(connection: Connection, gtids: GtidSet) -> None:
    """Commit an empty transaction for each GTID of a set that the target has not executed.

    Raises ServerError, ConnectionLostError.
    """
    if not gtids:
        return
    for uuid, tag, start, end in gtids.minus(await executed_gtids(connection)).intervals():
        for number in range(start, end):
            gtid = str(Gtid(uuid, number, tag)).encode("ascii")
            await connection.run(
                b"SET @@session.gtid_next='%b';BEGIN;COMMIT;SET @@session.gtid_next='AUTOMATIC'"
                % gtid,
                4,
            )


class GtidMirror:
    """Adds the source's GTIDs to those that the target has executed, on the session that it has."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mirrored = GtidSet()

    async def add(self, gtids: GtidSet) -> None:
        """Add what the target lacks of a set. Raises ServerError, ConnectionLostError."""
        new = gtids.minus(self._mirrored)
        if not new:
            return
        for attempt in range(1, _ATTEMPTS + 1):
            missing = new.minus(await executed_gtids(self._connection))
            if not missing:
                break
            try:
                await self._connection.query(
                    b"SET @@global.gtid_purged=%b" % literals.text(f"+{missing}")
                )
                break
            except ServerError as error:
                # Somebody else may have executed one of them since we asked.
                if error.number != _NOT_DISJOINT or attempt == _ATTEMPTS:
                    raise
        self._mirrored = gtids.copy()
