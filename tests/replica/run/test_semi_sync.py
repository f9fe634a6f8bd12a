"""Semi-synchronous replication: the source's client waits until the target has its transaction."""

import time
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pymysql
import pytest

from tests.fix_daemon import json_status
from tests.fix_families import families
from tests.fix_servers import run
from tests.operations.checked import told
from tests.operations.move.application import wait_until
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

SETTINGS: dict[str, Value] = {"source.semi_sync": "applied", "source.semi_sync_limit": 1.0}
CLIENTS = 4


def waiting_source(series: str, point: str, *, without_replica: bool) -> Pair:
    """Return a pair whose source waits for as long as it takes; or only while it has a replica."""
    old = series != "9.7"
    prefix = prefix_of(series)
    options: dict[str, str | int | None] = {
        f"loose_{prefix}_enabled": 1,
        f"loose_{prefix}_timeout": 3_600_000,
        f"loose_{prefix}_wait_point": point,
        f"loose_{prefix}_wait_no_{'slave' if old else 'replica'}": int(without_replica),
    }
    if not old:
        options["plugin_load_add"] = "semisync_source.so"
    return families(series, series, options)


def prefix_of(series: str) -> str:
    return f"rpl_semi_sync_{'source' if series == '9.7' else 'master'}"


class Clients:
    """Inserts numbers, each in a transaction; `told` are those that have been committed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._numbers = count(1)
        self._ending = Event()
        self._up = Event()
        self._up.set()
        self.told: set[int] = set()
        self._threads = [Thread(target=self._insert) for _ in range(CLIENTS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def kill_and_start(self) -> set[int]:
        """Kill the server; return what the clients had been told until then."""
        self._up.clear()
        self._server.kill()
        told = set(self.told)
        self._server.start()
        self._up.set()
        return told

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _insert(self) -> None:
        while not self._ending.is_set():
            # A connection that fails leaves its socket to the garbage collector.
            self._up.wait()
            with suppress(pymysql.Error, OSError), closing(self._server.client()) as client:
                while not self._ending.is_set():
                    number = next(self._numbers)
                    with client.cursor() as cursor:
                        cursor.execute(f"INSERT INTO d.t VALUES ({number})")
                    client.commit()
                    self.told.add(number)


def wait_until_acknowledging(daemon: DaemonProcess) -> None:
    daemon.wait_for_status(
        lambda status: status.semi_sync.state == "acknowledging", "it does not acknowledge"
    )


def rows(server: Server) -> set[int]:
    return {int(number) for (number,) in server.sql("SELECT a FROM d.t")}


@pytest.mark.parametrize(
    ("series", "point", "kills"),
    [
        ("9.7", "AFTER_SYNC", 2),
        ("11.8", "AFTER_COMMIT", 2),
        *(
            pytest.param(series, point, 20, marks=pytest.mark.long)
            for series in ("9.7", "11.8")
            for point in ("AFTER_SYNC", "AFTER_COMMIT")
        ),
    ],
)
def test_the_source_is_killed(series: str, point: str, kills: int, tmp_path: Path) -> None:
    with (
        waiting_source(series, point, without_replica=True) as pair,
        DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS) as daemon,
    ):
        daemon.wait_until_running()
        run(pair.source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        before = 0
        with Clients(pair.source) as clients:
            for kill in range(kills):
                wait_until_acknowledging(daemon)
                time.sleep(0.3 + kill % 5 / 10)
                told = clients.kill_and_start()
                assert told - rows(pair.target) == set()
                assert len(told) > before
                before = len(told)
        daemon.wait_until_caught_up()
        assert rows(pair.source) == rows(pair.target)
        assert sum(json_status(daemon)["semi_sync"]["latencies"]["groups"]) > 0


def test_a_source_whose_clients_wait_is_read_all_the_same(tmp_path: Path) -> None:
    # A MariaDB does not list its files then, and a replica that asks first would wait for itself.
    with waiting_source("11.8", "AFTER_SYNC", without_replica=False) as pair:
        source = pair.source
        run(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        daemon = DaemonProcess(source, pair.target, tmp_path, SETTINGS)
        with daemon:
            daemon.wait_until_caught_up()
        run(source, "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON")
        with Clients(source) as clients, closing(source.client()) as client:
            try:
                wait_until(lambda: in_commit(source) == CLIENTS)
                assert "logs-held" in told(tmp_path, daemon.settings).bad
                with daemon:
                    wait_until(lambda: len(clients.told) > CLIENTS)
            finally:
                with client.cursor() as cursor:
                    cursor.execute("SET GLOBAL rpl_semi_sync_master_enabled = OFF")


def in_commit(server: Server) -> int:
    """Return how many clients of a server wait in a commit."""
    states = [str(row[6]) for row in server.sql("SHOW PROCESSLIST")]
    return sum(state.startswith(("Commit", "Waiting for semi-sync")) for state in states)


@pytest.mark.parametrize("series", ["9.7", "11.8"])
def test_what_holds_the_target_up_holds_the_source_up_no_longer_than_the_limit(
    series: str, tmp_path: Path
) -> None:
    with waiting_source(series, "AFTER_SYNC", without_replica=False) as pair:
        run(pair.source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        with (
            DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS) as daemon,
            closing(pair.target.client()) as holder,
        ):
            daemon.wait_until_caught_up()
            with holder.cursor() as cursor:
                cursor.execute("LOCK TABLES d.t READ")
                began = time.monotonic()
                run(pair.source, "INSERT INTO d.t VALUES (1)")
                assert time.monotonic() - began > 1.0
                assert json_status(daemon)["semi_sync"]["state"] == "withdrawn"
                # What comes then waits for nobody.
                run(pair.source, "INSERT INTO d.t VALUES (2)")
                cursor.execute("UNLOCK TABLES")
            wait_until_acknowledging(daemon)
            # A MariaDB waits again once it has been told that nothing is left.
            run(pair.source, "INSERT INTO d.t VALUES (3)")
            daemon.wait_until_caught_up()
            status = f"SHOW STATUS LIKE '{prefix_of(series)}_status'"
            while pair.source.sql(status)[0][1] != "ON":
                time.sleep(0.02)
            run(pair.source, "INSERT INTO d.t VALUES (4)")
            assert rows(pair.target) == {1, 2, 3, 4}
            assert json_status(daemon)["semi_sync"]["withdrawals"] == 1
