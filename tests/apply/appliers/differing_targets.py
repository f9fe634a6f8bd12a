"""Targets that differ from their source, and what the appliers of SQL do there."""

import itertools
import random
import time
from collections.abc import Iterator
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


def assert_stopped_by_a_trigger(pair: Pair, folder: Path) -> None:
    """Check that the replica stops at one that somebody creates on the target while it runs."""
    with begun(pair, folder, SQL) as daemon:
        daemon.wait_until_running()
        pair.source.sql("INSERT INTO t VALUES (4, 'd')", "a")
        daemon.wait_until_caught_up()
        pair.target.sql("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a = 1", "a")
        deadline = time.monotonic() + 60
        for number in itertools.count(5):
            pair.source.sql(f"INSERT INTO t VALUES ({number}, '{number}')", "a")
            if not daemon.running or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        assert daemon.wait(5) == NEEDS_PERSON
    assert "table a.t has triggers on the target (g)" in daemon.last_words()


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


TABLES = (
    "CREATE TABLE k (id VARCHAR(9) PRIMARY KEY, v INT, d DATETIME(3), n DECIMAL(9,2))",
    "CREATE TABLE h (a INT, b VARCHAR(20), c DOUBLE, e ENUM('x', 'y'))",
    "CREATE TABLE p (id INT PRIMARY KEY, v INT)",
    (
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, v INT,"
        " FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL)"
    ),
)
KINDS_OF_STATEMENTS = ("insert", "update", "update_multi", "delete")


def transactions(rng: random.Random, count: int) -> Iterator[str]:
    """Yield transactions on `TABLES` and on `t`; rows change several times."""
    for n in range(100, 100 + count):
        old = rng.randrange(100, n + 1)
        statements = [
            f"INSERT INTO k VALUES ('{n}', {n}, '2026-01-02 03:04:05.678', -{n}.25)",
            f"UPDATE k SET v = v + 1, n = n + 0.1 WHERE id = '{old}'",
            f"INSERT INTO h VALUES ({n}, 'row {n}', 0.1, IF({n} % 5, 'y', NULL))",
            f"UPDATE h SET b = 'changed by {n}' WHERE a = {old}",
            f"INSERT INTO t VALUES ({n}, '{n}')",
            f"UPDATE t SET v = CONCAT(v, '.') WHERE id = {old} AND LENGTH(v) < 5",
            f"INSERT INTO p VALUES ({n}, 1)",
            f"INSERT INTO c VALUES ({n}, {n}, 1), (-{n}, {old}, 2)",
        ][:: 1 if n % 2 else -1]
        if n % 2 == 0:
            # A child comes after its parent.
            statements[:2] = statements[1::-1]
        if n % 3 == 0:
            statements += [f"DELETE FROM {name} WHERE id = {old}" for name in ("k", "t")]
            statements += [f"DELETE FROM h WHERE a = {old}"]
        if n % 7 == 0:
            statements += [f"UPDATE p SET id = -id WHERE id = {old}"]
        if n % 11 == 0:
            statements += [f"UPDATE p SET v = 2 WHERE id = {n}", f"DELETE FROM p WHERE id = {n}"]
        # What somebody refers to may have gone.
        yield "; ".join(
            [
                "BEGIN",
                *(each.replace("INSERT INTO c", "INSERT IGNORE INTO c") for each in statements),
                "COMMIT",
            ]
        )


def assert_joined(pair: Pair, folder: Path) -> None:
    """Check that the rows of many transactions are few statements, and come to the same."""
    daemon = begun(pair, folder, SQL)
    for table in TABLES:
        pair.source.sql(table, "a")
    made = list(transactions(random.Random(1), 40))
    with daemon:
        pair.source.sql("; ".join(made), "a")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    made = list(transactions(random.Random(2), 250))[40:]
    pair.source.sql("; ".join(made), "a")
    before = _given(pair)
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert unequal(pair.source, pair.target) == []
    assert [each for each in daemon.records() if each["event"] == "applied again"] == []
    # Those of parents and children are in their order.
    given = _given(pair) - before
    assert given < len(made) * 9, given


def _given(pair: Pair) -> int:
    """Return how many statements have changed rows of the target."""
    status = pair.target.sql("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
    return sum(int(n) for name, n in status if name.removeprefix("Com_") in KINDS_OF_STATEMENTS)
