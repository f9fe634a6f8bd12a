"""Circles of two servers and chains of three, under load, with kills: each transaction once."""

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.fix_servers import wait_for
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.guards.resting import RESTS_S, at_rest
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

NAMES = "ABC"


class Leg:
    """One replica: "AB" is mtsd from A to B, "AB*" is B's own."""

    def __init__(self, name: str, servers: Sequence[Server], folder: Path) -> None:
        self.source, self.target = (servers[NAMES.index(letter)] for letter in name[:2])
        self.daemon: DaemonProcess | None = None
        if name.endswith("*"):
            self.target.sql(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_USER='root',"
                f" SOURCE_PORT={self.source.port}, SOURCE_AUTO_POSITION=1,"
                " SOURCE_CONNECT_RETRY=1, SOURCE_SSL=1; START REPLICA"
            )
            return
        (folder / name).mkdir()
        self.daemon = DaemonProcess(
            self.source, self.target, folder / name,
            {"target.gtid": "preserve", "source.server_id": 4300 + ord(name[0])},
        )  # fmt: skip

    def kill(self) -> None:
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.start()

    def catch_up(self) -> None:
        if self.daemon is not None:
            self.daemon.wait_until_caught_up()
            return
        gtids = self.source.binlog_end()[2]
        wait_for(self.target, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 60)", 0)


def write(server: Server, ending: Event) -> None:
    """Write to a database of its own, on the other side of a circle."""
    number = 0
    while not ending.wait(0.02):
        number += 1
        server.sql(f"INSERT INTO own.t VALUES ({number}, 0); UPDATE own.t SET v = v + 1")


@pytest.mark.parametrize(
    ("legs", "kills"),
    [
        ("AB BA", 2),
        *(
            pytest.param(legs, 20, marks=pytest.mark.long)
            for legs in ("AB BA", "AB BA*", "AB BC", "AB* BC", "AB BC*")
        ),
    ],
)
def test_each_transaction_comes_once(legs: str, kills: int, tmp_path: Path) -> None:
    chance = random.Random(f"{legs} {kills}")
    names = legs.split()
    is_circle = "C" not in legs
    with ExitStack() as stack:
        servers = [
            stack.enter_context(Server({**GTIDS, "server_id": 11 + index}))
            for index in range(2 if is_circle else 3)
        ]
        for server in servers:
            stack.callback(server.discard)
        load = MixedLoad(servers[0], seed=kills, databases=2, mix=Mix(over_max=False))
        load.prepare()
        if is_circle:
            servers[1].sql("CREATE DATABASE own; CREATE TABLE own.t (a INT PRIMARY KEY, v INT)")
        replicas = [Leg(name, servers, tmp_path) for name in names]
        for leg in replicas:
            if leg.daemon is not None:
                stack.enter_context(leg.daemon)
                leg.daemon.wait_until_running()
        ending = Event()
        threads = [Thread(target=lambda: load.run(until=ending, rate=40))]
        if is_circle:
            threads.append(Thread(target=write, args=(servers[1], ending)))
        for thread in threads:
            thread.start()
        for _ in range(kills):
            time.sleep(0.4 + chance.random())
            chance.choice([leg for leg in replicas if leg.daemon is not None]).kill()
        ending.set()
        for thread in threads:
            thread.join()
        for leg in replicas * 2:
            leg.catch_up()
        for leg in replicas:
            assert audit(leg.target, load.ledger) == []
            assert differences(leg.source, leg.target) == []
        # Nothing goes round: what a leg has stored brings nothing that the other would store.
        at_rest(*servers)
        before = [server.binlog_end() for server in servers]
        time.sleep(RESTS_S)
        again = [server.binlog_end() for server in servers]
        assert before == again
        for leg in replicas:
            if leg.daemon is not None:
                assert leg.daemon.stop() == 0


def test_what_comes_back_in_a_circle(tmp_path: Path) -> None:
    """Rows, definitions and large groups have been executed where they began: all pass over."""
    with Pair(GTIDS, GTIDS) as pair:
        legs = [(pair.source, pair.target), (pair.target, pair.source)]
        daemons = []
        for number, (source, target) in enumerate(legs):
            (tmp_path / str(number)).mkdir()
            settings: dict[str, Value] = {
                "target.gtid": "preserve",
                "source.server_id": 4300 + number,
                "replica.pending_jobs_size_max": 1 << 16,
                "replica.batch_bytes": 1 << 14,
            }
            daemons.append(DaemonProcess(source, target, tmp_path / str(number), settings))
        with daemons[0], daemons[1]:
            for daemon in daemons:
                daemon.wait_until_running()
            for name in "abc":
                pair.source.sql(
                    f"CREATE DATABASE {name};"
                    f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v LONGTEXT);"
                    f"INSERT INTO {name}.t VALUES (1, REPEAT('x', 100000)), (2, '');"
                    f"ALTER TABLE {name}.t ADD COLUMN w INT; UPDATE {name}.t SET w = id"
                )
            for daemon in daemons * 2:
                daemon.wait_until_caught_up()
            assert differences(pair.source, pair.target) == []
            for daemon in daemons:
                assert daemon.stop() == 0
                assert {record["level"] for record in daemon.records()} == {"info"}
