"""Pairs of MySQL under XA transactions, and what has to be equal there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.xa.xa_prepared import assert_recorded
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options
from tests.servers.pair import Pair

TARGETS: dict[str, Options] = {
    "GTIDs": GTIDS,
    "GTIDs, no binlog": {**GTIDS, "skip_log_bin": None},
    "binlog": NO_GTIDS,
    "neither": {**NO_GTIDS, "skip_log_bin": None},
}
KINDS = [
    kind if kind in {"GTIDs", "neither"} else pytest.param(kind, marks=pytest.mark.long)
    for kind in TARGETS
]
"""The suite takes those that differ most."""


@contextmanager
def running(
    folder: Path,
    source: Options | None = GTIDS,
    target: Options | None = GTIDS,
    settings: dict[str, Value] | None = None,
) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Two servers with a few tables, and a daemon that has applied them and is running."""
    with Pair(source, target) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE DATABASE b;"
            "CREATE TABLE a.t (id INT PRIMARY KEY, v INT); CREATE TABLE b.t LIKE a.t;"
            "INSERT INTO a.t VALUES (1, 1), (2, 2), (3, 3); INSERT INTO b.t SELECT * FROM a.t"
        )
        with DaemonProcess(pair.source, pair.target, folder, settings) as daemon:
            daemon.wait_until_caught_up()
            yield pair, daemon


def assert_equal(pair: Pair, daemon: DaemonProcess) -> None:
    """Wait until everything is applied, and compare both servers."""
    daemon.wait_until_caught_up()
    assert differences(pair.source, pair.target) == []
    assert_recorded(pair.source, pair.target)
