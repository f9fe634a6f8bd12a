"""A circle of servers rests: what one daemon stores is no reason for the other to store more."""

import time
from typing import Final

from tests.servers.mysqld import Server

RESTS_S: Final = 2.0
"""More than a few checkpoints."""


def at_rest(*servers: Server) -> list[str]:
    """Wait until nothing is logged any more on any of the servers; return what was."""
    deadline = time.monotonic() + 60
    former: list[str] = []
    while True:
        found = [server.binlog_end()[2] for server in servers]
        if found == former:
            return found
        former = found
        assert time.monotonic() < deadline, found
        time.sleep(RESTS_S)
