"""Groups of XA transactions that are recorded together: fewer commits, and no other outcome."""

import time
from pathlib import Path

import pytest

from tests.fix_daemon import assert_none_in_doubt
from tests.replica.daemon_process import Value
from tests.replica.xa.xa_of_mysql import TARGETS, assert_equal, running
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.locks import wait_for_lock_wait
from tests.servers.mysqld import GTIDS, Options, Server

pytestmark = pytest.mark.servers

MANY = 12


def commits(server: Server) -> int:
    rows = server.sql("SHOW GLOBAL STATUS LIKE 'Com_commit'")
    return int(str(rows[0][1]))


@pytest.mark.parametrize("kind", ["GTIDs", "neither"])
def test_many_are_recorded_at_once(kind: str, tmp_path: Path) -> None:
    with running(tmp_path, target=TARGETS[kind]) as (pair, daemon):
        assert daemon.stop() == 0
        for number in range(MANY):
            prepare(pair.source, f"'x{number}'", f"INSERT INTO a.t VALUES ({100 + number}, 1)")
        before = commits(pair.target)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        # Together with its prepare, a commit would be one ordinary transaction.
        for number in range(MANY):
            pair.source.sql(f"XA {'ROLLBACK' if number % 4 == 0 else 'COMMIT'} 'x{number}'")
        daemon.start()
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        # One by one, each of the 24 groups would be recorded by two transactions.
        assert commits(pair.target) - before < MANY
        assert daemon.stop() == 0


def test_one_that_fails_stops_the_replica_with_the_others_recorded(tmp_path: Path) -> None:
    with running(tmp_path) as (pair, daemon):
        assert daemon.stop() == 0
        pair.target.sql("INSERT INTO a.t VALUES (102, 7)")
        for number in range(5):
            prepare(pair.source, f"'x{number}'", f"INSERT INTO a.t VALUES ({100 + number}, 1)")
        daemon.start()
        assert daemon.wait() == 3
        assert "1062" in daemon.last_words()
        assert_none_in_doubt(pair.target)
        assert len(prepared(pair.target)) == 2
        recorded = pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_prepared_transaction")
        assert recorded == [(2,)]
        pair.target.sql("DELETE FROM a.t WHERE id = 102")
        daemon.start()
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 5
        assert daemon.stop() == 0


def test_a_lock_that_another_one_would_release(tmp_path: Path) -> None:
    """It is waited for briefly in a run, and then as long as ever."""
    with running(tmp_path) as (pair, daemon):
        assert daemon.stop() == 0
        for number in range(3):
            prepare(pair.source, f"'x{number}'", f"UPDATE a.t SET v = 9 WHERE id = {number + 1}")
        with pair.target.client() as client, client.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM a.t WHERE id = 2 FOR UPDATE")
            daemon.start()
            daemon.wait_for_record("applied one by one")
            cursor.execute("SELECT COUNT(*) FROM mtsd.slave_prepared_transaction")
            cursor.execute("ROLLBACK")
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 3
        assert daemon.stop() == 0


def test_cascades_that_lose_errors_wait_as_long_as_they_have_to(tmp_path: Path) -> None:
    """Applied as SQL, a cascade that gives up waiting for a lock is answered with OK."""
    # A source with "OFF" logs what it cascades, and then that does not happen again.
    source: Options = {**GTIDS, "innodb_native_foreign_keys": "ON"}
    target: Options = {**GTIDS, "innodb_native_foreign_keys": "OFF"}
    settings: dict[str, Value] = {
        "target.apply_mode": "sql",
        # A row that was not deleted would count as missing.
        "replica.exec_mode": "idempotent",
        "replica.parallel_workers": 1,
    }
    with running(tmp_path, source, target, settings) as (pair, daemon):
        assert daemon.stop() == 0
        # With a foreign key on the source, too, each group runs alone.
        pair.target.sql(
            "CREATE TABLE a.child (id INT PRIMARY KEY, t INT,"
            " FOREIGN KEY (t) REFERENCES a.t (id) ON DELETE SET NULL);"
            "INSERT INTO a.child VALUES (1, 2), (2, 2)"
        )
        # More than one run.
        for number in range(20):
            prepare(pair.source, f"'x{number}'", f"INSERT INTO a.t VALUES ({100 + number}, 1)")
        prepare(pair.source, "'y'", "DELETE FROM a.t WHERE id = 2")
        with pair.target.client() as client, client.cursor() as cursor:
            cursor.execute("BEGIN")
            # The error is lost after another row.
            cursor.execute("SELECT * FROM a.child WHERE id = 2 FOR UPDATE")
            daemon.start()
            wait_for_lock_wait(pair.target)
            time.sleep(2)
            cursor.execute("ROLLBACK")
        daemon.wait_until_caught_up()
        pair.source.sql(";".join(f"XA COMMIT 'x{number}'" for number in range(20)))
        pair.source.sql("XA COMMIT 'y'")
        daemon.wait_until_caught_up()
        assert pair.target.sql("SELECT * FROM a.child") == [(1, None), (2, None)]
        pair.target.sql("DROP TABLE a.child")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0
