"""Groups that commit implicitly: definitions, and CREATE TABLE … SELECT, which has rows as well."""

import re
from typing import Final, NamedTuple

from mtsd.apply.session.aside import aside
from mtsd.apply.session.session import TargetSession, next_gtid
from mtsd.apply.statements.routine_tables import may_create_temporary, run_with_routines
from mtsd.apply.statements.session_tables import SessionTables
from mtsd.apply.statements.source_statements import (
    Entry,
    entry_of,
    run_in_its_state,
    run_statement,
    translated,
    use_of,
)
from mtsd.apply.statements.statements import as_run
from mtsd.binlog.sql.one_statement import surely_one
from mtsd.binlog.sql.statement import classify, without_start_transaction
from mtsd.model.error_numbers import ER
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import Group
from mtsd.model.step import QueryEvent, Statement, StatementKind

_SHARE: Final = 4
"""Of a packet, what leads to a statement's state may take as much: a record comes before it."""
_SHARE_WITH_RECORD: Final = 8
"""And as much a statement with what comes behind it: its record has twice its text."""
_WITH_OTHERS: Final = re.compile(
    rb"(?: (?:ALTER|CREATE|DROP|RENAME|TRUNCATE)\s+(?:TABLE|(?:UNIQUE\s+)?INDEX|USER)"
    rb" | TRUNCATE | GRANT | REVOKE )\b",
    re.IGNORECASE | re.VERBOSE,
)
"""Definitions of tables and accounts. Of a routine, say, a server keeps the text, with the ; that
comes behind it."""
_ALONE: Final = re.compile(
    rb"CREATE\b.*\bSELECT\b | ALTER\b.*\b(?:AS|DEFAULT|ANALYZE|CHECK|OPTIMIZE|REPAIR)\b",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Of these, what may copy rows, compute values, or return rows (ALTER TABLE … CHECK PARTITION)."""


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


class Definition(NamedTuple):
    """A definition that is ready to be run."""

    statement: Statement
    text: bytes
    gtid: str
    """Under which it runs; "" for an automatic one."""
    before: tuple[bytes, ...]
    """What is sent before it, behind its record: if any of that fails, it does not run."""
    entry: Entry | None
    """None if that does not lead to its state."""
    behind: tuple[bytes, ...] = ()
    """The way back, if that and the statement can be in the packet of the record."""

    @property
    def with_record(self) -> tuple[bytes, ...]:
        """What is sent in the packet of its record, behind it, and runs once that has committed."""
        return (*self.before, self.text, *self.behind) if self.behind else self.before


async def ready_definition(
    session: TargetSession, definition: Statement, gtid: str, temporary: SessionTables
) -> Definition:
    """Get a definition ready to be run under a GTID; "" for an automatic one.

    Raises ServerError, NotSupportedError, ConnectionLostError; nothing is open then.
    """
    run, text = await as_run(session, definition, temporary)
    if may_create_temporary(run):
        return Definition(run, text, gtid, (), None)
    entry = await entry_of(session, translated(session, run, text), lacking=False)
    again = session.family.keeps_collation_in_use
    use = use_of(entry.statement.query.database, again=again)
    # Any error makes the server forget the GTID, and the database may be missing.
    before = (*use, *_next_gtid(session, gtid), *entry.sets)
    if sum(map(len, before)) > session.traits.max_allowed_packet // _SHARE:
        return Definition(run, text, gtid, (), None)
    return Definition(run, text, gtid, before, entry, _behind(session, entry, text))


def _behind(session: TargetSession, entry: Entry, text: bytes) -> tuple[bytes, ...]:
    """Return the way back from a definition if both can be in its record's packet, else nothing.

    For example from a CREATE TABLE: it calls no routine, returns no rows, and computes nothing that
    may be too large, of which a warning would tell.
    """
    statement = entry.statement
    if (
        statement.kind is not StatementKind.DDL
        or statement.query.error_code
        or not _WITH_OTHERS.match(text)
        or _ALONE.match(text)
        or not surely_one(text, statement.query.context)
    ):
        return ()
    back = session.states.returning_from_no_call(entry.state, statement.satellites)
    behind = (*back, *_end_of(session))
    length = len(text) + sum(map(len, behind))
    return behind if length <= session.traits.max_allowed_packet // _SHARE_WITH_RECORD else ()


def _end_of(session: TargetSession) -> list[bytes]:
    """Return what ends a definition: its GTID is still taken if it wrote nothing."""
    return [b"COMMIT", *_next_gtid(session, "")]


async def apply_definition(
    session: TargetSession, definition: Definition, temporary: SessionTables, reached: FaultHook
) -> None:
    """Apply a definition; what goes with its record has been sent, and not been answered.

    The session knows the format. Raises ServerError, NotSupportedError, ConnectionLostError.
    """
    statement, entry = definition.statement, definition.entry
    try:
        if entry is not None and await _is_entered(session, entry, definition):
            sent = definition.behind
            await run_in_its_state(
                session, entry.statement, definition.text, leaves_state=True, sent=bool(sent)
            )
        else:
            sent = ()
            await session.set_gtid(definition.gtid)
            known = temporary.of(statement.query.thread_id)
            await run_with_routines(session, statement, definition.text, known)
        temporary.ran(statement)
        # It has committed: nobody may take an interruption for its failure.
        await session.clean_left(_end_of(session), sent=len(sent))
        await reached(FaultPoint.AFTER_STATEMENT)
    except ServerError as error:
        await session.undo(error)
        await session.set_gtid("")
        raise


async def _is_entered(session: TargetSession, entry: Entry, definition: Definition) -> bool:
    """Return whether what comes before a definition, and was sent, has led to its state.

    If not, the target lacks the database. Raises ServerError.
    """
    session.leave_state(entry.state, entry.statement.satellites)
    try:
        await session.connection.receive(len(definition.before), more=bool(definition.behind))
    except ServerError as error:
        if error.number != ER.BAD_DB_ERROR:
            raise
        return False
    return True


def _next_gtid(session: TargetSession, gtid: str) -> list[bytes]:
    return [next_gtid(gtid)] if session.has_gtids else []


async def begin_table(session: TargetSession, definition: Statement, gtid: str) -> None:
    """Run a `CREATE TABLE … START TRANSACTION`; its rows come next, then `commit_definition`.

    Until then the server accepts nothing but BINLOG statements, so the session keeps the
    statement's state. After an error, undo is required.
    """
    await session.set_up_for([definition])
    await session.set_gtid(gtid)
    await session.connection.run(b"BEGIN", 1)
    await run_statement(session, definition, definition.query.statement, leaves_state=True)


async def commit_definition(session: TargetSession, reached: FaultHook) -> None:
    """Commit a table and its rows; after an error, undo is required."""
    await session.connection.run(b"COMMIT", 1)
    await _end(session, reached)


async def _end(session: TargetSession, reached: FaultHook) -> None:
    await session.clean_left(_next_gtid(session, ""))
    await reached(FaultPoint.AFTER_STATEMENT)


def _of_its_table(query: QueryEvent) -> bytes:
    if classify(query.text) is StatementKind.CREATE_SELECT:
        return without_start_transaction(query.text)
    # MariaDB's statement says nothing of the rows.
    return query.statement


async def make_table(session: TargetSession, created: Statement, reached: FaultHook) -> None:
    """Create the table of a CREATE TABLE … SELECT by itself. Raises ServerError after an undo."""
    query = created.query
    table = await aside(len(query.statement), lambda: _of_its_table(query))
    try:
        await run_statement(session, created, table)
        await reached(FaultPoint.AFTER_STATEMENT)
    except ServerError as error:
        await session.undo(error)
        raise
