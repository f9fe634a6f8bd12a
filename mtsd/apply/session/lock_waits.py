"""Who waits for whose row lock, from the server's own tables of locks.

The columns with the thread of a lock are of no use: that is whoever has made it explicit, often the
one who waits. CONNECTION_ID() would be the pseudo_thread_id.
"""

from collections.abc import Collection
from dataclasses import dataclass

from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NO_SUCH_TABLE, NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.understood import understood


@understood("target")
async def sessions_waiting(connection: Connection, family: TargetFamily) -> frozenset[int] | None:
    """Return the ids of the sessions that wait for a row lock of this one; nothing is in flight.

    None if the user may not read these tables, or the server does not have them. Raises
    ServerError, ConnectionLostError.
    """
    try:
        rows = await _waiting(connection, family, [connection.thread_id])
    except ServerError as error:
        if error.number not in NOT_ALLOWED | NO_SUCH_TABLE:
            raise
        return None
    return frozenset(literals.number(thread) for thread, _ in rows)


@dataclass(frozen=True, slots=True)
class Meeting:
    """A session that waits for a row lock which another one of the same group holds.

    The table is "" where the server does not tell: without performance_schema.
    """

    waiting: int
    database: str = ""
    table: str = ""


@understood("target")
async def meeting_among(connection: Connection, sessions: Collection[int]) -> Meeting | None:
    """Return where one of the sessions waits for another one, on a MySQL; None if none does.

    Raises ServerError, also if the user may not look, and ConnectionLostError.
    """
    for thread, transaction in await _waiting(connection, MYSQL, sessions):
        if thread not in sessions:
            continue
        # All locks of large transactions would be very many to look through.
        locks = await connection.query(
            b"SELECT OBJECT_SCHEMA,OBJECT_NAME FROM performance_schema.data_locks"
            b" WHERE ENGINE_TRANSACTION_ID=%d AND LOCK_STATUS='WAITING'"
            % literals.number(transaction)
        )
        for database, table in locks:
            return Meeting(literals.number(thread), str(database), str(table))
    waiting, holding = await _transactions(connection)
    # Whoever else has locks may hold the one that is waited for.
    if not holding <= set(sessions):
        return None
    return next((Meeting(thread) for thread in waiting if thread in sessions), None)


@understood("target")
async def in_lock_waits(connection: Connection, sessions: Collection[int]) -> frozenset[int]:
    """Return which of the sessions wait for a row lock. Raises as `meeting_among` does."""
    waiting, _ = await _transactions(connection)
    return waiting.intersection(sessions)


async def _transactions(connection: Connection) -> tuple[frozenset[int], frozenset[int]]:
    """Return the sessions that wait for a row lock, and those that have any; 0: is prepared."""
    rows = await connection.query(
        b"SELECT trx_mysql_thread_id,trx_state='LOCK WAIT' FROM information_schema.INNODB_TRX"
        b" WHERE trx_lock_structs>0"
    )
    transactions = [(literals.number(thread), waits == 1) for thread, waits in rows]
    return (
        frozenset(thread for thread, waits in transactions if waits),
        frozenset(thread for thread, _ in transactions),
    )


async def _waiting(
    connection: Connection, family: TargetFamily, holding: Collection[int]
) -> list[Row]:
    """Return session and transaction of each that waits for a row lock of one of the sessions."""
    return await connection.query(
        b"SELECT theirs.trx_mysql_thread_id, theirs.trx_id FROM (%b) AS waits"
        b" JOIN information_schema.INNODB_TRX AS own ON own.trx_id=waits.holding"
        b" JOIN information_schema.INNODB_TRX AS theirs ON theirs.trx_id=waits.waiting"
        b" WHERE own.trx_mysql_thread_id IN (%b)"
        % (family.lock_waits, b",".join(b"%d" % each for each in holding))
    )
