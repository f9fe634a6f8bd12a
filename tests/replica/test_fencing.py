"""Two daemons, or a daemon and what its predecessor left running, never apply one group twice."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT

from mtsd.target.fencing import FencedOutError, take_channel
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.mysqld import Server
from tests.servers.pair import Pair
from tests.servers.proxy import Proxy

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def over_tcp(server: Server) -> Endpoint:
    return Endpoint("target", "127.0.0.1", server.port, "", "root", "")


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


@pytest.mark.parametrize("alive", [True, False], ids=["alive", "silent"])
async def test_who_holds_the_channel(server: Server, *, alive: bool) -> None:
    """A session that nothing comes from is waited for: its daemon or its network is gone."""
    holder, second = (
        await Connection.open(over_tcp(server)),
        await Connection.open(over_tcp(server)),
    )

    async def live() -> None:
        while True:
            await holder.query("SELECT 1")
            await asyncio.sleep(0.1)

    try:
        await take_channel(holder, "c")
        if alive:
            living = asyncio.create_task(live())
            # The server counts whole seconds: one may be begun that is none.
            with pytest.raises(FencedOutError, match="another mtsd runs on channel 'c'"):
                await take_channel(second, "c", patience_s=3)
            living.cancel()
            await asyncio.wait([living])
        else:
            taking = asyncio.create_task(take_channel(second, "c", patience_s=1))
            await asyncio.sleep(2.4)
            assert not taking.done()
            holder.close()
            await taking
    finally:
        holder.close()
        second.close()


@pytest.mark.long
def test_network_of_the_former_run_has_failed(tmp_path: Path) -> None:
    former, later = tmp_path / "former", tmp_path / "later"
    former.mkdir()
    later.mkdir()
    with Pair() as pair, Proxy(pair.target) as proxy:
        first = DaemonProcess(pair.source, pair.target, former, {"target.port": proxy.port})
        with first:
            first.wait_until_running()
            proxy.stall(12)
        # The target still has its sessions.
        with DaemonProcess(pair.source, pair.target, later) as second:
            pair.source.sql("CREATE DATABASE a")
            second.wait_until_caught_up()
            assert second.stop() == 0


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
