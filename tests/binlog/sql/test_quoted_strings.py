"""Where quoted strings and comments end, held against a scanner that goes byte by byte."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.sql.tokenizer import (
    SQL_MODE_ANSI_QUOTES,
    SQL_MODE_MSSQL,
    SQL_MODE_NO_BACKSLASH_ESCAPES,
    tokens_of,
)
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, TokenKind

PLAIN = SessionContext(sql_mode=SQL_MODE_NO_BACKSLASH_ESCAPES)
ESCAPING = SessionContext()
ANSI = SessionContext(sql_mode=SQL_MODE_ANSI_QUOTES)
GBK = SessionContext(character_set_client=28)
GBK_WITHOUT_PAD = SessionContext(character_set_client=28 + 1024)
BRACKETS = SessionContext(sql_mode=SQL_MODE_MSSQL | SQL_MODE_ANSI_QUOTES)
CONTEXTS = [PLAIN, ESCAPING, ANSI, GBK, GBK_WITHOUT_PAD, BRACKETS]
QUOTES = b"'\"`"
SYMBOLS = [
    b"[",
    b"]",
    b"'",
    b'"',
    b"`",
    b"\\",
    b"*",
    b"/",
    b"/*",
    b"*/",
    b" ",
    b"a",
    b"\x81",
    b"\xfe",
    b"@",
]


def strings(statement: bytes, context: SessionContext) -> Iterator[tuple[int, int, bool]]:
    """Yield begin and end of each quoted string, and whether it is closed."""
    escapes = not (context.sql_mode or 0) & SQL_MODE_NO_BACKSLASH_ESCAPES
    names = {ANSI: b'`"', BRACKETS: b'`"['}.get(context, b"`")
    quotes = QUOTES + b"[" * (context is BRACKETS)
    wide = context.character_set_client in {28, 1052}

    def is_wide(at: int) -> bool:
        pair = statement[at : at + 2]
        return wide and len(pair) == 2 and 0x81 <= pair[0] <= 0xFE and (
            0x40 <= pair[1] <= 0x7E or 0x80 <= pair[1] <= 0xFE
        )  # fmt: skip

    at = 0
    while at < len(statement):
        if statement[at : at + 2] == b"/*":
            closed = statement.find(b"*/", at + 2)
            if closed < 0:
                yield at, len(statement), False
                return
            at = closed + 2
        elif statement[at] in quotes:
            quote = statement[at]
            closing = ord("]") if quote == ord("[") else quote
            begin = at
            at += 1
            while True:
                if at >= len(statement):
                    yield begin, len(statement), False
                    return
                escaped = escapes and quote not in names and statement[at] == ord("\\")
                if escaped or is_wide(at):
                    at += 2
                elif statement[at] == closing:
                    if statement[at + 1 : at + 2] != bytes((closing,)):
                        break
                    at += 2
                else:
                    at += 1
            at += 1
            yield begin, at, True
        else:
            at += 2 if is_wide(at) else 1


@settings(max_examples=500)
@given(st.lists(st.sampled_from(SYMBOLS), max_size=14), st.sampled_from(CONTEXTS))
def test_they_end_where_the_server_ends_them(parts: list[bytes], context: SessionContext) -> None:
    statement = b"".join(parts)
    found = [
        (token.start, token.end, token.kind is TokenKind.QUOTED)
        for token in tokens_of(StatementText(statement, context))
        if token.kind in {TokenKind.QUOTED, TokenKind.UNCLOSED}
    ]
    assert found == list(strings(statement, context))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "inside", [b"a", b"''", b"\\a", b"\x81a", b"\x81'", b"/*", b"**", b"*/ /*"]
)
def test_a_long_one_without_an_end_costs_its_length(inside: bytes, context: SessionContext) -> None:
    for opening in (b"'", b"/*"):
        began = time.process_time()
        for size in (1 << 12, 1 << 17):
            list(tokens_of(StatementText(opening + inside * size, context)))
        assert time.process_time() - began < 5
