"""Texts of statements: their tokens, whose comments are code, and letters that look like marks."""

import operator

import pytest

from mtsd.binlog.sql.changed_tables import changed
from mtsd.binlog.sql.one_statement import why_not_one
from mtsd.binlog.sql.qualifiers import defines_by_query, qualifiers
from mtsd.binlog.sql.statement import classify
from mtsd.binlog.sql.tokenizer import MAX_KEPT, tokens_of
from mtsd.binlog.sql.words import Words
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, VersionComments
from mtsd.model.step import StatementKind


@pytest.mark.parametrize(
    ("opening", "by"),
    [
        ("/*!", "MySQL MariaDB"),
        ("/*!50699", "MySQL MariaDB"),
        ("/*!50700", "MySQL"),
        ("/*!99999", "MySQL"),
        ("/*!100100", "MariaDB"),
        ("/*M!", "MariaDB"),
        ("/*M!50701", "MariaDB"),
        ("/*M!100100", "MariaDB"),
        ("/*M!999999", ""),
        ("/*!999999", ""),
    ],
)
def test_whose_version_comments_are_code(opening: str, by: str) -> None:
    """As both servers were seen to do, of those versions that a server may have."""
    text = f"a {opening} b /* c */ */ d".encode()
    for comments, name in ((VersionComments.MYSQL, "MySQL"), (VersionComments.MARIADB, "MariaDB")):
        found = [token.text for token in tokens_of(StatementText(text, comments=comments))]
        if name in by:
            assert found == [b"A", b"B", b"D"]
        else:
            # Comments are nested in one of the server's own kind only.
            own = opening.startswith("/*!") or comments is VersionComments.MARIADB
            assert found == ([b"A", b"D"] if own else [b"A", b"*", b"/", b"D"])
    found = [token.text for token in tokens_of(StatementText(text, comments=VersionComments.ANY))]
    assert found == [b"A", b"B", b"D"]


def test_letters_of_swe7() -> None:
    """Servers read names of these bytes, and show them as Swedish letters."""
    swe7 = SessionContext(character_set_client=10)
    text = StatementText(b"DROP TABLE [a, `}b`, c]\\^{}~, d", swe7)
    words = Words(text)
    words.take_words(b"DROP", b"TABLE")
    names = [words.take_name()[1]]
    while words.at_symbol(b","):
        words.take()
        names.append(words.take_name()[1])
    assert names == ["Äa", "åb", "cÅÖÜäåü", "d"]
    assert changed(text).tables == tuple(("", name) for name in names)
    # The marks of a condition are no letters, and strings have their escapes.
    condition = StatementText(b"SELECT a||@b|c, 'a\\'b'", swe7)
    assert [token.text for token in tokens_of(condition)] == [
        b"SELECT", b"A", b"|", b"|", b"@", b"B", b"|", b"C", b",", b"'a\\'b'",
    ]  # fmt: skip


def test_tokens_are_read_once_and_let_go() -> None:
    text = StatementText(b"CREATE VIEW a.v AS SELECT * FROM b.t, c.t" + b", d.t" * 100)
    assert classify(text) is StatementKind.DDL
    assert text.tokens is not None
    first = list(text.tokens.read)
    assert len(first) == 8
    assert defines_by_query(text)
    assert qualifiers(text) == {"a", "b", "c", "d"}
    whole = list(text.tokens.read)
    assert all(map(operator.is_, first, whole))
    in_other_zone = text.in_session(SessionContext(time_zone=b"UTC"))
    assert all(map(operator.is_, whole, tokens_of(in_other_zone)))
    assert text.in_session(SessionContext(sql_mode=4)).tokens is None
    text.let_go()
    assert text.tokens is None


def test_no_more_tokens_are_kept_than_a_definition_has() -> None:
    """A token takes many times the memory of its text."""
    text = StatementText(b"INSERT INTO t VALUES (1)" + b",(1)" * 50_000 + b"; DO 1")
    assert Words(text).passes({b"DO"})
    assert why_not_one(StatementText(text.raw[-9:])) != ""
    assert text.tokens is not None
    assert len(text.tokens.read) == MAX_KEPT
    found = list(tokens_of(text))
    assert len(found) == 7 + 4 * 50_000 + 3
    assert [text.raw[token.start : token.end] for token in found[-3:]] == [b";", b"DO", b"1"]
