"""What happens to a statement that changes a database with the position schema's name.

The position schema never replicates: on the target it is mtsd's own.
"""

import enum
from collections.abc import Callable

from mtsd.binlog.sql.changed_tables import Extent, changed
from mtsd.binlog.sql.long_text import contains_letters
from mtsd.binlog.sql.qualifiers import MOST, qualifiers
from mtsd.binlog.sql.words import Words
from mtsd.model.names import folded
from mtsd.model.step import QueryEvent

_ACCOUNTS = "mysql"
"""The database that a statement on accounts changes; it only refers to the others it names."""
_HARMLESS = frozenset({
    b"ANALYZE", b"CHECK", b"FLUSH", b"GRANT", b"OPTIMIZE", b"REPAIR", b"REVOKE", b"SET",
})  # fmt: skip
"""First words of statements that leave the contents of a database unchanged."""


class Treatment(enum.Enum):
    """What happens to a statement."""

    APPLIED = "applied"
    LEFT_OUT = "left out"
    """Everything that it changes is in the position schema."""
    REFUSED = "refused"
    """It changes something else too, or it is impossible to tell that it does not."""


def treatment(query: QueryEvent, schema: str, fold: Callable[[str], str] = str) -> Treatment:
    """Return what happens to a statement if the position schema is `schema`; "" means none.

    `fold` returns a name as the target compares it.
    """
    if not schema:
        return Treatment.APPLIED
    schema = fold(schema)
    own = folded(schema)
    names = query.updated_databases and tuple(map(fold, query.updated_databases))
    listed = names if names and names != ("",) else ()
    if schema in listed and _ACCOUNTS not in listed:
        return Treatment.LEFT_OUT if set(listed) == {schema} else Treatment.REFUSED
    # A list without it is not believed: a source could list anything.
    # Its name, of ASCII, is these bytes in every character set of a client.
    if folded(query.database) != own and not contains_letters(query.statement, own.encode()):
        return Treatment.APPLIED
    return _of_what_it_mentions(query, schema, fold, elsewhere=bool(listed))


def _of_what_it_mentions(
    query: QueryEvent, schema: str, fold: Callable[[str], str], *, elsewhere: bool
) -> Treatment:
    """Return what happens to a statement by its text; `elsewhere`: it lists other databases."""
    # The source does not say for every statement what it changes: not for TRUNCATE, for example.
    mentioned = qualifiers(query.text)
    if query.database:
        mentioned.add(query.database)
    if folded(schema) not in set(map(folded, mentioned)) and len(mentioned) < MOST:
        return Treatment.APPLIED
    if elsewhere:
        changes = changed(query.text, query.table_map_for_update)
        if changes.extent is Extent.TABLES:
            mentioned = {database or query.database for database, _ in changes.tables}
    words = Words(query.text)
    first = words.word()
    if first in {b"ALTER", b"CREATE", b"DROP"} and (
        words.at_word(b"USER") or words.at_word(b"ROLE")
    ):
        return Treatment.APPLIED
    if first == b"TRUNCATE" or (first == b"CREATE" and words.at_word(b"TABLE")):
        # These change a single table, the first that they name.
        words.take_words(b"TABLE", b"IF", b"NOT", b"EXISTS")
        mentioned = {words.take_name()[0] or query.database}
    if set(map(fold, mentioned)) == {schema} and not elsewhere:
        return Treatment.LEFT_OUT
    # Names that differ only in case are two databases on some servers, and one on others.
    another = folded(schema) not in set(map(folded, mentioned))
    if first in _HARMLESS or (another and len(mentioned) < MOST):
        return Treatment.APPLIED
    return Treatment.REFUSED
