"""consistency = "eventual": any worker applies any transaction of rows."""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from mtsd.schedule.policies.choice import POLICIES
from tests.load import one_change_each
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.policies.holes import EVENTUAL, contents, killed_with_a_hole
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair
from tests.servers.provision import Options

SERVERS: Final = [pytest.mark.servers, pytest.mark.timeout(900)]
LONGER: Final = [*SERVERS, pytest.mark.long]


@pytest.fixture(scope="module")
def loaded() -> Iterator[Server]:
    """Start a source whose binary log has a load in which nothing conflicts."""
    with Server(GTIDS) as source:
        one_change_each.prepare(source)
        one_change_each.change(source, 600)
        yield source


SHORT: Final = {("database", 16), ("database", 0)}


@pytest.mark.parametrize(
    ("policy", "workers"),
    [
        pytest.param(policy, workers, marks=SERVERS if (policy, workers) in SHORT else LONGER)
        for policy in POLICIES
        for workers in (0, 1, 4, 16)
    ],
)
def test_equal(policy: str, workers: int, loaded: Server, tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        **EVENTUAL,
        "replica.parallel_type": policy,
        "replica.parallel_workers": workers,
        "replica.batch_groups": 4,
    }
    assert_equal(loaded, tmp_path, settings)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"replica.exec_mode": "strict"}, marks=SERVERS),
        pytest.param({"replica.exec_mode": "strict", "target.apply_mode": "sql"}, marks=LONGER),
        pytest.param({"target.gtid": "preserve"}, marks=LONGER),
        pytest.param({"target.gtid": "mirror", "target.binary_log": False}, marks=LONGER),
        pytest.param({"replica.batch_groups": 1}, marks=LONGER),
        pytest.param({"replica.pending_jobs_size_max": 65536, "replica.batch_bytes": 4096},
                     marks=LONGER),
    ],
    ids=["strict", "strict by sql", "preserve", "mirror", "one by one", "streamed"],
)  # fmt: skip
def test_in_other_ways(more: dict[str, Value], loaded: Server, tmp_path: Path) -> None:
    # XA transactions need a target that logs them, or has no binary log.
    options = GTIDS if more.get("target.binary_log", True) else {**GTIDS, "skip_log_bin": None}
    assert_equal(loaded, tmp_path, {**EVENTUAL, "replica.batch_groups": 4, **more}, options)


def assert_equal(
    source: Server, folder: Path, settings: dict[str, Value], options: Options = GTIDS
) -> None:
    with Server(options) as target:
        with DaemonProcess(source, target, folder, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(source, target) == []


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("mode", "afterwards"),
    [
        ("strict", {"replica.consistency": "partition"}),
        pytest.param("auto", {"replica.consistency": "eventual"}, marks=pytest.mark.long),
        pytest.param("auto", {"replica.consistency": "any_time"}, marks=pytest.mark.long),
        pytest.param(
            "strict",
            {"replica.consistency": "partition", "replica.parallel_workers": 0},
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_was_applied_over_a_hole_is_repaired(
    mode: str, afterwards: dict[str, Value], tmp_path: Path
) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        # Two workers: one is held back, and the other one gets all the rest.
        settings: dict[str, Value] = {
            **EVENTUAL,
            "replica.exec_mode": mode,
            "replica.parallel_workers": 2,
        }
        killed_with_a_hole(pair, tmp_path, settings)
        assert pair.target.sql("SELECT v FROM a.t WHERE id = 1") == [("second",)]
        assert pair.target.sql("SELECT Schema_version FROM mtsd.slave_relay_log_info") == [(2,)]
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, afterwards)
        with daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        (repaired,) = [each for each in daemon.records() if "once more" in str(each["event"])]
        assert repaired["first"]
        assert contents(pair.target) == contents(pair.source)
        assert pair.target.sql("SELECT Schema_version FROM mtsd.slave_relay_log_info") == [(1,)]


@pytest.mark.parametrize(
    ("mode", "kills"),
    [
        pytest.param("strict", 4, marks=SERVERS),
        pytest.param("auto", 60, marks=LONGER),
        pytest.param("strict", 60, marks=LONGER),
    ],
)
def test_killed(mode: str, kills: int, tmp_path: Path) -> None:
    """Each start may have another consistency, and the last one has the default."""
    chance = random.Random(f"{mode}{kills}")
    eventual: dict[str, Value] = {**EVENTUAL, "replica.exec_mode": mode, "replica.batch_groups": 2}
    others: list[dict[str, Value]] = [eventual, {"replica.consistency": "any_time"}, {}]
    with Pair(GTIDS, GTIDS) as pair:
        one_change_each.prepare(pair.source)
        for number in range(kills):
            first = 1 + number * 60
            thread = Thread(
                target=one_change_each.change, args=(pair.source, 60), kwargs={"first": first}
            )
            settings = eventual if number % 2 == 0 else chance.choice(others)
            daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
            daemon.start()
            thread.start()
            time.sleep(0.3 + 1.5 * chance.random())
            daemon.kill()
            if chance.random() < 0.4:
                pair.target.kill()
                pair.target.start()
            thread.join()
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up(120)
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


ROWS_OF_THE_EXAMPLE: Final = """
CREATE DATABASE e; USE e;
CREATE TABLE t1 (id INT PRIMARY KEY, f1 INT, f2 INT, changed INT);
CREATE TABLE t2 (id INT PRIMARY KEY, f1 INT, f2 INT, changed INT);
INSERT INTO t1 VALUES (1, 0, 0, 0); INSERT INTO t2 VALUES (1, 0, 0, 0);
CREATE TABLE ready (i INT)
"""
EXAMPLE: Final = """
UPDATE t1 SET f1 = 1, f2 = 2, changed = 1;
UPDATE t2 SET f1 = 3, f2 = 4, changed = 2;
UPDATE t1 SET f1 = 5, f2 = 6, changed = 3; UPDATE t2 SET f1 = 7, f2 = 8, changed = 4
"""
"""Of WL#4648 (C0)."""
STATES: Final = {(0, 0, 0, 0), (1, 2, 0, 0), (1, 2, 3, 4), (5, 6, 3, 4), (5, 6, 7, 8)}


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.parametrize("consistency", ["eventual", "any_time"])
def test_a_state_that_never_existed(consistency: str, tmp_path: Path) -> None:
    """Seen with eventual consistency, and never with any_time; at the end, both are equal."""
    settings: dict[str, Value] = {
        "replica.consistency": consistency,
        "replica.parallel_type": "table",
        "replica.batch_groups": 1,
    }
    if consistency == "eventual":
        settings["replica.newer_row_column"] = "changed"
    seen: set[tuple[object, ...]] = set()
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(ROWS_OF_THE_EXAMPLE)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client()) as client, client.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM e.t2 FOR UPDATE")
                pair.source.sql(EXAMPLE, "e")
                deadline = time.monotonic() + 2
                while time.monotonic() < deadline and seen.issubset(STATES):
                    seen |= set(
                        pair.target.sql(
                            "SELECT t1.f1, t1.f2, t2.f1, t2.f2 FROM e.t1 JOIN e.t2 USING (id)"
                        )
                    )
                    time.sleep(0.01)
                cursor.execute("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert seen.issubset(STATES) == (consistency == "any_time"), seen
        assert differences(pair.source, pair.target) == []
