"""Two daemons, or a daemon and what its predecessor left running, never apply one group twice."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT

from mtsd.apply.position.fencing import FencedOutError, fence, take_channel, take_lock
from mtsd.apply.position.lock_names import (
    CHANNEL,
    OVERLAPPING_SESSIONS,
    LockNames,
    SessionOf,
    make_locks,
    read_locks,
)
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from tests.fix_servers import wait_until_stuck
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import wait_for_lock_wait
from tests.servers.mysqld import Server
from tests.servers.pair import Pair
from tests.servers.proxy import Proxy

pytestmark = pytest.mark.servers
LOCKS = LockNames("t", "c")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # It shows what program a session is of.
    with Server({"performance_schema": "ON"}) as server:
        yield server


def over_tcp(server: Server) -> Endpoint:
    return Endpoint("target", "127.0.0.1", server.port, "", "root", "")


@pytest.mark.parametrize(("batch_groups", "until"), [(512, "recovered"), (1, "starting")])
def test_bundle_left_running(tmp_path: Path, batch_groups: int, until: str) -> None:
    """With batch_groups = 1, a second bundle is on its way behind the one that is left running.

    The lock goes when the next daemon has ended that bundle, or just before.
    """
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
            former = sum(record["event"] == until for record in daemon.records())
            daemon.start()
            daemon.wait_for_record(until, former + 1)
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
        assert "another mtsd is running on channel" in str(second.records()[-1]["error"])
        pair.source.sql("CREATE DATABASE a")
        first.wait_until_caught_up()
        assert first.stop() == 0


@pytest.mark.parametrize("work", ["busy", "coordinator stuck"])
def test_a_daemon_at_work_is_no_predecessor(tmp_path: Path, work: str) -> None:
    first_folder, second_folder = tmp_path / "first", tmp_path / "second"
    first_folder.mkdir()
    second_folder.mkdir()
    with Pair() as pair, DaemonProcess(pair.source, pair.target, first_folder) as first:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        first.wait_until_caught_up()
        with closing(pair.target.client()) as holder, holder.cursor() as lock:
            if work != "busy":
                lock.execute("BEGIN")
                lock.execute("SELECT * FROM mtsd.slave_relay_log_info FOR UPDATE")
            second = DaemonProcess(
                pair.source, pair.target, second_folder, {"source.server_id": 4202}
            )
            second.start()
            with closing(pair.source.client()) as client, client.cursor() as cursor:
                while second.running:
                    cursor.execute("INSERT INTO a.t VALUES ()")
                    time.sleep(0.05)
            assert second.wait() == 3
        assert "another mtsd is running on channel" in str(second.records()[-1]["error"])
        first.wait_until_caught_up()
        assert first.stop() == 0
        assert differences(pair.source, pair.target) == []


STUCK = {
    "read lock on the positions": "LOCK TABLES mtsd.slave_relay_log_info READ",
    "write lock on everything": "LOCK TABLES mtsd.slave_relay_log_info WRITE,"
    " mtsd.slave_worker_info WRITE, mtsd.slave_in_doubt WRITE, a.t WRITE",
    "global read lock": "FLUSH TABLES WITH READ LOCK",
    "row lock on the positions": "BEGIN; SELECT * FROM mtsd.slave_relay_log_info FOR UPDATE",
}


@pytest.mark.parametrize(
    ("lock", "end"),
    [*((lock, "released") for lock in STUCK), ("row lock on the positions", "stopped")],
)
def test_predecessor_that_is_stuck_is_waited_for(tmp_path: Path, lock: str, end: str) -> None:
    with Pair() as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client()) as holder, holder.cursor() as cursor:
                for statement in STUCK[lock].split(";"):
                    cursor.execute(statement)
                # The first moves the low-water mark, which the coordinator stores then.
                pair.source.sql("FLUSH BINARY LOGS; INSERT INTO a.t VALUES ()")
                wait_until_stuck(pair.target, "UPDATE `mtsd`.`slave_relay_log_info`")
                daemon.kill()
                daemon.start()
                waits = daemon.wait_for_record("waiting for")
                assert waits["statement"] or waits["reason"]
                assert waits["connection"]
                if end == "stopped":
                    assert daemon.stop() == 0
            # What held the lock is gone.
            if end == "stopped":
                daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_position_tables_that_somebody_has_locked_are_waited_for(tmp_path: Path) -> None:
    with Pair() as pair, DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        pair.source.sql("CREATE DATABASE a")
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        with closing(pair.target.client()) as holder, holder.cursor() as cursor:
            cursor.execute(STUCK["write lock on everything"].replace(", a.t WRITE", ""))
            daemon.start()
            assert "position tables" in str(daemon.wait_for_record("waiting for")["statement"])
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0


async def test_a_silent_holder_of_the_channel_is_waited_for(server: Server) -> None:
    """A session that nothing comes from: its daemon or its network is gone."""
    holder, second = (
        await Connection.open(over_tcp(server)),
        await Connection.open(over_tcp(server)),
    )
    try:
        await take_channel(holder, LOCKS)
        taking = asyncio.create_task(take_channel(second, LOCKS, timeout_s=1))
        done, _ = await asyncio.wait([taking], timeout=4)
        assert not done
        holder.close()
        await taking
    finally:
        holder.close()
        second.close()


async def test_all_that_begin_at_once_agree_on_one_token(server: Server) -> None:
    server.sql("DROP DATABASE IF EXISTS agreed")
    connections = [await Connection.open(over_tcp(server)) for _ in range(6)]
    try:
        assert await read_locks(connections[0], "agreed", "") is None
        made = await asyncio.gather(*(make_locks(each, "agreed", "") for each in connections))
        assert len(set(made)) == 1
        assert await make_locks(connections[0], "agreed", "") == made[0]
        assert await read_locks(connections[1], "agreed", "") == made[0]
        other = await make_locks(connections[0], "another", "")
        assert other.session(CHANNEL) != made[0].session(CHANNEL)
    finally:
        for each in connections:
            each.close()


async def test_a_strangers_session_is_not_killed(server: Server) -> None:
    """Not even by an account that may: what holds a worker's lock may be anybody's."""
    server.sql(
        "CREATE USER neighbour; CREATE USER mtsd_itself; GRANT PROCESS ON *.* TO mtsd_itself"
    )
    stranger = await Connection.open(replace(over_tcp(server), user="neighbour"))
    former = await Connection.open(over_tcp(server))
    person = await Connection.open(over_tcp(server), program_name="mysql")
    own = await Connection.open(over_tcp(server))
    fencing: asyncio.Task[list[str]] | None = None
    try:
        for number, holder in enumerate((former, stranger, person), 1):
            assert await take_lock(holder, LOCKS.session(number))
        for number, holder in ((2, stranger), (3, person)):
            fencing = asyncio.create_task(fence(own, LOCKS, [1, number]))
            done, _ = await asyncio.wait([fencing], timeout=1.5)
            assert not done
            await holder.query("SELECT 1")
            await holder.query("SELECT RELEASE_ALL_LOCKS()")
            kinds = (SessionOf.WORKER, *OVERLAPPING_SESSIONS)
            assert await fencing == [LOCKS.session(id_, of) for id_ in (1, number) for of in kinds]
        with pytest.raises((ConnectionLostError, ServerError)):
            await former.query("SELECT 1")
        assert await take_lock(stranger, LOCKS.session(CHANNEL))
        poor = await Connection.open(replace(over_tcp(server), user="mtsd_itself"))
        with pytest.raises(FencedOutError) as caught:
            async with asyncio.timeout(20):
                await busy(stranger, take_channel(poor, LOCKS, timeout_s=1))
        poor.close()
        assert "of user 'neighbour' from" in str(caught.value)
        assert f"processlist WHERE id = {stranger.thread_id}" in str(caught.value)
    finally:
        for each in (stranger, former, person, own):
            each.close()


async def busy(connection: Connection, taking: Coroutine[None, None, None]) -> None:
    """Await that while the session shows signs of life."""
    task = asyncio.create_task(taking)
    while not task.done():
        await connection.query("DO SLEEP(0.1)")
        await asyncio.wait([task], timeout=1.1)
    await task


async def test_a_holder_that_cannot_be_seen_is_no_predecessor(server: Server) -> None:
    server.sql("CREATE USER poor")
    holder = await Connection.open(over_tcp(server))
    poor = replace(over_tcp(server), user="poor")
    second = await Connection.open(poor)
    try:
        await take_channel(holder, LOCKS)
        with pytest.raises(
            FencedOutError,
            match=r"another mtsd.*of a user whose connections.*somebody holds it on purpose; SEL",
        ):
            await take_channel(second, LOCKS, timeout_s=1)
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
