"""A target that is slow under a large transaction: longer than either server waits by itself."""

import time
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

HEARTBEAT_S = 1.0
SOURCE_PATIENCE_S = 2
HELD_S = 4.0
"""Longer than the source waits for a reader, and than three heartbeats."""
BYTES, ROW = 24_000_000, 1000
"""More than the daemon and the system's buffers hold."""


@pytest.mark.parametrize("transactions", [1, 12])
def test_held_back_for_longer_than_anyone_waits(transactions: int, tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "source.heartbeat_period": HEARTBEAT_S,
        "replica.pending_jobs_size_max": 1 << (20 if transactions == 1 else 22),
        "replica.batch_bytes": 1 << 18,
    }
    rows = BYTES // ROW // transactions
    fill = (
        "SET SESSION cte_max_recursion_depth = 1000000;"
        "INSERT INTO a.t (v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < {rows}) SELECT REPEAT('x', {ROW}) FROM n"
    )
    with Pair({"net_write_timeout": SOURCE_PATIENCE_S}) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v BLOB)"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            holder = pymysql.connect(
                unix_socket=str(pair.target.socket), user="root", ssl_disabled=True
            )
            with closing(holder), holder.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM a.t WHERE id >= 500 FOR UPDATE")
                for _ in range(transactions):
                    pair.source.sql(fill)
                wait_for_lock_wait(pair.target)
                time.sleep(HELD_S)
                cursor.execute("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        events = [str(record["event"]) for record in daemon.records()]
        assert events.count("connected to the source") == 1, daemon.last_words()
        assert "source not connected" not in events
        assert "replication interrupted" not in events
        assert ("streaming a large group" in events) == (transactions == 1)
        assert differences(pair.source, pair.target) == []
