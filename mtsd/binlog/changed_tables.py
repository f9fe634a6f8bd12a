"""Which tables a statement changes, as far as its text tells: what rules for tables ask.

A server marks the tables that a statement names as updated or only read while it parses it. This
follows the grammar of the statements that a source logs (MySQL manual, "SQL Statements"); whatever
is not understood has the extent UNKNOWN.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.character_sets import character_set, text_decoder
from mtsd.binlog.tokenizer import Token, TokenKind
from mtsd.binlog.words import Words, unquoted
from mtsd.model.errors import MtsdError
from mtsd.model.session import SessionContext

Table = tuple[str, str]
"""A database, "" for the default one, and a table."""


class Extent(enum.Enum):
    """How much of what a statement changes is known."""

    TABLES = "tables"
    """All of the tables, in the order in which a server considers them."""
    SOME = "some of the tables"
    """Some of the tables, and the text does not tell which."""
    IN_DATABASE = "a table in the database"
    """Only the target knows which one: that of a trigger."""
    DATABASE = "the database itself"
    ACCOUNTS = "accounts"
    """The tables of accounts, and those that the statement names."""
    READS = "nothing"
    """It reads tables, and changes none that it names."""
    NONE = "no table"
    """It names no table."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement changes. `database` is "" for the default one."""

    extent: Extent
    tables: tuple[Table, ...] = ()
    database: str = ""


class _UnclearError(Exception):
    """The text is not what this understands."""


_UNKNOWN: Final = Changed(Extent.UNKNOWN)
_NONE: Final = Changed(Extent.NONE)
_BEFORE_INSERTED: Final = (b"LOW_PRIORITY", b"DELAYED", b"HIGH_PRIORITY", b"IGNORE", b"INTO")
_OF_ACCOUNTS: Final = frozenset({b"USER", b"ROLE"})
_WITHOUT_TABLES: Final = frozenset({
    b"EVENT", b"FUNCTION", b"INSTANCE", b"LIBRARY", b"LOGFILE", b"PROCEDURE", b"REFERENCE",
    b"RESOURCE", b"SERVER", b"TABLESPACE", b"UNDO",
})  # fmt: skip
_BEFORE_THE_KIND: Final = frozenset({
    b"AGGREGATE", b"ALGORITHM", b"DEFINER", b"DUALITY", b"FULLTEXT", b"JSON", b"MERGE",
    b"OR", b"RELATIONAL", b"REPLACE", b"SPATIAL", b"SQL", b"TEMPORARY", b"TEMPTABLE",
    b"UNDEFINED", b"UNIQUE",
})  # fmt: skip
_NO_ALIAS: Final = frozenset({
    b"AS", b"CROSS", b"FORCE", b"IGNORE", b"INNER", b"JOIN", b"LEFT", b"LIMIT", b"NATURAL", b"ON",
    b"ORDER", b"PARTITION", b"RIGHT", b"SET", b"STRAIGHT_JOIN", b"TABLESAMPLE", b"USE", b"USING",
    b"WHERE",
})  # fmt: skip
_QUERIES: Final = frozenset({b"SELECT", b"TABLE", b"VALUES", b"WITH"})


def changed(
    statement: bytes, context: SessionContext, updated_positions: int | None = None
) -> Changed:
    """Return what a statement changes. `context` is as for `tokenize`.

    `updated_positions` has a bit for each table of a multi-table UPDATE that it updates, by their
    order in its text, if the source says so.
    """
    words = Words(statement, context)
    try:
        return _Reading(words, statement, context).changed(updated_positions)
    except _UnclearError:
        return _UNKNOWN


@dataclass(frozen=True, slots=True)
class _Reference:
    """A table in a FROM clause, or in the place of one."""

    table: Table
    alias: str


class _Reading:
    """A statement while it is read."""

    __slots__ = ("_context", "_statement", "_words")

    def __init__(self, words: Words, statement: bytes, context: SessionContext) -> None:
        self._words = words
        self._statement = statement
        self._context = context

    def changed(self, updated_positions: int | None) -> Changed:
        words = self._words
        after_with = words.at_word(b"WITH")
        if after_with:
            self._skip_with()
        first = words.word()
        match first:
            case b"INSERT" | b"REPLACE":
                words.take_words(*_BEFORE_INSERTED)
                return _tables([self._name()])
            case b"UPDATE":
                words.take_words(b"LOW_PRIORITY", b"IGNORE")
                return self._update(None if after_with else updated_positions)
            case b"DELETE":
                words.take_words(b"LOW_PRIORITY", b"QUICK", b"IGNORE")
                return self._delete()
            case b"LOAD":
                if not (words.at_word(b"DATA") or words.at_word(b"XML")):
                    return _UNKNOWN
                if words.find(b"INTO", b"TABLE") is None:
                    return _UNKNOWN
                words.take()
                return _tables([self._name()])
            case b"SELECT" | b"DO" | b"CALL" | b"TABLE" | b"VALUES" | b"SET":
                return self._query(first)
            case b"TRUNCATE":
                words.take_words(b"TABLE")
                return _tables([self._name()])
            case b"RENAME":
                return self._rename()
            case b"CREATE" | b"ALTER" | b"DROP":
                return self._definition(first)
            case b"ANALYZE" | b"CHECK" | b"CHECKSUM" | b"OPTIMIZE" | b"REPAIR":
                words.take_words(b"NO_WRITE_TO_BINLOG", b"LOCAL")
                return self._list_of_tables()
            case b"FLUSH":
                words.take_words(b"NO_WRITE_TO_BINLOG", b"LOCAL")
                if not (words.at_word(b"TABLES") or words.at_word(b"TABLE")):
                    return _NONE
                return self._list_of_tables()
            case b"GRANT" | b"REVOKE":
                return self._grant()
            case b"IMPORT" | b"INSTALL" | b"UNINSTALL":
                return _NONE
        return _UNKNOWN

    # Changes of rows

    def _update(self, positions: int | None) -> Changed:
        references, exact = self._references(frozenset({b"SET"}))
        if len(references) == 1 and exact:
            return _tables([references[0].table])
        tables = [each.table for each in references]
        if exact and positions and positions < 1 << len(tables):
            return _tables([table for place, table in enumerate(tables) if positions >> place & 1])
        return Changed(Extent.SOME, tuple(tables))

    def _delete(self) -> Changed:
        words = self._words
        targets: list[tuple[str, ...]] = []
        if words.at_word(b"FROM"):
            words.take()
            name, starred = self._target()
            if not (starred or words.at_symbol(b",") or words.at_word(b"USING")):
                return _tables([_as_table(name)])
            targets.append(name)
            targets += self._more_targets()
            if words.word() != b"USING":
                raise _UnclearError
        else:
            targets.append(self._target()[0])
            targets += self._more_targets()
            if words.word() != b"FROM":
                raise _UnclearError
        references, exact = self._references(frozenset({b"WHERE", b"ORDER", b"LIMIT"}))
        meant: set[int] = set()
        for target in targets:
            places = [place for place, each in enumerate(references) if _is_meant(target, each)]
            exact = exact and len(places) == 1
            meant.update(places)
        if exact:
            return _tables([references[place].table for place in sorted(meant)])
        return Changed(Extent.SOME, tuple(each.table for each in references))

    def _more_targets(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        while self._words.at_symbol(b","):
            self._words.take()
            found.append(self._target()[0])
        return found

    def _target(self) -> tuple[tuple[str, ...], bool]:
        """Take a table that a DELETE names; return its parts, and whether `.*` follows them."""
        words = self._words
        parts = [self._identifier()]
        while words.at_symbol(b"."):
            words.take()
            if words.at_symbol(b"*"):
                words.take()
                return tuple(parts), True
            parts.append(self._identifier())
        return tuple(parts), False

    def _query(self, first: bytes) -> Changed:
        """Return the extent of a statement that changes something only by functions it calls."""
        words = self._words
        if first == b"SET":
            return self._set()
        depth = 0
        found = first in {b"TABLE", b"VALUES"}
        while token := words.take():
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == b"(") - (token.text == b")")
            elif token.kind is TokenKind.WORD and token.text in {b"FROM", b"TABLE"}:
                if depth:
                    raise _UnclearError
                found = not words.at_word(b"DUAL")
        return Changed(Extent.READS) if found else _NONE

    def _references(self, ends: frozenset[bytes]) -> tuple[list[_Reference], bool]:
        """Read table references up to one of the words `ends`.

        Return the tables in their order, and whether they are all that a server counts up to there:
        a subquery brings tables of its own.
        """
        words = self._words
        found: list[_Reference] = []
        exact = True
        expected = True
        depth = 0
        while (token := words.next) is not None:
            if token.kind is TokenKind.UNCLOSED or token.text == b"{":
                raise _UnclearError
            if token.kind is TokenKind.WORD and not depth and not expected and token.text in ends:
                break
            if expected:
                expected = False
                if token.text == b"(":
                    words.take()
                    if words.next is not None and words.next.text in _QUERIES | {b"("}:
                        self._skip_to_end()
                        exact = False
                    else:
                        depth += 1
                        expected = True
                elif token.text == b"LATERAL":
                    words.take()
                    expected = True
                else:
                    table = self._name()
                    if words.at_symbol(b"("):
                        # A table function.
                        words.take()
                        self._skip_to_end()
                        exact = False
                    else:
                        found.append(_Reference(table, self._alias() or table[1]))
                continue
            words.take()
            if token.text == b"(" and token.kind is TokenKind.SYMBOL:
                exact = self._skip_to_end() and exact
            elif token.text == b")" and token.kind is TokenKind.SYMBOL:
                depth -= 1
            elif token.text == b",":
                expected = True
            elif token.text == b"FOR":
                # USE INDEX FOR JOIN
                words.take()
            elif token.text in {b"JOIN", b"STRAIGHT_JOIN"}:
                expected = True
        if expected or depth or (not found and exact):
            raise _UnclearError
        return found, exact

    def _alias(self) -> str:
        words = self._words
        if words.at_word(b"PARTITION"):
            words.take()
            words.take()
            self._skip_to_end()
        if words.at_word(b"AS"):
            words.take()
            return self._identifier()
        token = words.next
        if token is None or (token.kind is TokenKind.WORD and token.text in _NO_ALIAS):
            return ""
        if token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            return self._identifier()
        return ""

    def _skip_with(self) -> None:
        """Skip the common table expressions before a statement."""
        words = self._words
        words.take_words(b"WITH", b"RECURSIVE")
        while True:
            self._identifier()
            if words.at_symbol(b"("):
                words.take()
                self._skip_to_end()
            if words.word() != b"AS" or not words.at_symbol(b"("):
                raise _UnclearError
            words.take()
            self._skip_to_end()
            if not words.at_symbol(b","):
                return
            words.take()

    def _skip_to_end(self) -> bool:
        """Skip the rest of parentheses; return whether there is no query in them."""
        plain = True
        depth = 1
        while token := self._words.take():
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == b"(") - (token.text == b")")
                if not depth:
                    return plain
            elif token.kind is TokenKind.WORD and token.text in _QUERIES:
                plain = False
        raise _UnclearError

    # Definitions and the rest

    def _definition(self, first: bytes) -> Changed:
        words = self._words
        while True:
            words.take_definer()
            if words.at_symbol(b"="):
                # ALGORITHM = MERGE
                words.take()
            kind = words.word()
            if kind == b"SECURITY":
                words.take_words(b"DEFINER", b"INVOKER")
            elif kind not in _BEFORE_THE_KIND:
                break
        match kind:
            case b"TABLE" | b"TABLES" | b"VIEW":
                return self._table_or_view(first, kind)
            case b"INDEX":
                words.take_words(b"IF", b"NOT", b"EXISTS")
                if not words.passes(frozenset({b"ON"})):
                    raise _UnclearError
                return _tables([self._name()])
            case b"DATABASE" | b"SCHEMA":
                words.take_words(b"IF", b"NOT", b"EXISTS")
                return Changed(Extent.DATABASE, database=self._database(first))
            case b"TRIGGER":
                words.take_words(b"IF", b"NOT", b"EXISTS")
                database, _ = self._name()
                if first == b"DROP":
                    return Changed(Extent.IN_DATABASE, database=database)
                if not words.passes(frozenset({b"ON"})):
                    raise _UnclearError
                return _tables([self._name()])
            case word if word in _OF_ACCOUNTS:
                return Changed(Extent.ACCOUNTS)
            case word if word in _WITHOUT_TABLES:
                return _NONE
        return _UNKNOWN

    def _table_or_view(self, first: bytes, kind: bytes) -> Changed:
        words = self._words
        words.take_words(b"IF", b"NOT", b"EXISTS")
        if first == b"DROP":
            return _tables(self._names())
        tables = [self._name()]
        if first == b"ALTER" and kind == b"TABLE":
            depth = 0
            while token := words.take():
                if token.kind is TokenKind.SYMBOL:
                    depth += (token.text == b"(") - (token.text == b")")
                elif token.text == b"EXCHANGE" and not depth and words.at_word(b"PARTITION"):
                    words.take()
                    self._identifier()
                    if words.word() != b"WITH" or words.word() != b"TABLE":
                        raise _UnclearError
                    tables.append(self._name())
        return _tables(tables)

    def _database(self, first: bytes) -> str:
        """Take a database's name; ALTER DATABASE may leave it out."""
        token = self._words.next
        left_out = {
            b"CHARACTER", b"CHARSET", b"COLLATE", b"DEFAULT", b"ENCRYPTION", b"READ",
        }  # fmt: skip
        if first == b"ALTER" and token is not None and token.text in left_out:
            return ""
        return self._identifier()

    def _rename(self) -> Changed:
        words = self._words
        if words.word() == b"USER":
            return Changed(Extent.ACCOUNTS)
        tables: list[Table] = []
        while True:
            tables.append(self._name())
            if words.word() != b"TO":
                raise _UnclearError
            tables.append(self._name())
            if not words.at_symbol(b","):
                return _tables(tables)
            words.take()

    def _list_of_tables(self) -> Changed:
        words = self._words
        if words.word() not in {b"TABLE", b"TABLES"}:
            raise _UnclearError
        token = words.next
        if token is None or token.text in {b"WITH", b"FOR", b";"}:
            return _NONE
        return _tables(self._names())

    def _grant(self) -> Changed:
        """Return the extent of GRANT or REVOKE, and the table or routine that it names, if any."""
        words = self._words
        depth = 0
        proxy = words.at_word(b"PROXY")
        while token := words.take():
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == b"(") - (token.text == b")")
            elif token.kind is TokenKind.WORD and not depth:
                if token.text in {b"TO", b"FROM"} or (proxy and token.text == b"ON"):
                    break
                if token.text == b"ON":
                    words.take_words(b"TABLE", b"FUNCTION", b"PROCEDURE", b"LIBRARY")
                    if words.at_symbol(b"*"):
                        break
                    parts, starred = self._target()
                    return Changed(Extent.ACCOUNTS, () if starred else (_as_table(parts),))
        return Changed(Extent.ACCOUNTS)

    def _set(self) -> Changed:
        words = self._words
        if words.at_word(b"PASSWORD") or words.at_word(b"DEFAULT"):
            return Changed(Extent.ACCOUNTS)
        return _NONE

    # Names

    def _names(self) -> list[Table]:
        found = [self._name()]
        while self._words.at_symbol(b","):
            self._words.take()
            found.append(self._name())
        return found

    def _name(self) -> Table:
        parts = [self._identifier()]
        while self._words.at_symbol(b"."):
            self._words.take()
            parts.append(self._identifier())
        return _as_table(parts)

    def _identifier(self) -> str:
        token = self._words.take()
        if token is None or not _may_be_name(token):
            raise _UnclearError
        raw = unquoted(self._statement[token.start : token.end])
        try:
            return self._decoded(raw)
        except (MtsdError, UnicodeDecodeError) as error:
            raise _UnclearError from error

    def _decoded(self, raw: bytes) -> str:
        """Return a name, which is in the session's character_set_client."""
        if raw.isascii():
            return raw.decode()
        client = self._context.character_set_client
        if client is None or character_set(client).startswith("utf8"):
            return raw.decode()
        return text_decoder(client)(raw)


def _may_be_name(token: Token) -> bool:
    quoted = token.kind is TokenKind.QUOTED and token.text[:1] in (b"`", b'"')
    return quoted or token.kind is TokenKind.WORD


def _as_table(parts: Sequence[str]) -> Table:
    match parts:
        case [table]:
            return "", table
        case [database, table]:
            return database, table
    raise _UnclearError


def _tables(tables: Sequence[Table]) -> Changed:
    return Changed(Extent.TABLES, tuple(tables))


def _is_meant(target: Sequence[str], reference: _Reference) -> bool:
    """Return whether a DELETE's target may be that table reference; by case it is left open."""
    database, name = _as_table(target)
    if name.lower() != reference.alias.lower():
        return False
    return not database or not reference.table[0] or database == reference.table[0]
