"""A target that does not answer its workers, while it answers others: the daemon says so."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from mtsd.replica.workers.target_waits import TargetWait, TargetWaits, kind_in_words
from tests.fix_servers import wait_until_stuck
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair


@pytest.mark.servers
def test_workers_that_wait_are_in_the_status_and_in_the_log(tmp_path: Path) -> None:
    with Pair() as pair, DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        daemon.wait_until_caught_up()
        with closing(pair.target.client()) as holder, holder.cursor() as cursor:
            cursor.execute("LOCK TABLES a.t WRITE")
            pair.source.sql("ALTER TABLE a.t ADD COLUMN v INT; INSERT INTO a.t VALUES ()")
            status = daemon.wait_for_status(
                lambda status: any(
                    each.target_wait is not None and each.target_wait.seconds >= 2
                    for each in status.workers
                ),
                "no worker waits",
            )
            (wait,) = [each.target_wait for each in status.workers if each.target_wait]
            assert (wait.statement, wait.kind, wait.databases) == ("ALTER TABLE", "ddl", "a")
            assert status.pending_groups == 2
            shown = subprocess.run(
                [sys.executable, "-m", "mtsd", "status", "--config", str(daemon.config)],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            (line,) = [line for line in shown.splitlines() if "ALTER TABLE" in line]
            assert line.split()[-4:] == [str(wait.connection), str(wait.group), "ddl", "a"]
            record = daemon.wait_for_record("workers wait for the target's answer")
            assert (record["waiting"], record["workers"]) == (1, 4)
            waits = record["at"]
            assert isinstance(waits, list)
            (at,) = waits
            assert at["connection"] == wait.connection
            assert (at["statement"], at["group"]) == ("ALTER TABLE", wait.group)
            assert at["waited_s"] >= 10
        daemon.wait_for_record("the target answers the workers again")
        daemon.wait_until_caught_up()
        with closing(pair.target.client()) as holder, holder.cursor() as cursor:
            cursor.execute("LOCK TABLES a.t WRITE")
            # What goes to the target begins with SET.
            pair.source.sql("SET binlog_format = STATEMENT; UPDATE a.t SET v = 7")
            status = daemon.wait_for_status(
                lambda status: any(each.waits_for == "target" for each in status.workers),
                "no worker waits",
            )
            (worker,) = [each for each in status.workers if each.waits_for]
            assert worker.state == "waiting"
            assert worker.target_wait is not None
            assert worker.target_wait.statement == "UPDATE"
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.servers
@pytest.mark.parametrize("split", ["off", "row"])
def test_the_lag_of_a_large_transaction_that_is_being_applied(split: str, tmp_path: Path) -> None:
    """It is in no queue, and yet not applied."""
    settings: dict[str, Value] = {
        "replica.batch_bytes": 4096,
        "replica.pending_jobs_size_max": 8192,
    }
    if split != "off":
        settings |= {"replica.consistency": "eventual", "replica.split_transactions": split}
    with Pair() as pair, DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v TEXT)")
        daemon.wait_until_caught_up()
        for size in (6000, 60_000):
            with closing(pair.target.client()) as holder, holder.cursor() as cursor:
                cursor.execute("LOCK TABLES a.t WRITE")
                values = ", ".join(f"({size + row}, '{'x' * (size // 6)}')" for row in range(6))
                pair.source.sql(f"INSERT INTO a.t VALUES {values}")
                status = daemon.wait_for_status(
                    lambda status: any(
                        each.target_wait is not None and each.target_wait.seconds >= 2
                        for each in status.workers
                    ),
                    "no worker waits",
                )
                assert status.lag_seconds is not None
                assert status.lag_seconds >= 2, size
                waiting = [each for each in status.workers if each.target_wait is not None]
                assert {(each.state, each.waits_for) for each in waiting} == {("waiting", "target")}
                said = {each.target_wait.statement for each in waiting if each.target_wait}
                assert said == {"BINLOG" if split == "off" else "REPLACE"}
            daemon.wait_until_caught_up()
            status = daemon.wait_for_status(lambda now: now.lag_seconds is not None, "no lag")
            assert status.lag_seconds == 0
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.servers
def test_start_that_waits_says_for_what(tmp_path: Path) -> None:
    with Pair() as pair, DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        pair.source.sql("CREATE DATABASE a")
        daemon.wait_until_caught_up()
        with closing(pair.target.client()) as holder, holder.cursor() as cursor:
            cursor.execute("LOCK TABLES mtsd.slave_relay_log_info READ")
            # Moves the low-water mark, which is stored then.
            pair.source.sql("FLUSH BINARY LOGS; CREATE TABLE a.t (id INT PRIMARY KEY)")
            wait_until_stuck(pair.target, "UPDATE `mtsd`.`slave_relay_log_info`")
            daemon.kill()
            daemon.start()
            status = daemon.wait_for_status(
                lambda status: "a former run" in status.doing, "it does not say what it waits for"
            )
            assert status.state == "recovering"
            sessions = pair.target.sql("SHOW PROCESSLIST")
            (stuck,) = [row[0] for row in sessions if "slave_relay_log_info" in str(row[7])]
            assert f"connection {stuck}" in status.doing
        daemon.wait_until_caught_up()
        status = daemon.wait_for_status(lambda _: True, "no status")
        assert status.doing == ""
        assert daemon.stop() == 0


def test_what_is_logged_of_waits_and_when() -> None:
    waits: list[TargetWait] = []
    watch = TargetWaits(lambda at_least: [wait for wait in waits if wait.seconds >= at_least], 4)

    def looked(now: float) -> list[str]:
        with capture_logs() as records:
            watch.report(now)
        return [str(record["event"]).split(":")[0] for record in records]

    structlog.reset_defaults()
    wait = "workers wait for the target's answer"
    assert looked(0.0) == []
    waits[:] = [TargetWait(2, 11, 9.9, "COMMIT", 5, "rows", ("a",))]
    assert looked(100.0) == []
    waits[:] = [TargetWait(2, 11, 10.9, "COMMIT", 5, "rows", ("a",))]
    assert looked(101.0) == [wait]
    assert looked(102.0) == []
    assert looked(131.5) == [wait]
    waits.clear()
    assert looked(132.0) == ["the target answers the workers again"]
    assert looked(133.0) == []


@pytest.mark.parametrize(
    ("packet", "answered", "kind"),
    [
        (b"BEGIN;BINLOG 'abc;d';COMMIT", 0, "BEGIN"),
        (b"BEGIN;BINLOG 'abc;d';COMMIT", 1, "BINLOG"),
        (b"BEGIN;BINLOG 'abc;d';COMMIT", 2, "COMMIT"),
        (b"SET @a=';', @b=\";\";USE `a;`;UPDATE t SET a = 1", 2, "UPDATE"),
        (b"BEGIN", 5, ""),
        (b"/* c */ create user x identified by 'y'", 0, "CREATE USER"),
        (b"UPDATE `mtsd`.`x` SET", 0, "UPDATE"),
        (b"", 0, ""),
    ],
)
def test_kind_of_the_statement_that_runs(packet: bytes, answered: int, kind: str) -> None:
    assert kind_in_words(packet, answered) == kind
