"""Who waits for a row lock of this session, from the server's own tables of locks."""

from mtsd.apply.session.family import TARGETS
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NO_SUCH_TABLE, NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.server import Flavour
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood


@understood("target")
async def sessions_waiting(connection: Connection, flavour: Flavour) -> frozenset[int] | None:
    """Return the ids of the sessions that wait for a row lock of this one; nothing is in flight.

    None if the user may not read these tables, or the server does not have them. The columns with
    the thread of a lock are of no use: that is whoever has made it explicit, often the one who
    waits. Raises ServerError, ConnectionLostError.
    """
    waits = TARGETS[flavour].lock_waits
    try:
        rows = await connection.query(
            b"SELECT theirs.trx_mysql_thread_id FROM (%b) AS waits"
            b" JOIN information_schema.INNODB_TRX AS own ON own.trx_id=waits.holding"
            b" JOIN information_schema.INNODB_TRX AS theirs ON theirs.trx_id=waits.waiting"
            # CONNECTION_ID() would be the pseudo_thread_id.
            b" WHERE own.trx_mysql_thread_id=%d" % (waits, connection.thread_id)
        )
    except ServerError as error:
        if error.number not in NOT_ALLOWED | NO_SUCH_TABLE:
            raise
        return None
    return frozenset(literals.number(thread) for (thread,) in rows)
