"""What a MariaDB logs before a statement that has nothing to do with what the statement does.

`SET STATEMENT variable = value, … FOR statement`: a replica ignores the variables, because what of
them matters to the statement is in its event, and the rest is about the session on the source.
`ANALYZE FORMAT = JSON statement` runs a statement that changes rows, and returns how it did
(MariaDB documentation, "SET STATEMENT", "ANALYZE Statement").
"""

from mtsd.binlog.sql.words import Words
from mtsd.model.statement_text import StatementText

_CHANGES = frozenset({b"DELETE", b"INSERT", b"REPLACE", b"UPDATE", b"WITH"})


def without_prefix(text: StatementText) -> StatementText:
    """Return the statement itself."""
    return _without_analyze(_without_set_statement(text))


def _without_analyze(text: StatementText) -> StatementText:
    words = Words(text)
    if words.word() != b"ANALYZE":
        return text
    if words.at_word(b"FORMAT"):
        words.take()
        words.take()
        words.take()
    if words.next is None or words.next.text not in _CHANGES:
        return text
    return text.with_raw(text.raw[words.next.start :])


def _without_set_statement(text: StatementText) -> StatementText:
    words = Words(text)
    if words.word() != b"SET" or words.word() != b"STATEMENT":
        return text
    for token in words.outer_words():
        if token.text == b"FOR":
            return text.with_raw(text.raw[token.end :].lstrip())
    return text
