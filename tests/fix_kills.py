"""Where and how a daemon is killed, and what has to be true afterwards."""

import random
import time
from dataclasses import replace
from pathlib import Path

from mtsd.model.fault_points import FaultPoint
from tests.fix_loads import live_load
from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

SMALL: dict[str, Value] = {
    "replica.pending_jobs_size_max": 262_144,
    "replica.batch_bytes": 65_536,
    "replica.checkpoint_group": 256,
    "replica.checkpoint_period": 0.1,
}
"""Small limits: large groups are streamed, and the queues fill up."""
CAUGHT_UP_S = 120.0
OFTEN = frozenset({
    FaultPoint.AFTER_READ, FaultPoint.BEFORE_BUNDLE, FaultPoint.BUNDLE_SENT,
    FaultPoint.AFTER_BUNDLE, FaultPoint.BEFORE_COMMIT, FaultPoint.COMMIT_SENT,
    FaultPoint.AFTER_COMMIT, FaultPoint.BEFORE_CHUNK, FaultPoint.BEFORE_CHECKPOINT,
    FaultPoint.AFTER_CHECKPOINT,
})  # fmt: skip
"""Points that a run passes many times."""
ONCE = frozenset({
    FaultPoint.BEFORE_CONNECT_TARGET, FaultPoint.BEFORE_FENCING, FaultPoint.AFTER_FENCING,
    FaultPoint.BEFORE_RECOVERY_WRITE, FaultPoint.AFTER_RECOVERY_WRITE,
    FaultPoint.BEFORE_CONNECT_SOURCE, FaultPoint.BEFORE_DUMP,
})  # fmt: skip
"""Points that each start passes once."""
_SETTLES: dict[str, Value] = {"replica.checkpoint_period": 60.0}
"""A low-water mark that passes a definition soon leaves nothing to settle."""
SOONER: dict[FaultPoint, dict[str, Value]] = {
    FaultPoint.BEFORE_SETTLED: _SETTLES,
    FaultPoint.AFTER_SETTLED: _SETTLES,
    # Few groups of the load are too large for a queue.
    FaultPoint.BEFORE_CHUNK: {"replica.pending_jobs_size_max": 65_536, "replica.batch_bytes": 4096},
}
"""Settings with which a run passes a point sooner than with `SMALL`."""
ON_ERROR = frozenset({FaultPoint.BEFORE_REPLAY})
ON_STOP = frozenset({FaultPoint.BEFORE_STOP_CHECKPOINT})


def assert_each_once(pair: Pair, daemon: DaemonProcess, load: MixedLoad) -> None:
    """Check that the daemon, started again, brings each transaction of the load once."""
    daemon.start()
    daemon.wait_until_caught_up(CAUGHT_UP_S)
    assert daemon.stop() == 0
    assert audit(pair.target, load.ledger) == []
    assert differences(pair.source, pair.target) == []


def kill_either(
    pair: Pair,
    daemon: DaemonProcess,
    chance: random.Random,
    kills: int,
) -> None:
    """Kill the daemon, the target or both, so many times, each after 0.3 to 1.5 seconds.

    What a target that is killed has of a change to a table without transactions, only a person can
    tell: a load beside it has none.
    """
    for _ in range(kills):
        if not daemon.running:
            daemon.start()
        time.sleep(0.3 + chance.choice((0.2, 0.6, 1.2)) * chance.random())
        victim = chance.random()
        if victim < 0.75:
            daemon.kill()
        if victim > 0.6:
            pair.target.kill()
            pair.target.start()
        assert daemon.running or victim < 0.75, daemon.last_words()
    daemon.close()


def kill_at_random(pair: Pair, folder: Path, kills: int, mix: Mix, **more: Value) -> None:
    """Kill the daemon and its target under a mixed load; each transaction has to come once.

    In so short a time that a few kills take, no transaction of 16 databases comes.
    """
    chance = random.Random(kills)
    mix = replace(mix, over_max=kills > 20, non_transactional=False)
    daemon = DaemonProcess(pair.source, pair.target, folder, {**SMALL, **more})
    with live_load(pair, seed=kills, rate=60, mix=mix) as load:
        kill_either(pair, daemon, chance, kills)
    assert_each_once(pair, daemon, load)
