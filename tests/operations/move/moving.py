"""What tests of moves do: the own replica of a target, and commands with an admin."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import pymysql

from mtsd.wire.replica_words import ReplicaWords
from tests.fix_daemon import catch_up, command
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

ROWS: Final = "SELECT * FROM shop.orders ORDER BY id"
SHOP: Final = (
    "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, what TEXT)"
)

HELD: Final = "CREATE TABLE shop.held (id INT PRIMARY KEY)"
PARALLEL: Final = {
    "replica_parallel_workers": 4, "replica_preserve_commit_order": 0, "skip_replica_start": 1,
    "relay_log_recovery": 0,
}  # fmt: skip
"""With these a killed MySQL has something missing between the workers of its own replica."""


def insert(source: Server, *what: str) -> None:
    """Insert rows, each in a transaction of its own."""
    for each in what:
        source.sql(f"INSERT INTO shop.orders (what) VALUES ('{each}')")


def shop_by_itself(pair: Pair, words: ReplicaWords, by_gtid: str, *more: str) -> None:
    """Make a shop on the source, and what `more` makes, which the target's own replica applies."""
    pair.source.sql("; ".join((SHOP, *more)))
    replicate(pair.source, pair.target, words, by_gtid)


def configured(pair: Pair, folder: Path) -> DaemonProcess:
    """Return a daemon that does not run, for commands that go by its configuration."""
    daemon = DaemonProcess(pair.source, pair.target, folder)
    daemon.configure()
    return daemon


def replicate(source: Server, target: Server, words: ReplicaWords, by_gtid: str) -> None:
    """Make the account for it on a server, and let another one's own replica read from there."""
    source.sql(
        "CREATE USER repl IDENTIFIED BY 'secret-of-repl'; GRANT REPLICATION SLAVE ON *.* TO repl"
    )
    follow(source, target, words, by_gtid)


def follow(source: Server, target: Server, words: ReplicaWords, by_gtid: str) -> None:
    """Let a server's own replica read from another one, which has the account."""
    options = {
        "SOURCE_HOST": "'127.0.0.1'", "SOURCE_PORT": str(source.port),
        "SOURCE_USER": "'repl'", "SOURCE_PASSWORD": "'secret-of-repl'", "SOURCE_SSL": "1",
        "SOURCE_SSL_VERIFY_SERVER_CERT": "0",
    }  # fmt: skip
    target.sql(f"{words.change('', options)}, {by_gtid}".replace(" FOR CHANNEL ''", ""))
    target.sql(words.start(""))


def wait_for_rows(pair: Pair, table: str = "shop.orders") -> None:
    """Wait until the target has as many rows as the source, whoever applies them."""
    wait_for_as_many(pair.source, pair.target, table)


def wait_for_as_many(source: Server, target: Server, table: str = "shop.orders") -> None:
    """Wait until a server has as many rows as another one."""
    count = f"SELECT COUNT(*) FROM {table}"
    expected = source.sql(count)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(pymysql.err.MySQLError):
            if target.sql(count) == expected:
                return
        time.sleep(0.05)
    raise AssertionError(target.sql("SHOW REPLICA STATUS"))


@contextmanager
def past_a_lock(pair: Pair) -> Iterator[None]:
    """Let one worker of the own replica wait for a lock on shop.held, and the others go past it."""
    wait_for_rows(pair, "shop.held")
    with closing(pair.target.client()) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO shop.held VALUES (1)")
        pair.source.sql("INSERT INTO shop.held VALUES (1)")
        insert(pair.source, "past the gap", "past the gap, too")
        wait_for_rows(pair)
        yield


def crash_past_a_lock(pair: Pair) -> None:
    """Start a target anew that was killed with something missing between its replica's workers."""
    with past_a_lock(pair):
        pair.target.kill()
    pair.target.start()


def mtsd_goes_on(daemon: DaemonProcess) -> None:
    """Check that after a move the daemon applies what comes, and that nothing is missing."""
    insert(daemon.source, "by mtsd")
    catch_up(daemon)
    assert daemon.target.sql(ROWS) == daemon.source.sql(ROWS)


def move(daemon: DaemonProcess, *words: str, status: int | None = 0) -> str:
    """Run a move that is to be carried out, as root; return what it says."""
    report = daemon.folder / "report.txt"
    report.unlink(missing_ok=True)
    options = ("--execute", "--admin-user", "root", "--report", str(report))
    return command(daemon, *words, *options, status=status)


def report_of(daemon: DaemonProcess) -> str:
    """Return what the last move has written."""
    return Path(daemon.folder / "report.txt").read_text(encoding="utf-8")
