"""A network that drops, stalls, splits and slows what the daemon says and hears, at any instant."""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair
from tests.servers.proxy import BOTH, Direction, Proxy

# They go on for as long as a busy machine needs.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

LONG = [pytest.mark.long, pytest.mark.timeout(900)]
HEARTBEAT_S = 0.4
MIX = Mix(statement_format=True, over_max=False)
SETTINGS: dict[str, Value] = {
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
    "replica.checkpoint_group": 256,
    "replica.checkpoint_period": 0.1,
    "source.heartbeat_period": HEARTBEAT_S,
    "source.connect_timeout": 2.0,
    "target.connect_timeout": 2.0,
}
DIRECTIONS: tuple[tuple[Direction, ...], ...] = (("up",), ("down",), BOTH)


def worsen(proxy: Proxy, chance: random.Random) -> None:
    """Put one fault on what passes a proxy."""
    directions = chance.choice(DIRECTIONS)
    kind = chance.choice(("drop", "stall", "long stall", "split", "slow", "fair", "stall, drop"))
    if kind == "drop":
        proxy.drop()
    elif kind == "stall":
        proxy.stall(chance.random() * HEARTBEAT_S, directions)
    elif kind == "long stall":
        proxy.stall(HEARTBEAT_S * (3 + chance.random() * 2), directions)
    elif kind == "stall, drop":
        proxy.stall(chance.random(), directions)
        proxy.drop()
    elif kind == "split":
        proxy.split(chance.choice((1, 3, 17, 1000)), directions)
    elif kind == "slow":
        proxy.slow(chance.choice((20_000, 200_000, 2_000_000)), directions)
    else:
        proxy.split(0)
        proxy.slow(0)


@pytest.mark.parametrize(
    ("seed", "faults"),
    [
        pytest.param(1, 8),
        *(pytest.param(seed, 60, marks=LONG) for seed in range(2, 12)),
    ],
)
def test_a_bad_network(seed: int, faults: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with ExitStack() as stack:
        pair = stack.enter_context(Pair(GTIDS, GTIDS))
        proxies = [stack.enter_context(Proxy(server)) for server in (pair.source, pair.target)]
        # Each seed has TLS on one of the two ways.
        secured = chance.randrange(2)
        settings: dict[str, Value] = {
            **SETTINGS,
            "source.port": proxies[0].port,
            "target.port": proxies[1].port,
            "source.tls": "required" if secured == 0 else "disabled",
            "target.tls": "required" if secured == 1 else "disabled",
        }
        load = MixedLoad(pair.source, seed=seed, databases=2, mix=MIX)
        load.prepare()
        daemon = stack.enter_context(DaemonProcess(pair.source, pair.target, tmp_path, settings))
        with load.running(rate=30):
            for _ in range(faults):
                worsen(chance.choice(proxies), chance)
                time.sleep(chance.random() * 1.2)
                assert daemon.running, daemon.last_words()
        for proxy in proxies:
            proxy.split(0)
            proxy.slow(0)
        daemon.wait_until_caught_up(120)
        assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    ("hold", "rounds"),
    [
        pytest.param(1 << 20, ["source", "both"], id="streamed"),
        pytest.param(1 << 20, ["target", "source", "both"] * 4, id="streamed, often", marks=LONG),
        pytest.param(64 << 20, ["source", "target", "both"] * 2, id="held", marks=LONG),
    ],
)
def test_servers_killed_in_the_middle_of_a_group(
    hold: int, rounds: list[str], tmp_path: Path
) -> None:
    chance = random.Random(hold)
    with Pair(GTIDS, GTIDS) as pair, Proxy(pair.source) as proxy:
        settings: dict[str, Value] = {
            **SETTINGS,
            "source.port": proxy.port,
            "replica.pending_jobs_size_max": hold,
        }
        load = MixedLoad(pair.source, seed=7, databases=2, mix=MIX, tolerant=True)
        load.prepare()
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v BLOB)"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with load.running(rate=40):
                for name in rounds:
                    victims = [
                        server
                        for role, server in (("source", pair.source), ("target", pair.target))
                        if name in {role, "both"}
                    ]
                    proxy.slow(4_000_000)
                    pair.source.sql(
                        "SET SESSION cte_max_recursion_depth = 100000;"
                        "INSERT INTO a.t (v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL"
                        " SELECT i + 1 FROM n WHERE i < 6000) SELECT REPEAT('x', 1000) FROM n"
                    )
                    wanted = proxy.passed["down"] + chance.randrange(1_000_000, 4_000_000)
                    deadline = time.monotonic() + 120
                    while proxy.passed["down"] < wanted:
                        assert daemon.running, daemon.last_words()
                        assert time.monotonic() < deadline
                        time.sleep(0.01)
                    for victim in victims:
                        victim.kill()
                    for victim in victims:
                        victim.spawn()
                    for victim in victims:
                        victim.wait_ready()
                    proxy.slow(0)
            daemon.wait_until_caught_up(120)
            assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert differences(pair.source, pair.target) == []


@pytest.mark.long
def test_an_answer_that_never_comes(tmp_path: Path) -> None:
    """The target has answered, or ended a packet in the middle of it, and waits for a command."""
    swallowing = Event()

    def changes() -> Callable[[bytes], bytes]:
        def change(data: bytes) -> bytes:
            if not swallowing.is_set():
                return data
            swallowing.clear()
            return b""

        return change

    with Pair(GTIDS, GTIDS) as pair, Proxy(pair.target, changes) as proxy:
        settings: dict[str, Value] = {
            "target.port": proxy.port,
            "target.tls": "disabled",
            "replica.checkpoint_period": 60.0,
        }
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            swallowing.set()
            pair.source.sql("INSERT INTO a.t VALUES (1)")
            daemon.wait_until_caught_up(180)
            assert not swallowing.is_set()
            pair.source.sql("INSERT INTO a.t VALUES (2)")
            daemon.wait_until_caught_up(180)
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
