"""What a definition depends on besides the names in it."""

import pytest

from mtsd.binlog.events.mariadb_gtid_event import STANDALONE
from mtsd.binlog.sql.qualifiers import defines_by_query
from mtsd.model.group import Group
from mtsd.model.statement_text import StatementText
from tests.binlog.building import query
from tests.binlog.event_trials import described, mariadb_gtid
from tests.binlog.transactions import grouped


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE TABLE t SELECT f()", True),
        ("/* made */ create table if not exists t (i int) engine=InnoDB as (select f())", True),
        ("CREATE TEMPORARY TABLE t AS WITH c AS (SELECT 1) SELECT f() FROM c", True),
        ("CREATE TABLE t TABLE v", True),
        ("CREATE TABLE t VALUES ROW(f())", True),
        ("CREATE TABLE t (i INT) PARTITION BY RANGE (i) (PARTITION p VALUES LESS THAN (1))", False),
        (("CREATE TABLE t (i INT) PARTITION BY RANGE (i) (PARTITION p VALUES LESS THAN (1))"
         " AS SELECT f() AS i"), True),
        ("CREATE TABLE t (`select` INT COMMENT 'SELECT')", False),
        ("CREATE TABLE t (`i` int) START TRANSACTION", False),
        ("CREATE TABLE t LIKE u", False),
        ("CREATE VIEW v AS SELECT 1", True),
        (("CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`u`@`h` SQL SECURITY DEFINER VIEW `v` AS"
         " SELECT 1"), True),
        ("ALTER ALGORITHM=MERGE DEFINER=`u`@`h` SQL SECURITY INVOKER VIEW v AS SELECT 1", True),
        (("CREATE ALGORITHM=UNDEFINED DEFINER=`u`@`h` SQL SECURITY DEFINER"
         " JSON RELATIONAL DUALITY VIEW v AS SELECT 1"), True),
        ("ALTER TABLE t ADD i INT", False),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", False),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (1))", False),
        ("CREATE DEFINER=`u`@`h` PROCEDURE p() SELECT 1", False),
        ("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = (SELECT 1)", False),
        ("DROP VIEW v", False),
        ("INSERT INTO t SELECT 1", False),
    ],
)  # fmt: skip
def test_what_reads_other_databases_through_views_and_functions(
    statement: str, expected: bool
) -> None:
    assert defines_by_query(StatementText(statement.encode())) == expected


@pytest.mark.parametrize("statement", ["CREATE TABLE t SELECT f()", "CREATE TABLE t (i INT)"])
def test_it_runs_alone(statement: str) -> None:
    (found,) = grouped(query(statement.encode(), status=b"\x0c\x01a\0", database=b"a"))
    assert isinstance(found, Group)
    assert found.alone == statement.endswith("f()")


def of_mariadb(statement: bytes) -> Group:
    """Return the group of a statement that commits by itself."""
    *_, found = grouped(described("MariaDB"), mariadb_gtid(STANDALONE), statement)
    assert isinstance(found, Group)
    return found


@pytest.mark.parametrize(
    ("statement", "databases"),
    [
        ("ALTER TABLE t ADD i INT", "a"),
        ("alter table `b`.t add i int", "a b"),
        ("CREATE TABLE t LIKE b.t", "a b"),
        ("CREATE OR REPLACE TABLE t (i INT REFERENCES b.p (i))", "a b"),
        ("RENAME TABLE t TO b.u, c.t TO t", "a b c"),
        ("DROP TABLE IF EXISTS b.t, `c.d`.`t` WAIT 5", "a b c.d"),
        ("TRUNCATE TABLE t", "a"),
        ("CREATE UNIQUE INDEX i ON t (v)", "a"),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE b.t", "a b"),
        ("CREATE TABLE t SELECT 1 AS i", ""),
        ("CREATE VIEW v AS SELECT 1", ""),
        ("CREATE PROCEDURE p() SELECT 1", ""),
        ("DROP TRIGGER g", ""),
        ("CREATE DATABASE b", ""),
        ("DROP DATABASE b", ""),
        ("CREATE USER u", ""),
        ("GRANT SELECT ON b.t TO u", ""),
        ("SET STATEMENT max_statement_time = 1 FOR ALTER TABLE t ADD i INT", "a"),
    ],
)
def test_a_definition_whose_databases_are_not_listed(statement: str, databases: str) -> None:
    """As those of a MariaDB: tables are as their names say, all else runs alone."""
    found = of_mariadb(query(statement.encode(), database=b"a"))
    if databases:
        assert sorted(found.databases) == databases.split()
    assert found.alone == (not databases)


def test_a_definition_without_a_database() -> None:
    assert of_mariadb(query(b"ALTER TABLE t ADD i INT")).alone
