"""The words of a statement in the form in which two names are equal that a server may take so."""

from unicodedata import combining, normalize

from mtsd.binlog.sql.qualifiers import names
from mtsd.model.statement_text import StatementText


def loose_words(text: StatementText) -> frozenset[str]:
    """Return what may name a table, a view or a routine in a statement, `loosely`."""
    words = names(text)
    return frozenset(words if all(map(str.isascii, words)) else map(loosely, words))


def loosely(name: str) -> str:
    """Return a name in upper case without accents: names of routines are equal regardless."""
    name = name.upper()
    if name.isascii():
        return name
    return "".join(each for each in normalize("NFKD", name) if not combining(each))
