"""The tokens of a statement, as the server reads it.

A small tokenizer over bytes: comments are skipped, except version comments (`/*! … */`,
`/*!80000 … */`), whose contents are executed (MySQL manual, "Comments").

Which versions those are depends on the server. MariaDB leaves out MySQL's from 5.7 on, and also
executes `/*M! … */`, which is an ordinary comment to MySQL (MariaDB documentation, "Comment
Syntax"). But a source logs as an ordinary comment what it has not executed.

The text of a library or routine in another language, which MySQL logs as `AS $$ … $$` on a line of
its own, has no tokens of SQL. In older servers, and in MariaDB, `$` is a letter like any other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from mtsd.binlog.bytes.character_sets import SWE7, WITHOUT_PAD
from mtsd.binlog.sql.long_text import LONGEST_READ, contains, let_others_run
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import (
    StatementText,
    Token,
    TokenKind,
    Tokens,
    VersionComments,
)

SQL_MODE_ANSI_QUOTES = 0x4
SQL_MODE_MSSQL = 0x400
"""MariaDB: names may be in brackets, too."""
SQL_MODE_NO_BACKSLASH_ESCAPES = 0x100000
MAX_KEPT: Final = 4096
"""Tokens of a text that are kept. While so many are read, some milliseconds, other threads may have
to wait."""
_FEW: Final = 8
"""Tokens: the first words of most statements tell what they are."""
_MANY: Final = 64
"""Tokens that are read at once where all are wanted."""


def may_be_name(token: Token) -> bool:
    """Return whether a token is a word or in the quotes of names; some are strings."""
    return token.kind is TokenKind.WORD or (
        token.kind is TokenKind.QUOTED and token.text[:1] in NAME_QUOTES
    )


_TOKEN = rb"""
    (?P<space> [\s\0]+ | --(?=[\0-\x20\x7f]|\Z)[^\n]* | \#[^\n]* )
  | (?P<enter> /\*M?! (?:[0-9]{5,6})? )
  | (?P<comment> /\* )
  | (?P<leave> \*/ )
  | (?P<body> (?<=\nAS[ ]) (?P<tag> \$[^\s\$]*\$ ) .*? (?P=tag) )
  | (?P<word> WORD )
  | (?P<quote> [QUOTES] )
  | (?P<symbol> . )
"""
NAME_QUOTES = (b"`", b'"', b"[")
"""What a quoted name begins with; one in brackets ends with the closing one."""
_WORD = rb"[A-Za-z0-9_$\x80-\xff]"
_LETTERS_OF_SWE7 = rb"\[\]\\^{}~"
"""`|`, `@` and the quote of names are letters there, too, but not to a server that reads SQL."""
_TRAIL = rb"[\x40-\x7e\x80-\xfe]"

# First bytes of the two-byte characters whose second byte may equal a quote or a backslash, by the
# collations of the character sets that have such characters: big5, gbk, gb18030, sjis, cp932.
_WIDE = {
    **dict.fromkeys((1, 84), rb"\xa1-\xf9"),
    **dict.fromkeys((28, 87, 248, 249, 250), rb"\x81-\xfe"),
    **dict.fromkeys((13, 88, 95, 96), rb"\x81-\x9f\xe0-\xfc"),
}


@dataclass(frozen=True, slots=True)
class _Patterns:
    """How the text of one session is read.

    `inside` (by the quote) and `word` match a part of a quoted text and of a word: each repetition
    in a pattern takes memory, so they are matched repeatedly, until they match nothing.
    """

    token: re.Pattern[bytes]
    inside: dict[bytes, re.Pattern[bytes]]
    word: re.Pattern[bytes] | None
    """None if `token` matches a whole word."""


@cache
def _patterns(escapes: bool, ansi_quotes: bool, brackets: bool, collation: int) -> _Patterns:
    wide = _WIDE.get(collation, b"")
    # A first byte that is not followed by a second one stands for itself.
    letters = _WORD if collation not in SWE7 else _WORD[:-1] + _LETTERS_OF_SWE7 + b"]"
    special = b"| [%b] %b | [%b] (?!%b)" % (wide, _TRAIL, wide, _TRAIL) if wide else b""
    some = b"(?: [%b] %b | %b ){%%d,1000}" % (wide, _TRAIL, letters)
    inside = {}
    quotes = b"'\"`\\[" if brackets else b"'\"`"
    for quote in (b"'", b'"', b"`", b"["):
        name = quote in b"`[" or (quote == b'"' and ansi_quotes)
        escape = b"\\\\" if escapes and not name else b""
        closing = re.escape(closing_quote(quote))
        # Other threads wait during a match, so it is not one over all of a long text.
        ordinary = b"[^%b%b%b]{0,%d}" % (closing, escape, wide, LONGEST_READ)
        inner = b"%b%b %b %b" % (closing, closing, b"| %b ." % escape if escape else b"", special)
        inside[quote] = _compiled(b"%b (?: (?: %b ) %b ){0,1000}" % (ordinary, inner, ordinary))
    return _Patterns(
        _compiled(
            _TOKEN.replace(b"WORD", some % 1 if wide else letters + b"+").replace(b"QUOTES", quotes)
        ),
        inside,
        _compiled(some % 0) if wide else None,
    )


def _patterns_of(context: SessionContext) -> _Patterns:
    mode = context.sql_mode or 0
    escapes = not mode & SQL_MODE_NO_BACKSLASH_ESCAPES
    return _patterns(
        escapes,
        bool(mode & SQL_MODE_ANSI_QUOTES),
        bool(mode & SQL_MODE_MSSQL),
        _padded(context.character_set_client) if has_other_letters(context) else 0,
    )


def closing_quote(quote: bytes) -> bytes:
    """Return what ends a quoted text that begins with `quote`."""
    return b"]" if quote == b"[" else quote


def _padded(collation: int | None) -> int:
    """Return a collation with MariaDB's variant of it that does not pad counted as the same."""
    number = collation or 0
    return number - WITHOUT_PAD if WITHOUT_PAD <= number < 2 * WITHOUT_PAD else number


def _compiled(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text, re.VERBOSE | re.DOTALL)


def _end_of_all(pattern: re.Pattern[bytes], statement: bytes, at: int) -> int:
    """Return where the repeated matches of the pattern, starting at `at`, end."""
    while (match := pattern.match(statement, at)) and match.end() > at:
        at = match.end()
    return at


_COMMENT_MARK = re.compile(rb"/\*|\*/")
_OF_MARIADB: Final = b"/*M"
_OTHER_PRODUCT: Final = 100000
"""Version comments from this number on are MariaDB's; MySQL treats them as comments."""
_NOT_OF_MARIADB: Final = range(50700, _OTHER_PRODUCT)
"""Those of MySQL from 5.7 on, which MariaDB leaves out, except in `/*M!`."""
_NO_VERSION: Final = 999999
"""Greater than that of any server: dumps of MariaDB conceal from it what is for their client."""


def _is_executed(opening: bytes, comments: VersionComments) -> bool:
    """Return whether the contents of a version comment are executed, by what it opens with."""
    of_mariadb = opening.startswith(_OF_MARIADB)
    number = int(opening[4 if of_mariadb else 3 :] or b"0")
    if comments is VersionComments.ANY:
        return True
    if comments is VersionComments.MYSQL:
        return not of_mariadb and number < _OTHER_PRODUCT
    return number != _NO_VERSION and (of_mariadb or number not in _NOT_OF_MARIADB)


def has_wide_characters(context: SessionContext) -> bool:
    """Return whether a byte that looks like a quote or a backslash may be half a character."""
    return _padded(context.character_set_client) in _WIDE


def has_other_letters(context: SessionContext) -> bool:
    """Return whether the session's characters are not those of ASCII, and bytes of names beside."""
    collation = _padded(context.character_set_client)
    return collation in _WIDE or collation in SWE7


def token_at(text: StatementText, index: int) -> Token | None:
    """Return one of the first `MAX_KEPT` tokens that the server executes; None behind the last.

    Of the session, sql_mode and character_set_client matter: they determine where strings end.
    """
    tokens = text.tokens
    if tokens is None:
        tokens = text.tokens = Tokens()
    read = tokens.read
    while index >= len(read):
        if tokens.complete or len(read) >= MAX_KEPT:
            return None
        _read_on(text, tokens, max(2 * len(read), _FEW))
    return read[index]


def beyond(text: StatementText) -> StatementText:
    """Return a text whose tokens are those behind the first `MAX_KEPT`, for its caller alone."""
    let_others_run()
    tokens = text.tokens
    at, inside = (0, 0) if tokens is None else (tokens.at, tokens.inside)
    return StatementText(text.raw, text.context, text.comments, Tokens(at, inside))


def tokens_of(text: StatementText) -> Iterator[Token]:
    """Yield the tokens of a text, as `token_at` returns them, but all of them."""
    while True:
        tokens = text.tokens
        if tokens is None:
            tokens = text.tokens = Tokens()
        read = tokens.read
        index = 0
        while True:
            while index < len(read):
                yield read[index]
                index += 1
            if tokens.complete:
                return
            if index >= MAX_KEPT:
                break
            _read_on(text, tokens, max(2 * len(read), _MANY))
        text = beyond(text)


def _read_on(text: StatementText, tokens: Tokens, most: int) -> None:
    """Read on until there are `most` tokens, at most `MAX_KEPT`, or no more."""
    most = min(most, MAX_KEPT)
    statement = text.raw
    patterns = _patterns_of(text.context)
    next_token = patterns.token.match
    mysql = text.comments is VersionComments.MYSQL
    read = tokens.read
    at = tokens.at
    count = 0
    while len(read) < most and (match := next_token(statement, at)):
        count += 1
        if not count % MAX_KEPT:
            # There may be more comments than tokens.
            let_others_run()
        start, at = match.span()
        group = match.lastgroup
        if group == "word":
            if patterns.word is not None:
                at = _end_of_all(patterns.word, statement, at)
            read.append(Token(TokenKind.WORD, statement[start:at].upper(), start, at))
        elif group == "symbol":
            read.append(Token(TokenKind.SYMBOL, match[0], start, at))
        elif group == "body":
            read.append(Token(TokenKind.QUOTED, match[0], start, at))
        elif group == "quote":
            quote = match[0]
            at = _end_of_all(patterns.inside[quote], statement, at) + 1
            if statement[at - 1 : at] != closing_quote(quote):
                at = len(statement)
                read.append(Token(TokenKind.UNCLOSED, quote, start, at))
            else:
                read.append(Token(TokenKind.QUOTED, statement[start:at], start, at))
        elif group == "comment" or (
            group == "enter" and mysql and match[0].startswith(_OF_MARIADB)
        ):
            end = statement.find(b"*/", at)
            if end < 0:
                read.append(Token(TokenKind.UNCLOSED, b"/", start, len(statement)))
                at = len(statement)
            else:
                at = end + 2
        elif group == "enter":
            if _is_executed(match[0], text.comments):
                tokens.inside += 1
            else:
                at = _comment_end(statement, at)
        elif group == "leave":
            if tokens.inside:
                tokens.inside -= 1
            else:
                at = start + 1
                read.append(Token(TokenKind.SYMBOL, b"*", start, at))
    tokens.at = at
    tokens.complete = at >= len(statement)


def as_executed(statement: bytes, context: SessionContext, *, mariadb: bool) -> bytes:
    """Return a logged statement of which every server executes what its source has executed.

    It has the same length; its version comments have no version. `mariadb`: the source is a
    MariaDB. `context` is as for `StatementText`.
    """
    if not contains(statement, b"/*"):
        return statement
    if not (contains(statement, b"/*!") or contains(statement, b"/*M!")):
        return statement
    patterns = _patterns_of(context)
    pieces: list[bytes] = []
    copied = at = 0
    count = 0
    while match := patterns.token.match(statement, at):
        count += 1
        if not count % MAX_KEPT:
            let_others_run()
        start, at = match.span()
        group = match.lastgroup
        opening = b""
        if group == "word" and patterns.word is not None:
            at = _end_of_all(patterns.word, statement, at)
        elif group == "quote":
            at = _end_of_all(patterns.inside[match[0]], statement, at) + 1
        elif group == "enter" and (mariadb or not match[0].startswith(_OF_MARIADB)):
            opening = b"/*!"
        elif group in {"enter", "comment"}:
            opening = _OF_MARIADB if group == "enter" else b""
            end = statement.find(b"*/", at)
            at = len(statement) if end < 0 else end + 2
        if opening:
            after = at if opening.endswith(b"!") else start + 4
            pieces += (statement[copied:start], opening.ljust(after - start))
            copied = after
    return b"".join((*pieces, statement[copied:]))


def _comment_end(statement: bytes, at: int) -> int:
    """Return the end of a comment whose contents begin at `at`; comments inside it are nested."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(statement, at):
        depth += 1 if mark[0] == b"/*" else -1
        if not depth:
            return mark.end()
    return len(statement)
