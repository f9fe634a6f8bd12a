"""Columns that only the target has: what they contain is the same with BINLOG and as SQL."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fix_families import families
from tests.fix_servers import run
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

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


@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_their_times_are_in_the_zone_of_the_source(mode: str, tmp_path: Path) -> None:
    """As with a server's own replica; that the table is known already changes nothing."""
    options = {**GTIDS, "default_time_zone": "+05:00"}
    with Pair(options, options) as pair:
        create = "SET sql_log_bin = 0; CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY"
        pair.source.sql(f"{create})")
        pair.target.sql(
            f"{create}, d DATETIME DEFAULT CURRENT_TIMESTAMP,"
            " m VARCHAR(20) DEFAULT (DATE_FORMAT(NOW(), '%H %M')))"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, {"target.apply_mode": mode}) as each:
            for i in (1, 2):
                run(
                    pair.source,
                    f"SET timestamp = {EARLY}, lc_time_names = 'de_DE'",
                    f"INSERT INTO a.t VALUES ({i}), ({i + 2})",
                )
                each.wait_until_caught_up()
            assert each.stop() == 0
        rows = "SELECT COUNT(*) FROM a.t WHERE d = '2020-01-01 05:00:00' AND m = '05 Januar'"
        assert pair.target.sql(rows) == [(4,)]


def test_their_times_are_in_the_zone_of_a_mariadb(tmp_path: Path) -> None:
    with families("11.8", "11.8") as pair:
        create = "SET sql_log_bin = 0; CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY"
        pair.source.sql(f"{create})")
        pair.target.sql(f"{create}, d DATETIME DEFAULT CURRENT_TIMESTAMP)")
        pair.target.sql("SET GLOBAL time_zone = '+05:00'")
        with DaemonProcess(pair.source, pair.target, tmp_path) as each:
            for i in (1, 2):
                pair.source.sql(f"SET timestamp = {EARLY}; INSERT INTO a.t VALUES ({i})")
                each.wait_until_caught_up()
            assert each.stop() == 0
        rows = "SELECT COUNT(*) FROM a.t WHERE d = '2020-01-01 05:00:00'"
        assert pair.target.sql(rows) == [(2,)]


def test_what_becomes_other_values_is_said_once_a_table(tmp_path: Path) -> None:
    """As a server's own replica, BINLOG takes such rows without an error."""
    alike = (
        "CREATE TABLE a.alike (i INT PRIMARY KEY, u INT UNSIGNED ZEROFILL, y YEAR, d DECIMAL(5, 2),"
        " v VARCHAR(9) CHARACTER SET latin1, b VARBINARY(9), j JSON, e ENUM('x'), n TEXT,"
        " KEY ((i + 1)))"
    )
    wider = "CREATE TABLE a.wider (i INT PRIMARY KEY, v TEXT CHARACTER SET "
    with Pair(GTIDS, {**GTIDS, "sql_generate_invisible_primary_key": "ON"}) as pair:
        for server, kind, text, more in (
            (pair.source, "INT", "utf8mb3", ""),
            (pair.target, "INT UNSIGNED", "utf8mb4", ", w INT"),
        ):
            run(
                server,
                "SET sql_log_bin = 0",
                "CREATE DATABASE a",
                alike,
                f"{wider}{text}{more})",
                f"CREATE TABLE a.signs (i {kind}, k INT)",
            )
        run(
            pair.target,
            "SET sql_log_bin = 0",
            "CREATE TABLE a.t (i INT PRIMARY KEY, v TEXT CHARACTER SET latin1)",
        )
        run(
            pair.source,
            "SET sql_log_bin = 0",
            "CREATE TABLE a.t (i INT PRIMARY KEY, v TEXT, w INT)",
            "SET sql_log_bin = 1",
            "INSERT INTO a.alike (i) VALUES (1)",
            "INSERT INTO a.wider VALUES (1, 'a')",
            "INSERT INTO a.signs VALUES (-1, 1)",
            "INSERT INTO a.t VALUES (1, 'a', 1)",
            "FLUSH TABLES",
            "INSERT INTO a.t VALUES (2, 'a', 1)",
        )
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            told = {
                str(each["table"]): str(each["because"])
                for each in daemon.records()
                if each["event"] == "rows of a table become others on the target"
            }
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT i, k FROM a.signs") == [(2**32 - 1, 1)]
    assert told == {
        "a.signs": "column 'i' is signed on the source and unsigned here",
        "a.t": (
            "column 'v' is in utf8mb4 on the source and in latin1 here; the source's rows have 3"
            " columns, and the table has 2 here: what is in the last ones is lost, unless these"
            " belong to an index on an expression"
        ),
    }
