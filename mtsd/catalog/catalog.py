"""Table definitions as of a position: from table maps, loaded, and updated by the stream's DDL.

Statements have to be applied in the order of the stream. If the effect of one is unclear, the table
no longer has a definition, and the reason is kept for whoever needs it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from mtsd.binlog.bytes.character_sets import character_set, text_decoder
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.words import Words
from mtsd.catalog.clause_parts import UnknownClauseError
from mtsd.catalog.definition import TableDefinition
from mtsd.catalog.table_statement import altered, created, with_unique, without
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.statement_text import StatementText, TokenKind
from mtsd.model.step import QueryEvent

_UTF8MB4: Final = 255
_Name = tuple[str, str]


class Catalog:
    """The known tables; `folded` if table names that differ only in case are the same."""

    def __init__(
        self, definitions: Iterable[TableDefinition] = (), *, folded: bool = False
    ) -> None:
        self._folded = folded
        self._tables: dict[_Name, TableDefinition] = {}
        self._reasons: dict[_Name, str] = {}
        self._character_sets: dict[str, str] = {}
        """The default character sets of databases."""
        for definition in definitions:
            self.define(definition)

    def __iter__(self) -> Iterator[TableDefinition]:
        return iter(self._tables.values())

    def define(self, definition: TableDefinition) -> None:
        """Store a table's definition, replacing what was known about the table."""
        name = self._name(definition.database, definition.table)
        self._tables[name] = definition
        self._reasons.pop(name, None)

    def find(self, database: str, table: str) -> TableDefinition | None:
        """Return a table's definition; None if it is not known."""
        return self._tables.get(self._name(database, table))

    def get(self, database: str, table: str) -> TableDefinition:
        """Return a table's definition; NotSupportedError, with the reason, if it is unknown."""
        known = self.find(database, table)
        if known is None:
            name = self._name(database, table)
            reason = self._reasons.get(name, "nothing has told it so far")
            raise NotSupportedError(
                f"the definition of `{database}`.`{table}` is unknown: {reason}"
            )
        return known

    def move_on(self, query: QueryEvent) -> None:
        """Apply a statement of the stream; only DDL has an effect."""
        text = _in_utf8(query)
        tokens = Words(text)
        try:
            match tokens.word():
                case b"CREATE":
                    self._create(tokens, query)
                case b"ALTER":
                    self._alter(tokens, query)
                case b"DROP":
                    self._drop(tokens, query)
                case b"RENAME":
                    self._rename(tokens, query)
        except UnknownClauseError as error:
            self._forget_all(text, query, str(error))

    def _forget_all(self, text: StatementText, query: QueryEvent, reason: str) -> None:
        """Forget the first table that the statement names, which is the one it changes."""
        tokens = Words(text)
        tokens.take_words(b"CREATE", b"ALTER", b"OR", b"REPLACE", b"ONLINE", b"IGNORE", b"TABLE")
        tokens.take_words(b"IF", b"NOT", b"EXISTS")
        self._forget(self._named(tokens, query), query, reason)

    def _forget(self, name: _Name, query: QueryEvent, reason: str) -> None:
        self._tables.pop(name, None)
        text = shown(query, 200)
        self._reasons[name] = f"{reason}, in: {text}"

    def _create(self, tokens: Words, query: QueryEvent) -> None:
        tokens.take_words(b"OR", b"REPLACE")
        word = tokens.word()
        if word in {b"DATABASE", b"SCHEMA"}:
            self._database(tokens, query)
        elif word in {b"UNIQUE", b"INDEX", b"FULLTEXT", b"SPATIAL"}:
            self._index(word, tokens, query)
        elif word == b"TABLE":
            may_exist = tokens.at_word(b"IF")
            tokens.take_words(b"IF", b"NOT", b"EXISTS")
            name = self._named(tokens, query)
            if may_exist and name in self._tables:
                # Such a statement is logged although it has changed nothing.
                return
            is_like = tokens.at_word(b"LIKE")
            if is_like:
                tokens.take()
            elif tokens.at_symbol(b"("):
                # LIKE may also be in parentheses.
                is_like = _is_like(query)
                if is_like:
                    tokens.take()
                    tokens.take()
            if is_like:
                self._like(name, self._named(tokens, query), query)
            else:
                default = self._default(name[0], query)
                self.define(created(tokens, *name, default))

    def _like(self, name: _Name, other: _Name, query: QueryEvent) -> None:
        known = self._tables.get(other)
        if known is None:
            self._forget(name, query, f"`{other[0]}`.`{other[1]}` is unknown")
        else:
            self.define(replace(known, database=name[0], table=name[1]))

    def _default(self, database: str, query: QueryEvent) -> str:
        known = self._character_sets.get(database)
        if known is not None:
            return known
        collation = query.context.collation_database
        return character_set(collation) if collation and database == query.database else ""

    def _database(self, tokens: Words, query: QueryEvent) -> None:
        tokens.take_words(b"IF", b"NOT", b"EXISTS")
        _, name = tokens.take_name()
        while token := tokens.take():
            if token.text in {b"SET", b"CHARSET", b"COLLATE"}:
                if tokens.at_symbol(b"="):
                    tokens.take()
                database = tokens.take_name()[1].strip("'\"").lower()
                database = database.partition("_")[0] if token.text == b"COLLATE" else database
                self._character_sets[name] = "utf8mb3" if database == "utf8" else database
                return
        if query.context.collation_server:
            self._character_sets[name] = character_set(query.context.collation_server)

    def _index(self, word: bytes, tokens: Words, query: QueryEvent) -> None:
        if word != b"UNIQUE":
            return
        tokens.take_words(b"INDEX", b"IF", b"NOT", b"EXISTS")
        _, key = tokens.take_name()
        tokens.passes(frozenset({b"ON"}))
        name = self._named(tokens, query)
        before = self._tables.get(name)
        if before is None:
            return
        try:
            self.define(with_unique(tokens, before, key))
        except UnknownClauseError as error:
            self._forget(name, query, str(error))

    def _alter(self, tokens: Words, query: QueryEvent) -> None:
        tokens.take_words(b"ONLINE", b"IGNORE")
        word = tokens.word()
        if word in {b"DATABASE", b"SCHEMA"}:
            self._database(tokens, query)
        if word != b"TABLE":
            return
        tokens.take_words(b"IF", b"EXISTS")
        name = self._named(tokens, query)
        before = self._tables.get(name)
        if before is None:
            # An unknown table keeps its reason, if it has one; its new name gets none.
            return
        after = altered(tokens, before, query.database)
        del self._tables[name]
        self.define(after)

    def _drop(self, tokens: Words, query: QueryEvent) -> None:
        word = tokens.word()
        if word in {b"DATABASE", b"SCHEMA"}:
            tokens.take_words(b"IF", b"EXISTS")
            _, database = tokens.take_name()
            for name in [one for one in self._tables if one[0] == self._name(database, "")[0]]:
                del self._tables[name]
            self._character_sets.pop(database, None)
        elif word in {b"TABLE", b"TABLES"}:
            tokens.take_words(b"IF", b"EXISTS")
            for name in self._names(tokens, query):
                self._tables.pop(name, None)
                self._reasons.pop(name, None)
        elif word == b"INDEX":
            tokens.take_words(b"IF", b"EXISTS")
            _, key = tokens.take_name()
            tokens.take_words(b"ON")
            before = self._tables.get(self._named(tokens, query))
            if before is not None:
                self.define(without(before, key))

    def _rename(self, tokens: Words, query: QueryEvent) -> None:
        if tokens.word() not in {b"TABLE", b"TABLES"}:
            return
        while True:
            old = self._named(tokens, query)
            tokens.take_words(b"TO")
            new = self._named(tokens, query)
            moved = self._tables.pop(old, None)
            if moved is not None:
                self.define(replace(moved, database=new[0], table=new[1]))
            else:
                self._reasons[new] = self._reasons.pop(old, "nothing has told it so far")
            if not tokens.at_symbol(b","):
                return
            tokens.take()

    def _names(self, tokens: Words, query: QueryEvent) -> Iterator[_Name]:
        yield self._named(tokens, query)
        while tokens.at_symbol(b","):
            tokens.take()
            yield self._named(tokens, query)

    def _named(self, tokens: Words, query: QueryEvent) -> _Name:
        qualifier, name = tokens.take_name()
        return self._name(qualifier or query.database, name)

    def _name(self, database: str, table: str) -> _Name:
        return (database.lower(), table.lower()) if self._folded else (database, table)


def _is_like(query: QueryEvent) -> bool:
    """Tell whether the first word in the first parentheses is LIKE."""
    tokens = Words(_in_utf8(query))
    while token := tokens.take():
        if token.kind is TokenKind.SYMBOL and token.text == b"(":
            return tokens.at_word(b"LIKE")
    return False


def _in_utf8(query: QueryEvent) -> StatementText:
    """Return a statement in UTF-8, in the session to read it in."""
    client = query.context.character_set_client
    if query.statement.isascii() or client is None:
        return query.text
    try:
        text = text_decoder(client)(query.statement)
    except (BinlogError, NotSupportedError):
        return query.text
    return StatementText(text.encode(), replace(query.context, character_set_client=_UTF8MB4))
