"""Rows applied as SQL statements: the same data, the same strictness, the same crash safety."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.apply.appliers.differing_targets import (
    DIFFERENCES,
    SQL,
    assert_idempotent,
    assert_joined,
    assert_stopped_by,
    assert_stopped_by_a_trigger,
    begun,
)
from tests.fix_daemon import SIGKILLED
from tests.fix_kills import SMALL, assert_each_once
from tests.fix_loads import live_load
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

OFTEN = (FaultPoint.BEFORE_BUNDLE, FaultPoint.BUNDLE_SENT, FaultPoint.BEFORE_COMMIT)
"""Points that each transaction passes."""
LONG = pytest.mark.long
MIX = Mix(statement_format=True, create_select=True, triggers=False, over_max=False)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


@pytest.mark.parametrize(
    ("metadata", "workers"),
    [("FULL", 4), *(pytest.param(*each, marks=LONG) for each in (("FULL", 0), ("MINIMAL", 4)))],
)
def test_a_backlog_is_equal(pair: Pair, workers: int, metadata: str, tmp_path: Path) -> None:
    pair.source.sql(f"SET GLOBAL binlog_row_metadata = {metadata}")
    load = MixedLoad(pair.source, seed=3, databases=2, mix=MIX)
    load.prepare()
    load.run(transactions=300)
    settings = {**SQL, "replica.parallel_workers": workers}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []
    assert audit(pair.target, load.ledger) == []


@pytest.mark.parametrize(("kills", "most"), [(3, 4), pytest.param(60, 20, marks=LONG)])
def test_killed_at_any_time(pair: Pair, kills: int, most: int, tmp_path: Path) -> None:
    """Killed at points, each passed up to `most` times before, and at random."""
    chance = random.Random(kills)
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, {**SMALL, **SQL})
    with live_load(pair, seed=kills, rate=30, mix=MIX) as load:
        for point in OFTEN:
            daemon.start(fault=f"{point}:{chance.randint(1, most)}")
            assert daemon.wait() == SIGKILLED, (point, daemon.last_words())
        for _ in range(kills):
            daemon.start()
            time.sleep(0.4 + 2 * chance.random())
            daemon.kill()
            if chance.random() < 0.3:
                pair.target.kill()
                pair.target.start()
    assert_each_once(pair, daemon, load)


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_what_differs_stops_the_replica(pair: Pair, difference: str, tmp_path: Path) -> None:
    assert_stopped_by(pair, difference, tmp_path)


def test_a_trigger_that_somebody_creates_stops_the_replica(pair: Pair, tmp_path: Path) -> None:
    assert_stopped_by_a_trigger(pair, tmp_path)


def test_idempotent(pair: Pair, tmp_path: Path) -> None:
    assert_idempotent(pair, tmp_path)
    assert differences(pair.source, pair.target) == []


def test_a_cascade_happens_once(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql("CREATE DATABASE a")
    pair.source.sql(
        "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL);"
        " INSERT INTO p VALUES (1), (2), (3); INSERT INTO c VALUES (1, 1), (2, 1), (3, 2), (4, 3);"
        " DELETE FROM p WHERE id = 1; UPDATE p SET id = 9 WHERE id = 2;"
        " SET foreign_key_checks = 0; INSERT INTO c VALUES (5, 77)",
        "a",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path, SQL) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_large_groups_are_streamed(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql("CREATE DATABASE a")
    pair.source.sql(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT);"
        " SET cte_max_recursion_depth = 5000; INSERT INTO t (v) WITH RECURSIVE n (i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT REPEAT('x', i) FROM n;"
        " UPDATE t SET v = CONCAT(v, 'y'); DELETE FROM t WHERE id % 2; INSERT INTO t VALUES"
        " (100000, REPEAT('large', 500000))",
        "a",
    )
    settings = {**SQL, **SMALL}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_a_filter_and_a_rewrite(pair: Pair, tmp_path: Path) -> None:
    settings = {**SQL, "filter.do_db": ["x"], "filter.rewrite_db": [["a", "x"]]}
    for database in ("a", "b"):
        pair.source.sql(f"CREATE DATABASE {database}")
        pair.source.sql("CREATE TABLE t (i INT); INSERT INTO t VALUES (1)", database)
    pair.target.sql("CREATE DATABASE x")
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT i FROM x.t") == [(1,)]
    assert not pair.target.sql("SHOW DATABASES LIKE 'b'")


@LONG
def test_live(pair: Pair, tmp_path: Path) -> None:
    load = MixedLoad(pair.source, seed=4, databases=2, mix=MIX)
    load.prepare()
    stopping = Event()
    thread = Thread(target=lambda: load.run(seconds=2, until=stopping, rate=300))
    with DaemonProcess(pair.source, pair.target, tmp_path, SQL) as daemon:
        thread.start()
        daemon.wait_until_running()
        thread.join()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_a_restarted_source_gives_the_ids_of_tables_again(pair: Pair, tmp_path: Path) -> None:
    """What is known about a table by its id has to be forgotten: it may have lost its key."""
    pair.source.sql("CREATE DATABASE a")
    pair.source.sql("CREATE TABLE t (id INT, v VARCHAR(9), PRIMARY KEY (id))", "a")
    once = "FLUSH TABLES t; INSERT INTO t VALUES (1, 'a'); DELETE FROM t;"
    twice = (
        "FLUSH TABLES t; INSERT INTO t VALUES (1, 'a'), (1, 'b'), (1, 'c');"
        " UPDATE t SET v = 'z' WHERE v = 'b';"
    )
    settings = {**SQL, "replica.parallel_workers": 0}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        pair.source.sql(once * 60, "a")
        pair.source.sql("ALTER TABLE t DROP PRIMARY KEY", "a")
        daemon.wait_until_caught_up()
        pair.source.restart()
        pair.source.sql(twice * 60, "a")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_a_user_who_may_not_run_binlog(pair: Pair, tmp_path: Path) -> None:
    """What a managed service gives its users: rows are applied as SQL by themselves."""
    privileges = [
        str(each)
        for (each,) in pair.target.sql(
            "SELECT DISTINCT privilege_type FROM information_schema.user_privileges"
            " WHERE grantee LIKE '%root%' AND privilege_type NOT IN"
            " ('SUPER', 'REPLICATION_APPLIER', 'BINLOG_ADMIN')"
        )
    ]
    pair.target.sql(
        "SET sql_log_bin = 0; CREATE USER guest@'%' IDENTIFIED BY '';"
        f" GRANT {', '.join(privileges)} ON *.* TO guest@'%'"
    )
    settings: dict[str, Value] = {"target.user": "guest"}
    daemon = begun(pair, tmp_path, settings)
    pair.source.sql("UPDATE t SET v = UPPER(v); CREATE TABLE u SELECT * FROM t", "a")
    with daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []
    assert {record.get("binlog_allowed") for record in daemon.records()} >= {False}


def test_rows_of_many_transactions_are_few_statements(pair: Pair, tmp_path: Path) -> None:
    assert_joined(pair, tmp_path)
