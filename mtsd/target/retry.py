"""Which errors of the target pass by themselves, and how they are waited out."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection

INTERRUPTED = 1317
"""By KILL QUERY: what can be rolled back has been."""
_TRANSIENT = frozenset({1205, 1213, INTERRUPTED})
"""Beside it lock wait timeout and deadlock, which the servers retry too."""
_LONGEST_PAUSE = 5.0
_ATTEMPTS = 10


def worth_a_retry(number: int) -> bool:
    """Tell whether the same group may go through at the next attempt."""
    return number in _TRANSIENT


def pause_before(attempt: int) -> float:
    """Return the seconds to wait before attempt `attempt`, the first retry being 1."""
    return min(0.05 * 2.0 ** (attempt - 1), _LONGEST_PAUSE)


async def patiently(connection: Connection, transaction: Callable[[], Awaitable[None]]) -> None:
    """Await one transaction of mtsd's own; after a passing error roll back and try again.

    Other daemons write to the same tables, people look into them, and neither may stop this one.
    Raises the ServerError that does not pass, with nothing left open.
    """
    attempt = 0
    while True:
        try:
            await transaction()
        except ServerError as error:
            await connection.run(b"ROLLBACK", 1)
            if not worth_a_retry(error.number) or attempt == _ATTEMPTS:
                raise
        else:
            return
        attempt += 1
        await asyncio.sleep(pause_before(attempt))


async def write(connection: Connection, statements: Sequence[bytes]) -> None:
    """Commit statements of mtsd's own as one transaction, `patiently`.

    A statement by itself needs a session with autocommit.
    """
    whole = [b"BEGIN", *statements, b"COMMIT"] if len(statements) > 1 else statements
    await patiently(connection, lambda: connection.run(b";".join(whole), len(whole)))
