"""A split transaction that is decided, and fails after that: the next start completes it."""

import time
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.replica.ways.splitting import CREATE, assert_equal, insert, stopped_in_step
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


def test_its_record_stays_if_that_cannot_be_settled(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        pair.source.sql(CREATE)
        daemon = stopped_in_step(pair, tmp_path)
        pair.source.sql(insert("t", 0))
        daemon.start(fault=f"{FaultPoint.BEFORE_SETTLED.value}:1:waits")
        deadline = time.monotonic() + 60
        while not (tmp_path / "there").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pair.target.sql(
            "CREATE DATABASE kept; CREATE TABLE kept.w AS SELECT * FROM mtsd.slave_worker_info"
            " WHERE Id = 1; DELETE FROM mtsd.slave_worker_info WHERE Id = 1"
        )
        (tmp_path / "go").touch()
        assert daemon.wait() == 3
        pair.target.sql(
            "INSERT INTO mtsd.slave_worker_info SELECT * FROM kept.w; DROP DATABASE kept"
        )
        daemon.start()
        assert_equal(pair, daemon)
        assert daemon.stop() == 0
