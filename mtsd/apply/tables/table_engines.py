"""Which tables of the target cannot roll back, according to their storage engine there.

The end of a group tells whether it changed a non-transactional table of the source. Whether a group
may be half applied depends on the target's engines, which may differ.
"""

from collections.abc import Collection, Sequence
from typing import Final
from unicodedata import combining, normalize

from mtsd.apply.session.aside import aside
from mtsd.apply.sql import literals
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.sql.qualifiers import names, qualifiers
from mtsd.model.names import folded
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_OF_THE_SERVER: Final = b"'information_schema','mysql','performance_schema','sys'"


class TableEngines:
    """What one session has learned about them."""

    __slots__ = (
        "_any_suspects", "_connection", "_definitions", "_engines", "_suspects", "_ways", "known",
    )  # fmt: skip

    def __init__(self, connection: Connection, known: KnownTables | None = None) -> None:
        self._connection = connection
        self.known = known or KnownTables()
        """Those that row events name; what is not plain cannot roll back: "database.table"."""
        self._engines: frozenset[str] | None = None
        self._suspects: dict[str, frozenset[str]] = {}
        self._any_suspects: bool | None = None
        self._ways: frozenset[str] | None = None
        self._definitions = 0

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """Return whether all these tables are known to be transactional."""
        return self.known.are_plain(table_maps)

    async def without_transactions(self, table_maps: Collection[bytes]) -> tuple[str, ...]:
        """Return those of the tables that cannot roll back, as "database.table", sorted.

        A table that the target lacks, or hides from the user, is not included. Nothing may be in
        flight on the session. Raises ServerError, ConnectionLostError.
        """
        self.known.make_room()
        # A definition of another worker may let some be forgotten meanwhile.
        while unknown := self.known.unknown(table_maps):
            await self._learn(unknown)
        return tuple(sorted(set(self.known.special(table_maps).values())))

    async def may_change(self, statements: Sequence[QueryEvent], definitions: int) -> bool:
        """Return whether statements may change a table that cannot roll back.

        Judged by their words: a statement cannot that has none of the names of such tables in the
        databases that it updates, nor that of a view, of a table with triggers or of a function,
        which may reach a table of another database. What is known is kept as long as `definitions`
        is the same. Raises ServerError, ConnectionLostError.
        """
        self._forget_if_older(definitions)
        for query in statements:
            if await self._may_be_changed_by(query):
                return True
        return False

    async def may_run_routines(self, statements: Sequence[QueryEvent], definitions: int) -> bool:
        """Return whether statements may run a function or a trigger, or use a view.

        Judged by their words, and kept, like `may_change`. Raises ServerError, ConnectionLostError.
        """
        self._forget_if_older(definitions)
        if self._ways is None:
            self._ways = await self._ways_to_tables()
        for query in statements if self._ways else ():
            if not self._ways.isdisjoint(await _words_of(query)):
                return True
        return False

    def _forget_if_older(self, definitions: int) -> None:
        if definitions != self._definitions:
            self._suspects.clear()
            self._ways = self._any_suspects = None
            self._definitions = definitions

    async def may_define(self, statement: bytes, databases: Collection[str]) -> bool:
        """Return whether a definition may concern a table that cannot roll back, or once could not.

        Judged by its words, like `may_change`; `databases` are those that it updates. Raises
        ServerError, ConnectionLostError.
        """
        text = StatementText(statement)
        words = _words(text)
        for database in {*databases, *qualifiers(text)} - {""}:
            if not words.isdisjoint(await self._suspects_of(database)):
                return True
        return "ENGINE" in words

    async def _may_be_changed_by(self, query: QueryEvent) -> bool:
        is_told = not query.over_max and query.updated_databases != ("",)
        listed = query.updated_databases if is_told else None
        databases = {query.database, *(listed or await _qualifiers_of(query))}
        databases.discard("")
        suspects: set[str] = set()
        for database in databases:
            if database not in self._suspects:
                self._suspects[database] = await self._suspects_of(database)
            suspects |= self._suspects[database]
        if listed and not suspects and not query.context.enable_cascade_triggers:
            # What a view, a trigger or a function changes is listed, too.
            return False
        words = await _words_of(query)
        if not suspects.isdisjoint(words):
            return True
        if self._ways is None:
            self._ways = await self._ways_to_tables()
        # Triggers of tables that a cascade reaches are run, too.
        if self._ways.isdisjoint(words) and not query.context.enable_cascade_triggers:
            return False
        if self._any_suspects is None:
            found = await self._connection.query(
                b"SELECT 1 FROM information_schema.tables WHERE table_schema NOT IN (%b) AND %b"
                b" LIMIT 1" % (_OF_THE_SERVER, await self._cannot_roll_back())
            )
            self._any_suspects = bool(found)
        return self._any_suspects

    @understood("target")
    async def _suspects_of(self, database: str) -> frozenset[str]:
        """Return the names, in upper case, of the tables of a database that cannot roll back."""
        rows = await self._connection.query(
            b"SELECT table_name FROM information_schema.tables WHERE table_schema=%b AND %b"
            % (literals.utf8(database), await self._cannot_roll_back())
        )
        return frozenset(_loosely(str(found)) for (found,) in rows)

    @understood("target")
    async def _ways_to_tables(self) -> frozenset[str]:
        """Return the names, in upper case, by which a statement may change tables unnamed in it.

        Of a MariaDB's package only the name is listed, not those of its functions.
        """
        rows = await self._connection.query(
            b"SELECT table_name FROM information_schema.views WHERE table_schema NOT IN (%b)"
            b" UNION SELECT event_object_table FROM information_schema.triggers"
            b" WHERE event_object_schema NOT IN (%b)"
            b" UNION SELECT routine_name FROM information_schema.routines"
            b" WHERE routine_type<>%b AND routine_schema NOT IN (%b)"
            % (_OF_THE_SERVER, _OF_THE_SERVER, literals.utf8("PROCEDURE"), _OF_THE_SERVER)
        )
        return frozenset(_loosely(str(found)) for (found,) in rows)

    async def _cannot_roll_back(self) -> bytes:
        """Return the condition for such tables in information_schema.tables."""
        transactional = b",".join(map(literals.utf8, await self._transactional()))
        return b"engine IS NOT NULL AND LOWER(engine) NOT IN (%b)" % transactional

    async def _learn(self, table_maps: Collection[bytes]) -> None:
        names = {}
        for event in table_maps:
            described = parse_table_map(event)
            names[event] = described.database, described.table
        without = {
            (folded(database), folded(table))
            for database, table, engine in await self._found(set(names.values()))
            if engine.lower() not in await self._transactional()
        }
        for event, (database, table) in names.items():
            # The case of table names may differ between servers; two names on one server that
            # differ only in case are rare, and sharing an engine errs on the safe side.
            is_without = (folded(database), folded(table)) in without
            self.known.note(event, f"{database}.{table}" if is_without else "")

    @understood("target")
    async def _found(self, names: Collection[tuple[str, str]]) -> list[tuple[str, str, str]]:
        rows = await self._connection.query(
            b"SELECT table_schema,table_name,engine FROM information_schema.tables"
            b" WHERE engine IS NOT NULL AND (table_schema,table_name) IN (%b)"
            % literals.tables(names)
        )
        return [(str(schema), str(name), str(engine)) for schema, name, engine in rows]

    @understood("target")
    async def _transactional(self) -> frozenset[str]:
        if self._engines is None:
            rows = await self._connection.query(
                b"SELECT engine FROM information_schema.engines WHERE transactions='YES'"
            )
            self._engines = frozenset(str(engine).lower() for (engine,) in rows)
        return self._engines


async def _words_of(query: QueryEvent) -> frozenset[str]:
    return await aside(len(query.statement), lambda: _words(query.text))


async def _qualifiers_of(query: QueryEvent) -> set[str]:
    return await aside(len(query.statement), lambda: qualifiers(query.text))


def _words(text: StatementText) -> frozenset[str]:
    """Return what may name a table, a view or a routine in a statement, to be compared loosely."""
    found = names(text)
    return frozenset(found if all(map(str.isascii, found)) else map(_loosely, found))


def _loosely(name: str) -> str:
    """Return a name in upper case without accents: names of routines are equal regardless."""
    name = name.upper()
    if name.isascii():
        return name
    return "".join(each for each in normalize("NFKD", name) if not combining(each))
