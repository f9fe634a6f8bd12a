"""What tests of moves do: the own replica of a target, and commands with an admin."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pymysql

from mtsd.wire.replica_words import ReplicaWords
from tests.fix_daemon import command
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

ROWS: Final = "SELECT * FROM shop.orders ORDER BY id"
SHOP: Final = (
    "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, what TEXT)"
)


def insert(source: Server, *what: str) -> None:
    """Insert rows, each in a transaction of its own."""
    for each in what:
        source.sql(f"INSERT INTO shop.orders (what) VALUES ('{each}')")


def replicate_by_itself(pair: Pair, words: ReplicaWords, by_gtid: str) -> None:
    """Let the target's own replica read from the source; `by_gtid` is the option for the place."""
    pair.source.sql(
        "CREATE USER repl IDENTIFIED BY 'secret-of-repl'; GRANT REPLICATION SLAVE ON *.* TO repl"
    )
    options = {
        "SOURCE_HOST": "'127.0.0.1'", "SOURCE_PORT": str(pair.source.port),
        "SOURCE_USER": "'repl'", "SOURCE_PASSWORD": "'secret-of-repl'", "SOURCE_SSL": "1",
        "SOURCE_SSL_VERIFY_SERVER_CERT": "0",
    }  # fmt: skip
    pair.target.sql(f"{words.change('', options)}, {by_gtid}".replace(" FOR CHANNEL ''", ""))
    pair.target.sql(words.start(""))


def wait_for_rows(pair: Pair, table: str = "shop.orders") -> None:
    """Wait until the target has as many rows as the source, whoever applies them."""
    count = f"SELECT COUNT(*) FROM {table}"
    expected = pair.source.sql(count)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(pymysql.err.MySQLError):
            if pair.target.sql(count) == expected:
                return
        time.sleep(0.05)
    raise AssertionError(pair.target.sql("SHOW REPLICA STATUS"))


def move(daemon: DaemonProcess, *words: str, status: int | None = 0) -> str:
    """Run a move that is to be carried out, as root; return what it says."""
    report = daemon.folder / "report.txt"
    report.unlink(missing_ok=True)
    options = ("--execute", "--admin-user", "root", "--report", str(report))
    return command(daemon, *words, *options, status=status)


def report_of(daemon: DaemonProcess) -> str:
    """Return what the last move has written."""
    return Path(daemon.folder / "report.txt").read_text(encoding="utf-8")
