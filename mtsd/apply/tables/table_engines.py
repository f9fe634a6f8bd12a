"""Which statements may change tables of the target that cannot roll back, by what it has.

The end of a group tells whether it changed a non-transactional table of the source. Whether a group
may be half applied depends on the target's engines, which may differ.
"""

from collections.abc import Collection, Sequence
from typing import Final

from mtsd.apply.session.aside import aside
from mtsd.apply.sql import literals
from mtsd.apply.tables.statement_words import loose_words, loosely
from mtsd.binlog.sql.qualifiers import qualifiers
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_OF_THE_SERVER: Final = b"'information_schema','mysql','performance_schema','sys'"


class TableEngines:
    """What one session has learned about them."""

    __slots__ = (
        "_any_suspects", "_connection", "_definitions", "_engines", "_suspects", "_ways",
    )  # fmt: skip

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._engines: frozenset[str] | None = None
        self._suspects: dict[str, frozenset[str]] = {}
        self._any_suspects: bool | None = None
        self._ways: frozenset[str] | None = None
        self._definitions = 0

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
        words = loose_words(text)
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
        return frozenset(loosely(str(found)) for (found,) in rows)

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
        return frozenset(loosely(str(found)) for (found,) in rows)

    async def _cannot_roll_back(self) -> bytes:
        """Return the condition for such tables in information_schema.tables."""
        transactional = b",".join(map(literals.utf8, await self._transactional()))
        return b"engine IS NOT NULL AND LOWER(engine) NOT IN (%b)" % transactional

    async def _transactional(self) -> frozenset[str]:
        if self._engines is None:
            self._engines = await read_transactional(self._connection)
        return self._engines


@understood("target")
async def read_transactional(connection: Connection) -> frozenset[str]:
    """Return the storage engines, in lower case, whose tables can roll back.

    Raises ServerError, ConnectionLostError.
    """
    rows = await connection.query(
        b"SELECT engine FROM information_schema.engines WHERE transactions='YES'"
    )
    return frozenset(str(engine).lower() for (engine,) in rows)


async def _words_of(query: QueryEvent) -> frozenset[str]:
    return await aside(len(query.statement), lambda: loose_words(query.text))


async def _qualifiers_of(query: QueryEvent) -> set[str]:
    return await aside(len(query.statement), lambda: qualifiers(query.text))
