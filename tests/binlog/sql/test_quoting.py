"""Names put into a statement, in every character set that a client may have."""

import pytest

from mtsd.binlog.bytes.character_sets import any_collation, character_set, text_decoder
from mtsd.binlog.events.query import parse_mysql_query
from mtsd.binlog.sql.drop_if_there import in_its_database
from mtsd.binlog.sql.invoker import with_invoker
from mtsd.binlog.sql.quoting import account, quoted, tokens_between
from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.binlog.sql.words import identifier
from mtsd.model.errors import NotSupportedError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, TokenKind
from tests.binlog.building import query

WIDE = ("big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis")
ALL = (*WIDE, "utf8mb3", "utf8mb4", "latin1", "ascii", "koi8r")
INJECTED = "event shop.e disable;drop table shop.victim#"
CHARACTERS = tuple(map(chr, (*range(1, 0x180), *range(0x3040, 0x30C0), *range(0x4E00, 0x4E80))))
"""In UTF-8 their last bytes are all of 0x80 to 0xBF, the first bytes of wide characters."""


def declared(name: str, collation: int) -> bytes | None:
    try:
        return quoted(name, collation)
    except NotSupportedError:
        return None


@pytest.mark.parametrize("name", ALL)
def test_a_name_is_one_token_that_means_it(name: str) -> None:
    collation = any_collation(name)
    context = SessionContext(character_set_client=collation)
    written = 0
    for character in CHARACTERS:
        for intended in (f"x{character}", f"{character}`", f"`{character}`;x"):
            text = declared(intended, collation)
            if text is None:
                continue
            written += 1
            (token,) = tokens_of(StatementText(text, context))
            assert (token.kind, token.end) == (TokenKind.QUOTED, len(text))
            assert identifier(text, context) == intended
    assert written >= 94


@pytest.mark.parametrize("name", WIDE)
def test_names_that_end_in_each_first_byte(name: str) -> None:
    """As bytes of another character set they would take in the quote; here none gets there."""
    collation = any_collation(name)
    context = SessionContext(character_set_client=collation)
    for last in range(0x80, 0x100):
        for raw in (bytes((last,)), bytes((0xE4, 0xB8, last)), bytes((0xC3, last))):
            try:
                found = account(raw, INJECTED.encode(), collation)
            except NotSupportedError:
                continue
            user, at, host = tokens_of(StatementText(found, context))
            kinds = (user.kind, at.kind, host.kind)
            assert kinds == (TokenKind.QUOTED, TokenKind.SYMBOL, TokenKind.QUOTED)
            assert text_decoder(collation)(found[1 : user.end - 1]) == raw.decode()
            assert found[host.start :] == b"`%b`" % INJECTED.encode()


def test_an_account_in_the_character_set_of_its_statement() -> None:
    gbk = SessionContext(character_set_client=28)
    found = with_invoker(
        StatementText(b"ALTER EVENT e COMMENT 'x'", gbk), ("中".encode(), INJECTED.encode())
    )
    assert found == b"ALTER DEFINER = `%b`@`%b` EVENT e COMMENT 'x'" % (
        "中".encode("gbk"),
        INJECTED.encode(),
    )
    latin1 = SessionContext(character_set_client=8)
    with pytest.raises(NotSupportedError, match="in the character set latin1, in which the name"):
        with_invoker(StatementText(b"DROP USER CURRENT_USER", latin1), ("中".encode(), b"h"))
    with pytest.raises(NotSupportedError, match="not UTF-8"):
        with_invoker(StatementText(b"DROP USER CURRENT_USER", latin1), (b"\xe4", b"h"))


def test_a_statement_that_would_take_in_the_quote_of_a_name() -> None:
    """It ends in a first byte where the account begins."""
    gbk = SessionContext(character_set_client=28)
    for text in (b"GRANT a ON b TO \xad\xad\xadCURRENT_USER", b"DROP USER x\x81CURRENT_USER"):
        assert with_invoker(StatementText(text, gbk), (b"u", b"h")) == text


@pytest.mark.parametrize("name", ["a\0b", "\udcff", "é" * 2, "`é"])
def test_what_would_be_another_name(name: str) -> None:
    """In swe7 é is the quote itself."""
    with pytest.raises(NotSupportedError):
        quoted(name, any_collation("swe7"))
    with pytest.raises(NotSupportedError):
        quoted("😀", any_collation("utf8mb3"))


def test_sets_that_no_client_has() -> None:
    for number in (35, 54, 60):
        assert character_set(number) in {"ucs2", "utf16", "utf32"}
        with pytest.raises(NotSupportedError):
            quoted("a b", number)
    assert quoted("a`b", 63) == b"`a``b`"


def test_a_database_that_has_a_name_in_the_statements_set() -> None:
    parsed = parse_mysql_query(query(b"DROP TEMPORARY TABLE t", database="中".encode()))
    for client, expected in ((28, b"`\xd6\xd0`.t"), (8, b"t"), (45, "`中`.t".encode())):
        context = SessionContext(character_set_client=client)
        text = in_its_database(parsed.in_session(context))
        assert text == b"DROP TEMPORARY TABLE " + expected


def test_tokens_of_a_part() -> None:
    context = SessionContext()
    text = b"LOAD DATA INFILE 'x y' INTO TABLE t"
    found = tokens_between(StatementText(text, context), 9, 27)
    assert found is not None
    assert [token.text for token in found] == [b"INFILE", b"'x y'", b"INTO"]
    assert tokens_between(StatementText(text, context), 19, 27) is None
    assert tokens_between(StatementText(text, context), 9, 25) is None
