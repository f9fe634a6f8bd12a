"""Which texts are one statement: surely, as far as can be seen, and in words where they are not."""

import pytest

from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.binlog.sql.one_statement import surely_one, why_not_one
from mtsd.model.group import Group
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from tests.binlog.building import query
from tests.binlog.transactions import begin, grouped, xid

ESCAPES = SessionContext(sql_mode=0)
NO_BACKSLASHES = SessionContext(sql_mode=0x100000)
UNKNOWN = SessionContext()


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1, 'a;b', \"c;d\") /* app=x */",
        "INSERT INTO t VALUES ('it''s', '/* c', '-- ', '#')",
        "UPDATE `a;b`.t SET a = a - 1 / 2, b = -(1)",
        "INSERT INTO t VALUES ('é', '😀')",
    ],
)
def test_what_is_sure(text: str) -> None:
    for context in (ESCAPES, NO_BACKSLASHES, UNKNOWN):
        assert surely_one(text.encode(), context)


@pytest.mark.parametrize(
    "text",
    [
        b"INSERT INTO t VALUES (1);DROP TABLE u",
        b"INSERT INTO t VALUES (1);",
        b"INSERT INTO t VALUES ('",
        b'INSERT INTO t VALUES ("',
        b"INSERT INTO `t VALUES (1)",
        b"INSERT INTO t VALUES (1) /* x",
        b"INSERT INTO t VALUES (1) /*! , (2) */",
        b"INSERT INTO t VALUES (1) /*M! , (2) */",
        b"INSERT /*+ SET_VAR(a = ';') */ INTO t VALUES (1)",
        b"INSERT INTO t VALUES (1) /* * */",
        b"INSERT INTO t VALUES (1) -- x",
        b"INSERT INTO t VALUES (1--1)",
        b"INSERT INTO t VALUES (1) # x",
        b"INSERT INTO t VALUES (\\N)",
        b"INSERT INTO t VALUES (1)\0",
        b"INSERT INTO `t\0` VALUES (1)",
        b"INSERT INTO [t;] VALUES (1)",
        b"INSERT INTO t VALUES ($$a;$$)",
        b"INSERT INTO `\xe4` VALUES (1)",
        b"INSERT INTO t VALUES ('\xff')",
        b'INSERT INTO t VALUES ("\\"")',
    ],
)
def test_what_is_not(text: bytes) -> None:
    for context in (ESCAPES, NO_BACKSLASHES, UNKNOWN):
        assert not surely_one(text, context)


def test_what_depends_on_the_session() -> None:
    assert surely_one(rb"INSERT INTO t VALUES ('\';')", ESCAPES)
    assert not surely_one(rb"INSERT INTO t VALUES ('\';')", NO_BACKSLASHES)
    assert surely_one(rb"INSERT INTO t VALUES ('\')", NO_BACKSLASHES)
    assert not surely_one(rb"INSERT INTO t VALUES ('\')", ESCAPES)
    assert not surely_one(rb"INSERT INTO t VALUES ('\n')", UNKNOWN)
    latin1, gbk, utf8mb3 = (SessionContext(sql_mode=0, character_set_client=n) for n in (8, 28, 33))
    for text, sure in (
        (b"INSERT INTO t VALUES ('\xe9')", (True, False, False)),
        ("INSERT INTO t VALUES ('é')".encode(), (True, False, True)),
        ("INSERT INTO t VALUES ('😀')".encode(), (True, False, False)),
        (b"INSERT INTO t VALUES ('e')", (True, True, True)),
    ):
        assert tuple(surely_one(text, each) for each in (latin1, gbk, utf8mb3)) == sure
    assert not surely_one(b"INSERT INTO t VALUES ('%b')" % (b"x" * LONGEST_READ), ESCAPES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("INSERT INTO a VALUES (1);DROP TABLE b", "another one behind the ';' at byte 24"),
        ("INSERT INTO a VALUES (';') ; /*! DROP TABLE b */", "another one behind the ';' at"),
        ("CREATE TABLE a (b INT);DROP TABLE b", "another one behind the ';' at byte 22"),
        ("DO ';' 'x", "' at byte 7 is not closed"),
        ("DO 1; /* x", "/ at byte 6 is not closed"),
        ("DO 1; -- DROP TABLE b", ""),
        ("DO 1", ""),
        ("DO 'x", ""),
        ("CREATE DEFINER = a@b PROCEDURE p() BEGIN DO 1; DO 2; END", ""),
        ("CREATE OR REPLACE AGGREGATE FUNCTION f() RETURNS INT BEGIN DO 1; RETURN 1; END", ""),
        ("ALTER DEFINER=`a`@`b` EVENT e DO BEGIN DO 1; DO 2; END", ""),
        ("CREATE PACKAGE BODY p AS x INT; END", ""),
        ("BEGIN NOT ATOMIC DO 1; DO 2; END", ""),
    ],
)
def test_why_a_text_is_none(text: str, reason: str) -> None:
    found = why_not_one(StatementText(text.encode(), ESCAPES))
    assert reason in found if reason else not found


def test_a_group_with_several_is_refused_whatever_it_hides() -> None:
    text = b"INSERT INTO shop.t1 VALUES ('x');DROP TABLE secret.t"
    (group,) = grouped(begin(), query(text), xid())
    assert isinstance(group, Group)
    assert "another one behind the ';' at byte 32" in group.unsupported
