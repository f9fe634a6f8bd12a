"""XA transactions under every policy: the same data and the same ones prepared, through kills."""

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from mtsd.schedule.policies.choice import POLICIES
from tests.fix_families import installed
from tests.load.xa import DATABASES, MariadbXaLoad, XaLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_of_families import assert_same, survive_kills
from tests.replica.xa.xa_prepared import prepared
from tests.servers.mysqld import GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = pytest.mark.long
SERIES: Final = ("9.7", "10.11", "11.8")
GROUP_COMMITS: Final[Options] = {
    "binlog_format": "ROW",
    "binlog_commit_wait_count": 6,
    "binlog_commit_wait_usec": 20_000,
}
"""Of a MariaDB: without waiting, few transactions of a small load are committed together."""
Load = XaLoad | MariadbXaLoad


def options_of(series: str, server_id: int) -> Options:
    family = GTIDS if series == "9.7" else GROUP_COMMITS if server_id == 1 else {}
    return {"server_id": server_id, **family}


def load_of(series: str, source: Server, seed: int, *, one_format: bool = False) -> Load:
    """Return a load; with `one_format`, a MySQL that is killed keeps everything it prepares."""
    if series == "9.7":
        return XaLoad(source, seed=seed, sessions=8, reuse=True, for_mariadb=True)
    formats = (1, 1) if one_format else (7, 2147483647)
    return MariadbXaLoad(source, seed=seed, sessions=8, reuse=True, formats=formats)


@pytest.fixture(scope="module")
def sources() -> Iterator[dict[str, Server]]:
    """Hold the sources, each with a backlog that it got when a test first asked for it."""
    made: dict[str, Server] = {}
    try:
        yield made
    finally:
        for server in made.values():
            server.close()


def source_of(series: str, made: dict[str, Server]) -> Server:
    """Return a source that has prepared several transactions that are not completed."""
    if series not in made:
        server = Server(options_of(series, 1), installation=installed(series))
        server.start()
        made[series] = server
        load = load_of(series, server, 5)
        load.prepare()
        load.run(completed=200, rate=60)
        load.complete_all(but=1)
    return made[series]


def settings_of(policy: str, workers: int) -> dict[str, Value]:
    return {
        "replica.parallel_type": policy,
        "replica.parallel_workers": workers,
        "replica.checkpoint_period": 0.1,
    }


SINGLY: Final = (1, 16)
"""Workers with which nothing is combined: prepares and commits are applied as such."""
IN_THE_SUITE: Final = {
    ("9.7", "9.7", "logical_clock", 4), ("9.7", "9.7", "logical_clock", 16),
    ("10.11", "10.11", "commit_parent", 4), ("9.7", "11.8", "logical_clock", 4),
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "policy", "workers"),
    [
        pytest.param(*case, marks=() if case in IN_THE_SUITE else LONG)
        for case in product(SERIES, SERIES, POLICIES, (0, 1, 4, 16))
    ],
)
def test_equal(
    source: str,
    target: str,
    policy: str,
    workers: int,
    sources: dict[str, Server],
    tmp_path: Path,
) -> None:
    loaded = source_of(source, sources)
    with Server(options_of(target, 2), installation=installed(target)) as server:
        settings = settings_of(policy, workers)
        if workers in SINGLY:
            settings["replica.batch_groups"] = 1
        with DaemonProcess(loaded, server, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert_same(loaded, server, DATABASES)
            assert len(prepared(server)) > 2
            status = daemon.status()
            assert status is not None
            assert len(status.workers) == max(workers, 1)
            if source == "9.7" and policy == "logical_clock" and workers in SINGLY:
                assert all(worker.groups > 5 for worker in status.workers)
            assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("source", "target", "policy", "kills"),
    [
        pytest.param("9.7", "9.7", "logical_clock", 3),
        *(
            pytest.param(*case, 40, marks=[LONG, pytest.mark.timeout(3600)])
            for case in (
                *(("9.7", "9.7", policy) for policy in POLICIES),
                *(("10.11", "10.11", policy) for policy in POLICIES),
                ("11.8", "11.8", "commit_parent"),
                ("9.7", "11.8", "logical_clock"),
                ("11.8", "9.7", "commit_parent"),
            )
        ),
    ],
)
def test_killed(source: str, target: str, policy: str, kills: int, tmp_path: Path) -> None:
    chance = random.Random(f"{source} {target} {policy} {kills}")
    with Pair(
        options_of(source, 1),
        options_of(target, 2),
        installation=installed(source),
        target_installation=installed(target),
    ) as pair:
        load = load_of(source, pair.source, kills, one_format=target == "9.7")
        load.prepare()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings_of(policy, 4))
        survive_kills(pair, daemon, load, chance, kills, rate=15)
