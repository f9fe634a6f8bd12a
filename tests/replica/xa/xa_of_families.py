"""Pairs of any families under XA transactions, and what has to be equal there."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fix_families import families
from tests.fix_kills import kill_either
from tests.load.xa import DATABASES, SideBySide
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_prepared import assert_recorded, prepared
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

LONG = pytest.mark.long
PAIRS = [
    pytest.param("10.11", "10.11", id="10.11"),
    pytest.param("11.8", "11.8", id="11.8", marks=LONG),
    pytest.param("9.7", "11.8", id="9.7-to-11.8"),
    pytest.param("11.8", "9.7", id="11.8-to-9.7"),
    pytest.param("9.7", "10.11", id="9.7-to-10.11", marks=LONG),
    pytest.param("10.11", "9.7", id="10.11-to-9.7", marks=LONG),
]
"""Versions of source and target."""


@contextmanager
def running(
    source: str, target: str, folder: Path, settings: dict[str, Value] | None = None
) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Two servers with two tables, and a daemon that has applied them and is running."""
    with families(source, target) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE DATABASE b")
        for name in ("a", "b"):
            pair.source.sql(
                f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;"
                f"INSERT INTO {name}.t VALUES (1, 1), (2, 2), (3, 3)"
            )
        with DaemonProcess(pair.source, pair.target, folder, settings or {}) as daemon:
            daemon.wait_until_caught_up()
            yield pair, daemon


def assert_equal(
    pair: Pair, daemon: DaemonProcess, databases: tuple[str, ...] = ("a", "b")
) -> None:
    """Wait until everything is applied, and compare both servers."""
    daemon.wait_until_caught_up()
    assert_same(pair.source, pair.target, databases)


def assert_same(source: Server, target: Server, databases: tuple[str, ...]) -> None:
    """Compare what two servers have in tables `t`, and what they have prepared."""
    for name in databases:
        rows = f"SELECT * FROM {name}.t ORDER BY id"
        assert source.sql(rows) == target.sql(rows)
    assert_recorded(source, target)


def survive_kills(
    pair: Pair,
    daemon: DaemonProcess,
    load: SideBySide,
    chance: random.Random,
    kills: int,
    *,
    rate: float,
) -> None:
    """Kill the daemon or the target at random under a load; in the end both servers are equal."""
    with load.running(rate=rate):
        kill_either(pair, daemon, chance, kills)
    load.complete_all(but=1)
    daemon.start()
    assert_equal(pair, daemon, DATABASES)
    load.complete_all()
    assert_equal(pair, daemon, DATABASES)
    assert prepared(pair.target) == set()
    assert daemon.stop() == 0
