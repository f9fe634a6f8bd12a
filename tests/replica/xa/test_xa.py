"""XA transactions: prepared, committed and rolled back as on the source, by whichever group."""

import re
import time
from contextlib import closing
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import assert_none_in_doubt, command
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_of_mysql import KINDS, TARGETS, assert_equal, running
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.locks import waiting_session
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("kind", KINDS)
def test_prepared_and_completed(kind: str, tmp_path: Path) -> None:
    with running(tmp_path, target=TARGETS[kind]) as (pair, daemon):
        source = pair.source
        prepare(source, "'one'", "INSERT INTO a.t VALUES (10, 1)", "DELETE FROM b.t WHERE id = 1")
        prepare(source, "X'00ff','',4294967296", "UPDATE a.t SET v = 7 WHERE id = 1")
        prepare(source, "'',''", "UPDATE b.t SET v = 8 WHERE id = 2")
        source.sql("INSERT INTO a.t VALUES (11, 1); INSERT INTO b.t VALUES (11, 1)")
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 3
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id = 10") == [(0,)]
        source.sql("XA COMMIT 'one'; XA ROLLBACK X'00ff','',4294967296")
        source.sql("UPDATE a.t SET v = 9 WHERE id = 1")
        assert_equal(pair, daemon)
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id = 10") == [(1,)]
        # The same xid again, which is committed on this connection; then in one phase.
        source.sql(
            "XA COMMIT '','';"
            "XA START 'one'; INSERT INTO a.t VALUES (20, 1); XA END 'one'; XA PREPARE 'one';"
            "XA COMMIT 'one'; XA START 'one'; INSERT INTO b.t VALUES (20, 1); XA END 'one';"
            "XA COMMIT 'one' ONE PHASE; INSERT INTO a.t VALUES (21, 1)"
        )
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert daemon.stop() == 0


SMALL: dict[str, Value] = {
    # What is larger is streamed.
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
}
MANY_ROWS = (
    "INSERT INTO a.l WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i <"
    " 600) SELECT i + {first}, REPEAT('x', 1000) FROM n"
)


def make_large(pair: Pair) -> None:
    pair.source.sql("CREATE TABLE a.l (id INT PRIMARY KEY, v VARCHAR(1000))")


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_streamed(kind: str, tmp_path: Path) -> None:
    with running(tmp_path, target=TARGETS[kind], settings=SMALL) as (pair, daemon):
        make_large(pair)
        source = pair.source
        prepare(source, "'big'", MANY_ROWS.format(first=0), "UPDATE a.t SET v = 5 WHERE id = 1")
        prepare(source, "'other'", MANY_ROWS.format(first=1000))
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 2
        source.sql("XA COMMIT 'big'; XA ROLLBACK 'other'")
        source.sql(
            f"XA START 'one'; {MANY_ROWS.format(first=2000)}; XA END 'one';"
            " XA COMMIT 'one' ONE PHASE"
        )
        assert_equal(pair, daemon)
        assert pair.target.sql("SELECT COUNT(*) FROM a.l") == [(1200,)]
        assert daemon.wait_for_record("streaming a large group", 3)
        assert daemon.stop() == 0
        # Where no GTID tells, it is prepared first; a restart completes it, and is killed as well.
        source.sql(
            f"XA START 'two'; {MANY_ROWS.format(first=3000)}; XA END 'two';"
            " XA COMMIT 'two' ONE PHASE"
        )
        last = 1 if kind == "GTIDs" else 2
        for fault in (f"{FaultPoint.BEFORE_STATEMENT}:{last}", FaultPoint.BEFORE_RECOVERY_WRITE):
            daemon.start(fault=fault)
            assert daemon.wait() == -9
        daemon.start()
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    "fault",
    [
        f"{FaultPoint.BEFORE_CHUNK}:4", f"{FaultPoint.STATEMENT_SENT}:1",
        f"{FaultPoint.AFTER_STATEMENT}:1", f"{FaultPoint.AFTER_STATEMENT}:2",
    ],
)  # fmt: skip
def test_killed_in_one_that_is_streamed(fault: str, tmp_path: Path) -> None:
    with running(tmp_path, settings=SMALL) as (pair, daemon):
        make_large(pair)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        prepare(pair.source, "'big'", MANY_ROWS.format(first=0))
        pair.source.sql(
            f"XA START 'one'; {MANY_ROWS.format(first=2000)}; XA END 'one';"
            " XA COMMIT 'one' ONE PHASE"
        )
        daemon.start(fault=fault)
        assert daemon.wait() == -9
        daemon.start()
        assert_equal(pair, daemon)
        pair.source.sql("XA COMMIT 'big'")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


def test_a_streamed_one_without_its_end_leaves_no_trace(tmp_path: Path) -> None:
    with running(tmp_path, settings=SMALL) as (pair, daemon):
        make_large(pair)
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        prepare(pair.source, "'big'", MANY_ROWS.format(first=0))
        daemon.start(fault=f"{FaultPoint.BEFORE_CHUNK}:4:hangs")
        daemon.wait_for_record("streaming a large group")
        pair.target.sql("DO SLEEP(0.5)")
        assert pair.target.sql("SELECT Kind FROM mtsd.slave_in_doubt") == [("xa_prepare",)]
        daemon.kill()
        daemon.start()
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


def test_an_error_in_a_branch_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (pair, daemon):
        pair.target.sql("INSERT INTO b.t VALUES (50, 0)")
        prepare(
            pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)", "INSERT INTO b.t VALUES (50, 1)"
        )
        assert daemon.wait() == 3
        assert "Duplicate entry" in str(daemon.records()[-1]["error"])
        assert prepared(pair.target) == set()
        assert pair.target.sql("SELECT COUNT(*) FROM a.t WHERE id = 50") == [(0,)]
        assert_none_in_doubt(pair.target)
        pair.target.sql("DELETE FROM b.t WHERE id = 50")
        daemon.start()
        assert_equal(pair, daemon)
        pair.source.sql("XA COMMIT 'x'")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    "kind",
    ["GTIDs", *(pytest.param(kind, marks=pytest.mark.long) for kind in TARGETS if kind != "GTIDs")],
)
def test_a_lock_is_waited_for(kind: str, tmp_path: Path) -> None:
    """KILL QUERY interrupts the wait instead of its time-out, which is long."""
    with running(tmp_path, target=TARGETS[kind]) as (pair, daemon):
        with closing(pair.target.client()) as client, client.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE a.t SET v = v WHERE id = 1")
            prepare(pair.source, "'x'", "UPDATE a.t SET v = 5 WHERE id = 1")
            for number in (1, 2):
                while retries(daemon) < number:
                    # What is known of waits is up to 0.1 s old, so the kill may come too early.
                    cursor.execute(f"KILL QUERY {waiting_session(pair.target)}")
                    time.sleep(0.2)
            cursor.execute("ROLLBACK")
        assert_equal(pair, daemon)
        pair.source.sql("XA ROLLBACK 'x'")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


def retries(daemon: DaemonProcess) -> int:
    """Return how often groups have been retried."""
    status = daemon.status()
    return sum(worker.retries for worker in status.workers) if status is not None else 0


@pytest.mark.parametrize("kind", ["GTIDs", "neither"])
@pytest.mark.parametrize("verb", ["COMMIT", "ROLLBACK"])
def test_what_a_person_has_completed(kind: str, verb: str, tmp_path: Path) -> None:
    with running(tmp_path, target=TARGETS[kind]) as (pair, daemon):
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        assert_equal(pair, daemon)
        pair.target.sql(f"XA {verb} 'x'")
        pair.source.sql("XA COMMIT 'x'; INSERT INTO b.t VALUES (50, 1)")
        assert daemon.wait() == 3
        error = str(daemon.records()[-1]["error"])
        assert "XAER_NOTA" in error
        assert "the target has not prepared the transaction X'78',X'',1" in error
        assert "`mtsd skip --group" in error
        found = re.search(r"mtsd skip --group (\d+)", error)
        assert found is not None
        if verb == "ROLLBACK":
            pair.target.sql("INSERT INTO a.t VALUES (50, 1)")
        command(daemon, "skip", "--group", found[1], "--reason", "done manually")
        daemon.start()
        daemon.wait_until_caught_up()
        assert differences(pair.source, pair.target) == []
        assert daemon.stop() == 0
        # Nothing completes it any more.
        assert pair.target.sql("SELECT * FROM mtsd.slave_prepared_transaction") == []


@pytest.mark.parametrize("kind", ["GTIDs", "neither"])
def test_an_xid_that_a_person_has_used(kind: str, tmp_path: Path) -> None:
    with running(tmp_path, target=TARGETS[kind]) as (pair, daemon):
        prepare(pair.target, "'x'", "INSERT INTO b.t VALUES (50, 1)")
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        assert daemon.wait() == 3
        error = str(daemon.records()[-1]["error"])
        assert "XAER_DUPID" in error
        assert "already prepared a transaction with the xid X'78',X'',1" in error
        assert_none_in_doubt(pair.target)
        pair.target.sql("XA ROLLBACK 'x'")
        daemon.start()
        assert_equal(pair, daemon)
        pair.source.sql("XA COMMIT 'x'")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


def test_completed_though_its_prepare_is_before_the_beginning(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        for server in (pair.source, pair.target):
            server.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT)")
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        with DaemonProcess(
            pair.source, pair.target, tmp_path, {"source.start": "latest"}
        ) as daemon:
            daemon.wait_until_running()
            pair.source.sql("XA COMMIT 'x'")
            assert daemon.wait() == 3
            assert "before replication began" in str(daemon.records()[-1]["error"])


@pytest.mark.parametrize("kind", KINDS)
def test_without_changes_a_restart_forgets_it(kind: str, tmp_path: Path) -> None:
    with running(tmp_path, target=TARGETS[kind]) as (pair, daemon):
        pair.source.sql(
            "SET binlog_format = STATEMENT; XA START 'x'; UPDATE a.t SET v = 1 WHERE id = 99;"
            " XA END 'x'; XA PREPARE 'x'"
        )
        assert_equal(pair, daemon)
        assert len(prepared(pair.target)) == 1
        pair.target.kill()
        pair.target.start()
        assert prepared(pair.target) == set()
        pair.source.sql("XA COMMIT 'x'; INSERT INTO a.t VALUES (50, 1)")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


def test_statements(tmp_path: Path) -> None:
    with running(tmp_path) as (pair, daemon):
        pair.source.sql(
            "SET binlog_format = STATEMENT; XA START 'x'; UPDATE a.t SET v = 9 WHERE id > 1;"
            " SAVEPOINT s; INSERT INTO b.t VALUES (50, 1); ROLLBACK TO s; XA END 'x';"
            " XA PREPARE 'x'"
        )
        assert_equal(pair, daemon)
        pair.source.sql("UPDATE b.t SET v = 3 WHERE id = 1; XA COMMIT 'x'")
        pair.source.sql(
            "SET binlog_format = STATEMENT; XA START 'x'; UPDATE a.t SET v = 7; XA END 'x';"
            " XA COMMIT 'x' ONE PHASE; SET binlog_transaction_compression = ON;"
            " SET binlog_format = MIXED; XA START 'y'; UPDATE a.t SET v = v + 1;"
            " UPDATE b.t SET v = LENGTH(UUID()); XA END 'y'; XA PREPARE 'y'; XA COMMIT 'y'"
        )
        assert_equal(pair, daemon)
        assert daemon.stop() == 0


@pytest.mark.parametrize("gtid", ["preserve", "mirror"])
def test_the_sources_gtids(gtid: str, tmp_path: Path) -> None:
    target = GTIDS if gtid == "preserve" else TARGETS["GTIDs, no binlog"]
    with running(tmp_path, target=target, settings={"target.gtid": gtid}) as (pair, daemon):
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        prepare(pair.source, "'y'", "INSERT INTO b.t VALUES (50, 1)")
        assert_equal(pair, daemon)
        daemon.kill()
        pair.target.kill()
        pair.target.start()
        pair.source.sql("XA COMMIT 'x'; XA ROLLBACK 'y'; INSERT INTO b.t VALUES (51, 1)")
        daemon.start()
        assert_equal(pair, daemon)
        assert daemon.stop() == 0
        ((theirs,),) = pair.source.sql("SELECT @@gtid_executed")
        assert pair.target.sql(f"SELECT GTID_SUBSET('{theirs}', @@gtid_executed)") == [(1,)]


def test_a_table_without_transactions_in_a_branch(tmp_path: Path) -> None:
    """What it has changed stays: so an error stops, and a person is asked."""
    with running(tmp_path) as (pair, daemon):
        pair.source.sql("CREATE TABLE a.m (id INT PRIMARY KEY)")
        daemon.wait_until_caught_up()
        pair.target.sql("ALTER TABLE a.m ENGINE = MyISAM")
        prepare(
            pair.source, "'x'", "INSERT INTO a.m VALUES (1)", "UPDATE a.t SET v = 5 WHERE id = 1"
        )
        assert_equal_prepared(pair, daemon)
        pair.source.sql("XA COMMIT 'x'")
        daemon.wait_until_caught_up()
        pair.target.sql("INSERT INTO a.t VALUES (50, 1)")
        prepare(pair.source, "'x'", "INSERT INTO a.m VALUES (2)", "INSERT INTO a.t VALUES (50, 1)")
        for _ in range(2):
            assert daemon.wait() == 3
            assert "non-transactional" in str(daemon.records()[-1]["error"])
            daemon.start()
        daemon.wait()
        pair.target.sql("DELETE FROM a.t WHERE id = 50; DELETE FROM a.m WHERE id = 2")
        (found,) = pair.target.sql("SELECT Group_number FROM mtsd.slave_in_doubt")
        command(daemon, "resolve", "--group", str(found[0]), "--not-applied")
        daemon.start()
        assert_equal_prepared(pair, daemon)
        pair.source.sql("XA COMMIT 'x'")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.target.sql("ALTER TABLE a.m ENGINE = InnoDB")
        assert differences(pair.source, pair.target) == []


def assert_equal_prepared(pair: Pair, daemon: DaemonProcess) -> None:
    daemon.wait_until_caught_up()
    assert prepared(pair.source) == prepared(pair.target)
