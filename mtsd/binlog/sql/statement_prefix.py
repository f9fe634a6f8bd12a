"""What a MariaDB logs before a statement that has nothing to do with what the statement does.

`SET STATEMENT variable = value, … FOR statement`: a replica ignores the variables, because what of
them matters to the statement is in its event, and the rest is about the session on the source.
`ANALYZE FORMAT = JSON statement` runs a statement that changes rows, and returns how it did
(MariaDB documentation, "SET STATEMENT", "ANALYZE Statement").
"""

from mtsd.binlog.sql.tokenizer import TokenKind
from mtsd.binlog.sql.words import Words
from mtsd.model.session import SessionContext

_CHANGES = frozenset({b"DELETE", b"INSERT", b"REPLACE", b"UPDATE", b"WITH"})


def without_prefix(statement: bytes, context: SessionContext) -> bytes:
    """Return the statement itself; `context` is as for `tokenize`."""
    return _without_analyze(_without_set_statement(statement, context), context)


def _without_analyze(statement: bytes, context: SessionContext) -> bytes:
    words = Words(statement, context)
    if words.word() != b"ANALYZE":
        return statement
    if words.at_word(b"FORMAT"):
        words.take()
        words.take()
        words.take()
    if words.next is None or words.next.text not in _CHANGES:
        return statement
    return statement[words.next.start :]


def _without_set_statement(statement: bytes, context: SessionContext) -> bytes:
    words = Words(statement, context)
    if words.word() != b"SET" or words.word() != b"STATEMENT":
        return statement
    depth = 0
    while token := words.take():
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == b"(") - (token.text == b")")
        elif token.kind is TokenKind.WORD and token.text == b"FOR" and not depth:
            return statement[token.end :].lstrip()
    return statement
