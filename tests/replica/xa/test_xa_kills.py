"""Killed at any instant under a load of XA transactions: equal data, and equal ones prepared."""

import random
from pathlib import Path

import pytest

from tests.fix_kills import kill_either
from tests.load.xa import XaLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_of_mysql import TARGETS, assert_equal
from tests.replica.xa.xa_prepared import prepared
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

SETTINGS: dict[str, Value] = {
    "replica.checkpoint_group": 256,
    "replica.checkpoint_period": 0.1,
}


@pytest.mark.parametrize("workers", [0, 4])
def test_undisturbed(workers: int, tmp_path: Path) -> None:
    settings: dict[str, Value] = {**SETTINGS, "replica.parallel_workers": workers}
    with Pair(GTIDS, GTIDS) as pair:
        load = XaLoad(pair.source, seed=workers, reuse=True)
        load.prepare()
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            load.run(completed=100, rate=40)
            load.complete_all(but=1)
            assert_equal(pair, daemon)
            load.complete_all()
            assert_equal(pair, daemon)
            assert prepared(pair.target) == set()
            assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("GTIDs", 3),
        ("neither", 2),
        *(
            pytest.param(kind, 120, marks=[pytest.mark.long, pytest.mark.timeout(3600)])
            for kind in TARGETS
        ),
    ],
)
def test_killed_at_random(kind: str, kills: int, tmp_path: Path) -> None:
    chance = random.Random(f"{kind} {kills}")
    with Pair(GTIDS, TARGETS[kind]) as pair:
        load = XaLoad(pair.source, seed=kills, formats=(1, 1, 1))
        load.prepare()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS)
        with load.running(rate=20):
            kill_either(pair, daemon, chance, kills)
        load.complete_all(but=1)
        daemon.start()
        daemon.wait_until_caught_up()
        load.complete_all()
        assert_equal(pair, daemon)
        assert prepared(pair.target) == set()
        assert daemon.stop() == 0
