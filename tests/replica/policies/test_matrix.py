"""Every statement and type, from each server to each, in each format, with and without workers."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.fix_daemon import assert_none_in_doubt
from tests.fix_families import installed
from tests.load.equality import unequal
from tests.load.matrix.load import MatrixLoad, options
from tests.load.matrix.place import CONDITIONS, TRIGGERS_ON_TARGET, Between, Condition
from tests.replica.daemon_process import DaemonProcess
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
SERIES = ("9.7", "10.11", "11.8")
FORMATS = ("ROW", "STATEMENT", "MIXED")
QUICK = {
    ("9.7", "9.7", "MIXED", 4),
    ("10.11", "11.8", "ROW", 4),
    ("11.8", "9.7", "MIXED", 4),
}
"""Those of the suite; the others are long."""
CASES = [*product(SERIES, SERIES, FORMATS)]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.why)
def test_nothing_is_left_out_everywhere(condition: Condition) -> None:
    assert {condition.holds(Between(*case)) for case in CASES} == {True, False}


@pytest.mark.parametrize(
    ("source", "target", "binlog_format", "workers"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.long)
        for case in product(SERIES, SERIES, FORMATS, (4, 0))
    ],
)
def test_everything_comes_to_the_same(
    source: str,
    target: str,
    binlog_format: str,
    workers: int,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    between = Between(source, target, binlog_format)
    with Pair(
        {**options(source), "server_id": 1, "binlog_format": binlog_format},
        {**options(target), "server_id": 2},
        installation=installed(source),
        target_installation=installed(target),
    ) as pair:
        load = MatrixLoad(pair.source, between)
        load.prepare(pair.target)
        load.run()
        record_property("left out", load.left_out)
        settings = {"replica.parallel_workers": workers}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        triggers = TRIGGERS_ON_TARGET.holds(between)
        assert unequal(pair.source, pair.target, triggers=triggers) == []
        assert_none_in_doubt(pair.target)
