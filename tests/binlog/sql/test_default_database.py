"""DATABASE() in a session that has no default database."""

import pytest

from mtsd.binlog.sql.default_database import (
    creates_from_default_database,
    without_default_database,
)
from mtsd.binlog.sql.tokenizer import SQL_MODE_ANSI_QUOTES
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText

NOTHING = SessionContext()
ANSI = SessionContext(sql_mode=SQL_MODE_ANSI_QUOTES)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (b"INSERT INTO a.t VALUES (DATABASE())", b"INSERT INTO a.t VALUES (NULL)"),
        (b"INSERT INTO a.t VALUES (schema ( ), 1)", b"INSERT INTO a.t VALUES (NULL, 1)"),
        (b"UPDATE a.t SET s=Database/* x */()", b"UPDATE a.t SET s=NULL"),
        (
            b"INSERT INTO a.t SELECT DATABASE(), IFNULL(SCHEMA(), 'x')",
            b"INSERT INTO a.t SELECT NULL, IFNULL(NULL, 'x')",
        ),
        (b"DELETE FROM a.t WHERE s = /*!50000 DATABASE() */", None),
        (b"INSERT INTO a.t VALUES ('DATABASE()', \"SCHEMA()\", `DATABASE`)", None),
        (b"INSERT INTO a.t VALUES (a.DATABASE(), a . SCHEMA())", None),
        (b"INSERT INTO a.t (database) SELECT schema FROM a.u -- DATABASE()", None),
        (b"INSERT INTO a.t VALUES (DATABASE(1))", None),
        (b"INSERT INTO a.t VALUES (DATABASE(", None),
        (b"DATABASE", None),
    ],
)
def test_it_is_null(statement: bytes, expected: bytes | None) -> None:
    if b"/*!" in statement:
        expected = statement.replace(b"DATABASE()", b"NULL")
    assert without_default_database(StatementText(statement, NOTHING)) == (expected or statement)


def test_the_sql_mode_says_what_a_name_is() -> None:
    named = b'INSERT INTO a.t ("DATABASE()") VALUES (DATABASE())'
    assert without_default_database(StatementText(named, ANSI)) == named.replace(
        b"(DATABASE())", b"(NULL)"
    )


@pytest.mark.parametrize(
    ("statement", "creates"),
    [
        (b"CREATE TABLE a.t SELECT DATABASE() d", True),
        (b"CREATE TABLE a.t (i INT) AS SELECT 1 i, SCHEMA() d", True),
        (b"create or replace temporary table a.t select database()", True),
        (b"CREATE TABLE a.t SELECT 'DATABASE()' d", False),
        (b"CREATE TABLE a.t (s VARCHAR(64) DEFAULT (DATABASE()))", False),
        (b"CREATE PROCEDURE a.p() CREATE TABLE a.t SELECT DATABASE()", False),
        (b"CREATE VIEW a.v AS SELECT DATABASE()", False),
        (b"", False),
    ],
)
def test_a_table_that_it_would_give_a_type(statement: bytes, *, creates: bool) -> None:
    assert creates_from_default_database(StatementText(statement, NOTHING)) is creates
