"""Waiting for a transaction that waits for a lock."""

import time

from tests.servers.mysqld import Server


def wait_for_lock_wait(server: Server) -> None:
    """Return once a transaction waits for a row lock; AssertionError after 120 s."""
    deadline = time.monotonic() + 120
    waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
    while server.sql(waiting) == [(0,)]:
        assert time.monotonic() < deadline
        # Asked more often than every 0.1 s, InnoDB shows again what it showed before.
        time.sleep(0.15)
