"""Sessions of a source that log statements, and what is known of their temporary tables."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.fix_daemon import command
from tests.fix_servers import wait_for
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

BEGINNING = (
    "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b INT);"
    "INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6);"
    "CREATE TABLE d.u (a INT PRIMARY KEY); INSERT INTO d.u VALUES (1), (2)"
)
LOOK_ALIKES = (
    "DELETE x FROM t x JOIN t y ON x.a = y.a + 3 WHERE x.a = 4",
    "DELETE FROM t WHERE a IN (SELECT a + 4 FROM u)",
    "INSERT INTO t VALUES (CONNECTION_ID() + 1000, 1)",
    "CREATE TABLE numbered SELECT CONNECTION_ID() + 1 c",
    "DROP TABLE numbered",
)
"""What a session without temporary tables may run in statement format."""


def begin_anew(pair: Pair) -> None:
    """Leave nothing of the test before, neither on the servers nor in their binary logs."""
    for server in (pair.target, pair.source):
        wait_for(server, "SELECT COUNT(*) FROM information_schema.processlist"
                 " WHERE command NOT LIKE 'Binlog%' AND user = 'root' AND db = 'd'", 0)  # fmt: skip
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS e")
        server.sql("DROP DATABASE IF EXISTS mtsd")
        server.reset_binlog()
    pair.source.sql(BEGINNING)


class Session:
    """A client of the source that stays connected; it logs statements."""

    def __init__(self, server: Server, binlog_format: str = "STATEMENT") -> None:
        self._client = server.client("d")
        self.run(f"SET binlog_format = {binlog_format}")
        ((self.id,),) = self.run("SELECT CONNECTION_ID()")

    def run(self, *statements: str) -> list[tuple[int, ...]]:
        """Run statements, and return what the last one has answered."""
        with self._client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def close(self) -> None:
        """End the session, whose temporary tables go with it."""
        self._client.close()


@contextmanager
def session(server: Server, binlog_format: str = "STATEMENT") -> Iterator[Session]:
    with closing(Session(server, binlog_format)) as client:
        yield client


def skip(daemon: DaemonProcess, error: str) -> str:
    """Skip the group that has stopped the daemon with that error, and return the error."""
    number = error.partition("group ")[2].split(",")[0]
    command(daemon, "skip", "--group", number, "--reason", "only temporary tables")
    return error


def known(server: Server) -> dict[str, object]:
    ((text,),) = server.sql("SELECT Temporary_tables FROM mtsd.slave_relay_log_info")
    found: dict[str, object] = json.loads(text)
    return found


def will_be_known(server: Server, threads: list[dict[str, object]]) -> None:
    """Wait for the checkpoint that says so."""
    deadline = time.monotonic() + 30
    while known(server)["threads"] != threads:
        assert time.monotonic() < deadline, known(server)
        time.sleep(0.05)


def open_tables(server: Server, session: Session, *tables: str) -> dict[str, object]:
    ((server_id,),) = server.sql("SELECT @@server_id")
    named = [["d", table] for table in tables]
    return {"server_id": server_id, "thread_id": session.id, "tables": named}
