"""What a statement needs of its session besides its own text: Intvar, Rand and User_var events."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON, catch_up, differences_after
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

STATEMENTS: Options = {
    "binlog_format": "STATEMENT", "log_bin_trust_function_creators": 1,
    "explicit_defaults_for_timestamp": "ON",
}  # fmt: skip
STOPS_S = 60.0
LARGEST = (1 << 64) - 1
VALUES = {
    "null": "NULL",
    "zero": "0",
    "int": "-5",
    "smallest": "-9223372036854775808",
    "largest": "9223372036854775807",
    "unsigned": "CAST(18446744073709551615 AS UNSIGNED)",
    "real": "1E0",
    "third": "1E0 / 3",
    "tiny": "5e-324",
    "huge": "-1.7976931348623157e308",
    "minus_zero": "-0E0",
    "decimal": "123.450",
    "negative": "-0.001",
    "whole": "CAST(7 AS DECIMAL(10, 0))",
    "digits": "-" + "9" * 35 + "." + "9" * 30,
    "latin": "_latin1 X'e9'",
    "bin": "_utf8mb4 'é' COLLATE utf8mb4_bin",
    "bytes": "X'0027005c60e9'",
    "utf16": "_utf16 X'00e9d83dde00'",
    "gbk": "_gbk X'bf5c27'",
    "empty": "''",
    "moment": "TIMESTAMP'2020-02-29 01:02:03.456'",
    "document": "JSON_ARRAY(1, 'x')",
    "a`b'c\\\"d": "1",
    "ключ": "'значение'",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with Pair({**GTIDS, **STATEMENTS}, {**GTIDS, "log_bin_trust_function_creators": 1}) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    for server in (servers.target, servers.source):
        server.sql("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS mtsd")
        server.sql("RESET BINARY LOGS AND GTIDS")
    servers.source.sql("CREATE DATABASE d")
    return servers


def run(server: Server, *statements: str) -> None:
    with closing(server.client("d")) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_user_variables_of_every_type(pair: Pair, tmp_path: Path) -> None:
    """Also the type of a column that is made of one; a NULL has none, as at a replica."""
    statements = []
    for number, (name, value) in enumerate(VALUES.items()):
        variable = "@`" + name.replace("`", "``") + "`"
        statements += [f"SET {variable} = {value}"]
        if name != "null":
            statements.append(f"CREATE TABLE t{number} SELECT {variable} v")
        statements += [
            f"CREATE TABLE u{number} (v LONGBLOB, c TEXT)",
            f"INSERT INTO u{number} VALUES ({variable}, COLLATION({variable}))",
        ]
    # The same name, of another type now; names that differ in case are one variable.
    statements += [
        "SET @null = 5, @INT = NULL",
        "CREATE TABLE now_a_number SELECT @null v",
        "INSERT INTO u0 VALUES (@int, @NULL)",
    ]
    run(pair.source, *statements)
    assert differences_after(pair, tmp_path) == []


def test_values_that_the_source_generates(pair: Pair, tmp_path: Path) -> None:
    run(
        pair.source,
        "CREATE TABLE t (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v BIGINT UNSIGNED)",
        "CREATE TABLE log (id BIGINT UNSIGNED PRIMARY KEY, v DOUBLE)",
        "CREATE TABLE m (id INT AUTO_INCREMENT PRIMARY KEY, v DOUBLE) ENGINE = MyISAM",
        "CREATE TRIGGER logs AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id, 0)",
        "INSERT INTO t (v) VALUES (1), (2), (3)",
        "BEGIN",
        "INSERT INTO t (v) VALUES (4)",
        "INSERT INTO t (v) VALUES (LAST_INSERT_ID())",
        "UPDATE log SET v = RAND() WHERE id > 2",
        "UPDATE log SET v = LAST_INSERT_ID() WHERE id = 1",
        "SAVEPOINT a",
        "INSERT INTO t (v) VALUES (6)",
        "ROLLBACK TO a",
        "INSERT INTO t (v) VALUES (7)",
        "COMMIT",
        "INSERT INTO m (v) VALUES (RAND()), (RAND(3))",
        "ALTER TABLE t AUTO_INCREMENT = 18446744073709551610",
        "INSERT INTO t (v) VALUES (10), (11)",
        "INSERT INTO t (v) VALUES (LAST_INSERT_ID())",
        "SET sql_auto_is_null = ON",
        "DELETE FROM t WHERE id IS NULL",
    )
    run(
        pair.source,
        # This session has inserted nothing, unlike the one that applies it on the target.
        "SET sql_auto_is_null = ON",
        "DELETE FROM t WHERE id IS NULL",
    )
    assert pair.source.sql("SELECT COUNT(*) FROM d.t WHERE id > 9223372036854775807") == [(2,)]
    assert differences_after(pair, tmp_path) == []


def test_before_definitions_and_calls(pair: Pair, tmp_path: Path) -> None:
    with closing(pair.source.client("d")) as client, client.cursor() as cursor:
        for statement in (
            "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40))",
            (
                "CREATE FUNCTION f(a INT) RETURNS INT BEGIN"
                " INSERT INTO t VALUES (a, @said); SET @left = a; RETURN a; END"
            ),
            # What a function changes of its session stays, at the source too.
            (
                "CREATE FUNCTION g(a INT) RETURNS INT BEGIN SET SESSION sql_mode = 'ANSI_QUOTES',"
                " SESSION time_zone = '-07:00', SESSION auto_increment_increment = 7,"
                " SESSION sql_select_limit = 1, SESSION innodb_lock_wait_timeout = 1;"
                " INSERT INTO t VALUES (a, @@sql_mode); RETURN a; END"
            ),
            "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP(6))",
            "SET @said = 'said', @s = 7200, @n = 3",
            "SELECT f(1)",
            "DO f(2)",
            "BEGIN",
            "SELECT f(3) FROM DUAL",
            "COMMIT",
            "CREATE TABLE u SELECT @n n, @s s",
            (
                "CREATE EVENT e ON SCHEDULE EVERY @s SECOND STARTS NOW() + INTERVAL @n DAY"
                " COMMENT 'x' DO DELETE FROM t"
            ),
            "ALTER EVENT e ON SCHEDULE EVERY @n HOUR",
            "SET binlog_format = ROW",
            "CREATE EVENT r ON SCHEDULE EVERY @n MINUTE DO DELETE FROM t",
            "CREATE TABLE w SELECT @n n",
            "SELECT f(4)",
            "SET binlog_format = STATEMENT",
            "SELECT g(10)",
        ):
            try:
                cursor.execute(statement)
            except Exception as error:
                raise AssertionError(statement) from error
            cursor.fetchall()
    run(
        pair.source,
        "INSERT INTO counted (at) VALUES (NOW(6)), (NOW(6))",
        'INSERT INTO t SELECT 20, "a string"',
        "DELETE FROM t WHERE a IN (SELECT id FROM counted)",
    )
    assert differences_after(pair, tmp_path) == []
    events = pair.target.sql(
        "SELECT event_name, status, interval_value FROM information_schema.events ORDER BY 1"
    )
    assert events == [("e", "REPLICA_SIDE_DISABLED", "3"), ("r", "REPLICA_SIDE_DISABLED", "3")]


def test_a_value_larger_than_a_packet_of_the_target(pair: Pair, tmp_path: Path) -> None:
    run(pair.source, "CREATE TABLE t (v LONGBLOB)", "SET @v = 'x'", "INSERT INTO t VALUES (@v)")
    pair.target.sql("SET GLOBAL max_allowed_packet = 1048576")
    run(pair.source, "SET @v = REPEAT('x', 600000)", "INSERT INTO t VALUES (@v)")
    try:
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            assert daemon.wait(STOPS_S) == NEEDS_PERSON
            assert "raise max_allowed_packet on the target" in daemon.last_words()
    finally:
        pair.target.sql("SET GLOBAL max_allowed_packet = DEFAULT")
    assert differences_after(pair, tmp_path) == []


@pytest.mark.parametrize("options", [NO_GTIDS, {**NO_GTIDS, "skip_log_bin": None}])
@pytest.mark.long
def test_on_other_targets(options: Options, tmp_path: Path) -> None:
    target = {**options, "log_bin_trust_function_creators": 1}
    with Pair({**NO_GTIDS, **STATEMENTS}, target) as pair:
        pair.source.sql("CREATE DATABASE d")
        test_values_that_the_source_generates(pair, tmp_path)
        run(
            pair.source,
            "SET @a = 1",
            "CREATE TABLE x SELECT @a a",
            "INSERT INTO x VALUES (@a), (@b)",
        )
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        catch_up(daemon)
        assert differences(pair.source, pair.target) == []
