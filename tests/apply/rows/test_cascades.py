"""What MySQL does with errors inside the cascades of foreign keys: see docs/foreign-keys.md."""

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Thread

import pymysql
import pytest

from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TABLES = """
    CREATE DATABASE a; USE a;
    CREATE TABLE child (id INT PRIMARY KEY);
    CREATE TABLE grandchild (
        id INT PRIMARY KEY, child_id INT, FOREIGN KEY (child_id) REFERENCES child (id)
        ON DELETE SET NULL);
    CREATE TABLE apart (id INT PRIMARY KEY);
    INSERT INTO child VALUES (2); INSERT INTO grandchild VALUES (1, 2), (2, 2)
"""
MANY_ROWS = (
    "INSERT INTO apart WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i <"
    " 500) SELECT i FROM n"
)


def left_by_a_cascade(
    native: str, locks: Sequence[str], then: str
) -> tuple[int, list[tuple[object, ...]], list[tuple[object, ...]], str]:
    """Delete a row whose cascade has to wait for another session, which does something `then`.

    Returns the number of the error (0: none), the rows afterwards, and the binary log.
    """
    with Server({**GTIDS, "innodb_native_foreign_keys": native}) as server:
        server.sql(TABLES)
        server.sql("FLUSH BINARY LOGS")
        with closing(server.client("a")) as deletes, closing(server.client("a")) as holds:
            errors: list[int] = []

            def delete() -> None:
                with deletes.cursor() as cursor:
                    cursor.execute("SET innodb_lock_wait_timeout = 2")
                    try:
                        cursor.execute("DELETE FROM child WHERE id = 2")
                        errors.append(0)
                    except pymysql.err.OperationalError as error:
                        errors.append(error.args[0])

            with holds.cursor() as cursor:
                for statement in ("BEGIN", *locks):
                    cursor.execute(statement)
                thread = Thread(target=delete)
                thread.start()
                waits = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
                while thread.is_alive() and not server.sql(waits):
                    # Asked more often, InnoDB shows again what it showed before.
                    time.sleep(0.15)
                if then:
                    cursor.execute(then)
                thread.join()
                cursor.execute("ROLLBACK")
        log = server.tool(
            "mysqlbinlog", "-v", "--base64-output=decode-rows", server.binlog_end()[0]
        )
        children = server.sql("SELECT * FROM a.child")
        return errors[0], children, server.sql("SELECT * FROM a.grandchild"), log.decode()


@pytest.mark.long
def test_a_deadlock_is_logged_as_if_it_had_not_happened() -> None:
    locks = (MANY_ROWS, "SELECT * FROM grandchild WHERE id = 2 FOR UPDATE")
    then = "SELECT * FROM child WHERE id = 2 FOR UPDATE"
    error, children, grandchildren, log = left_by_a_cascade("OFF", locks, then)
    assert (error, children, grandchildren) == (0, [(2,)], [(1, 2), (2, 2)])
    assert "UPDATE `a`.`grandchild`" in log
    error, children, grandchildren, log = left_by_a_cascade("ON", locks, then)
    assert (error, children, grandchildren) == (1213, [(2,)], [(1, 2), (2, 2)])
    assert "grandchild" not in log


@pytest.mark.long
def test_a_lock_wait_timeout_is_no_error() -> None:
    locks = ("SELECT * FROM grandchild WHERE id = 2 FOR UPDATE",)
    error, children, grandchildren, _ = left_by_a_cascade("OFF", locks, "")
    assert (error, children, grandchildren) == (0, [(2,)], [(1, None), (2, 2)])
    error, children, grandchildren, log = left_by_a_cascade("ON", locks, "")
    assert (error, children, grandchildren) == (1205, [(2,)], [(1, 2), (2, 2)])
    assert "grandchild" not in log


@pytest.mark.parametrize("binlog_format", ["STATEMENT", "ROW"])
def test_a_deadlock_on_the_target_is_retried(binlog_format: str, tmp_path: Path) -> None:
    """As rows, they are applied as SQL, from a source that does not log what it cascades."""
    source: Options = {**GTIDS, "innodb_native_foreign_keys": "ON", "binlog_format": binlog_format}
    target: Options = {**GTIDS, "innodb_native_foreign_keys": "OFF"}
    # One that is combined with others is first applied again by itself, which is no retry.
    settings: dict[str, Value] = {"target.apply_mode": "sql", "replica.batch_groups": 1}
    with Pair(source, target) as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client("a")) as holds, holds.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute(MANY_ROWS)
                cursor.execute("SELECT * FROM grandchild WHERE id = 2 FOR UPDATE")
                pair.source.sql("INSERT INTO a.child VALUES (3); DELETE FROM a.child WHERE id = 2")
                wait_for_lock_wait(pair.target)
                cursor.execute("SELECT * FROM child WHERE id = 2 FOR UPDATE")
                daemon.wait_for_record("retrying")
                cursor.execute("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        (record, *_) = (each for each in daemon.records() if each["event"] == "retrying")
        assert record["error"] == 1213
        assert pair.target.sql("SELECT * FROM a.child") == [(3,)]
        assert pair.target.sql("SELECT * FROM a.grandchild") == [(1, None), (2, None)]


@pytest.mark.parametrize("way", ["held", "streamed", "XA"])
def test_a_wait_inside_a_cascade_as_sql_is_no_missing_row(way: str, tmp_path: Path) -> None:
    """Of idempotent mode it would be one to pass over."""
    source: Options = {**GTIDS, "innodb_native_foreign_keys": "ON", "binlog_format": "ROW"}
    target: Options = {
        **GTIDS, "innodb_native_foreign_keys": "OFF", "performance_schema": "ON",
    }  # fmt: skip
    settings: dict[str, Value] = {"target.apply_mode": "sql", "replica.exec_mode": "idempotent"}
    if way == "streamed":
        settings |= {"replica.batch_bytes": 1024, "replica.pending_jobs_size_max": 1024}
    begin, end = "BEGIN", "COMMIT"
    if way == "XA":
        begin, end = "XA START 'x'", "XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'"
    with Pair(source, target) as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client("a")) as holds, holds.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM grandchild WHERE id = 2 FOR UPDATE")
                pair.source.sql(
                    f"USE a; {begin}; {MANY_ROWS}; DELETE FROM child WHERE id = 2; {end}"
                )
                wait_for_lock_wait(pair.target)
                sessions = (
                    "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx"
                    " WHERE trx_state = 'LOCK WAIT'"
                )
                ((session,),) = pair.target.sql(sessions)
                ((seconds,),) = pair.target.sql(
                    "SELECT variable_value FROM performance_schema.variables_by_thread"
                    " JOIN performance_schema.threads USING (thread_id)"
                    " WHERE variable_name = 'innodb_lock_wait_timeout'"
                    f" AND processlist_id = {session}"
                )
                assert int(str(seconds)) > 50
                cursor.execute("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM a.child") == []
        assert pair.target.sql("SELECT * FROM a.grandchild") == [(1, None), (2, None)]


@pytest.mark.parametrize("way", ["streamed", "XA"])
def test_a_deadlock_inside_a_cascade_as_sql(way: str, tmp_path: Path) -> None:
    source: Options = {**GTIDS, "innodb_native_foreign_keys": "ON", "binlog_format": "ROW"}
    target: Options = {**GTIDS, "innodb_native_foreign_keys": "OFF"}
    settings: dict[str, Value] = {"target.apply_mode": "sql"}
    if way == "streamed":
        settings |= {"replica.batch_bytes": 1024, "replica.pending_jobs_size_max": 1024}
    begin, end = "BEGIN", "COMMIT"
    if way == "XA":
        begin, end = "XA START 'x'", "XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'"
    rows = ",".join(f"({i})" for i in range(1000, 1300))
    with Pair(source, target) as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client("a")) as holds, holds.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute(MANY_ROWS)
                cursor.execute("SELECT * FROM grandchild WHERE id = 2 FOR UPDATE")
                pair.source.sql(
                    f"USE a; {begin}; INSERT INTO child VALUES {rows};"
                    f" DELETE FROM child WHERE id = 2; {end}"
                )
                wait_for_lock_wait(pair.target)
                cursor.execute("SELECT * FROM child WHERE id = 2 FOR UPDATE")
                cursor.execute("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT COUNT(*) FROM a.child") == [(300,)]
        assert pair.target.sql("SELECT * FROM a.grandchild") == [(1, None), (2, None)]
        assert pair.target.sql("XA RECOVER") == []


@pytest.mark.parametrize(("by", "held"), [("row", 8 << 20), ("table", 1024)])
def test_a_cascade_is_not_split(by: str, held: int, tmp_path: Path) -> None:
    """A branch waits for locks for some seconds only, and would take the row for a missing one."""
    source: Options = {**GTIDS, "innodb_native_foreign_keys": "ON", "binlog_format": "ROW"}
    target: Options = {**GTIDS, "innodb_native_foreign_keys": "OFF"}
    settings: dict[str, Value] = {
        "target.apply_mode": "sql",
        "replica.consistency": "eventual",
        "replica.split_transactions": by,
        "replica.batch_bytes": 1024,
        "replica.pending_jobs_size_max": held,
    }
    with Pair(source, target) as pair:
        pair.source.sql(TABLES)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client("a")) as holds, holds.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM grandchild WHERE id = 2 FOR UPDATE")
                pair.source.sql(
                    f"USE a; BEGIN; {MANY_ROWS}; DELETE FROM child WHERE id = 2; COMMIT"
                )
                wait_for_lock_wait(pair.target)
                cursor.execute("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT COUNT(*) FROM a.apart") == [(500,)]
        assert pair.target.sql("SELECT * FROM a.child") == []
        assert pair.target.sql("SELECT * FROM a.grandchild") == [(1, None), (2, None)]
        (record,) = (each for each in daemon.records() if each["event"] == "not split")
        assert "cascade" in str(record["reason"])


@pytest.mark.parametrize("options", [NO_GTIDS, GTIDS], ids=["no GTIDs", "GTIDs"])
def test_a_deadlock_after_what_cannot_be_rolled_back(options: Options, tmp_path: Path) -> None:
    """Of a streamed transaction, whose later statements commit one by one."""
    source: Options = {**GTIDS, "innodb_native_foreign_keys": "ON", "binlog_format": "STATEMENT"}
    target: Options = {**options, "innodb_native_foreign_keys": "OFF"}
    settings: dict[str, Value] = {
        "replica.batch_bytes": 1024,
        "replica.pending_jobs_size_max": 1024,
    }
    inserts = ";".join(f"INSERT INTO m VALUES ({i})" for i in range(100))
    with Pair(source, target) as pair:
        pair.source.sql(TABLES)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.target.sql("CREATE TABLE a.m (id INT) ENGINE = MyISAM")
        pair.source.sql("SET sql_log_bin = 0; CREATE TABLE a.m (id INT)")
        daemon.start()
        daemon.wait_until_caught_up()
        with closing(pair.target.client("a")) as holds, holds.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(MANY_ROWS)
            cursor.execute("SELECT * FROM grandchild WHERE id = 2 FOR UPDATE")
            pair.source.sql(f"USE a; BEGIN; {inserts}; DELETE FROM child WHERE id = 2; COMMIT")
            wait_for_lock_wait(pair.target)
            cursor.execute("SELECT * FROM child WHERE id = 2 FOR UPDATE")
            cursor.execute("ROLLBACK")
        assert daemon.wait() == 3
        assert "a deadlock inside the cascade of a foreign key" in daemon.last_words()
        assert pair.target.sql("SELECT COUNT(*) FROM a.m") == [(100,)]
        assert pair.target.sql("SELECT * FROM a.child") == [(2,)]
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(1,)]
