"""Which errors of the target pass by themselves, and how they are waited out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import structlog

from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection

log = structlog.get_logger(__name__)

LOCK_WAIT_TIMEOUT = 1205
INTERRUPTED = 1317
"""By KILL QUERY: what can be rolled back has been."""
UNKNOWN = 1105
"""What BINLOG says of a KILL QUERY at some of its steps, where no column is to blame (see
`table_columns`)."""
_FULL = frozenset({3, 28, 1021, 1026, 1114})
"""A disk of the target, as far as the server does not wait by itself until there is space."""
_TRANSIENT = frozenset({LOCK_WAIT_TIMEOUT, 1213, INTERRUPTED, UNKNOWN}) | _FULL
"""Lock wait timeout and deadlock, which the servers retry too, interruptions, and full disks."""
_LONGEST_PAUSE = 5.0
_ATTEMPTS = 10
_FIRST_WORD_S = 10.0
_NEXT_WORD_S = 30.0
_SHOWN = 80


def worth_a_retry(number: int) -> bool:
    """Tell whether the same group may go through at the next attempt."""
    return number in _TRANSIENT


def pause_before(attempt: int) -> float:
    """Return the seconds to wait before attempt `attempt`, the first retry being 1."""
    return min(0.05 * 2.0 ** (attempt - 1), _LONGEST_PAUSE)


async def patiently(
    connection: Connection, transaction: Callable[[], Awaitable[None]], statement: bytes = b""
) -> None:
    """Await one transaction of mtsd's own; after a passing error roll back and try again.

    Other daemons write to the same tables, people look into them and lock them, and none of that
    may stop this one: a lock is waited for without end, and the log says so. `statement` is what
    it shows of the transaction. Raises the ServerError that does not pass, with nothing left open.
    """
    attempt = 0
    async with telling(connection, statement):
        while True:
            try:
                await transaction()
            except ServerError as error:
                await connection.run(b"ROLLBACK", 1)
                if error.number != LOCK_WAIT_TIMEOUT:
                    attempt += 1
                if not worth_a_retry(error.number) or attempt > _ATTEMPTS:
                    raise
            else:
                return
            await asyncio.sleep(pause_before(max(attempt, 1)))


async def write(connection: Connection, statements: Sequence[bytes]) -> None:
    """Commit statements of mtsd's own as one transaction, `patiently`.

    A statement by itself needs a session with autocommit.
    """
    whole = [b"BEGIN", *statements, b"COMMIT"] if len(statements) > 1 else statements
    await patiently(connection, lambda: connection.run(b";".join(whole), len(whole)), statements[0])


@contextlib.asynccontextmanager
async def telling(connection: Connection, statement: bytes) -> AsyncIterator[None]:
    """Say in the log, again and again, that the block waits for the target."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    timers: list[asyncio.TimerHandle] = []

    def tell() -> None:
        log.warning(
            "waiting for the target: SHOW PROCESSLIST there tells what for",
            connection=connection.thread_id, waited_s=round(loop.time() - began),
            statement=statement[:_SHOWN].decode("utf-8", "replace"),
        )  # fmt: skip
        timers[:] = [loop.call_later(_NEXT_WORD_S, tell)]

    timers.append(loop.call_later(_FIRST_WORD_S, tell))
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
