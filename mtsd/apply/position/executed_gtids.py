"""What the target has executed by GTID, and how the source's GTIDs are added to that.

`SET GLOBAL gtid_purged = '+…'` adds GTIDs without a transaction; it refuses those already executed
(error 3546), and a replica that reads from the target by GTID can no longer do so.
"""

from mtsd.apply.session.session import next_gtid
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.wire.binlog_status import executed_gtids
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS
from mtsd.wire.traits import ServerTraits
from mtsd.wire.understood import understood

_ATTEMPTS = 5


async def held_gtids(connection: Connection, traits: ServerTraits) -> GtidSet:
    """Return what a target has executed, on MariaDB as a replica of others.

    Raises ServerError, ConnectionLostError.
    """
    if not SERVERS[traits.server.flavour].has_domains:
        return await executed_gtids(connection)
    ((logged, applied),) = await connection.query(
        b"SELECT @@global.gtid_binlog_state, @@global.gtid_slave_pos"
    )
    return mariadb_held(str(logged), str(applied), traits.server_id)


def mariadb_held(logged: str, applied: str, server_id: int) -> GtidSet:
    """Return what a MariaDB has executed as a replica of others.

    `logged` is its gtid_binlog_state, of which the entries with its own `server_id` are left out;
    `applied` its gtid_slave_pos.
    """
    newest: dict[str, int] = {}
    of_others = [
        (origin, number)
        for origin, number in GtidSet.parse(logged).last_numbers().items()
        if origin.partition("-")[2] != str(server_id)
    ]
    for origin, number in (*of_others, *GtidSet.parse(applied).last_numbers().items()):
        newest[origin] = max(number, newest.get(origin, 0))
    return GtidSet.parse(",".join(f"{origin}-{number}" for origin, number in newest.items()))


async def execute_empty(connection: Connection, gtids: GtidSet) -> None:
    """Commit an empty transaction for each GTID of a set that the target has not executed.

    Raises ServerError, ConnectionLostError.
    """
    for uuid, tag, start, end in (await _lacked(connection, gtids)).intervals():
        for number in range(start, end):
            whole = [next_gtid(str(Gtid(uuid, number, tag))), b"BEGIN", b"COMMIT", next_gtid("")]
            await connection.run(b";".join(whole), len(whole))


@understood("target")
async def _lacked(connection: Connection, gtids: GtidSet) -> GtidSet:
    # The target subtracts: what it has executed may be a text of megabytes, at each checkpoint.
    text = literals.blob(str(gtids).encode("ascii"))
    rows = await connection.query(b"SELECT GTID_SUBTRACT(%b, @@global.gtid_executed)" % text)
    return GtidSet.parse(str(rows[0][0]))


async def add_to_executed(connection: Connection, gtids: GtidSet) -> None:
    """Add what the target lacks of a set. Raises ServerError, ConnectionLostError."""
    for attempt in range(1, _ATTEMPTS + 1):
        missing = await _lacked(connection, gtids)
        if not missing:
            return
        try:
            await connection.query(b"SET @@global.gtid_purged=%b" % literals.text(f"+{missing}"))
        except ServerError as error:
            # Somebody else may have executed one of them since the query.
            if error.number != ER.CANT_SET_GTID_PURGED_DUE_SETS_CONSTRAINTS or attempt == _ATTEMPTS:
                raise
        else:
            return
