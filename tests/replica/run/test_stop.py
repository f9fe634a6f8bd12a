"""How the daemon stops: asked to, and on an error that a person has to look at."""

import json
import os
import signal
import time
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from mtsd.control.stop_file import StopFile
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


def gaps(target: Server) -> list[object]:
    """Return the workers that have committed something past the low-water mark."""
    ((mark,),) = target.sql("SELECT Group_number FROM mtsd.slave_relay_log_info")
    rows = target.sql(
        "SELECT Id, Checkpoint_seqno, HEX(REVERSE(Checkpoint_group_bitmap))"
        " FROM mtsd.slave_worker_info"
    )
    return [
        row
        for row in rows
        if int(str(row[1])) + int(str(row[2] or "0"), 16).bit_length() - 1 > int(str(mark))
    ]


def wait_until_at_work(daemon: DaemonProcess) -> None:
    """Return once it has applied something from now on."""
    before = daemon.status()
    assert before is not None
    daemon.wait_for_status(lambda now: now.executed != before.executed, "it applies nothing")


def test_sigterm_under_load(tmp_path: Path) -> None:
    with Pair() as pair:
        load = MixedLoad(pair.source, seed=11, databases=2, mix=Mix(over_max=False))
        load.prepare()
        stopping = Event()
        thread = Thread(target=lambda: load.run(until=stopping, rate=100))
        thread.start()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        try:
            for _ in range(3):
                daemon.start()
                daemon.wait_until_running()
                wait_until_at_work(daemon)
                assert daemon.stop() == 0
                assert gaps(pair.target) == []
        finally:
            stopping.set()
            thread.join()
            daemon.close()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []


def test_a_stop_without_the_target_says_what_is_left(tmp_path: Path) -> None:
    """Whoever hands over to another replica relies on the position, and on the exit status."""
    with Pair() as pair:
        for name in "ab":
            pair.source.sql(
                f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT);"
                f"INSERT INTO {name}.t VALUES (1, 0)"
            )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        daemon.wait_until_caught_up()
        file, offset, _ = pair.source.binlog_end()
        stored = (
            "SELECT COUNT(*) FROM mtsd.slave_relay_log_info"
            f" WHERE (Master_log_name, Master_log_pos) = ('{file}', {offset})"
        )
        while pair.target.sql(stored) != [(1,)]:
            time.sleep(0.02)
        pair.target.kill()
        daemon.wait_for_record("replication interrupted")
        assert daemon.stop() == 0

        pair.target.start()
        daemon.start()
        daemon.wait_until_running()
        with closing(pair.target.client()) as other:
            other.cursor().execute("BEGIN")
            other.cursor().execute("UPDATE a.t SET v = 7 WHERE id = 1")
            pair.source.sql("UPDATE a.t SET v = 1; INSERT INTO b.t VALUES (2, 0)")
            while pair.target.sql("SELECT COUNT(*) FROM b.t") != [(2,)]:
                time.sleep(0.02)
            os.kill(daemon.pid, signal.SIGTERM)
            daemon.wait_for_record("stopping", 2)
            pair.target.kill()
        assert daemon.wait() == 1
        ended = daemon.records()[-1]
        assert ended["level"] == "error"
        assert "later ones have begun" in str(ended["event"])
        stop = StopFile(tmp_path / "mtsd.sock").read()
        assert stop is not None
        assert stop.stop is not None
        assert (stop.stop.graceful, stop.stop.text) == (False, ended["event"])

        pair.target.start()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_missing_row_stops_and_is_fixed(tmp_path: Path) -> None:
    with Pair() as pair:
        for name in "abc":
            pair.source.sql(
                f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT);"
                f"INSERT INTO {name}.t VALUES (1, 0), (2, 0)"
            )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        daemon.wait_until_caught_up()
        pair.target.sql("DELETE FROM b.t WHERE id = 2")
        pair.source.sql("UPDATE b.t SET v = 1 WHERE id = 2")
        pair.source.sql(
            ";".join(
                f"INSERT INTO a.t VALUES ({number}, 0); INSERT INTO c.t VALUES ({number}, 0)"
                for number in range(3, 200)
            )
        )
        assert daemon.wait() == 3
        failure = daemon.records()[-1]
        message = str(failure["error"])
        assert failure["level"] == "error"
        for part in ("error 1032", "Position binlog.", "GTID", "databases b", "worker", "b.t"):
            assert part in message
        # The server repeats the error among its warnings.
        assert message.count("Can't find record") == 1
        assert "the next start fills the gap by itself" in message or "No later group" in message

        daemon.start()
        assert daemon.wait() == 3
        pair.target.sql("INSERT INTO b.t VALUES (2, 0)")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_skip_errors_passes_one_group_over(tmp_path: Path) -> None:
    with Pair() as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "INSERT INTO a.t VALUES (1, 0), (2, 0)"
        )
        settings = tmp_path / "settings"
        settings.mkdir()
        daemon = DaemonProcess(pair.source, pair.target, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.target.sql("DELETE FROM a.t WHERE id = 2")
        pair.source.sql("BEGIN; UPDATE a.t SET v = 1 WHERE id = 1; UPDATE a.t SET v = 1"
                        " WHERE id = 2; COMMIT; INSERT INTO a.t VALUES (3, 0)")  # fmt: skip
        daemon.settings["replica.skip_errors"] = json.loads("[1032]")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM a.t ORDER BY id") == [(1, 0), (3, 0)]
        skipped = [record for record in daemon.records() if "skipped" in str(record["event"])]
        assert len(skipped) == 1


@pytest.mark.parametrize("batch_groups", [1, 3])
def test_a_batch_fails_while_the_next_one_is_ready(batch_groups: int, tmp_path: Path) -> None:
    with Pair() as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.journal (n INT); INSERT INTO a.t VALUES (0, 0)"
        )
        settings = {"replica.batch_groups": batch_groups}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.target.sql("DELETE FROM a.t")
        statements = []
        for number in range(1, 301):
            statements.append(f"INSERT INTO a.journal VALUES ({number})")
            if number % 50 == 0:
                statements.append(f"UPDATE a.t SET v = {number} WHERE id = 0")
        pair.source.sql(";".join(statements))
        daemon.settings["replica.skip_errors"] = json.loads("[1032]")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        found = pair.target.sql("SELECT COUNT(*), COUNT(DISTINCT n), MAX(n) FROM a.journal")
        assert found == [(300, 300, 300)]
        skipped = [record for record in daemon.records() if "skipped" in str(record["event"])]
        assert len(skipped) == 6


def test_source_comes_and_goes(tmp_path: Path) -> None:
    with Pair() as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            for number in range(3):
                pair.source.sql(f"INSERT INTO a.t VALUES ({number})")
                daemon.wait_until_caught_up()
                pair.source.kill()
                daemon.wait_for_status(lambda now: now.lag_seconds is None, "it is connected")
                pair.source.start()
            pair.source.sql("INSERT INTO a.t VALUES (99)")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_what_the_target_cannot_hold_stops(tmp_path: Path) -> None:
    """It would roll back what is prepared in a crash, because its binary log does not have it."""
    with Pair() as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        pair.source.sql("XA START 'x'; INSERT INTO a.t VALUES (1); XA END 'x'; XA PREPARE 'x'")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, {"target.binary_log": False})
        daemon.start()
        assert daemon.wait() == 3
        error = str(daemon.records()[-1]["error"])
        assert "XA transactions cannot be applied" in error
        assert "Set [target] binary_log = true" in error
        assert pair.target.sql("XA RECOVER") == []
        daemon.settings["target.binary_log"] = True
        daemon.start()
        daemon.wait_until_caught_up()
        pair.source.sql("XA ROLLBACK 'x'")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("XA RECOVER") == []


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        (24 << 20, {"replica.pending_jobs_size_max": 8 << 20, "replica.batch_bytes": 1 << 20}),
        (24 << 20, {}),
    ],
    ids=["streamed", "held"],
)
def test_large_group(size: int, settings: dict[str, int], tmp_path: Path) -> None:
    with Pair() as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v BLOB);"
            "SET SESSION cte_max_recursion_depth = 1000000;"
            "INSERT INTO a.t (v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n"
            f" WHERE i < {size // 1000}) SELECT REPEAT('x', 960) FROM n;"
            "UPDATE a.t SET v = REPEAT('y', 10) WHERE id % 3 = 0"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        streamed = [r for r in daemon.records() if r["event"] == "streaming a large group"]
        assert bool(streamed) == bool(settings)
        assert differences(pair.source, pair.target) == []
