"""Killed at any instant, a restart applies each group exactly once."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS
from tests.servers.pair import Pair

# They go on for as long as a busy machine needs.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

SETTINGS: dict[str, Value] = {
    # Small limits, so that large groups are streamed and the queues fill up.
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
    "replica.checkpoint_group": 256,
    "replica.checkpoint_period": 0.1,
}
SIGKILLED = -9
CAUGHT_UP_S = 120.0
MIX = Mix(statement_format=True, create_select=True)
STATEMENTS = Mix(
    statement_format=True, satellites=True, temporary=True, gtids=False, create_select=True,
    load_data=True,
)  # fmt: skip

OFTEN = frozenset({
    FaultPoint.AFTER_READ, FaultPoint.BEFORE_BUNDLE, FaultPoint.BUNDLE_SENT,
    FaultPoint.AFTER_BUNDLE, FaultPoint.BEFORE_COMMIT, FaultPoint.COMMIT_SENT,
    FaultPoint.AFTER_COMMIT, FaultPoint.BEFORE_CHUNK, FaultPoint.BEFORE_CHECKPOINT,
    FaultPoint.AFTER_CHECKPOINT,
})  # fmt: skip
"""Points that a run passes many times."""
ON_ERROR = frozenset({FaultPoint.BEFORE_REPLAY})
ON_STOP = frozenset({FaultPoint.BEFORE_STOP_CHECKPOINT})


MIX = Mix(statement_format=True, create_select=True)


@contextmanager
def live_load(pair: Pair, seed: int, rate: float, mix: Mix = MIX) -> Iterator[MixedLoad]:
    """Run a mixed load on the source for the time of the block."""
    load = MixedLoad(pair.source, seed=seed, mix=mix)
    load.prepare()
    stopping = Event()
    thread = Thread(target=lambda: load.run(until=stopping, rate=rate))
    thread.start()
    try:
        yield load
    finally:
        stopping.set()
        thread.join()


def assert_each_once(pair: Pair, daemon: DaemonProcess, load: MixedLoad) -> None:
    daemon.start()
    daemon.wait_until_caught_up(CAUGHT_UP_S)
    assert daemon.stop() == 0
    assert audit(pair.target, load.ledger) == []
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "count", [16, pytest.param(len(FaultPoint), marks=pytest.mark.long)], ids=["some", "all"]
)
def test_killed_at_fault_points(count: int, tmp_path: Path) -> None:
    chance = random.Random(5)
    points = [point for point in FaultPoint if point not in ON_ERROR | ON_STOP]
    chance.shuffle(points)
    with Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS)
        with live_load(pair, seed=5, rate=120) as load:
            for point in points[:count]:
                passes = chance.randint(1, 20) if point in OFTEN else 1
                daemon.start(fault=f"{point}:{passes}")
                assert daemon.wait() == SIGKILLED, (point, daemon.last_words())
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
    [pytest.param(12), pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
def test_killed_at_random(kills: int, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        kill_at_random(pair, tmp_path, kills, MIX)


@pytest.mark.parametrize(
    "kills",
    [pytest.param(6), pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
def test_killed_under_statements(kills: int, tmp_path: Path) -> None:
    """Without GTIDs on the source, for only then are temporary tables part of transactions."""
    with Pair(NO_GTIDS, {**GTIDS, "local_infile": 1}) as pair:
        kill_at_random(pair, tmp_path, kills, STATEMENTS)


def kill_either(
    pair: Pair,
    daemon: DaemonProcess,
    chance: random.Random,
    kills: int,
    *,
    spans: tuple[float, ...] = (0.3, 0.8, 1.5, 2.5),
    least: float = 0.4,
) -> None:
    """Kill the daemon, the target or both, after up to one of the `spans` and `least` seconds."""
    for _ in range(kills):
        if not daemon.running:
            daemon.start()
        time.sleep(chance.choice(spans) * chance.random() + least)
        victim = chance.random()
        if victim < 0.75:
            daemon.kill()
        if victim > 0.6:
            pair.target.kill()
            pair.target.start()
        assert daemon.running or victim < 0.75, daemon.last_words()
    daemon.close()


def kill_at_random(pair: Pair, folder: Path, kills: int, mix: Mix, **more: Value) -> None:
    chance = random.Random(kills)
    daemon = DaemonProcess(pair.source, pair.target, folder, {**SETTINGS, **more})
    with live_load(pair, seed=kills, rate=60, mix=mix) as load:
        kill_either(pair, daemon, chance, kills)
    assert_each_once(pair, daemon, load)
