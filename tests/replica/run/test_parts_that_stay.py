"""Groups of which a part stays on the target when they are interrupted: never twice, never lost."""

from pathlib import Path

import pymysql
import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, catch_up, command
from tests.fix_families import pair_of
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

ONE: dict[str, Value] = {"replica.parallel_workers": 1}
PRESERVE: dict[str, Value] = {**ONE, "target.gtid": "preserve"}


def rows(server: Server, table: str) -> list[tuple[object, ...]] | None:
    """Return the rows of a table; None if it does not exist."""
    try:
        return sorted(server.sql(f"SELECT * FROM {table}"))
    except pymysql.err.MySQLError as error:
        if error.args[0] not in {1049, 1146}:
            raise
        return None


def asks_about(daemon: DaemonProcess) -> tuple[str, str]:
    """Wait until a person is asked; return the error, and the number of the group."""
    assert daemon.wait() == NEEDS_PERSON
    error = str(daemon.records()[-1]["error"])
    return error, error.partition("group ")[2].partition(",")[0].partition(" ")[0]


@pytest.mark.parametrize("point", ["", FaultPoint.BEFORE_CHUNK, FaultPoint.BEFORE_COMMIT])
@pytest.mark.parametrize("if_not_exists", ["", "IF NOT EXISTS"])
@pytest.mark.parametrize("series", ["11.8", "9.7"])
def test_a_table_without_transactions_that_is_created_and_filled(
    series: str, if_not_exists: str, point: str, tmp_path: Path
) -> None:
    """A MariaDB ends such a group like one on tables without transactions."""
    with pair_of("11.8", series, "ROW") as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY) ENGINE=InnoDB;"
            "INSERT INTO a.t VALUES (1), (2), (3)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
        catch_up(daemon)
        pair.source.sql(f"CREATE TABLE {if_not_exists} a.n ENGINE=MyISAM SELECT * FROM a.t")
        with daemon:
            if point:
                daemon.stop()
                daemon.start(fault=f"{point}:1")
                assert daemon.wait() == SIGKILLED
                there = rows(pair.target, "a.n")
                daemon.start()
                if there is not None:
                    error, number = asks_about(daemon)
                    assert "mtsd resolve" in error
                    if not there:
                        pair.target.sql("DROP TABLE a.n")
                    answer = "--applied" if there else "--not-applied"
                    command(daemon, "resolve", "--group", number, answer)
                    daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert rows(pair.target, "a.n") == [(1,), (2,), (3,)]


def test_a_gtid_that_is_used_up_cannot_be_applied_again(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.m (i INT PRIMARY KEY) ENGINE=MyISAM")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, PRESERVE)
        catch_up(daemon)
        pair.target.sql("SET sql_log_bin = 0; INSERT INTO a.m VALUES (2)")
        pair.source.sql("INSERT INTO a.m VALUES (1), (2), (3)")
        daemon.start()
        _, number = asks_about(daemon)
        said = command(daemon, "resolve", "--group", number, "--not-applied", status=NEEDS_PERSON)
        assert "which the target has executed, so it would skip the group" in said
        pair.target.sql("SET sql_log_bin = 0; INSERT INTO a.m VALUES (3)")
        command(daemon, "resolve", "--group", number, "--applied")
        catch_up(daemon)
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("fault", ["", f"{FaultPoint.BEFORE_COMMIT}:1"])
def test_several_statements_under_one_gtid(fault: str, tmp_path: Path) -> None:
    """Of tables that are transactional on the source only, nothing is applied."""
    with Pair({**GTIDS, "binlog_format": "STATEMENT"}, GTIDS) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT)")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, PRESERVE)
        catch_up(daemon)
        pair.target.sql("SET sql_log_bin = 0; ALTER TABLE a.t ENGINE=MyISAM")
        pair.source.sql("INSERT INTO a.t VALUES (1)")
        catch_up(daemon)
        pair.source.sql("BEGIN; INSERT INTO a.t VALUES (2); INSERT INTO a.t VALUES (3); COMMIT")
        daemon.start(fault=fault)
        if fault:
            # Before the record is written, and after it.
            assert daemon.wait() == SIGKILLED
            daemon.start(fault=fault.replace(":1", ":2"))
        error, number = asks_about(daemon)
        assert "mtsd resolve" in error
        assert rows(pair.target, "a.t") == [(1,), (2,)]
        pair.target.sql("SET sql_log_bin = 0; INSERT INTO a.t VALUES (3)")
        command(daemon, "resolve", "--group", number, "--applied")
        catch_up(daemon)
        assert rows(pair.target, "a.t") == [(1,), (2,), (3,)]


def test_statements_that_only_read_a_table_without_transactions(tmp_path: Path) -> None:
    with Pair({**GTIDS, "binlog_format": "STATEMENT"}, GTIDS) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.m (id INT) ENGINE=MyISAM; INSERT INTO a.m VALUES (5)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, PRESERVE)
        catch_up(daemon)
        change = "INSERT INTO a.t SELECT {}, id FROM a.m"
        pair.source.sql(f"BEGIN; {change.format(1)}; {change.format(2)}; COMMIT")
        pair.source.sql(f"BEGIN; {change.format(3)}; {change.format(4)}; COMMIT")
        for point in (FaultPoint.AFTER_IN_DOUBT, FaultPoint.BEFORE_COMMIT):
            daemon.start(fault=f"{point}:1")
            assert daemon.wait() == SIGKILLED
        catch_up(daemon)
        assert differences(pair.source, pair.target) == []
        assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []


@pytest.mark.parametrize("audit", ["a", "z"])
def test_a_trigger_that_a_cascade_runs(audit: str, tmp_path: Path) -> None:
    """Nobody knows whether it has changed what cannot be rolled back."""
    options = {**NO_GTIDS, "binlog_format": "STATEMENT", "log_bin_trust_function_creators": 1}
    with Pair(options, {**NO_GTIDS, "log_bin_trust_function_creators": 1}) as pair:
        pair.source.sql(
            f"CREATE DATABASE a; CREATE DATABASE IF NOT EXISTS {audit};"
            "CREATE TABLE a.p (id INT PRIMARY KEY); CREATE TABLE a.c (id INT PRIMARY KEY, p INT,"
            " FOREIGN KEY (p) REFERENCES a.p (id) ON DELETE CASCADE);"
            f"CREATE TABLE {audit}.audit (c INT) ENGINE=MyISAM;"
            "CREATE TRIGGER a.tr AFTER DELETE ON a.c FOR EACH ROW"
            f" INSERT INTO {audit}.audit VALUES (OLD.id);"
            "INSERT INTO a.p VALUES (1), (2); INSERT INTO a.c VALUES (1, 1), (2, 2)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
        catch_up(daemon)
        pair.source.sql("SET SESSION enable_cascade_triggers = 1; DELETE FROM a.p WHERE id = 1")
        daemon.start(fault=f"{FaultPoint.BEFORE_COMMIT}:1")
        assert daemon.wait() == SIGKILLED
        there = rows(pair.target, f"{audit}.audit")
        daemon.start()
        if there:
            error, number = asks_about(daemon)
            assert "mtsd resolve" in error
            applied = rows(pair.target, "a.p") == [(2,)]
            assert applied, "the test applies what is missing only if it is simple"
            command(daemon, "resolve", "--group", number, "--applied")
            daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        for table in ("a.p", "a.c", f"{audit}.audit"):
            assert rows(pair.target, table) == rows(pair.source, table)


@pytest.mark.parametrize("what", ["tables", "a database"])
@pytest.mark.parametrize("series", ["11.8", "9.7"])
def test_a_drop_that_fails_in_the_middle(series: str, what: str, tmp_path: Path) -> None:
    """What a server has logged of it is not all of it."""
    with pair_of(series, series, "MIXED") as pair:
        pair.source.sql(
            "CREATE DATABASE b; CREATE TABLE b.x (i INT); CREATE TABLE b.p (i INT PRIMARY KEY);"
            "CREATE DATABASE c"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
        catch_up(daemon)
        stray = pair.target.datadir / "b" / "stray"
        if what == "tables":
            pair.target.sql(
                "CREATE TABLE c.c (i INT PRIMARY KEY, FOREIGN KEY (i) REFERENCES b.p (i))"
            )
            pair.source.sql("DROP TABLE b.x, b.p")
        else:
            stray.write_text("")
            pair.source.sql("DROP DATABASE b")
        daemon.start(fault=f"{FaultPoint.STATEMENT_SENT}:1")
        assert daemon.wait() == SIGKILLED
        daemon.start()
        assert daemon.wait() == NEEDS_PERSON
        if what == "tables":
            pair.target.sql("DROP TABLE c.c")
        else:
            stray.unlink()
        daemon.start()
        try:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        except AssertionError:
            error, number = asks_about(daemon)
            assert "b.x" in error
            pair.target.sql("DROP TABLE b.p")
            command(daemon, "skip", "--group", number, "--reason", "dropped by hand")
            catch_up(daemon)
        assert rows(pair.target, "b.p") is None
        assert differences(pair.source, pair.target) == []
