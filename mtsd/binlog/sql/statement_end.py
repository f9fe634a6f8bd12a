"""Where a logged statement ends.

A server executes `INSERT …; /* app=x */` as one statement from a client that sends one at a time,
and logs all of it. In a packet with others, the comment would be a second statement, with an answer
of its own.
"""

from typing import Final

from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.model.statement_text import StatementText, Token, TokenKind

_END: Final = b";"
_BLANKS: Final = b"\0\t\n\v\f\r "
_COMMENT_ENDS: Final = b"*/"
_TO_THE_LINES_END: Final = (b"--", b"#")


def ended(text: StatementText) -> StatementText:
    """Return a statement with blanks for a `;` at its end and for the comments behind that.

    It has the same length. A statement longer than `LONGEST_READ`
    remains as it is: it is sent by itself, as its client on the source has sent it.
    """
    statement = text.raw
    if len(statement) > LONGEST_READ or _END not in statement or not _may_end_in_comment(statement):
        return text
    last: Token | None = None
    for last in tokens_of(text):  # noqa: B007 - only the last one counts
        pass
    if last is None or last.kind is not TokenKind.SYMBOL or last.text != _END:
        return text
    return text.with_raw(statement[: last.start].ljust(len(statement)))


def _may_end_in_comment(statement: bytes) -> bool:
    """Return whether it ends with a `;` or a comment, as far as its last line tells."""
    text = statement.rstrip(_BLANKS)
    if text.endswith((_END, _COMMENT_ENDS)):
        return True
    last_line = text[text.rfind(b"\n") + 1 :]
    return any(mark in last_line for mark in _TO_THE_LINES_END)
