"""Statements of the source, as they run on the target."""

from typing import Final

from mtsd.apply.session.aside import aside
from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.session import TargetSession
from mtsd.apply.statements.routine_tables import run_with_routines
from mtsd.apply.statements.session_tables import SessionTables
from mtsd.binlog.bytes.event_type import SUPPRESS_USE
from mtsd.binlog.sql.default_database import (
    creates_from_default_database,
    without_default_database,
)
from mtsd.binlog.sql.definer import with_current_definer
from mtsd.binlog.sql.drop_if_there import drop_if_there, in_its_database, may_name_missing_tables
from mtsd.binlog.sql.invoker import with_invoker
from mtsd.binlog.sql.statement import disable_on_replica
from mtsd.binlog.sql.statement_secrets import shown
from mtsd.binlog.sql.temporary_tables import is_rename
from mtsd.model.errors import NotSupportedError
from mtsd.model.server import ServerVersion, of_version
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Statement, StatementKind

_EXCERPT: Final = 200
_DEFINITIONS: Final = frozenset({StatementKind.DDL, StatementKind.EVENT_DDL})


async def apply_statement(
    session: TargetSession, statement: Statement, temporary: SessionTables
) -> None:
    """Run a statement in its own session state; `temporary` are the worker's temporary tables.

    An event of the event scheduler is created disabled: it runs on the source, and its changes
    are replicated. Raises ServerError, NotSupportedError, ConnectionLostError.
    """
    run, text = await as_run(session, statement, temporary)
    await run_with_routines(session, run, text, temporary.of(statement.query.thread_id))
    temporary.ran(run)


async def as_run(
    session: TargetSession, statement: Statement, temporary: SessionTables
) -> tuple[Statement, bytes]:
    """Return a statement and its text as they run on the target. Raises NotSupportedError."""
    query = statement.query
    if (
        statement.kind is StatementKind.DDL
        and temporary.are_in_use
        and not session.family.renames_temporary
        and is_rename(query)
    ):
        raise NotSupportedError(
            "RENAME TABLE of a temporary table, which MySQL does not have:"
            f" {shown(query, _EXCERPT)}"
        )
    return await aside(len(query.statement), lambda: rewritten(session, statement))


def rewritten(session: TargetSession, statement: Statement) -> tuple[Statement, bytes]:
    """Return `as_run` of a statement that is no RENAME TABLE. Raises NotSupportedError."""
    query = statement.query
    text = query.statement
    if not query.database:
        text = _without_default_database(statement)
    elif statement.kind is StatementKind.DROP_TEMPORARY:
        text = in_its_database(query)
        if text is not query.statement:
            statement = statement._replace(flags=statement.flags | SUPPRESS_USE)
    run = query.text.with_raw(text)
    if statement.kind in _DEFINITIONS:
        run = _with_definer(session, run, query.invoker)
    if statement.kind is StatementKind.DROP_TEMPORARY or (
        statement.kind is StatementKind.DDL and may_name_missing_tables(query)
    ):
        run = run.with_raw(drop_if_there(run))
    if statement.kind is StatementKind.EVENT_DDL:
        run = run.with_raw(disable_on_replica(run, _disabled(session.traits.server)))
    return statement, run.raw


def _with_definer(
    session: TargetSession, text: StatementText, invoker: tuple[bytes, bytes] | None
) -> StatementText:
    """Return a definition that names its definer, and the account that CURRENT_USER meant."""
    named = text.with_raw(with_invoker(text, invoker))
    return named if session.keeps_definers else named.with_raw(with_current_definer(named))


def _without_default_database(statement: Statement) -> bytes:
    query = statement.query
    if statement.kind is StatementKind.DML:
        return without_default_database(query.text)
    if creates_from_default_database(query.text):
        raise NotSupportedError(
            "CREATE TABLE … SELECT with DATABASE() in a session without a default database:"
            f" {shown(query, _EXCERPT)}"
        )
    return query.statement


def _disabled(server: ServerVersion) -> bytes:
    """Return the clause of an event that is disabled because it runs on the source."""
    return of_version(TARGETS[server.flavour].disabled_event, server.number)
