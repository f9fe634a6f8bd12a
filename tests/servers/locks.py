"""Waiting for what InnoDB says of its transactions, and the names of mtsd's own locks."""

import time
from typing import Any, Final

from mtsd.apply.position.lock_names import CHANNEL, LockNames, TokenTable
from tests.servers.mysqld import Server

_TRANSACTIONS: Final = "SELECT COUNT(*) FROM information_schema.INNODB_TRX"
_WAITING: Final = (
    "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
)
_PERIOD_S: Final = 0.15
"""Asked more often than every 0.1 s, InnoDB shows again what it showed before."""


def lock_of(
    server: Server, channel: str = "", session_id: int = CHANNEL, schema: str = "mtsd"
) -> str:
    """Return the name of a session's lock; a schema without a token gets one, as by a start."""
    table = TokenTable(schema)
    server.sql(b";".join(table.creation()).decode())
    ((token,),) = server.sql(table.select().decode())
    return LockNames(token, channel).session(session_id)


def wait_for_lock_wait(server: Server) -> None:
    """Return once a transaction waits for a row lock; AssertionError after 120 s."""
    waiting_session(server)


def waiting_session(server: Server) -> int:
    """Return the id of a session that waits for a row lock, once there is one.

    AssertionError after 120 s.
    """
    return int(_first(server, _WAITING)[0])


def wait_for_the_end_of_all_transactions(server: Server) -> None:
    """Return once no transaction is open; AssertionError after 120 s."""
    _first(server, f"{_TRANSACTIONS} HAVING COUNT(*) = 0")


def _first(server: Server, query: str) -> tuple[Any, ...]:
    """Return the first row of a query, once there is one; AssertionError after 120 s."""
    deadline = time.monotonic() + 120
    while not (found := server.sql(query)):
        assert time.monotonic() < deadline, query
        time.sleep(_PERIOD_S)
    return found[0]
