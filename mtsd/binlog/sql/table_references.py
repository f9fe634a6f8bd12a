"""Reads table references out of the text of a statement: a FROM clause, or what stands for one."""

from dataclasses import dataclass
from typing import Final

from mtsd.binlog.sql.table_names import NameReader, Table, UnclearError
from mtsd.binlog.sql.words import Words
from mtsd.model.statement_text import TokenKind

_NO_ALIAS: Final = frozenset({
    b"AS", b"CROSS", b"FORCE", b"IGNORE", b"INNER", b"JOIN", b"LEFT", b"LIMIT", b"NATURAL", b"ON",
    b"ORDER", b"PARTITION", b"RIGHT", b"SET", b"STRAIGHT_JOIN", b"TABLESAMPLE", b"USE", b"USING",
    b"WHERE",
})  # fmt: skip
_QUERIES: Final = frozenset({b"SELECT", b"TABLE", b"VALUES", b"WITH"})


@dataclass(frozen=True, slots=True)
class Reference:
    """A table in a FROM clause, or in the place of one."""

    table: Table
    alias: str


def references(names: NameReader, ends: frozenset[bytes]) -> tuple[list[Reference], bool]:
    """Read table references up to one of the words `ends`.

    Return the tables in their order, and whether they are all that a server counts up to there:
    a subquery brings tables of its own.
    """
    words = names.words
    tables: list[Reference] = []
    exact = True
    expected = True
    depth = 0
    while (token := words.next) is not None:
        if token.kind is TokenKind.UNCLOSED or token.text == b"{":
            raise UnclearError
        if token.kind is TokenKind.WORD and not depth and not expected and token.text in ends:
            break
        if expected:
            expected = False
            if token.text == b"(":
                opened = 0
                while words.at_symbol(b"("):
                    words.take()
                    opened += 1
                if words.next is not None and words.next.text in _QUERIES:
                    for _ in range(opened):
                        _skip_to_end(words)
                    exact = False
                else:
                    depth += opened
                    expected = True
            elif token.text == b"LATERAL":
                words.take()
                expected = True
            else:
                table = names.name()
                if words.at_symbol(b"("):
                    # A table function.
                    words.take()
                    _skip_to_end(words)
                    exact = False
                else:
                    tables.append(Reference(table, _alias(names) or table[1]))
            continue
        words.take()
        if token.text == b"(" and token.kind is TokenKind.SYMBOL:
            exact = _skip_to_end(words) and exact
        elif token.text == b")" and token.kind is TokenKind.SYMBOL:
            depth -= 1
        elif token.text == b",":
            expected = True
        elif token.text == b"FOR":
            # USE INDEX FOR JOIN
            words.take()
        elif token.text in {b"JOIN", b"STRAIGHT_JOIN"}:
            expected = True
    if expected or depth or (not tables and exact):
        raise UnclearError
    return tables, exact


def _alias(names: NameReader) -> str:
    words = names.words
    if words.at_word(b"PARTITION"):
        words.take()
        words.take()
        _skip_to_end(words)
    if words.at_word(b"AS"):
        words.take()
        return names.identifier()
    token = words.next
    if token is None or (token.kind is TokenKind.WORD and token.text in _NO_ALIAS):
        return ""
    if token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
        return names.identifier()
    return ""


def skip_with(names: NameReader) -> None:
    """Skip the common table expressions before a statement."""
    words = names.words
    words.take_words(b"WITH", b"RECURSIVE")
    while True:
        names.identifier()
        if words.at_symbol(b"("):
            words.take()
            _skip_to_end(words)
        if words.word() != b"AS" or not words.at_symbol(b"("):
            raise UnclearError
        words.take()
        _skip_to_end(words)
        if not words.at_symbol(b","):
            return
        words.take()


def _skip_to_end(words: Words) -> bool:
    """Skip the rest of parentheses; return whether there is no query in them."""
    plain = True
    depth = 1
    while token := words.take():
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == b"(") - (token.text == b")")
            if not depth:
                return plain
        elif token.kind is TokenKind.WORD and token.text in _QUERIES:
            plain = False
    raise UnclearError
