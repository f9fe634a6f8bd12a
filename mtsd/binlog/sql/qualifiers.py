"""What a definition may depend on: every name in it that is followed by a dot.

A source names the databases that a statement updates, not those that it only refers to: the parent
table of a foreign key, the tables under a view, the template of CREATE TABLE … LIKE. A definition
that runs before those exist fails.
"""

from mtsd.binlog.sql.long_text import contains
from mtsd.binlog.sql.plain_names import plain_names
from mtsd.binlog.sql.tokenizer import may_be_name, tokens_of
from mtsd.binlog.sql.words import Words, identifier
from mtsd.model.statement_text import StatementText, TokenKind

MOST = 1024
_DEFINE = frozenset({b"CREATE", b"ALTER"})
_BEFORE_THE_KIND = frozenset({
    b"ALGORITHM", b"DEFINER", b"DUALITY", b"INVOKER", b"JSON", b"MERGE", b"OR", b"RELATIONAL",
    b"REPLACE", b"SECURITY", b"SQL", b"TEMPORARY", b"TEMPTABLE", b"UNDEFINED",
})  # fmt: skip
_QUERIES = frozenset({b"SELECT", b"TABLE", b"VALUES"})
_LONGEST = 64 * 4 * 2 + 2
"""Bytes: 64 characters of 4 bytes, each a doubled quote, in quotes."""


def qualifiers(text: StatementText) -> set[str]:
    """Return the names before a dot, databases among them; tables and aliases do no harm.

    At most `MOST`: if there are more, some are missing.
    """
    if not contains(text.raw, b"."):
        return set()
    found = plain_names(text, before_dot=True)
    if found is not None and len(found) <= MOST:
        return {identifier(each, text.context) for each in found if len(each) <= _LONGEST}
    databases: set[str] = set()
    name = b""
    for token in tokens_of(text):
        if token.kind is TokenKind.SYMBOL and token.text == b"." and name:
            databases.add(identifier(name, text.context))
            if len(databases) == MOST:
                break
        named = may_be_name(token) and token.end - token.start <= _LONGEST
        name = text.raw[token.start : token.end] if named else b""
        if name.isdigit():
            # 12 of 12.5
            name = b""
    return databases


def defines_by_query(text: StatementText) -> bool:
    """Return whether it is a CREATE TABLE … SELECT, or defines a view.

    Such a query may read other databases than those that are named in it and listed by the source:
    those under its views, and those that a function reads.
    """
    words = Words(text)
    first = words.word()
    if first not in _DEFINE:
        return False
    while True:
        words.take_definer()
        if words.at_symbol(b"="):
            # ALGORITHM = MERGE
            words.take()
        match words.word():
            case b"VIEW":
                return True
            case b"TABLE" if first == b"CREATE":
                break
            case word if word not in _BEFORE_THE_KIND:
                return False
    while words.passes(_QUERIES):
        # VALUES also begins the limits of a partition.
        if words.last is None or words.last.text != b"VALUES" or words.at_word(b"ROW"):
            return True
    return False


def names(text: StatementText) -> set[str]:
    """Return, in upper case, every word and quoted name: whatever may name a table or a view."""
    found = plain_names(text, before_dot=False)
    if found is None:
        found = {
            text.raw[token.start : token.end] for token in tokens_of(text) if may_be_name(token)
        }
    return {identifier(each, text.context).upper() for each in found}
