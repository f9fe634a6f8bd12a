"""MySQL to MariaDB and MariaDB to MySQL: rows as SQL, statements as far as they are understood."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, command, replicated, stopped
from tests.fix_families import families
from tests.fix_kills import OFTEN, ON_ERROR, ON_STOP, ONCE, SMALL
from tests.load.families import change, create, unequal
from tests.load.mariadb import MariadbLoad, unequal_rows
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server
from tests.servers.pair import Pair
from tests.servers.provision import provide

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = pytest.mark.long
PAIRS = [
    pytest.param("9.7", "11.8", id="9.7-to-11.8"),
    pytest.param("11.8", "9.7", id="11.8-to-9.7"),
    pytest.param("9.7", "10.11", id="9.7-to-10.11"),
    pytest.param("10.11", "9.7", id="10.11-to-9.7"),
]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("workers", [4, pytest.param(0, marks=LONG)])
def test_every_type_in_every_format(source: str, target: str, workers: int, tmp_path: Path) -> None:
    with families(source, target) as pair:
        databases = ("in_rows", "in_statements", "in_both")
        for database, binlog_format in zip(databases, ("ROW", "STATEMENT", "MIXED"), strict=True):
            create(pair.source, database)
            change(pair.source, database, binlog_format)
        replicated(pair, tmp_path, {"replica.parallel_workers": workers})
        assert unequal(pair.source, pair.target, databases) == []


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_sessions_mean_the_same(source: str, target: str, tmp_path: Path) -> None:
    """What differs between the families without an error: rounding of times, collations."""
    with families(source, target, {"binlog_format": "STATEMENT"}) as pair:
        pair.source.sql("CREATE DATABASE a")
        modes = (
            ("''", "'TIME_TRUNCATE_FRACTIONAL'")
            if source == "9.7"
            else ("''", "'TIME_ROUND_FRACTIONAL'")
        )
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE t (m INT, t DATETIME, v VARCHAR(20) CHARACTER SET utf8mb4)"
            )
            for number, mode in enumerate(modes):
                cursor.execute(f"SET sql_mode = {mode}")
                cursor.execute(f"INSERT INTO t VALUES ({number}, '2020-01-01 00:00:00.6', 'x')")
            for name in ("utf8mb4", "latin1", "utf8mb4 COLLATE utf8mb4_bin"):
                cursor.execute(f"SET NAMES {name}")
                cursor.execute("UPDATE t SET v = CONCAT(v, 'ä', 'a' = 'A')")
            cursor.execute("SET NAMES utf8mb4")
            cursor.execute("SET @v = 'vär', @r = 1e0, @n = 12.50")
            cursor.execute("CREATE TABLE variables SELECT @v AS v, @r AS r, @n AS n")
            cursor.execute("INSERT INTO t SELECT 7, NULL, @v")
            cursor.execute("CREATE TABLE copied SELECT * FROM t")
            cursor.execute("CREATE VIEW seen AS SELECT m FROM t")
            cursor.execute("CREATE TABLE quoted (`weird ``name` INT)")
            cursor.execute("INSERT INTO quoted VALUES (LAST_INSERT_ID() + 1)")
            cursor.execute("CREATE TABLE named (v VARCHAR(9)) CHARACTER SET utf8mb4")
            cursor.execute("INSERT INTO named VALUES ('ss'), ('ß')")
        replicated(pair, tmp_path)
        # Of a MariaDB before 11.2, nothing sets which collation a character set has by default.
        by_default = ("SELECT COUNT(DISTINCT v) FROM a.named",) if target != "10.11" else ()
        for query in (
            *by_default,
            "SELECT m, t, HEX(CONVERT(v USING utf8mb4)) FROM a.t ORDER BY m",
            "SELECT m, t, HEX(CONVERT(v USING utf8mb4)) FROM a.copied ORDER BY m",
            "SELECT * FROM a.seen ORDER BY m",
            "SELECT * FROM a.quoted",
            "SELECT HEX(CONVERT(v USING utf8mb4)), r, n FROM a.variables",
        ):
            assert pair.source.sql(query) == pair.target.sql(query)


NOT_OF_MYSQL = (
    "CREATE OR REPLACE USER b IDENTIFIED BY 'Hunter2-b'",
    "GRANT SELECT ON a.* TO b IDENTIFIED BY 'Hunter2-b'",
    "CREATE USER c IDENTIFIED VIA mysql_native_password USING PASSWORD('Hunter2-c')",
    "SET PASSWORD FOR b = PASSWORD('Hunter2-d')",
    "CREATE OR REPLACE TABLE f (i INT) COMMENT 'password \"Hunter2-f\"'",
)
NOT_OF_MARIADB = (
    "CREATE PROCEDURE p() BEGIN LOCK INSTANCE FOR BACKUP; SET PASSWORD = 'Hunter2-b'; END",
    "CREATE TABLE f (i INT, KEY k ((i + 1))) CONNECTION = 'mysql://u:Hunter2-f@h/d/t'",
)


@pytest.mark.parametrize(
    ("source", "target", "statement", "says", "with_secrets"),
    [
        ("11.8", "9.7", "CREATE SEQUENCE s", "near 'SEQUENCE s", NOT_OF_MYSQL),
        ("11.8", "9.7", "SET sql_mode = 'ORACLE'; CREATE TABLE t (i INT)", "mode ORACLE", ()),
        ("9.7", "11.8", "CREATE TABLE t (i INT, KEY k ((i + 1)))", "near '(i + 1", NOT_OF_MARIADB),
    ],
)
def test_what_the_other_family_does_not_understand(
    source: str,
    target: str,
    statement: str,
    says: str,
    with_secrets: tuple[str, ...],
    tmp_path: Path,
) -> None:
    """It is quoted, and by no command and in no table if it may hold a password."""
    with families(source, target) as pair:
        pair.source.sql(f"CREATE DATABASE a; USE a; {statement}")
        assert says in stopped(pair, tmp_path)
        if with_secrets:
            assert_no_password_is_told(pair, with_secrets, tmp_path)


def assert_no_password_is_told(pair: Pair, statements: tuple[str, ...], folder: Path) -> None:
    """Have all but the first skipped by their errors, and stop at that one."""
    settings: dict[str, Value] = {"replica.skip_errors": [1064, 1133]}
    pair.source.sql("USE a; " + "; ".join(statements[1:]))
    replicated(pair, folder, settings)
    pair.source.sql(f"USE a; {statements[0]}")
    daemon = DaemonProcess(pair.source, pair.target, folder)
    stopped(pair, folder)
    told = command(daemon, "status", status=NEEDS_PERSON)
    assert "near '…' at line" in told
    told += daemon.log.read_text()
    for (table,) in pair.target.sql("SHOW TABLES IN mtsd"):
        told += str(pair.target.sql(f"SELECT * FROM mtsd.{table}"))
    assert told.count("group skipped by skip_errors") == len(statements)
    assert "Hunter2" not in told


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t VALUES ('x')", "SET @v = 'x'; INSERT INTO t VALUES (@v)"]
)
def test_a_collation_that_the_target_lacks(statement: str, tmp_path: Path) -> None:
    with families("11.8", "9.7", {"binlog_format": "STATEMENT"}) as pair:
        pair.source.sql(
            "CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE a;"
            "CREATE TABLE t (v VARCHAR(30)) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        )
        replicated(pair, tmp_path)
        pair.source.sql(
            "USE a; INSERT INTO t VALUES ('before');"
            "BEGIN; INSERT INTO t VALUES ('of the same group');"
            f"SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_ai_cs; {statement}; COMMIT"
        )
        said = stopped(pair, tmp_path)
        assert "collation 2305 of MariaDB, which MySQL does not have" in said
        assert pair.target.sql("SELECT v FROM a.t") == [("before",)]


@pytest.mark.parametrize(("source", "target"), PAIRS[:2])
def test_settings_that_cannot_be(source: str, target: str, tmp_path: Path) -> None:
    with families(source, target) as pair:
        said = stopped(pair, tmp_path, {"target.apply_mode": "binlog"})
        assert "set [target] apply_mode" in said.lower()
        said = stopped(pair, tmp_path, {"target.gtid": "preserve"})
        assert "[target] gtid" in said


def test_a_channel_does_not_change_its_family(tmp_path: Path) -> None:
    with families("10.11", "9.7") as pair, Server(installation=provide()) as other:
        pair.source.sql("CREATE DATABASE a")
        replicated(pair, tmp_path)
        daemon = DaemonProcess(other, pair.target, tmp_path)
        daemon.start()
        assert daemon.wait() == NEEDS_PERSON
        assert "a MySQL, but the position belongs to server_id 1, a MariaDB" in daemon.last_words()


@pytest.mark.parametrize(("source", "target"), PAIRS[:2])
@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=LONG)])
def test_killed_at_any_point(source: str, target: str, kills: int, tmp_path: Path) -> None:
    chance = random.Random(kills)
    points = [point for point in FaultPoint if point not in ON_ERROR | ON_STOP]
    with families(source, target) as pair:
        load = MariadbLoad(pair.source, kills, ("ROW", "ROW", "ROW", "STATEMENT"))
        load.prepare()
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, SMALL)
        with load.running(pause=0.02):
            for point in chance.sample(points, min(kills, len(points))):
                passes = (
                    chance.randint(1, 20 if kills > 20 else 4)
                    if point in OFTEN
                    else chance.randint(1, 3)
                )
                daemon.start(fault=f"{point}:{1 if point in ONCE else passes}")
                assert daemon.wait() == SIGKILLED, (point, daemon.last_words())
                if chance.random() < 0.2:
                    pair.target.kill()
                    pair.target.start()
        daemon.start()
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        assert unequal_rows(pair.source, pair.target) == []


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_shapes_and_compressed_columns_of_mariadb(engine: str, tmp_path: Path) -> None:
    """Its row metadata counts shapes among the texts, and COMPRESSED columns are logged so."""
    columns = (
        "id INT PRIMARY KEY, g POINT, b VARBINARY(9), v VARCHAR(9) CHARACTER SET latin1,"
        " c VARCHAR(300) {0} CHARACTER SET latin1, x BLOB {0}"
    )
    with families("11.8", "9.7", {"binlog_row_metadata": "MINIMAL"}) as pair:
        create = "CREATE DATABASE a; CREATE TABLE a.t"
        pair.source.sql(
            f"SET sql_log_bin = 0; {create} ({columns.format('COMPRESSED')}) ENGINE={engine}"
        )
        pair.target.sql(f"{create} ({columns.format('')}) ENGINE={engine}")
        pair.source.sql(
            "INSERT INTO a.t VALUES (1, POINT(1, 2), x'ff00', 'ä', REPEAT('é', 300),"
            " REPEAT(x'ff', 2000)), (2, NULL, '', '', 'é', x'00'), (3, NULL, NULL, NULL, '', NULL);"
            "UPDATE a.t SET c = CONCAT('ü', LEFT(c, 200)), v = 'ö'; DELETE FROM a.t WHERE id = 2"
        )
        replicated(pair, tmp_path)
        shown = "SELECT id, HEX(g), HEX(b), HEX(v), HEX(c), HEX(x) FROM a.t ORDER BY id"
        assert pair.source.sql(shown) == pair.target.sql(shown)
        assert len(pair.target.sql(shown)) == 2
