"""Many rows changed or deleted at once as SQL, by a key of one column or of two, of every type."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.apply.appliers.differing_targets import SQL
from tests.fix_families import families, installed
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

_UTF8: Final = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
_LATIN: Final = "CHARACTER SET latin1 COLLATE latin1_swedish_ci"
_LATER: Final = "'2020-10-25 01:30:00.123'"
KEYS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "bits": ("BIT(64)", "BIT(64)", ("0", "1", "~0")),
    "tiny": ("TINYINT", "TINYINT", ("-128", "0", "127")),
    "wider": ("INT", "BIGINT", ("-1", "0", "2147483647")),
    "big": ("BIGINT UNSIGNED", "BIGINT UNSIGNED", ("0", "9223372036854775808", "~0")),
    "decimal": ("DECIMAL(65,30)", "DECIMAL(65,30)", ("-1e-30", "0", "1e34", "0.1")),
    "single": ("FLOAT", "FLOAT", ("-1.1", "0.1", "16777217", "1e-45")),
    "double": ("DOUBLE", "DOUBLE", ("-1.1", "0.1", "5e-324", "1e22", "0")),
    "year": ("YEAR", "YEAR", ("0", "1970", "2000", "2155")),
    "day": ("DATE", "DATE", ("'0000-00-00'", "'2020-00-00'", "'9999-12-31'")),
    "clock": ("TIME(2)", "TIME(2)", ("'-838:59:59'", "'-00:00:00.01'", "'00:00:00'")),
    "moment": ("DATETIME(6)", "DATETIME(6)", ("'0000-00-00'", "'2020-01-01'", _LATER)),
    "stamp": ("TIMESTAMP(3)", "TIMESTAMP(3)", ("'0000-00-00'", "'2038-01-19 03:14:07'", _LATER)),
    "members": ("ENUM('2','3','1')", "ENUM('2','3','1')", ("1", "2", "3")),
    "no_member": ("ENUM('a','b')", "ENUM('a','b')", ("0", "1", "2")),
    "several": ("SET('a','b')", "SET('a','b')", ("0", "1", "2", "3")),
    "bytes": ("VARBINARY(9)", "VARBINARY(20)", ("''", "x'00'", "x'ff00'")),
    "padded": ("BINARY(4)", "BINARY(4)", ("''", "x'01'", "x'ff202020'")),
    "text": (f"VARCHAR(9) {_UTF8}", f"VARCHAR(9) {_UTF8}", ("''", "'ä'", "'ö'", "'b'")),
    "fixed": (f"CHAR(9) {_UTF8}", f"CHAR(9) {_UTF8}", ("''", "'ä'", "'ö'", "'b'")),
    "exact": ("VARCHAR(9) COLLATE utf8mb4_bin", "VARCHAR(9) COLLATE utf8mb4_bin", ("'A'", "'a'")),
    "latin": (f"VARCHAR(9) {_LATIN}", f"VARCHAR(9) {_LATIN}", ("''", "'ä'", "'ö'", "'b'")),
    "narrower": (f"VARCHAR(9) {_UTF8}", f"VARCHAR(40) {_LATIN}", ("''", "'ä'", "'ö'", "'b'")),
    "broader": (f"VARCHAR(9) {_LATIN}", f"VARCHAR(40) {_UTF8}", ("''", "'ä'", "'ö'", "'b'")),
    "fewer": (f"VARCHAR(9) {_UTF8}", "VARCHAR(40) CHARACTER SET utf8mb3", ("''", "'ä'", "'ö'")),
}
"""By name: the key column's type on the source, on the target, and values."""
OF_MARIADB: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "uuid": ("UUID", "BINARY(16)", ("'6ccd780c-baba-1026-9564-5b8c656024db'", "UUID()")),
    "address": ("INET6", "BINARY(16)", ("'::'", "'::ffff:1.2.3.4'", "'2020::'")),
}
"""The same, with the type that is nearest to it on a MySQL target."""
TABLES: Final = {"one": "k", "two": "k, i", "turned": "i, k"}
"""With their primary keys."""


Keys = Mapping[str, tuple[str, str, tuple[str, ...]]]


@pytest.mark.parametrize(
    ("source", "target"), [("9.7", "9.7"), ("9.7", "11.8"), ("11.8", "11.8"), ("11.8", "9.7")]
)
def test_keys_of_every_type(source: str, target: str, tmp_path: Path) -> None:
    keys = KEYS | (OF_MARIADB if source == "11.8" else {})
    with families(source, target, {"binlog_row_metadata": "FULL"}) as pair:
        for server, is_mysql in ((pair.source, source == "9.7"), (pair.target, target == "9.7")):
            create(server, keys, 0 if server is pair.source else 1, is_mysql=is_mysql)
        tables = [f"{name}_{table}" for name in keys for table in TABLES]
        for name, (_, _, values) in keys.items():
            for table in TABLES:
                rows = ",".join(f"({value},{number})" for number, value in enumerate(values))
                pair.source.sql(
                    "SET NAMES utf8mb4; SET sql_mode = 'ALLOW_INVALID_DATES';"
                    f" INSERT IGNORE INTO {name}_{table} (k, i) VALUES {rows}",
                    "a",
                )
        with DaemonProcess(pair.source, pair.target, tmp_path, SQL) as daemon:
            # Or they would be inserted with what they are at the end.
            daemon.wait_until_caught_up()
            for table in tables:
                pair.source.sql(f"UPDATE {table} SET v = i * 2 + 1, w = CONCAT('now ', i)", "a")
            daemon.wait_until_caught_up()
            found = rows_of(pair.target, tables)
            assert found == rows_of(pair.source, tables)
            assert set(found) == set(tables)
            for table in tables:
                pair.source.sql(f"DELETE FROM {table}", "a")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
            assert all(each["event"] != "applied again" for each in daemon.records())
        assert rows_of(pair.target, tables) == {}


def create(server: Server, keys: Keys, place: int, *, is_mysql: bool) -> None:
    server.sql("SET sql_log_bin = 0; CREATE DATABASE a CHARACTER SET utf8mb4")
    for name, key in keys.items():
        kind = key[place if is_mysql or name not in OF_MARIADB else 0]
        for table, columns in TABLES.items():
            server.sql(
                "SET sql_log_bin = 0; SET sql_mode = '';"
                f" CREATE TABLE {name}_{table} (k {kind} NOT NULL, i INT NOT NULL, v INT,"
                f" w VARCHAR(20), PRIMARY KEY ({columns}))",
                "a",
            )


def rows_of(server: Server, tables: Sequence[str]) -> dict[str, str]:
    query = " UNION ALL ".join(
        f"SELECT '{name}', GROUP_CONCAT(v, '=', w ORDER BY i) FROM a.{name}" for name in tables
    )
    return {str(name): str(rows) for name, rows in server.sql(query) if rows is not None}


@pytest.mark.parametrize("target", ["9.7", "11.8"])
def test_rows_with_a_condition_for_each_are_found_by_the_key(target: str) -> None:
    """As many conditions as one statement has: with more, a server might search all rows."""
    with Server(installation=installed(target)) as server:
        rows = ",".join(f"({number % 3 + 1},{number},0)" for number in range(20_000))
        server.sql(
            "CREATE DATABASE a; USE a; CREATE TABLE t (k ENUM('a','b','c'), i INT, v INT,"
            f" PRIMARY KEY (k, i)); INSERT INTO t VALUES {rows}; ANALYZE TABLE t"
        )
        conditions = " OR ".join(f"k={i % 3 + 1} AND i={i}" for i in range(250))
        with closing(server.client("a")) as client, client.cursor() as cursor:
            cursor.execute("FLUSH STATUS")
            assert cursor.execute(f"DELETE FROM t WHERE ({conditions})") == 250
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'")
            assert cursor.fetchall() == (("Handler_read_rnd_next", "0"),)
