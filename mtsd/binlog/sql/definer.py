"""Definitions of views, routines, triggers and events that belong to whoever runs them.

`DEFINER = account` comes before the word that says what is defined; of other clauses only OR
REPLACE and a view's ALGORITHM may come before it (manuals of MySQL and MariaDB, "CREATE VIEW",
"CREATE EVENT", "CREATE PACKAGE"). Servers write it out in their binary log.
"""

from mtsd.binlog.sql.words import Words
from mtsd.model.statement_text import StatementText

_OWN = b"DEFINER=CURRENT_USER"
"""Without a clause, an ALTER VIEW would leave the view its definer."""


def with_current_definer(text: StatementText) -> bytes:
    """Return a statement with CURRENT_USER in its DEFINER clause; one that has none as it is.

    SQL SECURITY stays.
    """
    statement = text.raw
    words = Words(text)
    if words.word() not in {b"ALTER", b"CREATE"}:
        return statement
    words.take_words(b"OR", b"REPLACE")
    if words.at_word(b"ALGORITHM"):
        words.take()
        words.take()
        words.take()
    if not words.at_word(b"DEFINER") or words.next is None:
        return statement
    start = words.next.start
    words.take_definer()
    end = words.last.end if words.last else start
    return statement[:start] + _OWN + statement[end:]
