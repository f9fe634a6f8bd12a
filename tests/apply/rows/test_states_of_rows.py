"""Rows of which the target computes something: under what the source's session had."""

import random
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.fix_daemon import replicated, stopped
from tests.fix_servers import run
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

IN_ITS_ZONE = (
    "CREATE DATABASE a; CREATE DATABASE b;"
    " CREATE TABLE a.t (i INT PRIMARY KEY, ts TIMESTAMP NULL, d DATETIME AS (ts) STORED, KEY (d));"
    " CREATE TABLE a.checked (i INT PRIMARY KEY, ts TIMESTAMP(3) NULL, CHECK (MINUTE(ts) = 7));"
    " CREATE TABLE a.plain (i INT PRIMARY KEY, ts TIMESTAMP NULL)"
)
# MONTHNAME would keep the language that its table was opened in.
IN_ITS_LANGUAGE = (
    "CREATE TABLE a.m (i INT PRIMARY KEY, x DATE, d VARCHAR(40) AS (DATE_FORMAT(x, '%M')) STORED,"
    " KEY (d))"
)
# A server does not find its own rows by what another session has computed.
OF_SQL = (
    "CREATE TABLE a.unkeyed (x TIMESTAMP(2) NULL, d VARCHAR(40) AS (DATE_FORMAT(x, '%M')) STORED)"
)
IN_ITS_MODE = (
    "CREATE TABLE a.s (i INT PRIMARY KEY, a INT UNSIGNED, b INT UNSIGNED,"
    " d BIGINT AS (a - b) STORED);"
    " CREATE TABLE a.q (i INT PRIMARY KEY, a INT, b INT, d INT AS (a / b) STORED);"
    " CREATE TABLE a.r (i INT PRIMARY KEY, a DATETIME(6), d DATETIME AS (a) STORED)"
)
OF_BINLOG = (
    "CREATE TABLE a.p (i INT PRIMARY KEY, a CHAR(4), d VARCHAR(9) AS (CONCAT(a, 'x')) STORED);"
    " CREATE TABLE a.c (i INT PRIMARY KEY, a VARCHAR(9), d VARCHAR(9) AS (a + 1) STORED);"
    " CREATE TABLE a.z (i INT PRIMARY KEY, a VARCHAR(20), d DATE AS (CAST(a AS DATE)) STORED)"
)
ZONES = ("SYSTEM", "+05:30", "-03:00", "+00:00")
NAMES = ("en_US", "de_DE", "es_ES")
MODES = ("", "NO_UNSIGNED_SUBTRACTION", "TIME_TRUNCATE_FRACTIONAL,NO_UNSIGNED_SUBTRACTION")
MODES_OF_BINLOG = ("PAD_CHAR_TO_FULL_LENGTH", "NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_ALL_TABLES")
WAYS: dict[str, dict[str, Value]] = {
    "binlog": {},
    "SQL": {"target.apply_mode": "sql"},
    "idempotent": {"replica.exec_mode": "idempotent"},
    "in order": {"replica.consistency": "any_time", "replica.parallel_type": "row"},
    "streamed": {"replica.pending_jobs_size_max": 4096, "replica.batch_bytes": 4096},
    "split": {
        "replica.consistency": "eventual",
        "replica.split_transactions": "row",
        "replica.exec_mode": "strict",
        "replica.pending_jobs_size_max": 4096,
        "replica.batch_bytes": 4096,
    },
    "preserve": {"target.gtid": "preserve"},
}
AS_SQL = ("SQL", "idempotent")
UNKNOWN_ZONE = (
    "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (1, 'N');"
    " INSERT INTO mysql.time_zone_name VALUES ('Test/Back', 1);"
    " INSERT INTO mysql.time_zone_transition_type"
    " VALUES (1, 0, 3600, 0, 'STD'), (1, 1, 7200, 1, 'DST');"
    " INSERT INTO mysql.time_zone_transition"
    " VALUES (1, 0, 0), (1, 1000000000, 1), (1, 1100000000, 0)"
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


def tables(way: str) -> str:
    created = f"{IN_ITS_ZONE}; {IN_ITS_LANGUAGE}; {IN_ITS_MODE}"
    return f"{created}; {OF_SQL if way in AS_SQL else OF_BINLOG}"


def changes(rng: random.Random, way: str, sessions: int) -> Iterator[list[str]]:
    """Yield the statements of sessions with all kinds of state."""
    modes = MODES if way in AS_SQL else MODES + MODES_OF_BINLOG
    for number in range(sessions):
        i = number * 10
        mode = rng.choice(modes)
        zone, names = rng.choice(ZONES), rng.choice(NAMES)
        yield [
            f"SET time_zone = '{zone}', lc_time_names = '{names}', sql_mode = '{mode}'",
            *changes_of_tables(rng, i, mode),
            *(changes_of_sql() if way in AS_SQL else changes_of_binlog(i)),
        ]


def changes_of_tables(rng: random.Random, i: int, mode: str) -> Iterator[str]:
    of_hour = f"'2020-0{rng.randint(1, 9)}-02 03:07:{rng.randint(10, 59)}'"
    yield f"INSERT INTO a.t (i, ts) VALUES ({i}, NOW()), ({i + 1}, {of_hour}), ({i + 2}, NULL)"
    yield f"INSERT INTO a.checked VALUES ({i}, '2020-01-01 10:07:00.25')"
    yield f"INSERT INTO a.plain VALUES ({i}, NOW())"
    yield f"INSERT INTO a.m (i, x) VALUES ({i}, '2020-{rng.randint(1, 12)}-01')"
    yield f"INSERT INTO a.r (i, a) VALUES ({i}, '2020-02-02 02:02:02.777777')"
    if "NO_UNSIGNED" in mode:
        yield f"INSERT INTO a.s (i, a, b) VALUES ({i}, 1, 2), ({i + 1}, 2, 1)"
        yield f"UPDATE a.s SET b = b + 7 WHERE i = {i}"
    yield f"INSERT IGNORE INTO a.q (i, a, b) VALUES ({i}, 1, {rng.randint(0, 1)})"
    yield f"UPDATE a.t SET ts = ts + INTERVAL 1 DAY WHERE i IN ({i}, {i + 1}, {i - 10})"
    yield f"UPDATE a.m SET x = x + INTERVAL 1 MONTH WHERE i <= {i}"
    yield f"DELETE FROM a.t WHERE i = {i - 9}"


def changes_of_sql() -> Iterator[str]:
    yield "INSERT INTO a.unkeyed (x) VALUES ('2020-03-31 23:30:00.5'), ('2020-12-31 22:00:00')"
    yield "UPDATE a.unkeyed SET x = x + INTERVAL 1 MONTH LIMIT 3"
    yield "DELETE FROM a.unkeyed LIMIT 1"


def changes_of_binlog(i: int) -> Iterator[str]:
    yield f"INSERT INTO a.p (i, a) VALUES ({i}, 'q')"
    yield f"INSERT IGNORE INTO a.c (i, a) VALUES ({i}, '2k')"
    yield f"INSERT IGNORE INTO a.z (i, a) VALUES ({i}, '2020-00-01'), ({i + 1}, '0000-00-00')"


def some_large(rng: random.Random, way: str) -> Iterator[list[str]]:
    """Yield sessions whose transactions are large, and change many rows."""
    for statements in changes(rng, way, 3):
        setting, *rest = statements
        more = ",".join(f"({i}, NOW() - INTERVAL {i} MINUTE)" for i in range(10000, 10300))
        languages = ",".join(f"({i}, '2021-05-05')" for i in range(10000, 10300))
        yield [
            setting,
            "BEGIN",
            *rest,
            f"INSERT INTO a.t (i, ts) VALUES {more}",
            f"INSERT INTO a.m (i, x) VALUES {languages}",
            "COMMIT",
            "DELETE FROM a.t",
            "DELETE FROM a.m",
            *(f"DELETE FROM a.{name}" for name in ("checked", "plain", "r", "s", "q")),
            *(f"DELETE FROM a.{name}" for name in (["unkeyed"] if way in AS_SQL else "pcz")),
            "BEGIN",
            f"INSERT INTO a.t (i, ts) VALUES {more}",
            "COMMIT",
            "DELETE FROM a.t WHERE i % 2",
            "UPDATE a.t SET i = i - 9000",
        ]


@pytest.mark.parametrize("way", WAYS)
def test_computed_as_in_the_session_of_the_source(way: str, pair: Pair, tmp_path: Path) -> None:
    rng = random.Random(way)
    pair.source.sql(tables(way))
    if way == "split":
        # Groups of rows in any order, as they may be then, need convergent changes.
        setting, *rest = next(some_large(rng, way))
        run(pair.source, setting, *rest[: rest.index("COMMIT") + 1])
    else:
        for statements in chain(some_large(rng, way), changes(rng, way, 12)):
            run(pair.source, *statements)
    with DaemonProcess(pair.source, pair.target, tmp_path, WAYS[way]) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        words = daemon.last_words()
    assert differences(pair.source, pair.target) == []
    for name in ("t", "m"):
        assert pair.target.sql(f"CHECK TABLE a.{name} EXTENDED")[-1][-1] == "OK"
    if way == "split":
        assert "splitting a large group" in (tmp_path / "mtsd.log").read_text(), words


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_xa_and_tables_without_transactions(
    engine: str, mode: str, pair: Pair, tmp_path: Path
) -> None:
    pair.source.sql(
        "CREATE DATABASE a; CREATE TABLE a.t"
        f" (i INT PRIMARY KEY, ts TIMESTAMP NULL, d DATETIME AS (ts) STORED) ENGINE = {engine}"
    )
    rows = ",".join(f"({i}, NOW() - INTERVAL {i} HOUR)" for i in range(200))
    run(
        pair.source,
        "SET time_zone = '+05:00'",
        f"INSERT INTO a.t (i, ts) VALUES {rows}",
        "UPDATE a.t SET ts = ts - INTERVAL 1 DAY WHERE i % 3 = 0",
        *(
            ("XA START 'x'", "INSERT INTO a.t (i, ts) VALUES (1000, NOW())", "XA END 'x'",
             "XA PREPARE 'x'", "XA COMMIT 'x'")
            if engine == "InnoDB" else ()
        ),
        "SET time_zone = '-05:00'",
        "DELETE FROM a.t WHERE i % 5 = 0",
        "INSERT INTO a.t (i, ts) VALUES (2000, NOW())",
    )  # fmt: skip
    replicated(pair, tmp_path, {"target.apply_mode": mode})
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_statements_beside_rows(mode: str, engine: str, pair: Pair, tmp_path: Path) -> None:
    """One transaction has both, and what fails leaves nothing of its state to the next one."""
    month = "DATE_FORMAT('2020-03-01', '%M')"
    pair.source.sql(
        f"{IN_ITS_ZONE}; {IN_ITS_LANGUAGE}; CREATE TABLE a.said (i INT PRIMARY KEY, v VARCHAR(40))"
    )
    pair.source.sql(f"ALTER TABLE a.m ENGINE = {engine}")
    settings: dict[str, Value] = {
        "replica.skip_errors": [1062],
        "replica.parallel_workers": 1,
        "target.apply_mode": mode,
    }
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        pair.target.sql("INSERT INTO a.m (i, x) VALUES (1, '2020-03-01')")
        run(
            pair.source,
            "SET lc_time_names = 'de_DE', time_zone = '+05:00'",
            "INSERT INTO a.m (i, x) VALUES (1, '2020-03-01')",
        )
        run(
            pair.source,
            "SET binlog_format = 'STATEMENT'",
            f"INSERT INTO a.said VALUES (1, {month})",
        )
        run(
            pair.source,
            "SET binlog_format = 'MIXED', lc_time_names = 'de_DE', time_zone = '+05:00'",
            "BEGIN",
            f"INSERT INTO a.said VALUES (2, {month})",
            # Logged as rows.
            "INSERT INTO a.t (i, ts) SELECT 2, IF(UUID() = '', NULL, NOW())",
            f"INSERT INTO a.said VALUES (3, {month})",
            "COMMIT",
            "INSERT INTO a.m (i, x) SELECT 2, IF(UUID() = '', NULL, '2020-03-01')",
        )
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    said = "SELECT v FROM a.said ORDER BY i"
    assert pair.target.sql(said) == pair.source.sql(said) == [("March",), ("März",), ("März",)]
    assert pair.target.sql("SELECT i, d FROM a.m ORDER BY i") == [(1, "March"), (2, "März")]
    assert pair.target.sql("SELECT * FROM a.t") == pair.source.sql("SELECT * FROM a.t")


def test_a_table_that_turns_out_to_be_plain(pair: Pair, tmp_path: Path) -> None:
    """What fails before that is known leaves nothing of its state to the next one."""
    pair.source.sql(f"{IN_ITS_ZONE}; CREATE TABLE a.said (i INT PRIMARY KEY, v VARCHAR(40))")
    settings: dict[str, Value] = {"replica.skip_errors": [1062], "replica.parallel_workers": 1}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        pair.target.sql("INSERT INTO a.plain (i) VALUES (1)")
        run(
            pair.source,
            "SET lc_time_names = 'de_DE', time_zone = '+05:00'",
            "INSERT INTO a.plain (i, ts) VALUES (1, NOW())",
        )
        run(
            pair.source,
            "SET binlog_format = 'STATEMENT'",
            "INSERT INTO a.said VALUES (1, DATE_FORMAT('2020-03-01', '%M'))",
        )
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT v FROM a.said") == [("March",)]


def test_a_statement_says_more_than_the_beginning(pair: Pair, tmp_path: Path) -> None:
    """A session has changed its settings since its BEGIN."""
    pair.source.sql(
        f"{IN_ITS_ZONE}; {IN_ITS_LANGUAGE}; {IN_ITS_MODE}; CREATE TABLE a.n (i INT PRIMARY KEY);"
        " CREATE TABLE a.said (i INT PRIMARY KEY, v DATETIME)"
    )
    # Logged as rows.
    of_zone = "INSERT INTO a.t (i, ts) SELECT {}, IF(UUID() = '', NULL, '2020-01-01')"
    of_language = "INSERT INTO a.m (i, x) SELECT {}, IF(UUID() = '', NULL, '2020-03-01')"
    run(
        pair.source,
        "SET binlog_format = 'MIXED', time_zone = '-03:00'",
        "BEGIN",
        "INSERT INTO a.said VALUES (1, NOW())",
        of_zone.format(1),
        "SET time_zone = '+05:00', lc_time_names = 'de_DE', sql_mode = 'NO_UNSIGNED_SUBTRACTION'",
        "INSERT INTO a.said VALUES (2, NOW())",
        of_zone.format(2),
        of_language.format(2),
        "INSERT INTO a.s (i, a, b) SELECT 2, IF(UUID() = '', NULL, 1), 2",
        # It uses no time zone.
        "INSERT INTO a.n VALUES (2)",
        of_zone.format(3),
        "COMMIT",
        "BEGIN",
        "INSERT INTO a.n VALUES (4)",
        "INSERT INTO a.said VALUES (4, NOW())",
        of_zone.format(4),
        "COMMIT",
    )
    replicated(pair, tmp_path)
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_a_savepoint_says_more_than_the_beginning(mode: str, pair: Pair, tmp_path: Path) -> None:
    """It is the only statement of a transaction of rows after its BEGIN."""
    pair.source.sql(f"CREATE DATABASE a; {IN_ITS_LANGUAGE}; {IN_ITS_MODE}")
    run(
        pair.source,
        "BEGIN",
        "INSERT INTO a.m (i, x) VALUES (1, '2020-03-01')",
        "SET lc_time_names = 'de_DE', sql_mode = 'NO_UNSIGNED_SUBTRACTION'",
        "SAVEPOINT s",
        "INSERT INTO a.m (i, x) VALUES (2, '2020-03-01')",
        "INSERT INTO a.s (i, a, b) VALUES (2, 1, 2)",
        "COMMIT",
    )
    replicated(pair, tmp_path, {"target.apply_mode": mode})
    assert differences(pair.source, pair.target) == []


def test_what_the_source_does_not_say_is_the_targets(tmp_path: Path) -> None:
    """A BEGIN names no time zone if the first statement has used none."""
    options = {**GTIDS, "default_time_zone": "+05:00"}
    with Pair(options, options) as pair:
        pair.source.sql(f"{IN_ITS_ZONE}; CREATE TABLE a.n (i INT PRIMARY KEY)")
        run(
            pair.source,
            "BEGIN",
            "INSERT INTO a.n VALUES (1)",
            "INSERT INTO a.t (i, ts) VALUES (1, '2020-01-01')",
            "COMMIT",
        )
        replicated(pair, tmp_path)
        rows = "SELECT d FROM a.t"
        assert pair.target.sql(rows) == pair.source.sql(rows)


def test_a_table_is_created_and_filled(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql("CREATE DATABASE a")
    run(
        pair.source,
        "SET time_zone = '+05:00', lc_time_names = 'de_DE'",
        "CREATE TABLE a.t (ts TIMESTAMP NULL, d DATETIME AS (ts) STORED,"
        " m VARCHAR(20) AS (DATE_FORMAT(ts, '%M')) STORED)"
        " SELECT TIMESTAMP'2020-03-01 02:00:00' AS ts",
        "SET time_zone = '-05:00'",
        "INSERT INTO a.t (ts) VALUES (NOW())",
    )
    replicated(pair, tmp_path)
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_a_zone_whose_clocks_are_put_back(mode: str, pair: Pair, tmp_path: Path) -> None:
    """The same hour comes twice; and the target has to know the zone."""
    pair.source.sql(f"SET sql_log_bin = 0; {UNKNOWN_ZONE}")
    pair.source.sql(
        f"{IN_ITS_ZONE}; CREATE TABLE a.k (ts TIMESTAMP(1) NULL, v INT, d DATETIME AS (ts) STORED);"
        " CREATE TABLE a.u (ts TIMESTAMP NOT NULL PRIMARY KEY, v INT, d DATETIME AS (ts) STORED)"
    )
    run(
        pair.source,
        "SET time_zone = '+00:00'",
        "INSERT INTO a.k (ts, v) SELECT '2004-11-09 11:03:20.5' + INTERVAL n HOUR, n"
        " FROM JSON_TABLE('[0,1,2]', '$[*]' COLUMNS (n INT PATH '$')) AS j",
        "INSERT INTO a.u (ts, v) SELECT ts, v FROM a.k",
        "SET time_zone = 'Test/Back'",
        "INSERT INTO a.t (i, ts) SELECT v, ts FROM a.k",
        "UPDATE a.u SET v = v + 10 WHERE v = 1",
        "UPDATE a.u SET ts = ts + INTERVAL 1 DAY WHERE v = 2",
        "DELETE FROM a.u WHERE v = 0",
        "UPDATE a.t SET ts = ts + INTERVAL 1 SECOND WHERE i = 1",
        # See OF_SQL.
        *(
            ("UPDATE a.k SET v = v + 10 WHERE v = 1", "DELETE FROM a.k WHERE v = 0")
            if mode == "sql" else ()
        ),
    )  # fmt: skip
    settings: dict[str, Value] = {"target.apply_mode": mode}
    assert "Unknown or incorrect time zone: 'Test/Back'" in stopped(pair, tmp_path, settings)
    pair.target.sql(f"SET sql_log_bin = 0; {UNKNOWN_ZONE}")
    replicated(pair, tmp_path, settings)
    assert differences(pair.source, pair.target) == []
    # A server keeps a time zone that it has seen.
    pair.discard()


def test_a_timestamp_that_is_the_key(pair: Pair, tmp_path: Path) -> None:
    """Rows are found by it in every time zone, and by its index."""
    for server in (pair.source, pair.target):
        server.sql(f"SET sql_log_bin = 0; {UNKNOWN_ZONE}")
    pair.source.sql(
        "CREATE DATABASE a; CREATE TABLE a.k (ts TIMESTAMP(3) NOT NULL, n INT NOT NULL, v INT,"
        " d DATETIME AS (ts) STORED, PRIMARY KEY (ts, n))"
    )
    # Twenty of them are in the hour that comes twice.
    rows = ",".join(
        f"(FROM_UNIXTIME({1099998000 + i * 360}.25), {i % 3}, {i})" for i in range(2000)
    )
    run(
        pair.source,
        "SET sql_mode = '', time_zone = 'Test/Back'",
        f"INSERT INTO a.k (ts, n, v) VALUES {rows}",
        "INSERT INTO a.k (ts, n, v) VALUES ('0000-00-00', 1, -1), ('0000-00-00', 2, -2)",
        "UPDATE a.k SET v = v + 7 WHERE v < 200",
        "DELETE FROM a.k WHERE v % 7 = 2",
        "UPDATE a.k SET n = n + 3 WHERE v < 100",
    )
    replicated(pair, tmp_path, {"target.apply_mode": "sql"})
    assert differences(pair.source, pair.target) == []
    read = pair.target.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%next'")
    assert sum(int(number) for _, number in read) < 100_000
    pair.discard()


@pytest.mark.parametrize("native", ["ON", "OFF"])
@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_keys_that_a_cascade_changes(mode: str, native: str, tmp_path: Path) -> None:
    """Nothing is computed from the rows themselves; and the key may be added later."""
    options = {**GTIDS, "default_time_zone": "+05:00"}
    source, target = ({**options, "innodb_native_foreign_keys": each} for each in ("ON", native))
    changed = ("c", "d", "e")
    with Pair(source, target) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.p (i INT PRIMARY KEY);"
            " CREATE TABLE a.q (ts TIMESTAMP PRIMARY KEY);"
            " CREATE TABLE a.c (i INT PRIMARY KEY, p INT, ts TIMESTAMP NULL, d DATETIME AS (ts),"
            " KEY (d), FOREIGN KEY (p) REFERENCES a.p (i) ON DELETE CASCADE);"
            " CREATE TABLE a.d (i INT PRIMARY KEY, ts TIMESTAMP NULL, d DATETIME AS (ts), KEY (d),"
            " FOREIGN KEY (ts) REFERENCES a.q (ts) ON UPDATE CASCADE);"
            " CREATE TABLE a.e (c INT PRIMARY KEY, ts TIMESTAMP NULL,"
            " FOREIGN KEY (c) REFERENCES a.c (i) ON DELETE CASCADE)"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path, {"target.apply_mode": mode}) as each:
            run(
                pair.source,
                "INSERT INTO a.p VALUES (1), (2), (3)",
                "INSERT INTO a.q VALUES ('2020-01-01')",
            )
            each.wait_until_caught_up()
            run(
                pair.source,
                "INSERT INTO a.c (i, p, ts) VALUES (1, 1, NOW()), (2, 2, NOW()), (3, 3, NOW())",
                "INSERT INTO a.d (i, ts) VALUES (1, '2020-01-01')",
                "INSERT INTO a.e VALUES (1, NOW()), (2, NOW())",
            )
            each.wait_until_caught_up()
            run(
                pair.source,
                "DELETE FROM a.p WHERE i = 1",
                "UPDATE a.q SET ts = '2020-01-02'",
                "ALTER TABLE a.e ADD KEY ((DATE_FORMAT(ts, '%H')))",
                "ALTER TABLE a.c DROP KEY d",
            )
            each.wait_until_caught_up()
            run(pair.source, "DELETE FROM a.p WHERE i = 2")
            each.wait_until_caught_up()
            assert each.stop() == 0
        assert differences(pair.source, pair.target) == []
        for name in changed:
            assert pair.target.sql(f"CHECK TABLE a.{name} EXTENDED")[-1][-1] == "OK"


@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_a_definition_of_one_of_the_tables_that_are_one(
    mode: str, pair: Pair, tmp_path: Path
) -> None:
    """The other one's table maps remain the same."""
    created = "CREATE TABLE {}.t (i INT PRIMARY KEY, ts TIMESTAMP NULL)"
    for name in "ab":
        pair.source.sql(f"CREATE DATABASE {name}; {created.format(name)}")
    pair.source.sql("RESET BINARY LOGS AND GTIDS")
    pair.target.sql(f"CREATE DATABASE x; {created.format('x')}")
    settings: dict[str, Value] = {
        "target.apply_mode": mode,
        "filter.rewrite_db": [["a", "x"], ["b", "x"]],
        "replica.parallel_workers": 1,
    }
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        run(pair.source, "INSERT INTO b.t VALUES (1, NOW())")
        daemon.wait_until_caught_up()
        run(pair.source, "USE a", "ALTER TABLE t ADD COLUMN d DATETIME AS (ts) STORED")
        daemon.wait_until_caught_up()
        run(
            pair.source,
            "SET time_zone = '+05:00'",
            "INSERT INTO b.t (i, ts) VALUES (2, '2020-01-01')",
        )
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert pair.target.sql("SELECT d = '2020-01-01' FROM x.t WHERE i = 2") == [(1,)]


@pytest.mark.parametrize("mode", ["binlog", "sql"])
def test_partitions_by_a_difference(mode: str, pair: Pair, tmp_path: Path) -> None:
    its_mode = "SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'"
    run(
        pair.source,
        its_mode,
        "CREATE DATABASE a",
        "CREATE TABLE a.h (i INT UNSIGNED PRIMARY KEY, v INT) PARTITION BY HASH (i - 10)"
        " PARTITIONS 4",
        "CREATE TABLE a.r (i INT UNSIGNED PRIMARY KEY, v INT) PARTITION BY RANGE (i - 10)"
        " (PARTITION m VALUES LESS THAN (-5), PARTITION p VALUES LESS THAN MAXVALUE)",
    )
    with DaemonProcess(pair.source, pair.target, tmp_path, {"target.apply_mode": mode}) as daemon:
        for i in (1, 11):
            for name in "hr":
                run(
                    pair.source,
                    its_mode,
                    f"INSERT INTO a.{name} VALUES ({i}, 1), ({i + 2}, 2), ({i + 3}, 3)",
                    f"UPDATE a.{name} SET v = v + 1",
                    f"DELETE FROM a.{name} WHERE i = {i + 2}",
                )
            daemon.wait_until_caught_up()
            # So that each table is opened by a session that applies rows.
            pair.target.sql("FLUSH TABLES")
        assert daemon.stop() == 0
    for part in ("h PARTITION (p0)", "h PARTITION (p1)", "r PARTITION (m)", "r PARTITION (p)"):
        query = f"{its_mode}; SELECT * FROM a.{part}"
        assert pair.target.sql(query) == pair.source.sql(query)


def test_what_a_person_changes_on_the_target(pair: Pair, tmp_path: Path) -> None:
    """It is noticed with the next table map of another id, or when rows fail.

    Until then rows are applied as before: mtsd does not ask the target about each transaction.
    """
    tables = (
        "CREATE TABLE t (i INT PRIMARY KEY, ts TIMESTAMP NULL)",
        "CREATE TABLE e (i INT PRIMARY KEY)",
        "CREATE TABLE p (ts TIMESTAMP PRIMARY KEY, i INT)",
        "CREATE TABLE c (i INT PRIMARY KEY, ts TIMESTAMP)",
        "INSERT INTO p VALUES ('2020-01-01', 0)",
        "INSERT INTO c VALUES (1, '2020-01-01')",
    )
    by_a_person = (
        "SET time_zone = '+05:00'; ALTER TABLE t ADD d DATETIME AS (ts) STORED;"
        " ALTER TABLE e ENGINE = MyISAM;"
        " ALTER TABLE c ADD d DATETIME AS (ts) VIRTUAL, ADD KEY (d),"
        " ADD FOREIGN KEY (ts) REFERENCES p (ts) ON UPDATE CASCADE"
    )
    for mode in ("binlog", "sql"):
        use = f"USE {mode}_"
        run(pair.source, f"CREATE DATABASE {mode}_", use, *tables)
        settings: dict[str, Value] = {"target.apply_mode": mode}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            for i in (1, 2):
                run(
                    pair.source, use, f"INSERT INTO t (i, ts) VALUES ({i}, NOW())",
                    f"INSERT INTO e VALUES ({i})", f"UPDATE p SET i = {i}",
                )  # fmt: skip
                daemon.wait_until_caught_up()
                if i == 1:
                    pair.target.sql(f"{use}; {by_a_person}")
            before = notes(pair.target)
            # What has been read counts for a second.
            time.sleep(1.1)
            run(
                pair.source, "FLUSH NO_WRITE_TO_BINLOG TABLES", use, "SET time_zone = '+05:00'",
                "INSERT INTO t (i, ts) VALUES (3, '2020-03-01')", "INSERT INTO e VALUES (3)",
                "UPDATE p SET ts = '2020-03-01'",
            )  # fmt: skip
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        found = f"{use}; SELECT d = '2020-03-01' FROM"
        assert pair.target.sql(f"{found} t WHERE i = 3") == [(1,)]
        if mode == "binlog":
            # A MySQL 9.7 logs what cascades: as SQL, none happens again.
            assert pair.target.sql(f"{found} c FORCE INDEX (d)") == [(1,)]
        assert notes(pair.target) > before


def notes(target: Server) -> int:
    """Return how many groups have been noted as what might be half applied."""
    events = target.sql("SHOW BINLOG EVENTS")
    return sum("slave_in_doubt" in str(event[5]) for event in events if event[2] == "Table_map")
