"""Statements that only a MariaDB reads, runs or logs in this way, from one MariaDB to another."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED
from tests.fix_families import pair_of
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

STOPS_S = 20
DATABASE = "CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with pair_of("11.8", "11.8") as pair:
        pair.source.sql(DATABASE)
        yield pair


def run(pair: Pair, statements: Sequence[str], charset: str = "utf8mb4") -> None:
    """Run statements in one session of the source, which ends after them."""
    client = pymysql.connect(
        unix_socket=str(pair.source.socket), user="root", database="a", charset=charset,
        autocommit=True, ssl_disabled=True,
    )  # fmt: skip
    with closing(client), client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def assert_equal(pair: Pair, folder: Path) -> None:
    with DaemonProcess(pair.source, pair.target, folder) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert unequal(pair.source, pair.target) == []


def package(body: str) -> list[str]:
    """Return how to create a package `p` with a function `f`."""
    return [
        "SET sql_mode = ORACLE",
        "CREATE PACKAGE p AS FUNCTION f RETURN INT; END",
        f"CREATE PACKAGE BODY p AS FUNCTION f RETURN INT AS BEGIN {body}; RETURN 1; END; END",
        "SET sql_mode = DEFAULT",
    ]


GEOMETRIES = {
    "p": "POINT(1, 2)",
    "l": "LineString(POINT(1, 2), POINT(2, 3))",
    "c": "GeometryCollection(POINT(1, 2))",
    "g": "ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))', 4326)",
    "n": "NULL",
}


def test_user_variables_of_geometries(pair: Pair, tmp_path: Path) -> None:
    """Also the type of a column that is made of one."""
    pair.source.sql("SET GLOBAL binlog_format = STATEMENT")
    statements = ["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, g GEOMETRY)"]
    for name, value in GEOMETRIES.items():
        statements += [
            f"SET @{name} = {value}", f"INSERT INTO t (g) VALUES (@{name}), (@p)",
            f"CREATE TABLE c_{name} SELECT @{name} v", f"INSERT INTO c_{name} VALUES (@{name})",
        ]  # fmt: skip
    run(pair, [*statements, "SET sql_mode = ORACLE", "INSERT INTO t (g) VALUES (@p)"])
    assert_equal(pair, tmp_path)


def test_an_error_has_no_warnings_of_another_statement(pair: Pair, tmp_path: Path) -> None:
    """A database is chosen without a statement, which leaves the warnings of the one before."""
    pair.source.sql("CREATE TABLE a.t (i INT PRIMARY KEY)")
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        pair.target.sql("DROP DATABASE a")
        run(pair, ["SET binlog_format = STATEMENT", "INSERT INTO t VALUES (1)"])
        assert daemon.wait(STOPS_S) == NEEDS_PERSON
        assert "Unknown database 'a'" in daemon.last_words()
        assert "Warnings" not in daemon.last_words()


def test_a_function_of_a_package_changes_the_session(pair: Pair, tmp_path: Path) -> None:
    """The statement after it, of another session, has the state of its own."""
    pair.source.sql(
        "CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT);"
        "CREATE TABLE a.z (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NULL)"
    )
    run(pair, package("SET @@session.time_zone = '+09:00'"))
    with closing(pair.source.client("a")) as first, closing(pair.source.client("a")) as second:
        second.query("SET time_zone = '+00:00'")
        for _ in range(20):
            first.query("INSERT INTO t (v) VALUES (p.f())")
            second.query("INSERT INTO z (at) VALUES ('2020-01-01 12:00:00')")
    assert_equal(pair, tmp_path)


def test_a_function_of_a_package_changes_what_cannot_be_rolled_back(
    pair: Pair, tmp_path: Path
) -> None:
    """After a kill, nobody knows whether it has: a person is asked, nothing is applied twice."""
    pair.source.sql(
        "CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB;"
        "CREATE TABLE a.m (id INT) ENGINE=MyISAM"
    )
    run(pair, package("INSERT INTO a.m VALUES (1)"))
    with DaemonProcess(
        pair.source, pair.target, tmp_path, {"replica.parallel_workers": 1}
    ) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        for _ in range(4):
            run(pair, ["BEGIN", "INSERT INTO t (v) VALUES (p.f())", "COMMIT"])
        daemon.start(fault=f"{FaultPoint.BEFORE_COMMIT}:3")
        assert daemon.wait() == SIGKILLED
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert unequal(pair.source, pair.target) == []


HIDDEN = ["CREATE TABLE u (a INT)", "INSERT INTO u VALUES (77)", "CREATE TABLE t (a INT)"]
LATER = ["INSERT INTO t SELECT a FROM u", "UPDATE u SET a = 78"]


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(
            [
                "CREATE TEMPORARY TABLE x (a INT)", "INSERT INTO x VALUES (1)",
                f"ALTER TABLE x {wait} RENAME u", "INSERT INTO t SELECT a FROM u",
                "DROP TEMPORARY TABLE u",
            ],
            id=f"rename {wait}",
        )
        for wait in ("", "NOWAIT", "WAIT 5")
    ]
    + [
        pytest.param(
            [
                "SET sql_mode = MSSQL", "CREATE TEMPORARY TABLE [u] (a INT, [a]]b] INT)",
                "INSERT INTO [u] (a) VALUES (1)", "INSERT INTO [t] SELECT a FROM [u]",
                "DROP TABLE [u]", "SET sql_mode = DEFAULT",
            ],
            id="brackets",
        ),
        pytest.param(
            [
                "CREATE TEMPORARY TABLE .u (a INT)", "INSERT INTO .u VALUES (1)",
                "INSERT INTO t SELECT a FROM .u", "DROP TEMPORARY TABLE .u",
            ],
            id="a dot first",
        ),
        pytest.param(
            [
                "SET sql_log_bin = 0", "CREATE TEMPORARY TABLE u (a INT)", "SET sql_log_bin = 1",
                "DROP TEMPORARY TABLE u",
            ],
            id="not logged",
        ),
    ],
)  # fmt: skip
def test_a_temporary_table_that_hides_another(
    pair: Pair, tmp_path: Path, statements: Sequence[str]
) -> None:
    run(pair, [*HIDDEN, *statements, *LATER])
    assert_equal(pair, tmp_path)


def test_a_temporary_table_with_a_name_that_is_not_known(pair: Pair, tmp_path: Path) -> None:
    """The target has it under the former name, where it hides another table."""
    statements = [
        "CREATE TEMPORARY TABLE u (a INT)", "SET sql_log_bin = 0", "ALTER TABLE u RENAME x",
        "SET sql_log_bin = 1", "DROP TEMPORARY TABLE x",
    ]  # fmt: skip
    run(pair, [*HIDDEN, *statements, *LATER])
    with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        assert daemon.wait() == 3
        error = str(daemon.records()[-1]["error"])
        assert "a DROP TEMPORARY TABLE of a table that its session does not have" in error
        assert "while it has a.u" in error


@pytest.mark.parametrize(
    ("series", "binlog_format"), [("11.8", "STATEMENT"), ("11.8", "ROW"), ("9.7", "ROW")]
)
def test_what_the_server_writes_is_in_its_own_character_set(
    series: str, binlog_format: str, tmp_path: Path
) -> None:
    statements = [
        f"SET binlog_format = {binlog_format}",
        *(each.replace(" u ", " `été` ") for each in HIDDEN),
        "CREATE TEMPORARY TABLE `été` (a INT)", "INSERT INTO `été` VALUES (1)",
        "INSERT INTO t SELECT a FROM `été`", "DROP TABLE `été`",
        "INSERT INTO t SELECT a FROM `été`", "UPDATE `été` SET a = 78",
        "CREATE TABLE `à` SELECT a AS `é` FROM `été`", "INSERT INTO `à` VALUES (5)",
        "CREATE TABLE `ö` (a INT)", "DROP TABLE `ö`", "TRUNCATE TABLE `été`",
    ]  # fmt: skip
    with pair_of(series, series) as pair:
        pair.source.sql(DATABASE)
        run(pair, statements, charset="latin1")
        assert_equal(pair, tmp_path)


@pytest.mark.parametrize("source", ["11.8", "9.7"])
def test_every_microsecond(source: str, tmp_path: Path) -> None:
    """A MariaDB cuts off, and right above a power of two a fraction is often a little too small."""
    chance = random.Random(source)
    windows = ((536870912, 560000000), (1073741824, 1125899906), (1600000000, 2147483600))
    with pair_of(source, "11.8") as pair:
        pair.source.sql(
            f"{DATABASE}; CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME(6))"
        )
        statements = ["SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"]
        for _ in range(300):
            seconds = chance.randint(*chance.choice(windows))
            statements.append(f"SET timestamp = {seconds}.{chance.randrange(10**6):06d}")
            statements.append("INSERT INTO t (at) VALUES (NOW(6))")
        run(pair, statements)
        assert_equal(pair, tmp_path)
