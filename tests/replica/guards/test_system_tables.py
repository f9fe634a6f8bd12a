"""Rows of the server's own tables, which it locks apart from all others (error 1428)."""

from pathlib import Path

import pytest

from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

ZONES = "SELECT * FROM mysql.time_zone_name ORDER BY Name"


@pytest.mark.parametrize("batch_groups", [1, 512])
def test_time_zones_between_other_rows(batch_groups: int, tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(
            pair.source, pair.target, tmp_path, {"replica.batch_groups": batch_groups}
        )
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);"
            "INSERT INTO a.t VALUES (1); INSERT INTO a.t VALUES (2);"
            "INSERT INTO mysql.time_zone_name VALUES ('Here', 1), ('There', 2);"
            "INSERT INTO mysql.time_zone VALUES (1, 'N');"
            "INSERT INTO a.t VALUES (3);"
            "BEGIN; INSERT INTO a.t VALUES (4); DELETE FROM mysql.time_zone_name WHERE Name ="
            " 'There'; INSERT INTO mysql.time_zone VALUES (2, 'Y'); INSERT INTO a.t VALUES (5);"
            "COMMIT; INSERT INTO a.t VALUES (6)"
        )
        try:
            daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0, daemon.last_words()
        finally:
            daemon.close()
        for query in (ZONES, "SELECT * FROM mysql.time_zone", "SELECT * FROM a.t"):
            assert pair.target.sql(query) == pair.source.sql(query)
        assert len(pair.target.sql(ZONES)) == 1
        # A server keeps a time zone that it has seen.
        pair.discard()
