"""What a definition depends on besides the names in it."""

import pytest

from mtsd.binlog.sql.qualifiers import defines_by_query
from mtsd.model.group import Group
from mtsd.model.statement_text import StatementText
from tests.binlog.building import query
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
