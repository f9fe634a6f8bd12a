"""Groups that commit implicitly: definitions, and CREATE TABLE … SELECT, which has rows as well."""

from collections.abc import Awaitable, Callable, Sequence

from mtsd.apply.session.aside import aside
from mtsd.apply.session.retry import insist
from mtsd.apply.session.session import TargetSession
from mtsd.apply.statements.source_statements import run_statement
from mtsd.binlog.sql.statement import classify, without_start_transaction
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.group import Group
from mtsd.model.step import QueryEvent, Statement, StatementKind, Step


def definition_of(group: Group, thread: int = 0) -> Statement:
    """Return the statement that a group begins with.

    `thread`, if it is not 0, is the thread id that it gets in the target's own binlog. Raises
    NotSupportedError if the group begins with another step.
    """
    step = group.steps[0]
    if not isinstance(step, Statement):
        raise NotSupportedError(f"a step of kind {type(step).__name__} instead of a statement")
    if not thread:
        return step
    return step._replace(query=step.query._replace(thread_id=thread))


async def apply_definition(
    session: TargetSession,
    definition: Statement,
    gtid: str,
    apply_steps: Callable[[Sequence[Step]], Awaitable[None]],
    reached: Reached,
) -> None:
    """Apply a definition under a GTID; "" for an automatic one.

    The session knows the format. Raises ServerError, NotSupportedError, ConnectionLostError.
    """
    try:
        await session.set_gtid(gtid)
        await apply_steps([definition])
        await _end_definition(session, reached)
    except ServerError as error:
        await session.undo(error)
        await session.set_gtid("")
        raise


async def begin_table(session: TargetSession, definition: Statement, gtid: str) -> None:
    """Run a `CREATE TABLE … START TRANSACTION`; its rows come next, then `commit_definition`.

    Until then the server accepts nothing but BINLOG statements, so the session keeps the
    statement's state. After an error, undo is required.
    """
    await session.set_up_for([definition])
    await session.set_gtid(gtid)
    await session.connection.run(b"BEGIN", 1)
    await run_statement(session, definition, definition.query.statement, leaves_state=True)


async def commit_definition(session: TargetSession, reached: Reached) -> None:
    """Commit a table and its rows; after an error, undo is required."""
    await session.connection.run(b"COMMIT", 1)
    await _end(session, reached)


async def _end_definition(session: TargetSession, reached: Reached) -> None:
    """Release the GTID of a definition that wrote nothing; others have committed by themselves.

    So nobody may take an interruption for its failure.
    """
    await insist(session.connection, lambda: session.connection.run(b"COMMIT", 1))
    await _end(session, reached)


async def _end(session: TargetSession, reached: Reached) -> None:
    await session.clean_left()
    await reached(FaultPoint.AFTER_STATEMENT)
    await session.set_gtid("")


def _of_its_table(query: QueryEvent) -> bytes:
    if classify(query.text) is StatementKind.CREATE_SELECT:
        return without_start_transaction(query.text)
    # MariaDB's statement says nothing of the rows.
    return query.statement


async def make_table(session: TargetSession, created: Statement, reached: Reached) -> None:
    """Create the table of a CREATE TABLE … SELECT by itself. Raises ServerError after an undo."""
    query = created.query
    table = await aside(len(query.statement), lambda: _of_its_table(query))
    try:
        await run_statement(session, created, table)
        await reached(FaultPoint.AFTER_STATEMENT)
    except ServerError as error:
        await session.undo(error)
        raise
