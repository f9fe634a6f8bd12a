"""Reads the names of tables out of the text of a statement."""

from collections.abc import Sequence

from mtsd.binlog.sql.tokenizer import may_be_name
from mtsd.binlog.sql.words import Words, decoded, unquoted
from mtsd.model.errors import MtsdError
from mtsd.model.statement_text import StatementText

Table = tuple[str, str]
"""A database, "" for the default one, and a table."""


class UnclearError(Exception):
    """The text of a statement is not one that is understood here."""


class NameReader:
    """Takes names from the words of a statement.

    Its methods raise UnclearError if no name comes next.
    """

    __slots__ = ("_text", "words")

    def __init__(self, text: StatementText) -> None:
        self.words = Words(text)
        self._text = text

    def names(self) -> list[Table]:
        """Take a list of tables."""
        tables = [self.name()]
        while self.words.at_symbol(b","):
            self.words.take()
            tables.append(self.name())
        return tables

    def name(self) -> Table:
        """Take a table; `.t` is one of the default database."""
        if self.words.at_symbol(b"."):
            self.words.take()
        parts = [self.identifier()]
        while self.words.at_symbol(b"."):
            self.words.take()
            parts.append(self.identifier())
        return as_table(parts)

    def identifier(self) -> str:
        """Take a name without a qualifier, without its quotes."""
        token = self.words.take()
        if token is None or not may_be_name(token):
            raise UnclearError
        raw = unquoted(self._text.raw[token.start : token.end], self._text.context)
        try:
            return decoded(raw, self._text.context)
        except (MtsdError, UnicodeDecodeError) as error:
            raise UnclearError from error

    def qualified(self, first: str = "") -> tuple[tuple[str, ...], bool]:
        """Take a name with its qualifiers; return its parts, and whether `.*` follows them.

        `first` is its first part if that has been taken already.
        """
        words = self.words
        if not first and words.at_symbol(b"."):
            words.take()
        parts = [first or self.identifier()]
        while words.at_symbol(b"."):
            words.take()
            if words.at_symbol(b"*"):
                words.take()
                return tuple(parts), True
            parts.append(self.identifier())
        return tuple(parts), False


def as_table(parts: Sequence[str]) -> Table:
    """Return the table that the parts of a qualified name mean."""
    match parts:
        case [table]:
            return "", table
        case [database, table]:
            return database, table
    raise UnclearError
