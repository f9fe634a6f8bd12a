"""Temporary tables that stored functions and triggers leave behind.

In statement format a source logs the statement that called the routine, and nothing of what the
routine did. So nobody knows which worker's session has the table, and that it has to be dropped: a
later statement would find the base table of that name instead, or the other way round.
"""

from collections.abc import AsyncIterator, Collection, Iterator
from typing import Final

from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.statement_states import is_of_its_thread
from mtsd.apply.sql import literals
from mtsd.apply.statements.source_statements import run_statement
from mtsd.apply.statements.unprotected import RemainsError
from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.binlog.sql.tokenizer import SQL_MODE_ANSI_QUOTES, SQL_MODE_NO_BACKSLASH_ESCAPES
from mtsd.binlog.sql.words import Words
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.names import folded
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Statement, StatementKind
from mtsd.model.temporary_tables import TableName, described
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import LoadCounts
from mtsd.wire.understood import understood

_CREATED: Final = b"SHOW SESSION STATUS WHERE Variable_name IN (%b,%b)" % (
    literals.text("Com_create_table"),
    literals.text("Com_create_temporary_table"),
)
"""A MySQL counts temporary tables with the others, a MariaDB separately; both also in routines."""
_ROUTINES: Final = (
    b"SELECT ROUTINE_SCHEMA,SQL_MODE,ROUTINE_DEFINITION FROM information_schema.ROUTINES"
    b" WHERE ROUTINE_SCHEMA<>'sys' UNION ALL"
    b" SELECT TRIGGER_SCHEMA,SQL_MODE,ACTION_STATEMENT FROM information_schema.TRIGGERS"
    b" WHERE TRIGGER_SCHEMA<>'sys'"
)
_TEMPORARY: Final = "CREATE TEMPORARY "
_CREATE: Final = frozenset({b"CREATE"})
_MODES: Final = {
    "ANSI_QUOTES": SQL_MODE_ANSI_QUOTES,
    "NO_BACKSLASH_ESCAPES": SQL_MODE_NO_BACKSLASH_ESCAPES,
}


def may_create_temporary(statement: Statement) -> bool:
    """Return whether a statement may call a routine that creates a temporary table.

    Only statements with the flag THREAD_SPECIFIC can, and of these no DROP TABLE.
    """
    if statement.kind is StatementKind.DDL:
        return is_of_its_thread(statement)
    return statement.kind is StatementKind.DML and bool(statement.flags & THREAD_SPECIFIC)


async def run_with_routines(
    session: TargetSession,
    statement: Statement,
    text: bytes,
    known: Collection[TableName],
    *,
    file: AsyncIterator[bytes] | None = None,
) -> LoadCounts | None:
    """Run a statement as `run_statement` does.

    Raises NotSupportedError if a routine that it called has left temporary tables other than those
    that its thread is `known` to have; the statement has been executed then. Of a definition, which
    cannot be rolled back, that is a RemainsError.
    """
    if not may_create_temporary(statement):
        return await run_statement(session, statement, text, file=file)
    connection = session.connection
    before = await connection.query(_CREATED)
    left: set[TableName] = set()

    async def note_left() -> None:
        # Before the session gets its own thread id back, under which it does not see them.
        if await connection.query(_CREATED) != before:
            left.update(await _left(connection))

    loaded = await run_statement(session, statement, text, then=note_left, file=file)
    lower = {(folded(database), folded(table)) for database, table in known}
    unknown = {each for each in left if (folded(each[0]), folded(each[1])) not in lower}
    if unknown:
        error = NotSupportedError if statement.kind is StatementKind.DML else RemainsError
        raise error(
            "a statement that calls a stored function or a trigger which leaves a temporary table"
            f" behind ({described(unknown)}): its session on the source may use that later, and"
            " which session of the target has it is not known. Let the routine drop it, or log rows"
            " on the source (binlog_format = ROW)"
        )
    return loaded


@understood("target")
async def _left(connection: Connection) -> set[TableName]:
    """Return the temporary tables of the session that routines can have created."""
    tables: set[TableName] = set()
    for table in await _candidates(connection):
        name = b".".join(map(literals.quoted, table))
        try:
            rows = await connection.query(b"SHOW CREATE TABLE " + name)
        except ServerError:
            continue
        if str(rows[0][1]).startswith(_TEMPORARY):
            tables.add(table)
    return tables


@understood("target")
async def _candidates(connection: Connection) -> set[TableName]:
    """Return the names in all routines; none of them can be in a prepared statement.

    Raises NotSupportedError if the user may not read a routine.
    """
    tables: set[TableName] = set()
    for schema, modes, body in await connection.query(_ROUTINES):
        if body is None:
            raise NotSupportedError(
                "a statement that calls a stored function or a trigger which creates a temporary"
                f" table, while the target does not show all routines of {schema!s}: grant SELECT"
                " ON *.* (on MySQL, SHOW_ROUTINE), so that mtsd sees whether it is dropped again"
            )
        tables.update(_created_in(str(schema), str(modes), str(body)))
    return tables


def _created_in(schema: str, modes: str, body: str) -> Iterator[TableName]:
    """Yield the temporary tables that a routine creates."""
    mode = sum(_MODES.get(each, 0) for each in modes.split(","))
    text = body.encode("utf-8", "surrogateescape")
    words = Words(StatementText(text, SessionContext(sql_mode=mode)))
    while words.passes(_CREATE):
        words.take_words(b"OR", b"REPLACE")
        if not words.at_word(b"TEMPORARY"):
            continue
        words.take()
        words.word()
        words.take_words(b"IF", b"NOT", b"EXISTS")
        database, table = words.take_name()
        yield database or schema, table
