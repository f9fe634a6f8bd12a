"""consistency = "eventual": any worker applies any transaction of rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from mtsd.schedule.policies import POLICIES
from tests.load import one_change_each
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Server

SERVERS: Final = [pytest.mark.servers, pytest.mark.timeout(900)]
LONGER: Final = [*SERVERS, pytest.mark.long]
EVENTUAL: Final[dict[str, Value]] = {"replica.consistency": "eventual"}


@pytest.fixture(scope="module")
def loaded() -> Iterator[Server]:
    """Start a source whose binary log has a load in which nothing conflicts."""
    with Server(GTIDS) as source:
        one_change_each.prepare(source)
        one_change_each.change(source, 600)
        yield source


SHORT: Final = {("database", 4), ("database", 16), ("database", 1), ("database", 0)}


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
    assert_equal(loaded, tmp_path, {**EVENTUAL, "replica.batch_groups": 4, **more})


def assert_equal(source: Server, folder: Path, settings: dict[str, Value]) -> None:
    with Server(GTIDS) as target:
        with DaemonProcess(source, target, folder, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(source, target) == []
