"""All tables are equal after a mixed load."""

from pathlib import Path
from threading import Event, Thread

import pytest

from tests.load.compare import differences
from tests.load.journal import audit
from tests.load.mixed import Mix, MixedLoad
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS
from tests.servers.pair import Pair
from tests.servers.provision import Options

pytestmark = pytest.mark.servers


SETTINGS: dict[str, dict[str, Value]] = {
    "default": {},
    "sequential": {"replica.parallel_workers": 0},
    "one by one": {"replica.batch_groups": 1, "replica.parallel_workers": 8},
    "small queues": {
        "replica.checkpoint_group": 32,
        "replica.pending_jobs_size_max": 65536,
        "replica.batch_bytes": 16384,
        "replica.checkpoint_period": 0.01,
    },
}
EXCHANGES: Options = {"innodb_file_per_table": "ON"}
"""Lets the load exchange partitions, too."""
LONG = pytest.mark.long


@pytest.mark.parametrize(
    "name",
    [name if name == "small queues" else pytest.param(name, marks=LONG) for name in SETTINGS],
)
@pytest.mark.parametrize("transactions", [700, pytest.param(3000, marks=LONG)])
def test_backlog(name: str, transactions: int, tmp_path: Path) -> None:
    source_options = GTIDS if name != "one by one" else NO_GTIDS
    with Pair({**source_options, **EXCHANGES}, {**GTIDS, **EXCHANGES}) as pair:
        load = MixedLoad(pair.source, seed=1, databases=2)
        load.prepare()
        load.run(transactions=transactions)
        with DaemonProcess(pair.source, pair.target, tmp_path, SETTINGS[name]) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert audit(pair.target, load.ledger) == []


@pytest.mark.parametrize(
    "source_options",
    [pytest.param(GTIDS, id="gtid", marks=LONG), pytest.param(NO_GTIDS, id="no gtid")],
)
@pytest.mark.parametrize("seconds", [2, pytest.param(20, marks=LONG)])
def test_live(source_options: dict[str, str], seconds: int, tmp_path: Path) -> None:
    with Pair(source_options, GTIDS) as pair:
        load = MixedLoad(
            pair.source, seed=2, databases=2, mix=Mix(statement_format=True, over_max=False)
        )
        load.prepare()
        stopping = Event()
        thread = Thread(target=lambda: load.run(seconds=seconds, until=stopping, rate=250))
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            thread.start()
            daemon.wait_until_running()
            thread.join()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert audit(pair.target, load.ledger) == []
