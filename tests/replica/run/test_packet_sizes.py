"""A target whose max_allowed_packet is smaller than the source's: an error before any effect."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import foretold, replicated, stopped
from tests.fix_families import families
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MIB = 1 << 20
SMALL = f"SET GLOBAL max_allowed_packet = {MIB}"
LARGE = 3_000_000
BOTH = pytest.mark.parametrize("series", ["9.7", "11.8"])


def small_target(series: str) -> Pair:
    return families(series, series, {"max_allowed_packet": 64 * MIB})


@BOTH
def test_a_result_that_is_too_large_is_not_null(series: str, tmp_path: Path) -> None:
    """Outside of strict mode it is NULL on the target, with a warning."""
    with small_target(series) as pair:
        pair.source.sql("SET GLOBAL sql_mode = ''; CREATE DATABASE a")
        pair.source.sql("CREATE TABLE a.t (i INT PRIMARY KEY, v LONGTEXT)")
        pair.target.sql(SMALL)
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = STATEMENT")
            cursor.execute(f"INSERT INTO t VALUES (1, REPEAT('x', {LARGE}))")
        said = stopped(pair, tmp_path)
        assert "error 1301" in said
        assert "raise max_allowed_packet on the target" in said
        assert pair.target.sql("SELECT i FROM a.t") == []
        # What the message says helps.
        pair.target.sql(f"SET GLOBAL max_allowed_packet = {64 * MIB}")
        replicated(pair, tmp_path)
        assert pair.target.sql("SELECT i, LENGTH(v) FROM a.t") == [(1, LARGE)]


@BOTH
def test_a_result_that_no_server_accepts(series: str, tmp_path: Path) -> None:
    """It is NULL on the source too, as a target with the greatest limit knows."""
    with small_target(series) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v LONGTEXT)")
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = STATEMENT, sql_mode = ''")
            cursor.execute(f"INSERT INTO t VALUES (1, REPEAT('x', {1024 * MIB + 1}))")
        pair.target.sql(f"SET GLOBAL max_allowed_packet = {64 * MIB}")
        assert "max_allowed_packet = 1073741824" in stopped(pair, tmp_path)
        pair.target.sql(f"SET GLOBAL max_allowed_packet = {1024 * MIB}")
        replicated(pair, tmp_path)
        assert pair.target.sql("SELECT * FROM a.t") == [(1, None)]


@BOTH
@pytest.mark.parametrize(
    ("settings", "binlog_format"),
    [({"target.apply_mode": "sql"}, "ROW"), ({}, "ROW"), ({}, "STATEMENT")],
)
def test_nothing_of_what_cannot_be_rolled_back_is_applied(
    series: str, settings: dict[str, Value], binlog_format: str, tmp_path: Path
) -> None:
    with small_target(series) as pair:
        pair.target.sql(SMALL)
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT, v LONGTEXT) ENGINE = MyISAM")
        value = "x" * LARGE
        pair.source.sql(
            f"SET SESSION binlog_format = {binlog_format};"
            f" INSERT INTO a.t VALUES (1, 'a'), (2, '{value}')"
        )
        assert "packet-small" in foretold(pair, tmp_path, settings)
        said = stopped(pair, tmp_path, settings)
        assert "raise max_allowed_packet on the target" in said
        assert pair.target.sql("SELECT i FROM a.t") == []
        assert pair.target.sql("SELECT * FROM mtsd.slave_in_doubt") == []


@pytest.mark.parametrize(
    ("series", "binlog_format", "settings"),
    [
        ("9.7", "ROW", {}),
        ("9.7", "ROW", {"replica.pending_jobs_size_max": 65536, "replica.batch_bytes": 65536}),
        ("11.8", "STATEMENT", {}),
    ],
)
def test_a_limit_that_is_raised_in_time_holds(
    series: str, binlog_format: str, settings: dict[str, Value], tmp_path: Path
) -> None:
    """A session keeps the limit that it began with: those of the daemon are older."""
    with small_target(series) as pair:
        pair.target.sql(SMALL)
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v LONGTEXT)")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            pair.target.sql(f"SET GLOBAL max_allowed_packet = {64 * MIB}")
            with closing(pair.source.client("a")) as client, client.cursor() as cursor:
                cursor.execute(f"SET SESSION binlog_format = {binlog_format}")
                cursor.execute(f"INSERT INTO t VALUES (1, '{'x' * LARGE}')")
            daemon.wait_until_caught_up()
            interrupted = daemon.wait_for_record("replication interrupted")
            assert "max_allowed_packet" in str(interrupted["error"])
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT i, LENGTH(v) FROM a.t") == [(1, LARGE)]
