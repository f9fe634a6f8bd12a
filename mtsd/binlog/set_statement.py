"""MariaDB's `SET STATEMENT variable = value, … FOR statement`, which its binary log contains.

A replica ignores the variables: what of them matters to the statement is in its event, and the rest
is about the session on the source (MariaDB documentation, "SET STATEMENT").
"""

from mtsd.binlog.tokenizer import TokenKind
from mtsd.binlog.words import Words
from mtsd.model.session import SessionContext


def without_set_statement(statement: bytes, context: SessionContext) -> bytes:
    """Return the statement itself; `context` is as for `tokenize`."""
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
