"""Where a statement holds a password, so that nobody is shown it.

Only definitions do: passwords and their hashes are in the statements about accounts, servers and
replicas, and in the options of tables that are on another server (FEDERATED, CONNECT, Spider). What
a DML statement holds is the user's own data.
"""

import re
from typing import Final

from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import (
    ANY_CONTEXT,
    StatementText,
    Token,
    TokenKind,
    VersionComments,
)
from mtsd.model.step import QueryEvent

LONGEST_EXCERPT: Final = 65_536
_WITH_SECRETS: Final = frozenset({
    b"ALTER", b"CHANGE", b"CLONE", b"CREATE", b"EXECUTE", b"GRANT", b"PREPARE", b"SET", b"START",
})  # fmt: skip
"""The first words of statements that may hold a password."""
_MARK: Final = re.compile(rb"IDENTIFIED|PASSW|PWD|SECRET|CONNECTION|://", re.IGNORECASE)
"""What a statement with a password contains, in every character set of a client."""
_IN_TEXT: Final = re.compile(
    rb"://[^/\s]*:[^/\s]*@|(?:passw(?:or)?d|pwd|secret)[\s'\"\\]*[\s=:'\"]|\bidentified\b",
    re.IGNORECASE,
)
"""A text with a password in it: a URL, the options of a table, or a statement to be prepared."""
_TEXT_QUOTES: Final = (b"'", b'"')
_FOLLOWED_BY_SECRET: Final = frozenset({b"FOR", b"TO"})


def first_secret(statement: bytes, context: SessionContext = ANY_CONTEXT) -> int | None:
    """Return behind which byte a statement may hold a password or a hash of one; None if it cannot.

    Only the first 64 KiB are read closely. Which comments are code depends on the server, and that
    of a text may be unknown: what is a secret in one reading is one.
    """
    marked = b"/*M!" in statement or b"/*!" in statement
    readings = (VersionComments.MYSQL, VersionComments.ANY) if marked else (VersionComments.MYSQL,)
    secrets = [_first_secret(statement, context, reading) for reading in readings]
    return min((each for each in secrets if each is not None), default=None)


def _first_secret(
    statement: bytes, context: SessionContext, comments: VersionComments
) -> int | None:
    before: Token | None = None
    excerpt = StatementText(statement[:LONGEST_EXCERPT], context, comments)
    for token in tokens_of(excerpt):
        if before is None:
            is_word = token.kind is TokenKind.WORD
            if is_word and (token.text not in _WITH_SECRETS or not _MARK.search(statement)):
                return None
        elif _introduces(before, token):
            return before.end
        if token.text == b"IDENTIFIED" and token.kind is TokenKind.WORD:
            return token.end
        if token.kind is TokenKind.UNCLOSED and _MARK.search(statement, token.start):
            return token.start
        if token.text[:1] in _TEXT_QUOTES and _IN_TEXT.search(token.text):
            return token.start
        before = token
    far = _MARK.search(statement, LONGEST_EXCERPT - len("connection"))
    return LONGEST_EXCERPT if far is not None else None


def _introduces(word: Token, following: Token) -> bool:
    """Tell whether a word says that what follows is a secret: not where it is a column's name."""
    if word.kind is not TokenKind.WORD:
        return False
    if word.text != b"CONNECTION" and not word.text.endswith((b"PASSWORD", b"SECRET")):
        return False
    if following.kind is TokenKind.WORD:
        return following.text in _FOLLOWED_BY_SECRET
    return following.text[:1] in _TEXT_QUOTES or following.text in (b"=", b"(")


def without_secrets(statement: bytes, context: SessionContext = ANY_CONTEXT) -> bytes:
    """Return a statement fit for display: cut before its first password or hash."""
    secret = first_secret(statement, context)
    return statement if secret is None else statement[:secret] + b" ..."


def shown(query: QueryEvent, longest: int) -> str:
    """Return the beginning of a statement for a message: so many bytes, without secrets."""
    return without_secrets(query.statement, query.context)[:longest].decode("utf-8", "replace")


def excerpt(query: QueryEvent) -> bytes:
    """Return what a record of a statement contains of it: at most 64 KiB, without secrets."""
    return without_secrets(query.statement, query.context)[:LONGEST_EXCERPT]
