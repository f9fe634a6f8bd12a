"""What counts is which tables of the target have transactions, not which of the source have."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import SIGKILLED, command
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

NARROW: dict[str, Value] = {
    "replica.batch_bytes": 65536,
    "replica.pending_jobs_size_max": 1 << 20,
}
"""Three megabytes are streamed then."""
THREE_MEGABYTES = (
    "INSERT INTO a.t SELECT n, REPEAT('x', 1000) FROM (WITH RECURSIVE s (n) AS"
    " (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 3000) SELECT n FROM s) AS numbers"
)
MANY: Options = {**GTIDS, "cte_max_recursion_depth": 100000}


@contextmanager
def begun(
    folder: Path, settings: dict[str, Value], *, source: str = "InnoDB", target: str = "InnoDB"
) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Begin with the table a.t, whose engine is another one on each side."""
    with Pair(MANY, GTIDS) as pair:
        daemon = DaemonProcess(pair.source, pair.target, folder, settings)
        pair.source.sql(
            "CREATE DATABASE a;"
            f"CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(1000)) ENGINE={source}"
        )
        try:
            catch_up(daemon)
            pair.target.sql(f"SET sql_log_bin = 0; ALTER TABLE a.t ENGINE={target}")
            yield pair, daemon
        finally:
            daemon.close()


def assert_same_rows(pair: Pair) -> None:
    """Compare the rows alone: the engines may differ."""
    rows = [server.sql("SELECT * FROM a.t ORDER BY id") for server in (pair.source, pair.target)]
    assert rows[0] == rows[1]


def catch_up(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0, daemon.last_words()


def ask(daemon: DaemonProcess) -> str:
    """Let the daemon stop at a group in doubt, twice; return the group's number."""
    numbers = set()
    for _ in range(2):
        if not daemon.running:
            daemon.start()
        assert daemon.wait() == 3, daemon.last_words()
        said = str(daemon.records()[-1]["error"])
        assert "non-transactional tables" in said
        found = re.search(r"mtsd resolve --group (\d+) --not-applied", said)
        assert found is not None, said
        numbers.add(found[1])
    (number,) = numbers
    return number


@pytest.mark.parametrize(
    "settings", [{"replica.batch_bytes": 65536}, NARROW], ids=["held", "streamed"]
)
def test_a_large_transaction_is_applied_whole(settings: dict[str, Value], tmp_path: Path) -> None:
    with begun(tmp_path, settings, source="MyISAM", target="MyISAM") as (pair, daemon):
        pair.source.sql(THREE_MEGABYTES)
        pair.source.sql("DELETE FROM a.t WHERE id % 3 = 0; UPDATE a.t SET v = 'y' WHERE id < 9")
        catch_up(daemon)
        assert_same_rows(pair)
        assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        ({}, "MyISAM"),
        (NARROW, "InnoDB"),
        pytest.param({}, "InnoDB", marks=pytest.mark.long),
        pytest.param(NARROW, "MyISAM", marks=pytest.mark.long),
    ],
)
def test_a_part_is_asked_about_until_a_person_says_what_is_there(
    settings: dict[str, Value], source: str, tmp_path: Path
) -> None:
    with begun(tmp_path, settings, source=source, target="MyISAM") as (pair, daemon):
        pair.target.sql("INSERT INTO a.t VALUES (2000, 'in the way')")
        pair.source.sql(THREE_MEGABYTES)
        pair.source.sql("INSERT INTO a.t VALUES (5000, 'later')")
        number = ask(daemon)
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id < 2000") == [(1999,)]
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id > 2000") == [(0,)]
        pair.target.sql("DELETE FROM a.t")
        command(daemon, "resolve", "--group", number, "--not-applied")
        catch_up(daemon)
        assert_same_rows(pair)


def test_rows_of_a_blackhole(tmp_path: Path) -> None:
    with begun(tmp_path, {}, target="BLACKHOLE") as (pair, daemon):
        pair.source.sql("INSERT INTO a.t VALUES (1, 'x'); CREATE TABLE a.u (id INT PRIMARY KEY)")
        catch_up(daemon)
        pair.source.sql("BEGIN; DELETE FROM a.t; INSERT INTO a.u VALUES (1); COMMIT")
        for apply_mode in ("binlog", "sql"):
            daemon.settings["target.apply_mode"] = apply_mode
            daemon.start()
            assert daemon.wait() == 3
            assert "1032" in str(daemon.records()[-1]["error"])
            assert "table a.t is a BLACKHOLE on the target" in str(daemon.records()[-1]["error"])
        daemon.settings["filter.ignore_table"] = ["a.t"]
        catch_up(daemon)
        assert pair.target.sql("SELECT * FROM a.u") == [(1,)]


def test_rows_in_the_way_of_the_first_one_leave_no_doubt(tmp_path: Path) -> None:
    with begun(tmp_path, {}, target="MyISAM") as (pair, daemon):
        pair.target.sql("INSERT INTO a.t VALUES (1, 'in the way')")
        pair.source.sql(
            "BEGIN; INSERT INTO a.t VALUES (1, 'x'), (2, 'y'); COMMIT;"
            "INSERT INTO a.t VALUES (3, 'z')"
        )
        for _ in range(2):
            daemon.start()
            assert daemon.wait() == 3
            assert "Duplicate entry '1'" in str(daemon.records()[-1]["error"])
        pair.target.sql("DELETE FROM a.t")
        catch_up(daemon)
        assert_same_rows(pair)


@pytest.mark.parametrize(
    ("settings", "point"),
    [
        ({}, FaultPoint.BUNDLE_SENT),
        (NARROW, FaultPoint.BEFORE_CHUNK),
        *(
            pytest.param(settings, point, marks=pytest.mark.long)
            for settings in ({}, NARROW)
            for point in (FaultPoint.BEFORE_BUNDLE, FaultPoint.COMMIT_SENT)
        ),
    ],
)
def test_nobody_is_asked_where_the_target_can_roll_back(
    point: FaultPoint, settings: dict[str, Value], tmp_path: Path
) -> None:
    with begun(tmp_path, settings, source="MyISAM", target="InnoDB") as (pair, daemon):
        pair.source.sql(THREE_MEGABYTES)
        daemon.start(fault=f"{point}:2")
        if daemon_ends(daemon):
            daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert_same_rows(pair)


def daemon_ends(daemon: DaemonProcess) -> bool:
    """Tell whether the fault is on the way of what there is to apply."""
    try:
        daemon.wait_until_caught_up()
    except AssertionError:
        return daemon.wait() == SIGKILLED
    return False


@pytest.mark.parametrize("passes", [9, pytest.param(1, marks=pytest.mark.long)])
def test_killed_while_it_is_streamed(passes: int, tmp_path: Path) -> None:
    with begun(tmp_path, NARROW, source="MyISAM", target="MyISAM") as (pair, daemon):
        pair.source.sql(THREE_MEGABYTES)
        daemon.start(fault=f"{FaultPoint.BEFORE_CHUNK}:{passes}")
        assert daemon.wait() == SIGKILLED
        number = ask(daemon)
        pair.target.sql("DELETE FROM a.t")
        command(daemon, "resolve", "--group", number, "--not-applied")
        catch_up(daemon)
        assert_same_rows(pair)


def test_a_stop_finishes_what_cannot_be_undone(tmp_path: Path) -> None:
    slow: dict[str, Value] = {**NARROW, "replica.stop_timeout": 60.0}
    with begun(tmp_path, slow, source="MyISAM", target="MyISAM") as (pair, daemon):
        pair.source.sql(THREE_MEGABYTES)
        pair.source.sql("INSERT INTO a.t VALUES (5000, 'later')")
        # Its parts wait for this.
        blocker = pair.target.client()
        with blocker.cursor() as cursor:
            cursor.execute("LOCK TABLES a.t READ")
            daemon.start()
            daemon.wait_until_running()
            wait_for_doubt(pair)
            daemon._started().send_signal(signal.SIGTERM)
            cursor.execute("UNLOCK TABLES")
        blocker.close()
        assert daemon.wait() == 0, daemon.last_words()
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id <= 3000") == [(3000,)]
        assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []
        catch_up(daemon)
        assert_same_rows(pair)


def wait_for_doubt(pair: Pair) -> None:
    deadline = time.monotonic() + 120
    while not pair.target.sql("SELECT * FROM mtsd.slave_in_doubt"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


AS_STATEMENTS: Options = {**NO_GTIDS, "binlog_format": "STATEMENT"}


@pytest.mark.parametrize("point", [FaultPoint.BEFORE_STATEMENT, FaultPoint.BEFORE_COMMIT])
def test_statements_that_change_no_row_leave_no_doubt(point: FaultPoint, tmp_path: Path) -> None:
    """The source ends them with COMMIT, as if they had changed a non-transactional table."""
    with Pair(AS_STATEMENTS, NO_GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT)")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        catch_up(daemon)
        pair.source.sql("USE a; UPDATE t SET v = 2 WHERE id = 1; INSERT INTO t VALUES (1, 1)")
        daemon.start(fault=f"{point}:1")
        assert daemon.wait() == SIGKILLED
        catch_up(daemon)
        assert_same_rows(pair)


def test_rows_among_statements_are_not_applied_twice(tmp_path: Path) -> None:
    """A table that only the target has without transactions, in a transaction of both formats."""
    with Pair({**NO_GTIDS, "binlog_format": "MIXED"}, NO_GTIDS) as pair:
        pair.source.sql(
            "CREATE DATABASE a; USE a; CREATE TABLE s (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE t (v VARCHAR(40)); INSERT INTO s VALUES (1, 1)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        catch_up(daemon)
        pair.target.sql("SET sql_log_bin = 0; ALTER TABLE a.t ENGINE = MyISAM")
        pair.source.sql(
            "USE a; BEGIN; INSERT INTO t VALUES (LENGTH(UUID())); UPDATE s SET v = v + 1; COMMIT"
        )
        daemon.start(fault=f"{FaultPoint.BEFORE_STATEMENT}:1")
        assert daemon.wait() == SIGKILLED
        number = ask(daemon)
        assert pair.target.sql("SELECT COUNT(*) FROM a.t") == [(1,)]
        pair.target.sql("DELETE FROM a.t")
        command(daemon, "resolve", "--group", number, "--not-applied")
        catch_up(daemon)
        for table in ("s", "t"):
            rows = [server.sql(f"SELECT * FROM a.{table}") for server in (pair.source, pair.target)]
            assert rows[0] == rows[1]
