"""Killed at any instant under statements that say less than they do, with a MariaDB in the pair."""

import random
from pathlib import Path

import pytest

from tests.fix_daemon import assert_none_in_doubt
from tests.fix_families import pair_of
from tests.fix_kills import SMALL, kill_either
from tests.load.equality import unequal
from tests.load.journal import audit
from tests.load.mariadb import MariadbLoad
from tests.replica.daemon_process import DaemonProcess

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = (pytest.mark.long, pytest.mark.timeout(3600))


@pytest.mark.parametrize(
    ("source", "target", "kills"),
    [
        ("11.8", "11.8", 3),
        *(
            pytest.param(source, target, 50, marks=LONG)
            for source, target in (
                ("11.8", "11.8"),
                ("10.11", "10.11"),
                ("10.11", "11.8"),
                ("11.8", "9.7"),
                ("9.7", "11.8"),
            )
        ),
    ],
)
def test_killed_under_statements(source: str, target: str, kills: int, tmp_path: Path) -> None:
    with pair_of(source, target) as pair:
        load = MariadbLoad(pair.source, kills, ("STATEMENT", "STATEMENT", "MIXED"), statements=True)
        load.prepare()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SMALL)
        with load.running(pause=0.1):
            kill_either(pair, daemon, random.Random(f"{source} {target} {kills}"), kills)
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert audit(pair.target, load.ledger) == []
        assert unequal(pair.source, pair.target) == []
        assert_none_in_doubt(pair.target)
