"""Two daemons, or a daemon and what its predecessor left running, never apply one group twice."""

import time
from contextlib import closing
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("batch_groups", [512, 1])
def test_bundle_left_running(tmp_path: Path, batch_groups: int) -> None:
    """With batch_groups = 1, a second bundle is on its way behind the one that is left running."""
    with Pair() as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.journal (n INT); INSERT INTO a.t VALUES (1, 0)"
        )
        settings: dict[str, Value] = {"replica.batch_groups": batch_groups}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        with daemon:
            daemon.wait_until_caught_up()
            # What waits as a backlog is sent ahead.
            assert daemon.stop() == 0
        holder = pymysql.connect(
            unix_socket=str(pair.target.socket), user="root", client_flag=CLIENT.MULTI_STATEMENTS
        )
        with closing(daemon), holder:
            # The bundle waits for this lock while its daemon dies, and goes on after that.
            holder.query("BEGIN")
            holder.query("SELECT * FROM a.t WHERE id = 1 FOR UPDATE")
            with closing(pair.source.client()) as client, client.cursor() as cursor:
                for number in range(1, 5):
                    cursor.execute("BEGIN")
                    cursor.execute(f"INSERT INTO a.journal VALUES ({number})")
                    cursor.execute("UPDATE a.t SET v = v + 1")
                    cursor.execute("COMMIT")
            daemon.start()
            wait_for_lock_wait(pair.target)
            daemon.kill()
            daemon.start()
            time.sleep(1.0)
            holder.query("COMMIT")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        applied = pair.target.sql("SELECT n FROM a.journal ORDER BY n")
        assert applied == [(1,), (2,), (3,), (4,)]
        assert differences(pair.source, pair.target) == []


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
