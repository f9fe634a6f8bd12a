"""Statements of MariaDB that say less in the binary log than the source knew when it ran them."""

from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.fix_daemon import replicated
from tests.fix_families import families, pair_of
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess
from tests.servers.locks import wait_for_lock_wait

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

DROPS = (
    "CREATE TABLE t (a INT, b INT)",
    "CREATE TABLE u LIKE t",
    "CREATE TABLE dropped LIKE t",
    # The first one is dropped, and the binary log has both, without an error.
    "DROP TABLE dropped, missing",
    # It may use a temporary table, as far as the binary log tells; nobody ever had one.
    "DELETE t, u FROM t JOIN u USING (a)",
)
OF_MARIADB = (
    "CREATE SEQUENCE s",
    "DROP SEQUENCE s, missing",
    "CREATE TABLE checked (a INT CHECK (a > 0))",
    "SET SESSION check_constraint_checks = 0",
    "INSERT INTO checked VALUES (-1)",
    "SET SESSION check_constraint_checks = 1",
    "CREATE TABLE versioned (a INT) WITH SYSTEM VERSIONING",
    "INSERT INTO versioned VALUES (1), (2)",
    "DELETE FROM versioned WHERE a = 1",
    "SET SESSION system_versioning_alter_history = KEEP",
    "ALTER TABLE versioned ADD COLUMN b INT DEFAULT 3",
    "SET SESSION system_versioning_insert_history = 1",
    (
        "INSERT INTO versioned (a, row_start, row_end) VALUES"
        " (3, '2001-01-01 00:00:00.000001', '2002-02-02')"
    ),
)


@pytest.mark.parametrize(
    ("source", "target", "statements"),
    [("11.8", "11.8", DROPS + OF_MARIADB), ("11.8", "9.7", DROPS)],
)
def test_what_the_source_did_not_log(
    source: str, target: str, statements: tuple[str, ...], tmp_path: Path
) -> None:
    with families(source, target, {"binlog_format": "STATEMENT"}) as pair:
        pair.source.sql("CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            for statement in statements:
                if "missing" in statement:
                    with pytest.raises(pymysql.err.MySQLError, match="missing"):
                        cursor.execute(statement)
                else:
                    cursor.execute(statement)
        replicated(pair, tmp_path)
        assert unequal(pair.source, pair.target) == []


def test_explicit_defaults_for_timestamp(tmp_path: Path) -> None:
    """Each statement of MariaDB has its own; MySQL cannot set it inside a transaction."""
    with pair_of("11.8", "9.7") as pair:
        pair.source.sql(
            "CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE a;"
            "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP NOT NULL) ENGINE = InnoDB;"
            "CREATE TABLE m (id INT PRIMARY KEY, at TIMESTAMP NOT NULL) ENGINE = MyISAM"
        )
        for setting in (0, 1, 0):
            (number,) = pair.source.sql("SELECT COUNT(*) * 10 FROM a.t")[0]
            given = "NULL" if setting == 0 else "'2020-02-02'"
            pair.source.sql(
                f"USE a; SET SESSION explicit_defaults_for_timestamp = {setting};"
                f"BEGIN; INSERT INTO t VALUES ({number}, {given}), ({number + 1}, {given});"
                f"UPDATE t SET at = {given} WHERE id = {number}; COMMIT;"
                f"INSERT INTO t VALUES ({number + 2}, {given});"
                f"INSERT INTO m VALUES ({number}, {given});"
                f"BEGIN; INSERT INTO t VALUES ({number + 3}, {given});"
                f"INSERT INTO m VALUES ({number + 1}, {given}); ROLLBACK;"
                f"XA START 'x{number}'; INSERT INTO t VALUES ({number + 4}, {given});"
                f"XA END 'x{number}'; XA PREPARE 'x{number}'; XA COMMIT 'x{number}'"
            )
        replicated(pair, tmp_path)
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(
    "mode",
    [
        # An empty text is NULL then, also in the statements that mtsd runs in between.
        "EMPTY_STRING_IS_NULL",
        "ORACLE,EMPTY_STRING_IS_NULL,PAD_CHAR_TO_FULL_LENGTH",
        "ANSI_QUOTES,IGNORE_SPACE,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE",
    ],
)
def test_modes_that_change_what_a_statement_means(mode: str, tmp_path: Path) -> None:
    with families("11.8", "11.8", {"binlog_format": "STATEMENT"}) as pair:
        pair.source.sql(
            f"CREATE DATABASE a; USE a; SET sql_mode = '{mode}';"
            "CREATE TABLE t (a INT, b VARCHAR(10)); SET @e = 'x';"
            "INSERT INTO t VALUES (1, ''), (2, @e); SET @e = ''; INSERT INTO t VALUES (3, @e);"
            "CREATE TABLE u SELECT * FROM t; UPDATE u SET b = '' WHERE a = 2;"
            "CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO SELECT 1"
        )
        replicated(pair, tmp_path)
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize(("source", "target"), [("9.7", "9.7"), ("11.8", "11.8"), ("11.8", "9.7")])
def test_connections_in_character_sets_of_two_bytes_and_more(
    source: str, target: str, tmp_path: Path
) -> None:
    with families(source, target, {"binlog_format": "STATEMENT"}) as pair:
        pair.source.sql("CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        for number, collation in enumerate(("ucs2_bin", "utf16_general_ci", "utf32_general_ci")):
            pair.source.sql(
                f"USE a; SET collation_connection = {collation}, time_zone = '+03:00',"
                " lc_time_names = 'de_DE';"
                f"CREATE TABLE t{number} (id INT PRIMARY KEY, a VARCHAR(20), b BLOB,"
                " at TIMESTAMP NULL);"
                f"INSERT INTO t{number} VALUES (1, 'ä', 'ä', NOW()),"
                " (2, MONTHNAME(20200303), 'x', NULL);"
                f"CREATE EVENT e{number} ON SCHEDULE EVERY 1 HOUR DO SELECT 'ö'"
            )
        replicated(pair, tmp_path)
        assert unequal(pair.source, pair.target) == []


def test_a_database_that_another_worker_alters(tmp_path: Path) -> None:
    """A MariaDB session keeps the collation that its database had when it entered it."""
    with families("11.8", "11.8", {}) as pair:
        pair.source.sql("CREATE DATABASE a CHARACTER SET utf8mb4; CREATE DATABASE b")
        pair.source.sql(
            "CREATE TABLE b.t (id INT PRIMARY KEY, v INT); INSERT INTO b.t VALUES (1, 0)"
        )
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            # All workers are idle: both tables are made by the first.
            pair.source.sql("CREATE TABLE before_it (c CHAR(3))", "a")
            daemon.wait_until_caught_up()
            with closing(pair.target.client()) as client, client.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM b.t FOR UPDATE")
                pair.source.sql("SET binlog_format = 'ROW'; UPDATE b.t SET v = 1")
                wait_for_lock_wait(pair.target)
                pair.source.sql("ALTER DATABASE a CHARACTER SET latin1", "a")
                daemon.wait_for_status(lambda now: now.pending_groups == 2, "ALTER is not read")
                cursor.execute("COMMIT")
            daemon.wait_until_caught_up()
            pair.source.sql("CREATE TABLE after_it (c CHAR(3))", "a")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert unequal(pair.source, pair.target) == []


def test_definitions_run_as_the_session_of_the_source(tmp_path: Path) -> None:
    """They have no GTID by which they could be found out to have run."""
    with families("11.8", "11.8", {"binlog_format": "STATEMENT"}) as pair:
        pair.source.sql(
            "CREATE DATABASE d; USE d; CREATE TABLE t AS SELECT CONNECTION_ID() AS a;"
            "CREATE TABLE u (a INT); CREATE OR REPLACE TABLE u SELECT CONNECTION_ID() + a FROM t"
        )
        replicated(pair, tmp_path)
        assert unequal(pair.source, pair.target) == []
