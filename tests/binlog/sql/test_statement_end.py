"""Where a logged statement ends."""

import pytest

from mtsd.binlog.events.query import parse_mariadb_query, parse_mysql_query
from mtsd.binlog.sql.statement_end import ended
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from tests.binlog.building import query

CONTEXT = SessionContext()
NO_BACKSLASHES = SessionContext(sql_mode=0x100000)
GBK = SessionContext(character_set_client=28)


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("INSERT INTO t VALUES ('semi'); /* app=x */", "INSERT INTO t VALUES ('semi')"),
        ("INSERT INTO t VALUES (1); -- c", "INSERT INTO t VALUES (1)"),
        ("INSERT INTO t VALUES (1);--", "INSERT INTO t VALUES (1)"),
        ("INSERT INTO t VALUES (1) ;# a ; b\n", "INSERT INTO t VALUES (1) "),
        ("DO 1; # a\n -- b\n /* c;\n */ \0", "DO 1"),
        ("DO ';'; /* '; */", "DO ';'"),
        ("DO 1;", "DO 1"),
        ("CREATE PROCEDURE p() BEGIN DO 1; END; -- x", "CREATE PROCEDURE p() BEGIN DO 1; END"),
        ("CREATE PROCEDURE p() BEGIN DO 1; /* ; */ END -- x;", None),
        ("CREATE EVENT e DO BEGIN DO 1; -- first\n END", None),
        ("INSERT INTO t VALUES ('; -- c')", None),
        ("INSERT INTO t VALUES (1) /* ; */", None),
        ("DO 1; /*! DO 2 */", None),
        ("DO 1; 'unclosed -- x", None),
        ("CREATE LIBRARY d.l\n    LANGUAGE JAVASCRIPT\nAS $$ class A { x = 1; #y = 2; } $$", None),
        ("CREATE LIBRARY d.l\n    LANGUAGE JAVASCRIPT\nAS $a$ $$ x = 1; #y = 2; $a$ ; # z",
         "CREATE LIBRARY d.l\n    LANGUAGE JAVASCRIPT\nAS $a$ $$ x = 1; #y = 2; $a$ "),
        ("CREATE VIEW d.v\nAS $$; # $", "CREATE VIEW d.v\nAS $$"),
        ("DO 1; /* unclosed", None),
        ("DO 1 -- ;", None),
        ("", None),
        (";", " "),
    ],
)  # fmt: skip
def test_at_a_semicolon_with_nothing_but_comments_behind(statement: str, kept: str | None) -> None:
    wanted = (statement if kept is None else kept.ljust(len(statement))).encode()
    assert ended(StatementText(statement.encode(), CONTEXT)).raw == wanted


def test_strings_are_those_of_the_session() -> None:
    statement = rb"INSERT INTO t VALUES ('\'); -- c')"
    assert ended(StatementText(statement, CONTEXT)).raw == statement
    without = rb"INSERT INTO t VALUES ('\'); -- c"
    assert (
        ended(StatementText(without, NO_BACKSLASHES)).raw.rstrip() == rb"INSERT INTO t VALUES ('\')"
    )
    half = b"INSERT INTO t VALUES ('\x81\\'); -- c"
    assert ended(StatementText(half, GBK)).raw.rstrip() == b"INSERT INTO t VALUES ('\x81\\')"
    assert ended(StatementText(half, CONTEXT)).raw == half


def test_what_the_source_executed_counts() -> None:
    event = query(b"DO 1; /*M!100100 */")
    assert parse_mysql_query(event).statement.rstrip() == b"DO 1"
    assert parse_mariadb_query(event).statement.rstrip() == b"DO 1"
    event = query(b"SET STATEMENT max_statement_time=1 FOR DO 1; -- c")
    assert parse_mariadb_query(event).statement.rstrip() == b"DO 1"
