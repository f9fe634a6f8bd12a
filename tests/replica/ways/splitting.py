"""A channel that splits transactions by rows, and what has to be equal then."""

from pathlib import Path

from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_prepared import prepared
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

ROWS = 600
SPLIT: dict[str, Value] = {
    "replica.consistency": "eventual",
    "replica.split_transactions": "row",
    "replica.exec_mode": "strict",
    "replica.batch_bytes": 4096,
    "replica.checkpoint_period": 0.05,
}
WAYS: dict[str, dict[str, Value]] = {
    "memory": {},
    "streamed": {"replica.pending_jobs_size_max": 16384},
    "SQL": {"replica.exec_mode": "idempotent", "replica.pending_jobs_size_max": 16384},
}
CREATE = (
    "CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v VARCHAR(60));"
    " CREATE TABLE a.u (i INT PRIMARY KEY, n INT, UNIQUE (n));"
    " CREATE TABLE a.parent (i INT PRIMARY KEY, v VARCHAR(60));"
    " CREATE TABLE a.child (i INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES a.parent (i));"
    " CREATE TABLE a.unkeyed (i INT, v VARCHAR(60))"
)
TABLES = ("t", "u", "parent", "child", "unkeyed")


def rows(server: Server) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table, sorted."""
    return {name: sorted(server.sql(f"SELECT * FROM a.{name}")) for name in TABLES}


def insert(table: str, first: int, count: int = ROWS) -> str:
    """Return an INSERT of so many rows from the number `first` on."""
    values = ",".join(f"({i}, REPEAT('{i % 10}', 50))" for i in range(first, first + count))
    return f"INSERT INTO a.{table} VALUES {values}"


def assert_equal(pair: Pair, daemon: DaemonProcess) -> None:
    """Wait until everything is applied, and check that nothing of a split is left."""
    daemon.wait_until_caught_up()
    assert rows(pair.target) == rows(pair.source)
    assert not prepared(pair.target)
    for table in ("slave_split_branch", "slave_in_doubt"):
        assert not pair.target.sql(f"SELECT * FROM mtsd.{table}")


def stopped_in_step(pair: Pair, folder: Path) -> DaemonProcess:
    """Return a daemon that has applied everything, and has stopped."""
    daemon = DaemonProcess(pair.source, pair.target, folder, {**SPLIT, **WAYS["memory"]})
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    return daemon
