"""What SHOW CREATE TABLE says of a table.

The text is the server's own, in one form: names are quoted (sql_quote_show_create), each column and
key is a clause in the parentheses after the table's name, and the options follow, the engine among
them. What need not be known is skipped clause by clause.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from mtsd.apply.tables.facts import ColumnFacts, Name, TableFacts
from mtsd.binlog.bytes.character_sets import FORMER_NAMES
from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.binlog.sql.words import identifier
from mtsd.model.statement_text import (
    ANY_CONTEXT,
    StatementText,
    Token,
    TokenKind,
    VersionComments,
)

_MANY: Final = 8192
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
"""Types with a character set whose bytes are text; those of an ENUM or SET are numbers."""
_COUNTER: Final = re.compile(rb"^(\) ENGINE=\w+) AUTO_INCREMENT=\d+", re.MULTILINE)


class ShownTables:
    """Tables as they were shown last: a text is read only if it is another one than then.

    To read a text takes longer than to be shown it, and most tables that are looked at again are
    what they were. `most`: how many are remembered, approximately.
    """

    __slots__ = ("_most", "_seen")

    def __init__(self, most: int = _MANY) -> None:
        self._most = most
        self._seen: dict[Name, tuple[bytes, TableFacts | None]] = {}
        """With the digest of the text: texts may take megabytes."""

    def of(self, name: Name, text: str) -> TableFacts | None:
        """Return what `shown_table` does, with its `definition`."""
        # The next number of the table is no part of what it is.
        lasting = _COUNTER.sub(rb"\1", text.encode("utf-8", "surrogateescape"))
        digest = blake2b(lasting, digest_size=16).digest()
        seen = self._seen.get(name)
        if seen is not None and seen[0] == digest:
            return seen[1]
        shown = shown_table(name, text)
        if shown is not None:
            shown = replace(shown, definition=digest)
        if len(self._seen) >= self._most:
            self._seen.clear()
        self._seen[name] = digest, shown
        return shown


def shown_table(name: Name, text: str) -> TableFacts | None:
    """Return the table that a server shows so; None if it is a view, or of a session alone."""
    statement = _Text(text)
    tokens = list(tokens_of(StatementText(statement.raw, comments=VersionComments.ANY)))
    opening = next((at for at, token in enumerate(tokens) if _is_symbol(token, b"(")), len(tokens))
    if not (_words(tokens[:2]) == [b"CREATE", b"TABLE"] and opening < len(tokens)):
        return None
    closing = _closing(tokens, opening)
    options = tokens[closing + 1 :]
    characters = _character_set(options, b"CHARSET")
    columns: list[ColumnFacts] = []
    checks: list[str] = []
    key_parts: list[str] = []
    has_primary_key = has_foreign_key = False
    keyed: set[str] = set()
    for clause in _split(tokens[opening + 1 : closing]):
        checks += _behind(statement, clause, b"CHECK")
        if _is_name(clause[0]):
            columns.append(_column(statement, clause, characters))
            continue
        kinds = _words(clause[:3])
        has_primary_key = has_primary_key or b"PRIMARY" in kinds
        is_foreign = b"FOREIGN" in kinds
        has_foreign_key = has_foreign_key or is_foreign
        if is_foreign or b"KEY" in kinds:
            keyed.update(_named_first(statement, clause))
        if kinds[:1] != [b"CONSTRAINT"] and b"KEY" in kinds:
            key_parts += _functional_parts(statement, clause)
    return TableFacts(
        name,
        _engine(options),
        tuple(columns),
        has_primary_key,
        tuple(checks),
        tuple(key_parts),
        tuple(_partitioning(statement, options)),
        versioned=_follow(options, b"WITH", b"SYSTEM", b"VERSIONING"),
        keyed=frozenset(keyed),
        has_foreign_key=has_foreign_key,
    )


class _Text:
    """The statement, of which tokens are parts."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode("utf-8", "surrogateescape")

    def of(self, tokens: Sequence[Token]) -> str:
        if not tokens:
            return ""
        return self.raw[tokens[0].start : tokens[-1].end].decode("utf-8", "surrogateescape")

    def name(self, token: Token) -> str:
        return identifier(self.raw[token.start : token.end], ANY_CONTEXT)


def _column(statement: _Text, clause: Sequence[Token], characters: str) -> ColumnFacts:
    """Return a column of a table whose texts are in this character set, if they do not differ."""
    kind = clause[1].text.decode("utf-8", "surrogateescape").lower()
    outer = [token for token, depth in _depths(clause) if not depth]
    words = _words(outer[2:])
    generated = ""
    if b"AS" in words:
        (generated,) = _behind(statement, clause, b"AS") or ("",)
    return ColumnFacts(
        statement.name(clause[0]),
        kind,
        generated,
        stored=bool(generated) and not {b"STORED", b"PERSISTENT"}.isdisjoint(words),
        invisible=b"INVISIBLE" in words,
        computes_default=_computes_default(kind, clause),
        unsigned=b"UNSIGNED" in words,
        character_set=(_character_set(outer, b"SET") or characters) if kind in _TEXTS else "",
    )


def _computes_default(kind: str, clause: Sequence[Token]) -> bool:
    """Tell whether a default is an expression, but for the moment of a TIMESTAMP."""
    for at, (token, depth) in enumerate(_depths(clause)):
        if depth or not _is_word(token, b"DEFAULT"):
            continue
        first, *more = clause[at + 1 : at + 3]
        if _is_word(first, b"CURRENT_TIMESTAMP"):
            return kind != "timestamp"
        if _is_symbol(first, b"("):
            return True
        return first.kind is TokenKind.WORD and bool(more) and _is_symbol(more[0], b"(")
    return False


def _functional_parts(statement: _Text, clause: Sequence[Token]) -> Iterator[str]:
    opening = next((at for at, token in enumerate(clause) if _is_symbol(token, b"(")), None)
    if opening is None:
        return
    for part in _split(clause[opening + 1 : _closing(clause, opening)]):
        if _is_symbol(part[0], b"("):
            yield statement.of(part[: _closing(part, 0) + 1])


def _named_first(statement: _Text, clause: Sequence[Token]) -> Iterator[str]:
    """Yield the names in the first parentheses: what a key is of."""
    opening = next((at for at, token in enumerate(clause) if _is_symbol(token, b"(")), None)
    if opening is not None:
        inside = clause[opening : _closing(clause, opening)]
        yield from (statement.name(token) for token in inside if _is_name(token))


def _engine(options: Sequence[Token]) -> str:
    for at, token in enumerate(options[:-2]):
        if _is_word(token, b"ENGINE"):
            value = options[at + 2] if _is_symbol(options[at + 1], b"=") else options[at + 1]
            return value.text.decode("utf-8", "surrogateescape").strip("`'\"").lower()
    return ""


def _character_set(tokens: Sequence[Token], word: bytes) -> str:
    """Return what follows CHARACTER SET, or CHARSET; "" if that is not there."""
    for at, token in enumerate(tokens[:-1]):
        if _is_word(token, word):
            value = tokens[at + 2] if _is_symbol(tokens[at + 1], b"=") else tokens[at + 1]
            name = value.text.decode("utf-8", "surrogateescape").lower()
            return FORMER_NAMES.get(name, name)
    return ""


def _partitioning(statement: _Text, options: Sequence[Token]) -> Iterator[str]:
    """Yield what is partitioned by, and in parts."""
    for at, token in enumerate(options):
        if not (token.kind is TokenKind.WORD and token.text in {b"PARTITION", b"SUBPARTITION"}):
            continue
        if _words(options[at + 1 : at + 2]) != [b"BY"]:
            continue
        for opening in range(at + 2, len(options)):
            if _is_symbol(options[opening], b"("):
                yield statement.of(options[opening : _closing(options, opening) + 1])
                break


def _behind(statement: _Text, clause: Sequence[Token], word: bytes) -> list[str]:
    """Return the expressions in the parentheses that follow a word."""
    return [
        statement.of(clause[at + 1 : _closing(clause, at + 1) + 1])
        for at, (token, depth) in enumerate(_depths(clause))
        if not depth
        and _is_word(token, word)
        and at + 1 < len(clause)
        and _is_symbol(clause[at + 1], b"(")
    ]


def _depths(tokens: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    """Yield each token with the number of parentheses that it is in."""
    depth = 0
    for token in tokens:
        depth -= _is_symbol(token, b")")
        yield token, depth
        depth += _is_symbol(token, b"(")


def _split(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield what is between commas."""
    start = 0
    for at, (token, depth) in enumerate(_depths(tokens)):
        if not depth and _is_symbol(token, b","):
            yield tokens[start:at]
            start = at + 1
    yield tokens[start:]


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Return where the parenthesis is closed that is open there; raises ValueError if nowhere."""
    for at, (token, depth) in enumerate(_depths(tokens[opening:])):
        if not depth and _is_symbol(token, b")"):
            return opening + at
    raise ValueError("a parenthesis that is not closed")


def _follow(tokens: Sequence[Token], *words: bytes) -> bool:
    for at, token in enumerate(tokens):
        if _is_word(token, words[0]) and tuple(_words(tokens[at : at + len(words)])) == words:
            return True
    return False


def _words(tokens: Sequence[Token]) -> list[bytes]:
    return [token.text for token in tokens if token.kind is TokenKind.WORD]


def _is_word(token: Token, word: bytes) -> bool:
    return token.kind is TokenKind.WORD and token.text == word


def _is_symbol(token: Token, symbol: bytes) -> bool:
    return token.kind is TokenKind.SYMBOL and token.text == symbol


def _is_name(token: Token) -> bool:
    return token.kind is TokenKind.QUOTED and token.text[:1] == b"`"
