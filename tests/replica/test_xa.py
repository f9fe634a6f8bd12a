"""XA transactions: prepared, committed and rolled back as on the source, by whichever group."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql
import pytest

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TARGETS: dict[str, Options] = {
    "GTIDs": GTIDS,
    "GTIDs, no binlog": {**GTIDS, "skip_log_bin": None},
    "binlog": NO_GTIDS,
    "neither": {**NO_GTIDS, "skip_log_bin": None},
}


@contextmanager
def running(
    folder: Path,
    source: Options | None = GTIDS,
    target: Options | None = GTIDS,
    settings: dict[str, Value] | None = None,
) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Two servers with a few tables, and a daemon that has applied them and is running."""
    with Pair(source, target) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE DATABASE b;"
            "CREATE TABLE a.t (id INT PRIMARY KEY, v INT); CREATE TABLE b.t LIKE a.t;"
            "INSERT INTO a.t VALUES (1, 1), (2, 2), (3, 3); INSERT INTO b.t SELECT * FROM a.t"
        )
        with DaemonProcess(pair.source, pair.target, folder, settings) as daemon:
            daemon.wait_until_caught_up()
            yield pair, daemon


def prepared(server: Server) -> set[tuple[object, ...]]:
    return set(server.sql("XA RECOVER CONVERT XID"))


def prepare(server: Server, xid: str, *statements: str, database: str | None = None) -> None:
    """Prepare a transaction on a connection of its own, which then ends."""
    with closing(server.client(database)) as client, client.cursor() as cursor:
        for statement in (f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(statement)


def assert_equal(pair: Pair, daemon: DaemonProcess) -> None:
    daemon.wait_until_caught_up()
    assert differences(pair.source, pair.target) == []
    assert prepared(pair.source) == prepared(pair.target)
    recorded = pair.target.sql(
        "SELECT Format_id, LENGTH(Gtrid), LENGTH(Bqual),"
        " CONCAT('0x', HEX(Gtrid), HEX(Bqual)) FROM mtsd.slave_prepared_transaction"
    )
    assert set(recorded) == prepared(pair.target)
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(0,)]


@pytest.mark.parametrize("kind", TARGETS)
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
