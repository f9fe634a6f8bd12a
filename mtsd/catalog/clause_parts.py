"""What the clauses of CREATE TABLE and ALTER TABLE consist of: names, types, character sets."""

from typing import Final

from mtsd.binlog.sql.words import Words
from mtsd.catalog.definition import lower
from mtsd.model.statement_text import TokenKind

_SYNONYMS: Final = {
    "bool": "tinyint", "boolean": "tinyint", "int1": "tinyint", "int2": "smallint",
    "int3": "mediumint", "middleint": "mediumint", "int4": "int", "integer": "int",
    "int8": "bigint", "dec": "decimal", "fixed": "decimal", "numeric": "decimal",
    "character": "char", "real": "double",
}  # fmt: skip
_WIDE_TEXTS: Final = frozenset({"nchar", "nvarchar", "national"})


class UnknownClauseError(Exception):
    """The statement contains something that is not understood."""


def bare_name(tokens: Words) -> str:
    """Take an unqualified name."""
    return tokens.take_name()[1]


def column_type(tokens: Words) -> tuple[str, str]:
    """Return a type in lower case with its parentheses, and its character set."""
    name = tokens.word().decode().lower()
    character_set = ""
    if name == "long":
        name = "mediumblob" if tokens.at_word(b"VARBINARY") else "mediumtext"
        tokens.take_words(b"VARBINARY", b"VARCHAR", b"VARCHARACTER", b"CHAR", b"VARYING")
    if name in _WIDE_TEXTS:
        character_set = "utf8mb3"
        if name == "national":
            name = tokens.word().decode().lower()
        name = name.removeprefix("n")
    name = _SYNONYMS.get(name, name)
    if tokens.at_word(b"VARYING") or name == "varcharacter":
        name = "varchar"
    tokens.take_words(b"PRECISION", b"VARYING")
    inside = ""
    if tokens.at_symbol(b"("):
        inside = tokens.text_of(*skip_parentheses(tokens))
    return lower(name + inside), character_set


def named_character_set(tokens: Words, first: bytes = b"") -> str:
    """Return the last character set named here; `first` has already been taken."""
    character_set = ""
    word = first or tokens.word()
    while word in {b"DEFAULT", b"CHARACTER", b"SET", b"CHARSET", b"COLLATE"}:
        if word in {b"SET", b"CHARSET", b"COLLATE"}:
            if tokens.at_symbol(b"="):
                tokens.take()
            name = bare_name(tokens).strip("'\"").lower()
            name = name.partition("_")[0] if word == b"COLLATE" else name
            character_set = {"utf8": "utf8mb3"}.get(name, name)
        ahead = tokens.next.text if tokens.next else b""
        if ahead not in {b"DEFAULT", b"CHARACTER", b"SET", b"CHARSET", b"COLLATE"} or (
            # The default value of a column rather than a table's default.
            word in {b"SET", b"CHARSET", b"COLLATE"} and ahead == b"DEFAULT" and not first
        ):
            break
        word = tokens.word()
    return character_set


def skip_parentheses(tokens: Words) -> tuple[int, int]:
    """Skip parentheses and their contents; return where they begin and end."""
    start = tokens.next.start if tokens.next else 0
    depth = 0
    while token := tokens.take():
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == b"(") - (token.text == b")")
            if not depth:
                return start, token.end
    raise UnknownClauseError("a parenthesis that is not closed")


def skip_clause(tokens: Words) -> None:
    """Skip the rest of a clause."""
    while tokens.next is not None and not tokens.at_symbol(b",);"):
        if tokens.at_symbol(b"("):
            skip_parentheses(tokens)
        else:
            tokens.take()
