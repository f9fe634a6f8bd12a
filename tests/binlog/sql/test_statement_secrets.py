"""No password of a statement is shown, and an error that quotes one does not quote it."""

import re
from pathlib import Path

import pytest

import mtsd
from mtsd.apply.session.obstacle import FULL, obstacle_of
from mtsd.binlog.bytes.header import parse_header
from mtsd.binlog.events.decode import decode
from mtsd.binlog.sql.statement_secrets import LONGEST_EXCERPT, first_secret, without_secrets
from mtsd.cli.listing.event_listing import EventLine
from mtsd.cli.output import json_of
from mtsd.model.errors import ServerError, without_quoted
from mtsd.model.session import SessionContext
from tests.binlog.building import query

GBK = SessionContext(character_set_client=28)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("CREATE USER 'u'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$secret'",
         "CREATE USER 'u'@'%' IDENTIFIED ..."),
        ("CREATE OR REPLACE USER u IDENTIFIED VIA ed25519 USING 'secret' OR unix_socket",
         "CREATE OR REPLACE USER u IDENTIFIED ..."),
        ("CREATE USER u IDENTIFIED WITH x AS 0x2441secret", "CREATE USER u IDENTIFIED ..."),
        ("/* a */ alter user u identified by 'secret'", "/* a */ alter user u identified ..."),
        ("/*!80000 ALTER */ USER u /*!50701 IDENTIFIED BY 'secret' */",
         "/*!80000 ALTER */ USER u /*!50701 IDENTIFIED ..."),
        ("SET PASSWORD FOR 'u'@'%'='secret'", "SET PASSWORD ..."),
        ("SET PASSWORD = PASSWORD('secret')", "SET PASSWORD ..."),
        ("SET STATEMENT max_statement_time=1 FOR SET PASSWORD='secret'",
         "SET STATEMENT max_statement_time=1 FOR SET PASSWORD ..."),
        ("GRANT ALL ON a.* TO u IDENTIFIED BY 'secret'", "GRANT ALL ON a.* TO u IDENTIFIED ..."),
        ("CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'secret')",
         "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD ..."),
        ("CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:secret@h/d/t'",
         "CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION ..."),
        ("CREATE TABLE t (a INT) ENGINE=CONNECT OPTION_LIST='user=u,password=secret'",
         "CREATE TABLE t (a INT) ENGINE=CONNECT OPTION_LIST= ..."),
        ("CREATE TABLE t (a INT) ENGINE=SPIDER COMMENT='host \"h\", password \"secret\"'",
         "CREATE TABLE t (a INT) ENGINE=SPIDER COMMENT= ..."),
        ("CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_PASSWORD='secret'",
         "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_PASSWORD ..."),
        ("CHANGE MASTER TO MASTER_PASSWORD = 'secret'", "CHANGE MASTER TO MASTER_PASSWORD ..."),
        ("START REPLICA USER='u' PASSWORD='secret'", "START REPLICA USER='u' PASSWORD ..."),
        ("CREATE PROCEDURE p() EXECUTE IMMEDIATE 'CREATE USER u IDENTIFIED BY ''secret'''",
         "CREATE PROCEDURE p() EXECUTE IMMEDIATE  ..."),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ALTER USER u IDENTIFIED BY 'secret",
         "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ALTER USER u IDENTIFIED ..."),
        ("CREATE USER u /*M! IDENTIFIED BY 'secret' */", "CREATE USER u /*M! IDENTIFIED ..."),
        ("CREATE USER u /*M! don't */ IDENTIFIED BY 'secret'",
         "CREATE USER u /*M! don ..."),
        ("CREATE USER u /*M! 1' */ IDENTIFIED /*M! ' */ BY 'secret'",
         "CREATE USER u /*M! 1 ..."),
        ("CREATE PROCEDURE p() SELECT 'my password is secret", "CREATE PROCEDURE p() SELECT  ..."),
    ],
)  # fmt: skip
def test_secrets_are_not_shown(statement: str, shown: str) -> None:
    assert without_secrets(statement.encode()).decode() == shown


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t (password) VALUES ('seen')",
        "UPDATE t SET c = AES_ENCRYPT('a', 'password=b')",
        "CREATE TABLE users (password VARCHAR(99), `identified` INT, connection INT)",
        "ALTER TABLE users ADD password INT COMMENT 'of whom'",
        "CREATE TABLE t (a INT) COMMENT 'see https://host/'",
        "DROP TABLE identified",
        "",
    ],
)
def test_what_holds_none_is_shown(statement: str) -> None:
    assert first_secret(statement.encode()) is None


def test_the_second_byte_of_a_character_ends_no_text() -> None:
    name = "誠".encode("big5")  # its second byte is a backslash
    statement = b"CREATE USER '%b' IDENTIFIED BY 'secret'" % name
    assert without_secrets(statement, SessionContext(character_set_client=1)) == (
        b"CREATE USER '%b' IDENTIFIED ..." % name
    )


def test_a_secret_far_behind_is_one() -> None:
    body = b"CREATE PROCEDURE p() BEGIN " + b"DO 1; " * 20_000
    assert first_secret(body + b"END") is None
    assert first_secret(body + b"SET PASSWORD = 'secret'; END") == LONGEST_EXCERPT
    comment = b"/*" + b" " * LONGEST_EXCERPT + b"*/"
    assert first_secret(comment + b"CREATE USER u IDENTIFIED BY 'secret'") == 0


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("syntax to use near 'USER app IDENTIFIED BY 'Hunter2'' at line 1",
         "syntax to use near '…' at line 1"),
        ("'USER u IDENTIFIED BY 'Hunter2'' 付近 1 行目", "'…' 付近 1 行目"),
        ("Your password does not satisfy the current policy requirements",
         "Your password does not satisfy the current policy requirements"),
        ("Can't find any matching row", "Can't find any matching row"),
        ("String 'Hunter2Hunter2", "String '…'"),
    ],
)  # fmt: skip
def test_a_server_quotes_nothing(text: str, left: str) -> None:
    assert without_quoted(text) == left


def test_an_error_is_concealed_wherever_it_is_told() -> None:
    error = ServerError(1064, "42000", "near 'BY 'Hunter2'' at line 1")
    error.conceal()
    error.warnings = error.fit("Error 1064: near 'BY 'Hunter2'' at line 1")
    assert str(error) == "error 1064 (42000): near '…' at line 1"
    assert "Hunter2" not in repr(error)
    assert error.warnings == "Error 1064: near '…' at line 1"


def test_a_plugin_that_is_missing_has_its_name() -> None:
    error = ServerError(1524, "HY000", "Plugin 'auth_x' is not loaded")
    error.conceal()
    assert error.text == error.fit(error.text) == "Plugin 'auth_x' is not loaded"


def test_what_is_concealed_is_still_understood() -> None:
    error = ServerError(1005, "HY000", 'Can\'t create table `a`.`f` (errno: 28 "No space left")')
    error.conceal()
    assert error.text == "Can't create table '…')"
    assert obstacle_of(error) == FULL


def test_statements_are_shown_by_one_function() -> None:
    cut = re.compile(r"\b_?statement\[:[\w ]+\](?:!r|\.decode)")
    found = [
        path.name
        for path in Path(mtsd.__file__).parent.rglob("*.py")
        if cut.search(path.read_text(encoding="utf-8"))
    ]
    # The records in slave_in_doubt have no secrets, mtsd's own statements either, and those that
    # are about an XA transaction have an xid.
    assert sorted(found) == ["retry.py", "verdict.py", "xa_statement.py"]


def test_a_listing_shows_none() -> None:
    events = [query(b"CREATE USER u IDENTIFIED BY 'Hunter2'"), query(b"INSERT INTO t VALUES ('x')")]
    for raw, shown in zip(events, ("CREATE USER u IDENTIFIED ...", "VALUES ('x')"), strict=True):
        line = EventLine("f", 4, False, parse_header(raw), len(raw), decode(raw), raw)
        assert line.summary().endswith(shown)
        assert "Hunter2" not in json_of(line.as_json())
