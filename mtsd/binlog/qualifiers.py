"""What a definition may lean on: every name in it that stands before a dot.

A source names the databases that a statement updates, not those that it only refers to: the parent
table of a foreign key, the tables under a view, the model of CREATE TABLE … LIKE. A definition that
runs before those exist fails.
"""

from mtsd.binlog.tokenizer import TokenKind, tokenize
from mtsd.model.session import SessionContext

MOST = 1024
_LONGEST = 64 * 4 * 2 + 2
"""Bytes: 64 characters of 4, every one a quote that is doubled, in quotes."""


def qualifiers(statement: bytes, context: SessionContext) -> set[str]:
    """Return the names before a dot, databases among them; tables and aliases do no harm.

    `MOST` at most: where there are so many, some may be missing.
    """
    found: set[str] = set()
    name = b""
    for token in tokenize(statement, context):
        if token.kind is TokenKind.SYMBOL and token.text == b"." and name:
            found.add(_unquoted(name).decode("utf-8", "surrogateescape"))
            if len(found) == MOST:
                break
        named = token.kind is TokenKind.WORD or (
            token.kind is TokenKind.QUOTED and token.text[:1] in b'`"'
        )
        named = named and token.end - token.start <= _LONGEST
        name = statement[token.start : token.end] if named else b""
    return found


def _unquoted(name: bytes) -> bytes:
    quote = name[:1]
    if quote not in (b"`", b'"'):
        return name
    return name[1:-1].replace(quote * 2, quote)
