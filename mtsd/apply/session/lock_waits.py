"""Who waits for whose lock, from the server's own tables of locks.

The columns with the thread of a lock are of no use: that is whoever has made it explicit, often the
one who waits. CONNECTION_ID() would be the pseudo_thread_id.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from mtsd.apply.session.family import MYSQL, TargetFamily
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import NO_SUCH_TABLE, NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.understood import understood

_WEAK: Final = (
    b"'INTENTION_EXCLUSIVE','SHARED_HIGH_PRIO','SHARED_READ','SHARED_WRITE','SHARED_WRITE_LOW_PRIO',"
    b"'SHARED_UPGRADABLE'"
)
"""Metadata locks that go together, and with one that is asked for."""
_METADATA_WAITS: Final = (
    b"SELECT one.PROCESSLIST_ID,other.PROCESSLIST_ID FROM performance_schema.metadata_locks AS asks"
    b" JOIN performance_schema.metadata_locks AS has ON has.OBJECT_TYPE=asks.OBJECT_TYPE"
    b" AND has.OBJECT_SCHEMA<=>asks.OBJECT_SCHEMA AND has.OBJECT_NAME<=>asks.OBJECT_NAME"
    b" AND has.OWNER_THREAD_ID<>asks.OWNER_THREAD_ID"
    b" JOIN performance_schema.threads AS one ON one.THREAD_ID=asks.OWNER_THREAD_ID"
    b" LEFT JOIN performance_schema.threads AS other ON other.THREAD_ID=has.OWNER_THREAD_ID"
    b" WHERE asks.LOCK_STATUS='PENDING' AND (has.LOCK_TYPE NOT IN (" + _WEAK + b")"
    b" OR has.LOCK_STATUS='GRANTED' AND asks.LOCK_TYPE NOT IN (" + _WEAK + b"))"
)
"""A strong lock that is asked for comes before weak ones that are asked for after it."""


_ROW_WAITS: Final = (
    b" FROM (%b) AS waits"
    b" JOIN information_schema.INNODB_TRX AS own ON own.trx_id=waits.holding"
    b" JOIN information_schema.INNODB_TRX AS theirs ON theirs.trx_id=waits.waiting"
)


@understood("target")
async def who_waits(connection: Connection, family: TargetFamily) -> frozenset[tuple[int, int]]:
    """Return the sessions that wait for a lock, each with one that has it; 0: no session has.

    As far as the user may look, and the server knows: a MariaDB does not tell of locks of tables.
    Raises ServerError, ConnectionLostError.
    """
    of_rows = b"SELECT theirs.trx_mysql_thread_id, own.trx_mysql_thread_id" + _ROW_WAITS
    questions = [of_rows % family.lock_waits]
    if family.grants_locks_by_table:
        questions.append(_METADATA_WAITS)
    return frozenset([
        # Threads of the server itself are no sessions.
        (literals.number(waiting or 0), literals.number(holding or 0))
        for question in questions
        for waiting, holding in await _if_allowed(connection, question) or ()
    ])  # fmt: skip


@understood("target")
async def sessions_waiting(connection: Connection, family: TargetFamily) -> frozenset[int] | None:
    """Return the ids of the sessions that wait for a row lock of this one; nothing is in flight.

    None if the user may not read these tables, or the server does not have them. Raises
    ServerError, ConnectionLostError.
    """
    rows = await _if_allowed(connection, _waiting(family, [connection.thread_id]))
    return None if rows is None else frozenset(literals.number(thread) for thread, _ in rows)


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
    for thread, transaction in await connection.query(_waiting(MYSQL, sessions)):
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


def _waiting(family: TargetFamily, holding: Collection[int]) -> bytes:
    """Return the query for session and transaction of each that waits for a row lock of these."""
    return (
        b"SELECT theirs.trx_mysql_thread_id, theirs.trx_id"
        + _ROW_WAITS % family.lock_waits
        + b" WHERE own.trx_mysql_thread_id IN (%b)" % b",".join(b"%d" % each for each in holding)
    )


async def _if_allowed(connection: Connection, question: bytes) -> list[Row] | None:
    """Return the answer; None if the user may not ask, or the server has no such table."""
    try:
        return await connection.query(question)
    except ServerError as error:
        if error.number not in NOT_ALLOWED | NO_SUCH_TABLE:
            raise
        return None
