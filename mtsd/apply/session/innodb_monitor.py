"""Whether InnoDB has let go of what a session has prepared, as its monitor tells on a MariaDB.

A session that ends gives its XA transaction to whoever completes it, releases its locks, leaves
the list of processes, and only then does InnoDB detach the transaction. An XA COMMIT in between is
answered with OK and does nothing: the transaction is lost until the server restarts (MariaDB 10.11
and 11.8: `unlink_thd` in sql/mysqld.cc, `innobase_close_connection` and `trx_get_trx_by_xid` in
storage/innobase). INNODB_TRX is a copy that is too old; the monitor looks each time.
"""

import asyncio
import re
from typing import Final

from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

MONITOR: Final = b"SHOW ENGINE INNODB STATUS"
"""Needs the privilege PROCESS."""
_TRANSACTION: Final = "---TRANSACTION "
_PREPARED: Final = re.compile(r"\A\d+, ACTIVE (?:\(PREPARED\)|PREPARED)")
_THREAD: Final = re.compile(r"\bthread id (\d+),")
_CUT: Final = "... truncated..."
_POLL_PERIOD_S: Final = 0.005
_BLIND_S: Final = 1.0
"""How long to wait if the list of transactions is too long to be shown."""
_LIVES_S: Final = 2.0
"""What is attached for longer belongs to a session that lives."""


def attached(text: str) -> frozenset[int]:
    """Return the connections that have prepared transactions, of the monitor's text."""
    threads = set()
    for part in text.split(_TRANSACTION)[1:]:
        if _PREPARED.match(part) and (thread := _THREAD.search(part)):
            threads.add(int(thread[1]))
    return frozenset(threads)


async def wait_for_session(connection: Connection, thread: int, timeout_s: float) -> bool:
    """Wait until a session that has ended has nothing attached; False after `timeout_s` seconds.

    Raises ServerError, ConnectionLostError.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    while True:
        text = await _monitor(connection)
        if _CUT in text:
            await asyncio.sleep(_BLIND_S)
            return True
        if thread not in attached(text):
            return True
        if clock() > deadline:
            return False
        await asyncio.sleep(_POLL_PERIOD_S)


async def wait_for_ended_sessions(connection: Connection) -> None:
    """Wait until sessions that have ended lately, whichever they are, have nothing attached.

    Without the privilege, that long. Raises ServerError, ConnectionLostError.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + _LIVES_S
    while clock() < deadline:
        try:
            text = await _monitor(connection)
        except ServerError as error:
            if error.number not in NOT_ALLOWED:
                raise
            await asyncio.sleep(_LIVES_S)
            return
        if _CUT not in text and not attached(text):
            return
        await asyncio.sleep(_POLL_PERIOD_S)


@understood("target")
async def _monitor(connection: Connection) -> str:
    ((_, _, text),) = await connection.query(MONITOR)
    return str(text)
