"""Tables with a generated invisible primary key: BINLOG would take one column for another."""

from pathlib import Path

import pytest

from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

KEY = "SET SESSION sql_generate_invisible_primary_key = ON;"
NOT_LOGGED = "SET SESSION sql_log_bin = 0;"
TWO = "a BIGINT UNSIGNED, b BIGINT UNSIGNED"
FUNCTIONAL = "KEY k ((a + b))"
ONE_MORE = "c BIGINT UNSIGNED DEFAULT 5"
MANY = (
    "WITH RECURSIVE n AS (SELECT 100 i UNION SELECT i + 1 FROM n WHERE i < 500) SELECT i, 7 FROM n"
)
TABLES = {
    "on both": (f"{KEY} CREATE TABLE {{}} ({TWO})",) * 2,
    "on both, functional": (f"{KEY} CREATE TABLE {{}} ({TWO}, {FUNCTIONAL})",) * 2,
    "on both, functional there": (
        f"{KEY} CREATE TABLE {{}} ({TWO})",
        f"{KEY} CREATE TABLE {{}} ({TWO}, {FUNCTIONAL})",
    ),
    "on both, more there": (
        f"{KEY} CREATE TABLE {{}} ({TWO})",
        f"{KEY} CREATE TABLE {{}} ({TWO}, {ONE_MORE})",
    ),
    "there": (f"CREATE TABLE {{}} ({TWO})", f"{KEY} CREATE TABLE {{}} ({TWO})"),
    "there, functional": (
        f"CREATE TABLE {{}} ({TWO}, {FUNCTIONAL})",
        f"{KEY} CREATE TABLE {{}} ({TWO}, {FUNCTIONAL})",
    ),
    "there, more there": (
        f"CREATE TABLE {{}} ({TWO})",
        f"{KEY} CREATE TABLE {{}} ({TWO}, {ONE_MORE}, {FUNCTIONAL})",
    ),
}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"replica.batch_groups": 1},
        {"target.gtid": "preserve"},
        {"target.apply_mode": "sql"},
        {"replica.batch_bytes": 1024, "replica.pending_jobs_size_max": 4096},
    ],
    ids=lambda settings: ", ".join(map(str, settings)) or "combined",
)
def test_columns_correspond(settings: dict[str, Value], tmp_path: Path) -> None:
    with Pair({**GTIDS, "max_allowed_packet": 1024}, GTIDS) as pair:
        names = [f"t.t{number}" for number in range(len(TABLES))]
        for side, server in enumerate((pair.source, pair.target)):
            server.sql(f"{NOT_LOGGED} CREATE DATABASE t")
            for table, definitions in zip(names, TABLES.values(), strict=True):
                server.sql(NOT_LOGGED + definitions[side].format(table))
        pair.target.sql("SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF")
        for table in names:
            for number in range(3):
                pair.source.sql(f"INSERT INTO {table} (a, b) VALUES ({number}, {number * 10 + 1})")
            pair.source.sql(f"UPDATE {table} SET b = b + 1000 WHERE a = 1")
            pair.source.sql(f"DELETE FROM {table} WHERE a = 2")
            pair.source.sql(
                f"BEGIN; INSERT INTO {table} (a, b) {MANY};"
                f" INSERT INTO {table} (a, b) VALUES (90, 91); COMMIT"
            )
            pair.source.sql(
                f"XA START 'x'; INSERT INTO {table} (a, b) VALUES (100, 101); XA END 'x';"
                " XA PREPARE 'x'; XA COMMIT 'x'"
            )
        pair.source.sql(
            f"{KEY} CREATE TABLE t.made ({FUNCTIONAL}) SELECT a, b FROM {names[-1]} LIMIT 5;"
            " INSERT INTO t.made (a, b) VALUES (1000, 1)"
        )
        names.append("t.made")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
            streamed = any(each["event"] == "streaming a large group" for each in daemon.records())
            assert streamed == ("replica.batch_bytes" in settings)
        for table in names:
            rows = f"SELECT a, b FROM {table} ORDER BY a, b"
            assert pair.target.sql(rows) == pair.source.sql(rows)
