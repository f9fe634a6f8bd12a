"""What tells by an error that it has run before."""

import pytest

from mtsd.binlog.sql.repeatable import errors_of_a_second_time
from mtsd.model.statement_text import StatementText
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server

ONCE = [
    ("CREATE DATABASE d", 1007),
    ("create schema d2 character set utf8mb4", 1007),
    ("/* made */ CREATE TABLE d.t (i INT PRIMARY KEY, v INT)", 1050),
    ("CREATE TABLE d.t2 LIKE d.t", 1050),
    ("CREATE UNIQUE INDEX i ON d.t (v)", 1061),
    ("CREATE DEFINER=`root`@`localhost` SQL SECURITY INVOKER VIEW d.w AS SELECT 1", 1050),
    ("CREATE DEFINER=`root`@`localhost` TRIGGER d.g BEFORE INSERT ON d.t FOR EACH ROW SET @a=1",
     1359),
    ("CREATE DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW d.w3 AS SELECT 1", 1050),
    ("CREATE PROCEDURE d.p() SELECT 1", 1304),
    ("CREATE DEFINER=`root`@`localhost` FUNCTION d.f() RETURNS INT DETERMINISTIC RETURN 1", 1304),
    ("CREATE DEFINER=view@localhost PROCEDURE d.p2() SELECT 1", 1304),
    ("CREATE ALGORITHM = MERGE DEFINER = CURRENT_USER() /* x */ VIEW d.w2 AS SELECT 1", 1050),
    ("CREATE EVENT d.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1", 1537),
    ("CREATE USER 'u'@'localhost'", 1396),
    ("CREATE ROLE 'r'", 1396),
    ("DROP ROLE 'r'", 1396),
    ("DROP USER 'u'@'localhost'", 1396),
    ("DROP EVENT d.e", 1539),
    ("DROP FUNCTION d.f", 1305),
    ("DROP PROCEDURE d.p", 1305),
    ("DROP TRIGGER d.g", 1360),
    ("DROP VIEW d.w", 1051),
    ("DROP INDEX i ON d.t", 1091),
    ("DROP TABLE d.t2, d.t", 1051),
    ("DROP SCHEMA d2", 1008),
    ("DROP DATABASE d", 1008),
]  # fmt: skip
OF_MARIADB = [
    ("CREATE DATABASE d", 1007),
    ("CREATE SEQUENCE d.s", 1050),
    ("CREATE VIEW d.v AS SELECT 1", 1050),
    ("DROP VIEW d.v", 4092),
    ("DROP SEQUENCE d.s", 4091),
]
NEVER = [
    "",
    "'CREATE TABLE'",
    "ALTER TABLE t ADD INDEX (a)",
    "ALTER TABLE t ADD COLUMN a INT",
    "RENAME TABLE a TO b, b TO a",
    "GRANT ALL ON *.* TO u",
    "CREATE TEMPORARY TABLE t (a INT)",
    "DROP TEMPORARY TABLE t",
    "CREATE SPATIAL REFERENCE SYSTEM 4711 NAME 'TABLE' DEFINITION ''",
    "CREATE RESOURCE GROUP g TYPE = USER",
    "DROP SERVER s",
    "INSERT INTO t VALUES (1)",
]
AGAIN = [
    "CREATE DATABASE IF NOT EXISTS d",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "DROP TABLE IF EXISTS t",
    "TRUNCATE TABLE t",
]


@pytest.mark.servers
@pytest.mark.parametrize("mariadb", [False, True])
def test_a_server_says_so(mariadb: bool) -> None:
    with Server(installation=provide_mariadb("11.8") if mariadb else None) as server:
        for statement, number in OF_MARIADB if mariadb else ONCE:
            server.sql(statement)
            with pytest.raises(Exception, match=rf"\b{number}\b"):
                server.sql(statement)
            assert number in (errors_of_a_second_time(StatementText(statement.encode())) or ()), (
                statement
            )


@pytest.mark.parametrize("statement", NEVER)
def test_nothing_is_concluded_of_others(statement: str) -> None:
    assert errors_of_a_second_time(StatementText(statement.encode())) is None


@pytest.mark.parametrize("statement", AGAIN)
def test_what_leaves_the_same_a_second_time(statement: str) -> None:
    assert errors_of_a_second_time(StatementText(statement.encode())) is not None
