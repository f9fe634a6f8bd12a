"""Which statements may change tables of the target that cannot roll back, by what it has.

The end of a group tells whether it changed a non-transactional table of the source. Whether a group
may be half applied depends on the target's engines, which may differ.
"""

from collections.abc import Collection, Sequence
from typing import Final

from mtsd.apply.session.aside import aside
from mtsd.apply.sql import literals
from mtsd.apply.tables.statement_words import loose_words, loosely
from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.binlog.sql.qualifiers import qualifiers
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_NONE: Final[frozenset[str]] = frozenset()
_OF_THE_SERVER: Final = b"'information_schema','mysql','performance_schema','sys'"


class TableEngines:
    """What the daemon has learned about them.

    Each method asks on the connection that it is given, on which nothing may be in flight, and
    raises ServerError, ConnectionLostError. What it finds is kept as long as the number of
    `definitions` that have been applied is the same.
    """

    __slots__ = (
        "_any_suspects", "_definitions", "_of_temporary", "_suspects", "_transactional", "_ways",
    )  # fmt: skip

    def __init__(self) -> None:
        self._of_temporary = ""
        self._transactional: frozenset[str] | None = None
        self._suspects: dict[str, frozenset[str]] = {}
        self._any_suspects: bool | None = None
        self._ways: frozenset[str] | None = None
        self._definitions = 0

    async def may_change(
        self, connection: Connection, statements: Sequence[QueryEvent], definitions: int
    ) -> bool:
        """Return whether statements may change a table that cannot roll back.

        Judged by their words: a statement cannot that has none of the names of such tables in the
        databases that it updates, nor that of a view, of a table with triggers or of a function,
        which may reach a table of another database.
        """
        self._forget_if_older(definitions)
        for query in statements:
            if not self._is_harmless(query) and await self._may_be_changed_by(connection, query):
                return True
        return False

    async def may_run_routines(
        self, connection: Connection, statements: Sequence[QueryEvent], definitions: int
    ) -> bool:
        """Return whether statements may run a function or a trigger, or use a view.

        Judged by their words, like `may_change`.
        """
        self._forget_if_older(definitions)
        ways = await self._ways_to_tables(connection)
        for query in statements if ways else ():
            if not ways.isdisjoint(await _words_of(query)):
                return True
        return False

    async def may_create_temporary(
        self, connection: Connection, statement: QueryEvent, definitions: int
    ) -> bool:
        """Return whether a CREATE TEMPORARY TABLE may create a table that cannot roll back.

        It says so, or the target's default is such an engine, or it is like such a table.
        """
        self._forget_if_older(definitions)
        words = await _words_of(statement)
        transactional = await self.transactional(connection)
        if "ENGINE" in words:
            return words.isdisjoint(map(str.upper, transactional))
        if await self._usual_of_temporary(connection) not in transactional:
            return True
        if "LIKE" in words:
            for database in {statement.database, *await _qualifiers_of(statement)} - {""}:
                if not words.isdisjoint(await self._suspects_of(connection, database)):
                    return True
        return False

    async def may_define(
        self, connection: Connection, statement: bytes, databases: Collection[str]
    ) -> bool:
        """Return whether a definition may concern a table that cannot roll back, or once could not.

        Judged by its words, like `may_change`; `databases` are those that it updates.
        """
        text = StatementText(statement)
        words = loose_words(text)
        for database in {*databases, *qualifiers(text)} - {""}:
            if not words.isdisjoint(await self._suspects_of(connection, database)):
                return True
        return "ENGINE" in words

    @understood("target")
    async def transactional(self, connection: Connection) -> frozenset[str]:
        """Return the storage engines, in lower case, whose tables can roll back."""
        if self._transactional is None:
            rows = await connection.query(
                b"SELECT engine FROM information_schema.engines WHERE transactions='YES'"
            )
            self._transactional = frozenset(str(engine).lower() for (engine,) in rows)
        return self._transactional

    @understood("target")
    async def _usual_of_temporary(self, connection: Connection) -> str:
        """Return the storage engine, in lower case, of temporary tables that name none."""
        if not self._of_temporary:
            ((engine,),) = await connection.query(
                b"SELECT LOWER(COALESCE(@@default_tmp_storage_engine,@@default_storage_engine))"
            )
            self._of_temporary = str(engine)
        return self._of_temporary

    def _forget_if_older(self, definitions: int) -> None:
        if definitions != self._definitions:
            self._suspects.clear()
            self._ways = self._any_suspects = None
            self._definitions = definitions

    def _is_harmless(self, query: QueryEvent) -> bool:
        """Return whether it is known already that there is nothing that a statement could name."""
        listed = _listed(query)
        if query.context.enable_cascade_triggers or not (listed or self._ways == _NONE):
            return False
        known = self._suspects
        if query.database and known.get(query.database) != _NONE:
            return False
        if not listed and len(query.statement) > LONGEST_READ:
            return False
        return all(known.get(name) == _NONE for name in listed or qualifiers(query.text))

    async def _may_be_changed_by(self, connection: Connection, query: QueryEvent) -> bool:
        listed = _listed(query)
        databases = {query.database, *(listed or await _qualifiers_of(query))}
        databases.discard("")
        suspects: set[str] = set()
        for database in databases:
            suspects |= await self._suspects_of(connection, database)
        if listed and not suspects and not query.context.enable_cascade_triggers:
            # What a view, a trigger or a function changes is listed, too.
            return False
        words = await _words_of(query)
        if not suspects.isdisjoint(words):
            return True
        ways = await self._ways_to_tables(connection)
        # Triggers of tables that a cascade reaches are run, too.
        if ways.isdisjoint(words) and not query.context.enable_cascade_triggers:
            return False
        return await self._are_any(connection)

    @understood("target")
    async def _suspects_of(self, connection: Connection, database: str) -> frozenset[str]:
        """Return the names, in upper case, of the tables of a database that cannot roll back."""
        known = self._suspects.get(database)
        if known is not None:
            return known
        definitions = self._definitions
        rows = await connection.query(
            b"SELECT table_name FROM information_schema.tables WHERE table_schema=%b AND %b"
            % (literals.utf8(database), await self._cannot_roll_back(connection))
        )
        found = frozenset(loosely(str(found)) for (found,) in rows)
        # Otherwise it may be older than a definition of another worker.
        if definitions == self._definitions:
            self._suspects[database] = found
        return found

    @understood("target")
    async def _ways_to_tables(self, connection: Connection) -> frozenset[str]:
        """Return the names, in upper case, by which a statement may change tables unnamed in it.

        Of a MariaDB's package only the name is listed, not those of its functions.
        """
        if self._ways is not None:
            return self._ways
        definitions = self._definitions
        rows = await connection.query(
            b"SELECT table_name FROM information_schema.views WHERE table_schema NOT IN (%b)"
            b" UNION SELECT event_object_table FROM information_schema.triggers"
            b" WHERE event_object_schema NOT IN (%b)"
            b" UNION SELECT routine_name FROM information_schema.routines"
            b" WHERE routine_type<>%b AND routine_schema NOT IN (%b)"
            % (_OF_THE_SERVER, _OF_THE_SERVER, literals.utf8("PROCEDURE"), _OF_THE_SERVER)
        )
        found = frozenset(loosely(str(found)) for (found,) in rows)
        if definitions == self._definitions:
            self._ways = found
        return found

    @understood("target")
    async def _are_any(self, connection: Connection) -> bool:
        """Return whether any table cannot roll back."""
        if self._any_suspects is not None:
            return self._any_suspects
        definitions = self._definitions
        rows = await connection.query(
            b"SELECT 1 FROM information_schema.tables WHERE table_schema NOT IN (%b) AND %b"
            b" LIMIT 1" % (_OF_THE_SERVER, await self._cannot_roll_back(connection))
        )
        if definitions == self._definitions:
            self._any_suspects = bool(rows)
        return bool(rows)

    async def _cannot_roll_back(self, connection: Connection) -> bytes:
        """Return the condition for such tables in information_schema.tables."""
        transactional = b",".join(map(literals.utf8, await self.transactional(connection)))
        return b"engine IS NOT NULL AND LOWER(engine) NOT IN (%b)" % transactional


def _listed(query: QueryEvent) -> tuple[str, ...] | None:
    """Return the databases that the source says a statement updates; None if it does not say."""
    return None if query.over_max or query.updated_databases == ("",) else query.updated_databases


async def _words_of(query: QueryEvent) -> frozenset[str]:
    return await aside(len(query.statement), lambda: loose_words(query.text))


async def _qualifiers_of(query: QueryEvent) -> set[str]:
    return await aside(len(query.statement), lambda: qualifiers(query.text))
