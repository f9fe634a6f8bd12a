"""Everything that statements do besides changing rows, from and to each family, in either mode.

LOAD DATA, temporary tables, tables without transactions, rolled back or not, and what a statement
needs of its session, in one stream: each has tests of its own from MySQL to MySQL.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pymysql
import pytest
from pymysql.cursors import Cursor

from tests.apply.statements.loading import file
from tests.fix_daemon import assert_none_in_doubt
from tests.fix_families import pair_of
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
LONG = pytest.mark.long
UPDATE = "UPDATE t SET u = u + 1"
INSERT = "INSERT INTO m (v) VALUES ('m')"


def client(server: Server, stack: ExitStack, binlog_format: str) -> Cursor:
    connection = stack.enter_context(
        closing(
            pymysql.connect(
                unix_socket=str(server.socket), user="root", database="d", autocommit=True,
                local_infile=True, charset="utf8mb4", ssl_disabled=True,
            )
        )
    )  # fmt: skip
    cursor: Cursor = connection.cursor()
    cursor.execute(f"SET binlog_format = {binlog_format}")
    # Collations that both families have.
    cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
    return cursor


def loads(server: Server, *, to_mysql: bool) -> Iterator[str]:
    rows = "1\tone\t1\n2\ttwo\t\\N\n3\t\\t\\\\\t3\n"
    plain = file(server, "plain", rows)
    more = file(server, "more", '"4";"a ""b""";5\r\n"2";"other";7\r\n')
    backslashes = file(server, "backslashes", "a\\tb\t1\nc\\\t\t2\n\\N\t3\n")
    tabs = file(server, "tabs", "a\t1\nNULL\t2\n")
    short = file(server, "short", "hello\nworld\n")
    moments = file(server, "moments", "1\t\\N\n2\t2020-01-01 00:00:00\n")
    yield f"LOAD DATA INFILE '{plain}' INTO TABLE t"
    yield f"LOAD DATA LOCAL INFILE '{plain}' IGNORE INTO TABLE m"
    yield (
        f"LOAD DATA CONCURRENT INFILE '{more}' REPLACE INTO TABLE t CHARACTER SET latin1"
        " FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'"
    )
    yield (
        f"LOAD DATA INFILE '{more}' IGNORE INTO TABLE t"
        " FIELDS TERMINATED BY ';' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES"
    )
    yield "SET @prefix = 'é', @n = 3"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE t (@word) SET v = CONCAT(@prefix, @word), u = @n"
    yield f"LOAD DATA LOCAL INFILE '{short}' INTO TABLE t (v) SET u = RAND() * 1000"
    yield from ("BEGIN", "INSERT INTO t VALUES (100, 'in a transaction', 1)")
    yield f"LOAD DATA INFILE '{short}' INTO TABLE t (v)"
    yield "UPDATE t SET u = LAST_INSERT_ID() WHERE id = 100"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE m (v)"
    yield "ROLLBACK"
    yield "BEGIN"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE d.t (v)"
    yield from ("SAVEPOINT a", UPDATE, INSERT, "ROLLBACK TO a", "COMMIT")
    if not to_mysql:
        # There it cannot be changed inside of a transaction.
        yield "SET explicit_defaults_for_timestamp = OFF"
    yield "CREATE TABLE moments (id INT, at TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:00')"
    if not to_mysql:
        yield f"LOAD DATA INFILE '{moments}' INTO TABLE moments"
        yield "SET explicit_defaults_for_timestamp = ON"
    # The source writes the separators with backslashes, which mean nothing in this mode.
    yield "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"
    yield f"LOAD DATA INFILE '{tabs}' INTO TABLE t (v, u) SET v = CONCAT(v, '\\')"
    yield f"LOAD DATA INFILE '{backslashes}' INTO TABLE t FIELDS ESCAPED BY '' (v, u)"
    yield (
        f"LOAD DATA INFILE '{more}' IGNORE INTO TABLE t"
        " FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '''' ESCAPED BY '|'"
        " LINES STARTING BY '\"' TERMINATED BY X'0D0A' (v, @text, u)"
    )
    yield "SET sql_mode = DEFAULT"
    yield "USE e"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE d.t (v)"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE d.m (v)"
    yield "USE d"


ENGINES = (
    "BEGIN", UPDATE, INSERT, UPDATE, "ROLLBACK",
    "BEGIN", UPDATE, INSERT, "COMMIT",
    "BEGIN", INSERT, UPDATE, "COMMIT",
    "BEGIN", INSERT, UPDATE, "ROLLBACK",
    "UPDATE t, m SET t.u = 5, m.v = CONCAT(m.v, 'x')",
    "BEGIN", "UPDATE t, m SET t.u = 6, m.v = CONCAT(m.v, 'y')", "ROLLBACK",
    "INSERT INTO m VALUES (1000, 1, 1), (1001, 1, 1), (1000, 2, 2)",
    "BEGIN", UPDATE, "INSERT INTO m VALUES (1100, 1, 1), (1101, 1, 1), (1100, 2, 2)", UPDATE,
    "COMMIT",
    "BEGIN", UPDATE, "SAVEPOINT a", UPDATE, INSERT, "ROLLBACK TO a", UPDATE, "COMMIT",
    "BEGIN", UPDATE, "SAVEPOINT a", INSERT, "ROLLBACK TO a", "ROLLBACK",
    "BEGIN", "UPDATE t SET u = f(id + 2000) WHERE id < 3", "ROLLBACK",
)  # fmt: skip
TEMPORARY = (
    "CREATE TEMPORARY TABLE h (a INT, b INT, KEY (a))",
    "INSERT INTO h VALUES (1, 1), (2, 2)",
    "CREATE TEMPORARY TABLE e.tt ENGINE = MyISAM SELECT 5 a",
    "INSERT INTO t SELECT a + 3000, 'h', b FROM h",
    "BEGIN", "INSERT INTO h VALUES (3, 3)", "INSERT INTO t SELECT a + 3100, 'h', b FROM h",
    "COMMIT",
    "BEGIN", "INSERT INTO t SELECT a + 3200, 'h', b FROM h", "INSERT INTO h VALUES (4, 4)",
    "ROLLBACK",
    "INSERT INTO m SELECT a + 3300, 'h', b FROM h",
    "BEGIN", "INSERT INTO m SELECT a + 3400, 'tt', a FROM e.tt", UPDATE, "ROLLBACK",
    "CREATE TABLE e.like_h LIKE h",
    "CREATE TABLE e.filled SELECT h.*, tt.a c FROM h, e.tt",
    "ALTER TABLE h ADD c INT DEFAULT 5, RENAME TO w",
    "CREATE INDEX i ON w (b)",
    "DROP INDEX i ON w",
    "INSERT INTO t SELECT a + 3500, 'w', c FROM w",
    # The base table is no longer hidden.
    "INSERT INTO h VALUES (50, 50)",
    "TRUNCATE w",
    "INSERT INTO t SELECT 3600 + COUNT(*), 'w', 1 FROM w",
    "DROP TEMPORARY TABLE IF EXISTS e.tt",
)  # fmt: skip
SATELLITES = (
    "SET @i = -5, @d = 123.450, @r = 1E0 / 3, @s = 'é', @n = NULL, @u = 18446744073709551615",
    "CREATE TABLE vars SELECT @i i, CAST(@d AS DECIMAL(30,10)) d, @r r, @s s, @u u",
    "INSERT INTO vars VALUES (@i, @d, @r, @s, @u), (@n, @n, @n, @n, @n)",
    "INSERT INTO t (v, u) VALUES (RAND(), 1), (RAND(3), LAST_INSERT_ID())",
    "INSERT INTO m (v, u) VALUES (RAND(), LAST_INSERT_ID())",
    "SELECT f(9000)",
    "SET @hours = 3",
    "CREATE EVENT ev ON SCHEDULE EVERY @hours HOUR DO DELETE FROM t",
)


COMMENTS = (
    (
        "INSERT INTO t (v) VALUES ('any') /*!80000 , ('80000') */ /*M! , ('M!') */"
        " /*!50100 , ('50100') */ /*M!100100 , ('M!100100') */ /*!100100 , ('100100') */"
        " /*M!999999 , ('future') */ /*!50701 , ('50701') */ /*! , ('/*!80000 a string */') */"
        " -- /*!80000 , ('line')"
    ),
    "INSERT INTO t (v) --\x01 VALUES ('\n VALUES ('after a line') # /*! '",
    "CREATE TABLE comments (i INT /*!80000 DEFAULT 80000 */ /*!100100 DEFAULT 100100 */)",
    "INSERT INTO comments VALUES ()",
    "CREATE /*M!100100 TEMPORARY */ TABLE tc (i INT)",
    "CREATE /*!80000 TEMPORARY */ TABLE td (i INT)",
    "INSERT INTO tc VALUES (1)",
    "INSERT INTO td VALUES (2)",
    "INSERT INTO t (v) SELECT CONCAT('from tc ', i) FROM tc",
    "INSERT INTO t (v) SELECT CONCAT('from td ', i) FROM td",
)
"""Each family executes some of them."""
OF_MARIADB = (
    "ANALYZE FORMAT = JSON INSERT INTO t (v) VALUES ('analyzed')",
    "ANALYZE UPDATE t SET v = CONCAT(v, '!') WHERE v = 'analyzed'",
    "BEGIN",
    "INSERT INTO t (v) VALUES ('before')",
    "ANALYZE INSERT INTO t (v) VALUES ('analyzed')",
    "COMMIT",
    "SET STATEMENT max_statement_time = 1000 FOR CREATE TEMPORARY TABLE h (a INT, b INT)",
    "INSERT INTO h VALUES (7, 7)",
    "RENAME TABLE h TO w2",
    "INSERT INTO h VALUES (60, 60)",
    "SET STATEMENT max_statement_time = 1000 FOR INSERT INTO t SELECT a + 3700, 'w', b FROM w2",
    "CREATE OR REPLACE TABLE e.like_h LIKE w2",
    "CREATE OR REPLACE TEMPORARY TABLE w2 SELECT 9 a",
    "INSERT INTO t SELECT a + 3800, 'w', 0 FROM w2",
    "SET STATEMENT lock_wait_timeout = 9 FOR CREATE EVENT f ON SCHEDULE EVERY 9 HOUR DO SELECT 1",
)
"""What MySQL does not have."""


def change(source: Server, binlog_format: str, *, between_mariadbs: bool, to_mysql: bool) -> None:
    table = "(id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), u INT)"
    with ExitStack() as stack:
        source.sql("CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        source.sql("CREATE DATABASE e CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        cursor = client(source, stack, binlog_format)
        for statement in (
            f"CREATE TABLE t {table}",
            f"CREATE TABLE m {table} ENGINE = MyISAM",
            "CREATE TABLE h (a INT PRIMARY KEY, b INT)",
            (
                "CREATE FUNCTION f(x INT) RETURNS INT BEGIN"
                " INSERT INTO m VALUES (x, 0, 0); RETURN x; END"
            ),
        ):
            cursor.execute(statement)
        run(cursor, [*loads(source, to_mysql=to_mysql)])
        run(cursor, ENGINES)
        run(cursor, TEMPORARY)
        run(cursor, SATELLITES)
        run(cursor, COMMENTS)
        if between_mariadbs:
            run(cursor, OF_MARIADB)


def run(cursor: Cursor, statements: Sequence[str]) -> None:
    for statement in statements:
        with suppress(pymysql.err.IntegrityError):
            cursor.execute(statement)
            if cursor.description:
                cursor.fetchall()


def contents(server: Server) -> dict[str, object]:
    found: dict[str, object] = {}
    for schema, table in server.sql(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_schema IN ('d', 'e') ORDER BY 1, 2"
    ):
        found[f"{schema}.{table}"] = Counter(server.sql(f"SELECT * FROM {schema}.{table}"))
    found["events"] = server.sql("SELECT event_name FROM information_schema.events")
    return found


PAIRS = [
    ("10.11", "10.11", "auto"),
    ("11.8", "11.8", "auto"),
    ("9.7", "9.7", "sql"),
    ("9.7", "11.8", "auto"),
    ("11.8", "9.7", "auto"),
    ("10.11", "10.11", "sql"),
    ("10.11", "11.8", "auto"),
]
IN_THE_SUITE = {
    ("10.11", "10.11", "auto", "STATEMENT"), ("11.8", "11.8", "auto", "MIXED"),
    ("9.7", "9.7", "sql", "STATEMENT"), ("9.7", "11.8", "auto", "STATEMENT"),
    ("11.8", "9.7", "auto", "STATEMENT"), ("11.8", "9.7", "auto", "ROW"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "apply_mode", "binlog_format"),
    [
        pytest.param(*pair, each, marks=() if (*pair, each) in IN_THE_SUITE else LONG)
        for pair in PAIRS
        for each in ("STATEMENT", "MIXED", "ROW")
    ],
)
def test_each_comes_to_the_same(
    source: str, target: str, apply_mode: str, binlog_format: str, tmp_path: Path
) -> None:
    settings: dict[str, Value] = {"target.apply_mode": apply_mode}
    with pair_of(source, target, binlog_format) as pair:
        # In row format MariaDB logs RENAME TABLE of a temporary table, which only it has.
        between = "9.7" not in {source, target} and binlog_format != "ROW"
        change(pair.source, binlog_format, between_mariadbs=between, to_mysql=target == "9.7")
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert contents(pair.target) == contents(pair.source)
        enabled = "SELECT event_name FROM information_schema.events WHERE status = 'ENABLED'"
        assert pair.target.sql(enabled) == []
        assert_none_in_doubt(pair.target)
