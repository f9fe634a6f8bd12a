"""Two daemons, or a daemon and what its predecessor left running, never apply one group twice."""

import time
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


def test_bundle_left_running(tmp_path: Path) -> None:
    with Pair() as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.journal (n INT); INSERT INTO a.t VALUES (1, 0)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        daemon.wait_until_caught_up()
        holder = pymysql.connect(
            unix_socket=str(pair.target.socket), user="root", client_flag=CLIENT.MULTI_STATEMENTS
        )
        with holder:
            # The bundle waits for this lock while its daemon dies, and goes on after that.
            holder.query("BEGIN")
            holder.query("SELECT * FROM a.t WHERE id = 1 FOR UPDATE")
            pair.source.sql(
                "BEGIN; INSERT INTO a.journal VALUES (1); UPDATE a.t SET v = v + 1; COMMIT"
            )
            wait_for_lock_wait(pair)
            daemon.kill()
            daemon.start()
            time.sleep(1.0)
            holder.query("COMMIT")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT COUNT(*) FROM a.journal") == [(1,)]
        assert differences(pair.source, pair.target) == []


def wait_for_lock_wait(pair: Pair) -> None:
    deadline = time.monotonic() + 20
    waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
    while pair.target.sql(waiting) == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_second_daemon_is_refused(tmp_path: Path) -> None:
    first_folder, second_folder = tmp_path / "first", tmp_path / "second"
    first_folder.mkdir()
    second_folder.mkdir()
    with Pair() as pair, DaemonProcess(pair.source, pair.target, first_folder) as first:
        first.wait_until_running()
        second = DaemonProcess(pair.source, pair.target, second_folder, {"source.server_id": 4202})
        second.start()
        assert second.wait() == 3
        assert "another mtsd runs on channel" in str(second.records()[-1]["error"])
        pair.source.sql("CREATE DATABASE a")
        first.wait_until_caught_up()
        assert first.stop() == 0


def test_second_daemon_on_another_channel(tmp_path: Path) -> None:
    first_folder, second_folder = tmp_path / "first", tmp_path / "second"
    first_folder.mkdir()
    second_folder.mkdir()
    with Pair() as pair, Pair() as other:
        pair.source.sql("CREATE DATABASE a")
        other.source.sql("CREATE DATABASE b")
        with DaemonProcess(pair.source, pair.target, first_folder) as first:
            settings: dict[str, Value] = {"source.server_id": 4202, "replica.channel": "second"}
            with DaemonProcess(other.source, pair.target, second_folder, settings) as second:
                first.wait_until_caught_up()
                second.wait_until_caught_up()
                assert second.stop() == 0
            assert first.stop() == 0
        assert {("a",), ("b",)} <= set(pair.target.sql("SHOW DATABASES"))
