"""Which errors of the target are transient, and how to wait them out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from mtsd.apply.session.obstacle import Retrying, obstacle_of, obstacles_here
from mtsd.apply.session.xa import RB_DEADLOCK, RB_TIMEOUT, RETRY
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.refusal import is_read_only

T = TypeVar("T")

log = structlog.get_logger(__name__)

ROW_GONE = ER.SUBQUERY_NO_1_ROW
"""How a commit fails whose row in the position tables is gone (see `worker_info`)."""
_TRANSIENT: frozenset[int] = frozenset({
    ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, RB_TIMEOUT, RB_DEADLOCK, RETRY, ER.QUERY_INTERRUPTED,
    ER.UNKNOWN_ERROR,
})  # fmt: skip
"""Lock wait timeout and deadlock, which the servers retry too, and interruptions by KILL QUERY:
what can be rolled back has been. BINLOG reports an unknown error after one at some of its steps, if
no column is to blame (see `table_columns`)."""
_LONGEST_PAUSE = 5.0
_ATTEMPTS = 10
_FIRST_WORD_S = 12.0
"""After the line about the workers, which says more and spares this one."""
_NEXT_WORD_S = 30.0
_SHOWN = 80


def worth_a_retry(error: ServerError) -> bool:
    """Return whether the same group may succeed at the next attempt."""
    return error.number in _TRANSIENT or bool(obstacle_of(error))


def pause_before(attempt: int) -> float:
    """Return the seconds to wait before attempt `attempt`; the first retry is 1."""
    return min(0.05 * 2.0 ** (attempt - 1), _LONGEST_PAUSE)


async def with_retries(
    connection: Connection, transaction: Callable[[], Awaitable[None]], statement: bytes = b""
) -> None:
    """Await one of mtsd's own transactions; after a transient error roll back and retry.

    Other daemons write to the same tables, and people query and lock them; none of that may
    stop this daemon: it waits for a lock, or the end of an obstacle, indefinitely, and logs that
    it does. `statement` is what the log shows of the transaction. Raises a ServerError that is not
    transient, with nothing left open.
    """
    attempt = 0
    with Retrying(f"connection {connection.thread_id}") as retrying:
        async with announced_wait(connection, statement):
            while True:
                try:
                    await transaction()
                except ServerError as error:
                    await connection.run(b"ROLLBACK", 1)
                    if await retrying.waited_for(error):
                        continue
                    if is_read_only(error):
                        # A person waits for what a command says.
                        raise
                    if error.number != ER.LOCK_WAIT_TIMEOUT:
                        attempt += 1
                    if not worth_a_retry(error) or attempt > _ATTEMPTS:
                        raise
                else:
                    return
                await asyncio.sleep(pause_before(max(attempt, 1)))


async def insist(connection: Connection, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` does, which may be run again and must not fail: so if it is interrupted.

    Raises ServerError for another error, ConnectionLostError if that does not end.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await ask()
        except ServerError as error:
            if error.number != ER.QUERY_INTERRUPTED:
                raise
    connection.close()
    raise ConnectionLostError(
        connection.endpoint.role, "everything in its session is interrupted (KILL QUERY)"
    )


async def write(connection: Connection, statements: Sequence[bytes]) -> None:
    """Commit mtsd's own statements as one transaction, `with_retries`.

    A single statement needs a session with autocommit.
    """
    whole = [b"BEGIN", *statements, b"COMMIT"] if len(statements) > 1 else statements
    await with_retries(
        connection, lambda: connection.run(b";".join(whole), len(whole)), statements[0]
    )


async def write_each(connection: Connection, statements: Sequence[bytes]) -> None:
    """Run mtsd's own statements in one packet, `with_retries`.

    Each commits by itself, and the same again changes nothing.
    """
    await with_retries(
        connection, lambda: connection.run(b";".join(statements), len(statements)), statements[0]
    )


@contextlib.asynccontextmanager
async def announced_wait(connection: Connection, statement: bytes) -> AsyncIterator[None]:
    """Log repeatedly that the block is waiting for the target, unless for an obstacle's end."""
    announcing = _Announcing(connection.thread_id, statement)
    try:
        yield
    finally:
        announcing.end()


class _Announcing:
    """Says what is waited for, later and later.

    A function that refers to itself would do, and is garbage that only a search for cycles finds:
    that runs every half hour, and there are many waits in each second.
    """

    __slots__ = ("_began", "_connection", "_loop", "_obstacles", "_statement", "_timer")

    def __init__(self, connection: int, statement: bytes) -> None:
        self._connection = connection
        self._statement = statement
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._obstacles = obstacles_here()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(_FIRST_WORD_S, self._say)

    def _say(self) -> None:
        told = self._obstacles is not None and (
            self._obstacles.what or self._obstacles.is_wait_told
        )
        if not told:
            log.warning(
                "waiting for the target: SHOW PROCESSLIST there shows what for, or its error log",
                connection=self._connection, waited_s=round(self._loop.time() - self._began),
                statement=self._statement[:_SHOWN].decode("utf-8", "replace"),
            )  # fmt: skip
        self._timer = self._loop.call_later(_NEXT_WORD_S, self._say)

    def end(self) -> None:
        """Say nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
