"""Definitions that create tables with rows are recognized, whichever way they are written."""

import pytest

from mtsd.binlog.statement import classify
from mtsd.model.step import StatementKind
from mtsd.spark.unseen_changes import fills_a_table


@pytest.mark.parametrize(
    "statement",
    [
        b"CREATE TABLE d.t AS SELECT 1",
        b"CREATE TABLE t (a INT) TABLE u",
        b"CREATE TABLE t VALUES ROW(1)",
        b"CREATE TABLE t (VALUES ROW(1))",
        b"CREATE TABLE t (a INT) ENGINE=InnoDB AS VALUES ROW(7)",
        b"CREATE TABLE t AS VALUES (1),(2)",
        b"CREATE TABLE t AS WITH q AS (VALUES (1)) TABLE q",
        b"create or replace table if not exists `d`.`t` as select 1",
        b"CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1)) VALUES ROW(1)",
    ],
)
def test_with_rows(statement: bytes) -> None:
    assert fills_a_table(statement)


@pytest.mark.parametrize(
    "statement",
    [
        b"CREATE TABLE t (a INT, `select` INT COMMENT 'VALUES')",
        b"CREATE TABLE t LIKE u",
        b"CREATE OR REPLACE TABLE t (a INT)",
        b"CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5))",
        b"CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1, 2))",
        b"CREATE OR REPLACE VIEW v AS SELECT 1",
        b"ALTER TABLE t ADD PARTITION (PARTITION p VALUES IN (1))",
    ],
)
def test_without_rows(statement: bytes) -> None:
    assert not fills_a_table(statement)


def test_temporary_tables_are_another_kind() -> None:
    for statement in (
        b"CREATE TEMPORARY TABLE t SELECT 1",
        b"CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS t SELECT 1",
    ):
        assert classify(statement) is StatementKind.TEMPORARY
