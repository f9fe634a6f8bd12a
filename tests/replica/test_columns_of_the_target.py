"""Columns that only the target has: what they contain is the same with BINLOG and as SQL."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.replica.daemon_process import DaemonProcess, Value
from tests.replica.test_families import families

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

OWN = (
    "c TIMESTAMP DEFAULT CURRENT_TIMESTAMP, d DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE"
    " CURRENT_TIMESTAMP"
)
EARLY, LATE = 1577836800, 1609459200


@pytest.mark.parametrize("series", ["9.7", "11.8"])
@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_their_times_are_those_of_the_source(series: str, mode: str, tmp_path: Path) -> None:
    settings: dict[str, Value] = {
        "target.apply_mode": mode,
        "replica.parallel_workers": 1,
        # A MariaDB gives all rows of one BINLOG statement the time of the first.
        "replica.batch_groups": 1 if (mode, series) == ("binlog", "11.8") else 100,
    }
    with families(series, series) as pair:
        create = "SET sql_log_bin = 0; CREATE DATABASE a; USE a; CREATE TABLE t (i INT PRIMARY KEY"
        pair.source.sql(f"{create})")
        pair.target.sql(f"{create}, {OWN}); CREATE TABLE s (i INT PRIMARY KEY, {OWN})")
        pair.source.sql(f"SET sql_log_bin = 0; USE a; CREATE TABLE s (i INT PRIMARY KEY, {OWN})")
        pair.source.sql(
            f"SET timestamp = {EARLY}; INSERT INTO t VALUES (1), (2); SET timestamp = {LATE};"
            " INSERT INTO t VALUES (3); SET timestamp = DEFAULT; INSERT INTO s (i) VALUES (1);"
            " UPDATE t SET i = 4 WHERE i = 2;"
            " SET SESSION binlog_format = 'STATEMENT'; INSERT INTO s (i) VALUES (2)",
            "a",
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        early, late = (
            datetime.fromtimestamp(each, UTC).replace(tzinfo=None) for each in (EARLY, LATE)
        )
        assert pair.target.sql("SET time_zone = '+00:00'; SELECT i, c, d FROM a.t ORDER BY i") == [
            (1, early, early), (3, late, late), (4, early, early),
        ]  # fmt: skip
        rows = "SELECT i, c, d FROM a.s ORDER BY i"
        assert pair.source.sql(rows) == pair.target.sql(rows)
