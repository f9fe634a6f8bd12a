"""What tests do on a server, and what they wait for there."""

import time
from contextlib import closing

from tests.servers.mysqld import Server


def wait_for(server: Server, query: str, value: int) -> None:
    """Return once the query gives that value alone; AssertionError after 120 s."""
    deadline = time.monotonic() + 120
    while server.sql(query) != [(value,)]:
        assert time.monotonic() < deadline, query
        time.sleep(0.02)


def wait_until_stuck(target: Server, statement: str) -> None:
    """Return once a session runs such a statement for longer than it would take by itself."""
    deadline = time.monotonic() + 120
    while True:
        assert time.monotonic() < deadline
        for _, _, _, _, command, seconds, _, text, *_ in target.sql("SHOW FULL PROCESSLIST"):
            if command == "Query" and int(seconds) >= 1 and statement in text:
                return
        time.sleep(0.1)


def run(server: Server, *statements: str) -> None:
    """Run statements in one session, which commits each."""
    with closing(server.client()) as client, client.cursor() as cursor:
        client.autocommit(True)
        for statement in statements:
            cursor.execute(statement)
