"""Which tables a statement changes, as far as its text tells: what rules for tables ask.

A server marks the tables that a statement names as updated or only read while it parses it. This
follows the grammar of the statements that a source logs (MySQL manual, "SQL Statements"); whatever
is not understood has the extent UNKNOWN.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.sql.table_names import NameReader, Table, UnclearError, as_table
from mtsd.binlog.sql.table_references import Reference, references, skip_with
from mtsd.model.statement_text import StatementText, TokenKind


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


_UNKNOWN: Final = Changed(Extent.UNKNOWN)
_NONE: Final = Changed(Extent.NONE)
_BEFORE_INSERTED: Final = (b"LOW_PRIORITY", b"DELAYED", b"HIGH_PRIORITY", b"IGNORE", b"INTO")
_OBJECTS: Final = frozenset({b"TABLE", b"FUNCTION", b"LIBRARY", b"PACKAGE", b"PROCEDURE"})
"""What a GRANT may say it is about. Some of them may also be names."""
_OF_ACCOUNTS: Final = frozenset({b"USER", b"ROLE"})
_WITHOUT_TABLES: Final = frozenset({
    b"EVENT", b"FUNCTION", b"INSTANCE", b"LIBRARY", b"LOGFILE", b"PACKAGE", b"PROCEDURE",
    b"REFERENCE", b"RESOURCE", b"SERVER", b"TABLESPACE", b"UNDO",
})  # fmt: skip
_OPTIONS_OF_DATABASES: Final = (
    b"CHAR", b"CHARACTER", b"CHARSET", b"COLLATE", b"DEFAULT", b"ENCRYPTION", b"READ",
)  # fmt: skip
_BEFORE_THE_KIND: Final = frozenset({
    b"AGGREGATE", b"ALGORITHM", b"DEFINER", b"DUALITY", b"FULLTEXT", b"IGNORE", b"JSON", b"MERGE",
    b"OFFLINE", b"ONLINE", b"OR", b"RELATIONAL", b"REPLACE", b"SPATIAL", b"SQL", b"TEMPORARY",
    b"TEMPTABLE", b"UNDEFINED", b"UNIQUE", b"VECTOR",
})  # fmt: skip


def changed(text: StatementText, updated_positions: int | None = None) -> Changed:
    """Return what a statement changes.

    `updated_positions` has a bit for each table of a multi-table UPDATE that it updates, by their
    order in its text, if the source says so.
    """
    try:
        return _Reading(NameReader(text)).changed(updated_positions)
    except UnclearError:
        return _UNKNOWN


class _Reading:
    """A statement while it is read."""

    __slots__ = ("_names", "_words")

    def __init__(self, names: NameReader) -> None:
        self._names = names
        self._words = names.words

    def changed(self, updated_positions: int | None) -> Changed:
        words = self._words
        after_with = words.at_word(b"WITH")
        if after_with:
            skip_with(self._names)
        first = words.word()
        match first:
            case b"INSERT" | b"REPLACE":
                words.take_words(*_BEFORE_INSERTED)
                return _tables([self._names.name()])
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
                return _tables([self._names.name()])
            case b"SELECT" | b"DO" | b"CALL" | b"TABLE" | b"VALUES" | b"SET":
                return self._query(first)
            case b"TRUNCATE":
                words.take_words(b"TABLE")
                return _tables([self._names.name()])
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
        named, exact = references(self._names, frozenset({b"SET"}))
        if len(named) == 1 and exact:
            return _tables([named[0].table])
        tables = [each.table for each in named]
        if exact and positions and positions < 1 << len(tables):
            return _tables([table for place, table in enumerate(tables) if positions >> place & 1])
        return Changed(Extent.SOME, tuple(tables))

    def _delete(self) -> Changed:
        words = self._words
        targets: list[tuple[str, ...]] = []
        if words.at_word(b"FROM"):
            words.take()
            name, starred = self._names.qualified()
            if not (starred or words.at_symbol(b",") or words.at_word(b"USING")):
                return _tables([as_table(name)])
            targets.append(name)
            targets += self._more_targets()
            if words.word() != b"USING":
                raise UnclearError
        else:
            targets.append(self._names.qualified()[0])
            targets += self._more_targets()
            if words.word() != b"FROM":
                raise UnclearError
        named, exact = references(self._names, frozenset({b"WHERE", b"ORDER", b"LIMIT"}))
        meant: set[int] = set()
        for target in targets:
            places = [place for place, each in enumerate(named) if _is_meant(target, each)]
            exact = exact and len(places) == 1
            meant.update(places)
        if exact:
            return _tables([named[place].table for place in sorted(meant)])
        return Changed(Extent.SOME, tuple(each.table for each in named))

    def _more_targets(self) -> list[tuple[str, ...]]:
        targets: list[tuple[str, ...]] = []
        while self._words.at_symbol(b","):
            self._words.take()
            targets.append(self._names.qualified()[0])
        return targets

    def _query(self, first: bytes) -> Changed:
        """Return the extent of a statement that changes something only by functions it calls."""
        words = self._words
        if first == b"SET":
            return self._set()
        depth = 0
        is_query = first in {b"TABLE", b"VALUES"}
        while token := words.take():
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == b"(") - (token.text == b")")
            elif token.kind is TokenKind.WORD and token.text in {b"FROM", b"TABLE"}:
                if depth:
                    raise UnclearError
                is_query = not words.at_word(b"DUAL")
        return Changed(Extent.READS) if is_query else _NONE

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
            case b"TABLE" | b"TABLES" | b"VIEW" | b"SEQUENCE":
                return self._table_or_view(first, kind)
            case b"INDEX":
                words.take_words(b"IF", b"NOT", b"EXISTS")
                if not words.passes(frozenset({b"ON"})):
                    raise UnclearError
                return _tables([self._names.name()])
            case b"DATABASE" | b"SCHEMA":
                words.take_words(b"IF", b"NOT", b"EXISTS")
                return Changed(Extent.DATABASE, database=self._database(first))
            case b"TRIGGER":
                words.take_words(b"IF", b"NOT", b"EXISTS")
                database, _ = self._names.name()
                if first == b"DROP":
                    return Changed(Extent.IN_DATABASE, database=database)
                if not words.passes(frozenset({b"ON"})):
                    raise UnclearError
                return _tables([self._names.name()])
            case word if word in _OF_ACCOUNTS:
                return Changed(Extent.ACCOUNTS)
            case word if word in _WITHOUT_TABLES:
                return _NONE
        return _UNKNOWN

    def _table_or_view(self, first: bytes, kind: bytes) -> Changed:
        words = self._words
        words.take_words(b"IF", b"NOT", b"EXISTS")
        if first == b"DROP":
            return _tables(self._names.names())
        tables = [self._names.name()]
        if first == b"ALTER" and kind == b"TABLE":
            depth = 0
            while token := words.take():
                if token.kind is TokenKind.SYMBOL:
                    depth += (token.text == b"(") - (token.text == b")")
                elif token.text == b"EXCHANGE" and not depth and words.at_word(b"PARTITION"):
                    words.take()
                    self._names.identifier()
                    if words.word() != b"WITH" or words.word() != b"TABLE":
                        raise UnclearError
                    tables.append(self._names.name())
        return _tables(tables)

    def _database(self, first: bytes) -> str:
        """Take a database's name; ALTER DATABASE may leave it out."""
        words = self._words
        if first == b"ALTER" and any(map(words.at_word, _OPTIONS_OF_DATABASES)):
            return ""
        token = words.next
        name = self._names.identifier()
        if first == b"ALTER" and token is not None and token.text == b"COMMENT":
            # As a name it has an option behind it, and not the comment itself.
            after = words.next
            if words.at_symbol(b"=") or (after is not None and after.kind is TokenKind.QUOTED):
                return ""
        return name

    def _rename(self) -> Changed:
        words = self._words
        if words.word() == b"USER":
            return Changed(Extent.ACCOUNTS)
        words.take_words(b"IF", b"EXISTS")
        tables: list[Table] = []
        while True:
            tables.append(self._names.name())
            # MariaDB can limit the time that it waits for a table.
            if words.at_word(b"WAIT"):
                words.take()
                words.take()
            words.take_words(b"NOWAIT")
            if words.word() != b"TO":
                raise UnclearError
            tables.append(self._names.name())
            if not words.at_symbol(b","):
                return _tables(tables)
            words.take()

    def _list_of_tables(self) -> Changed:
        words = self._words
        if words.word() not in {b"TABLE", b"TABLES"}:
            raise UnclearError
        token = words.next
        if token is None or token.text in {b"WITH", b"FOR", b";"}:
            return _NONE
        return _tables(self._names.names())

    def _grant(self) -> Changed:
        """Return the extent of GRANT or REVOKE, and the table or routine that it names, if any."""
        words = self._words
        proxy = words.at_word(b"PROXY")
        for token in words.outer_words():
            if token.text in {b"TO", b"FROM"} or (proxy and token.text == b"ON"):
                break
            if token.text == b"ON":
                return Changed(Extent.ACCOUNTS, self._granted_on())
        return Changed(Extent.ACCOUNTS)

    def _granted_on(self) -> tuple[Table, ...]:
        """Return the table or routine that comes after ON in a GRANT; none if it is a pattern."""
        words = self._words
        first = ""
        if words.next is not None and words.next.text in _OBJECTS:
            first = self._names.identifier()
            if not (words.at_symbol(b".") or words.at_word(b"TO") or words.at_word(b"FROM")):
                # It is not the name of a table.
                first = ""
                words.take_words(b"BODY")
        if words.at_symbol(b"*"):
            return ()
        parts, starred = self._names.qualified(first)
        return () if starred else (as_table(parts),)

    def _set(self) -> Changed:
        words = self._words
        if words.at_word(b"PASSWORD") or words.at_word(b"DEFAULT"):
            return Changed(Extent.ACCOUNTS)
        return _NONE


def _tables(tables: Sequence[Table]) -> Changed:
    return Changed(Extent.TABLES, tuple(tables))


def _is_meant(target: Sequence[str], reference: Reference) -> bool:
    """Return whether a DELETE's target may be that table reference; by case it is left open."""
    database, name = as_table(target)
    if name.lower() != reference.alias.lower():
        return False
    return not database or not reference.table[0] or database == reference.table[0]
