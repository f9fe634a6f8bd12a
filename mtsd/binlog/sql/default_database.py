"""What a statement learns of its default database when its session on the source had none.

DATABASE() and SCHEMA(), which are one function, are NULL then. A client's session on the target
that has once had a default database cannot be without one again, except by dropping it.
"""

from typing import Final

from mtsd.binlog.sql.long_text import contains_letters
from mtsd.binlog.sql.words import Words
from mtsd.model.statement_text import StatementText

_NAMES: Final = (b"DATABASE", b"SCHEMA")
_NULL: Final = b"NULL"


def without_default_database(text: StatementText) -> bytes:
    """Return a statement with NULL in place of each call of DATABASE() and SCHEMA().

    After a dot, it is a stored function of that name.
    """
    statement = text.raw
    if not any(contains_letters(statement, name.lower()) for name in _NAMES):
        return statement
    words = Words(text)
    pieces: list[bytes] = []
    copied = 0
    while words.next is not None:
        start = words.next.start
        qualified = words.last is not None and words.last.text == b"."
        called = not qualified and any(map(words.at_word, _NAMES))
        words.take()
        if not called or not words.at_symbol(b"("):
            continue
        words.take()
        if words.at_symbol(b")") and (end := words.take()) is not None:
            pieces += (statement[copied:start], _NULL)
            copied = end.end
    return b"".join((*pieces, statement[copied:]))


def creates_from_default_database(text: StatementText) -> bool:
    """Return whether it is a CREATE TABLE … SELECT that calls DATABASE() or SCHEMA().

    The call gives a column its type, which that of NULL is not.
    """
    words = Words(text)
    words.take_words(b"CREATE", b"OR", b"REPLACE", b"TEMPORARY")
    if words.last is None or not words.at_word(b"TABLE") or not words.passes({b"SELECT"}):
        return False
    return without_default_database(text) != text.raw
