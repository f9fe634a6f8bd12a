"""Adds the source's GTIDs to those that the target has executed.

`SET GLOBAL gtid_purged = '+…'` adds GTIDs without a transaction; it refuses those already executed
(error 3546), and a replica that reads from the target by GTID can no longer do so.
"""

from mtsd.model.errors import ServerError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.target import literals
from mtsd.target.session import next_gtid
from mtsd.wire.binlog_status import executed_gtids
from mtsd.wire.connection import Connection

_NOT_DISJOINT = 3546
_ATTEMPTS = 5


async def execute_empty(connection: Connection, gtids: GtidSet) -> None:
    """Commit an empty transaction for each GTID of a set that the target has not executed.

    Raises ServerError, ConnectionLostError.
    """
    for uuid, tag, start, end in gtids.minus(await executed_gtids(connection)).intervals():
        for number in range(start, end):
            whole = [next_gtid(str(Gtid(uuid, number, tag))), b"BEGIN", b"COMMIT", next_gtid("")]
            await connection.run(b";".join(whole), len(whole))


async def add_to_executed(connection: Connection, gtids: GtidSet) -> None:
    """Add what the target lacks of a set. Raises ServerError, ConnectionLostError."""
    for attempt in range(1, _ATTEMPTS + 1):
        missing = gtids.minus(await executed_gtids(connection))
        if not missing:
            return
        try:
            await connection.query(b"SET @@global.gtid_purged=%b" % literals.text(f"+{missing}"))
        except ServerError as error:
            # Somebody else may have executed one of them since the query.
            if error.number != _NOT_DISJOINT or attempt == _ATTEMPTS:
                raise
        else:
            return
