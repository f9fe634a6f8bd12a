"""Killed at any instant, a restart applies each group exactly once."""

import random
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import SIGKILLED
from tests.fix_kills import (
    OFTEN,
    ON_ERROR,
    ON_STOP,
    SMALL,
    SOONER,
    assert_each_once,
    kill_at_random,
)
from tests.fix_loads import MIX, live_load
from tests.load.compare import differences
from tests.load.mixed import Mix
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS
from tests.servers.pair import Pair

# They go on for as long as a busy machine needs.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

STATEMENTS = Mix(
    statement_format=True, satellites=True, temporary=True, gtids=False, create_select=True,
    load_data=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("count", "most"),
    [(12, 4), pytest.param(len(FaultPoint), 20, marks=pytest.mark.long)],
    ids=["some", "all"],
)
def test_killed_at_fault_points(count: int, most: int, tmp_path: Path) -> None:
    """Each point is passed up to `most` times before."""
    chance = random.Random(5)
    points = [point for point in FaultPoint if point not in ON_ERROR | ON_STOP]
    chance.shuffle(points)
    # Those are waited for longest, and have tests of their own.
    points.sort(key=lambda point: point in SOONER)
    with Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SMALL)
        with live_load(pair, seed=5, rate=30) as load:
            for point in points[:count]:
                passes = chance.randint(1, most) if point in OFTEN else 1
                daemon.settings |= SMALL | SOONER.get(point, {})
                daemon.start(fault=f"{point}:{passes}")
                assert daemon.wait(300) == SIGKILLED, (point, daemon.last_words())
            daemon.start(fault=FaultPoint.BEFORE_STOP_CHECKPOINT)
            daemon.wait_until_running()
            assert daemon.stop() == SIGKILLED
        assert_each_once(pair, daemon, load)


def test_killed_in_a_replay(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
            "CREATE TABLE a.journal (n INT)"
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        pair.target.sql("INSERT INTO a.t VALUES (7, 0)")
        for number in range(10):
            pair.source.sql(
                f"BEGIN; INSERT INTO a.t VALUES ({number}, 1);"
                f" INSERT INTO a.journal VALUES ({number}); COMMIT"
            )
        daemon.start(fault=FaultPoint.BEFORE_REPLAY)
        assert daemon.wait() == SIGKILLED
        pair.target.sql("DELETE FROM a.t WHERE id = 7")
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "kills",
    [pytest.param(6), pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
def test_killed_at_random(kills: int, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        kill_at_random(pair, tmp_path, kills, MIX)


@pytest.mark.parametrize(
    "kills",
    [pytest.param(3), pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
def test_killed_under_statements(kills: int, tmp_path: Path) -> None:
    """Without GTIDs on the source, for only then are temporary tables part of transactions."""
    with Pair(NO_GTIDS, {**GTIDS, "local_infile": 1}) as pair:
        kill_at_random(pair, tmp_path, kills, STATEMENTS)
