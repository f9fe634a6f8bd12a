"""Targets that differ from their source, and what the appliers of SQL do there."""

from pathlib import Path

from tests.fix_daemon import NEEDS_PERSON
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

SQL: dict[str, Value] = {"target.apply_mode": "sql"}


def begun(pair: Pair, folder: Path, settings: dict[str, Value]) -> DaemonProcess:
    """Return a daemon that has replicated a table, and has stopped."""
    pair.source.sql("CREATE DATABASE a")
    pair.source.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), UNIQUE KEY (v));"
        " INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "a",
    )
    daemon = DaemonProcess(pair.source, pair.target, folder, settings)
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0
    return daemon


DIFFERENCES = {
    "update": (
        "DELETE FROM t WHERE id = 2", "UPDATE t SET v = UPPER(v) WHERE id > 1", "error 1032",
    ),
    "delete": ("DELETE FROM t WHERE id = 2", "DELETE FROM t", "error 1032"),
    "insert": ("INSERT INTO t VALUES (4, 'z')", "INSERT INTO t VALUES (4, 'd')", "error 1062"),
    "no table": ("DROP TABLE t", "INSERT INTO t VALUES (4, 'd')", "error 1146"),
    "other type": (
        "ALTER TABLE t MODIFY v VARCHAR(5)", "INSERT INTO t VALUES (4, 'd')",
        "column 'v' of table a.t is varchar of 36 bytes on the source and varchar(5)",
    ),
    "no column": (
        "ALTER TABLE t DROP COLUMN v", "INSERT INTO t VALUES (4, 'd')",
        "table a.t has no column 2 on the target, which has 1 columns",
    ),
    "trigger": (
        "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a = 1",
        "INSERT INTO t VALUES (4, 'd')", "table a.t has triggers on the target (g)",
    ),
}  # fmt: skip
"""What is done on the target, then on the source, and what the replica says."""


def contents(pair: Pair) -> list[tuple[object, ...]]:
    return pair.target.sql("SELECT * FROM a.t ORDER BY id")


def assert_stopped_by(pair: Pair, difference: str, folder: Path) -> None:
    """Check that the replica stops at a difference, and leaves the target as it is."""
    on_target, on_source, says = DIFFERENCES[difference]
    daemon = begun(pair, folder, SQL)
    pair.target.sql(f"SET sql_log_bin = 0; {on_target}", "a")
    before = contents(pair) if "DROP" not in on_target else []
    pair.source.sql(on_source, "a")
    with daemon:
        assert daemon.wait() == NEEDS_PERSON
    assert says in daemon.last_words()
    if before:
        assert contents(pair) == before


def assert_idempotent(pair: Pair, folder: Path) -> None:
    """Check that rows that are missing or in the way become those of the source."""
    daemon = begun(pair, folder, {"replica.exec_mode": "idempotent"})
    pair.target.sql(
        "SET sql_log_bin = 0; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (4, 'z')", "a"
    )
    pair.source.sql(
        "INSERT INTO t VALUES (4, 'd'), (5, 'e'); UPDATE t SET v = 'B' WHERE id = 2;"
        " UPDATE t SET v = 'C' WHERE id = 3; DELETE FROM t WHERE id IN (1, 2)",
        "a",
    )
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert contents(pair) == [(3, "C"), (4, "d"), (5, "e")]
    assert unequal(pair.source, pair.target) == []
