"""A statement of the source, run by itself on the target: in its session state and database.

This is the only way to a session for a text of the source, but for those that are surely one
statement and share a packet (`mtsd.apply.statements.plain_statements`).
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from mtsd.apply.session.aside import aside
from mtsd.apply.session.retry import insist
from mtsd.apply.session.satellites import before_statement
from mtsd.apply.session.session import NEUTRAL, TargetSession
from mtsd.apply.session.session_state import changes
from mtsd.apply.sql import literals
from mtsd.binlog.bytes.event_type import SUPPRESS_USE
from mtsd.binlog.sql.one_statement import why_not_one
from mtsd.binlog.sql.qualifiers import names
from mtsd.binlog.sql.quoting import quoted
from mtsd.binlog.sql.statement_secrets import first_secret, shown
from mtsd.model.error_numbers import ER
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.step import Duplicates, Statement, StatementKind
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import LoadCounts
from mtsd.wire.understood import understood

_INIT_DB: Final = 0x02
_ITS_NAME: Final = frozenset({"DATABASE", "SCHEMA"})
"""The functions that return the default database."""
_OF_NEUTRAL: Final = re.compile(NEUTRAL.decode())
_NEUTRAL_NAMES: Final = (
    b"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA='information_schema'"
)
_GREATEST_PACKET: Final = 1 << 30
"""The largest max_allowed_packet of any server, in bytes."""


class Entry(NamedTuple):
    """A statement as one of the target, and what leads to its state from the session's own."""

    statement: Statement
    state: dict[bytes, bytes]
    sets: tuple[bytes, ...]
    """In its database, or where it runs without one."""


def translated(session: TargetSession, statement: Statement, text: bytes) -> Statement:
    """Return a statement, which runs as that text, as one of the target.

    Raises NotSupportedError if it cannot be one, or the text looks like several statements;
    ServerError if it is too long.
    """
    translation = session.states.translated(statement)
    if reason := why_not_one(translation.query.text.with_raw(text)):
        raise NotSupportedError(reason)
    session.refuse_longer(len(text))
    return translation


async def entry_of(session: TargetSession, statement: Statement, *, lacking: bool) -> Entry:
    """Return what leads to the state of a translated statement, in its database.

    `lacking`: the target does not have that. Raises NotSupportedError, ServerError.
    """
    collations = await session.known_collations((statement,))
    wanted = session.states.wanted(statement, lacking=lacking)
    sets = (
        before_statement(statement.satellites, collations),
        changes(session.states.own, wanted),
    )
    session.refuse_longer(sum(map(len, sets)) + 1)
    return Entry(statement, wanted, sets)


def use_of(database: str, *, again: bool) -> list[bytes]:
    """Return the statements that make a database the default one; "": as `_use` has it.

    `again`: see `TargetFamily.keeps_collation_in_use`.
    """
    neutral = b"USE `%b`" % NEUTRAL
    if not database:
        return [neutral]
    use = b"USE " + quoted(database, None)
    return [neutral, use] if again else [use]


async def run_statement(
    session: TargetSession,
    statement: Statement,
    text: bytes,
    *,
    then: Callable[[], Awaitable[None]] | None = None,
    leaves_state: bool = False,
    file: AsyncIterator[bytes] | None = None,
) -> LoadCounts | None:
    """Run `text`, which replaces a statement's own text, in its session state and database.

    The state is reset afterwards, even after an error; before that, `then` is awaited. With
    `leaves_state` it is reset only by `clean_left`, or when the transaction is rolled back. A
    statement that failed on the source has to fail with the same error number here; other
    errors are raised. `file` is that of a LOAD DATA, whose counts are returned. Raises
    NotSupportedError before anything is sent if the text looks like several statements.
    """
    statement = translated(session, statement, text)
    lacking = await _use(session, statement)
    entry = await entry_of(session, statement, lacking=lacking)
    session.leave_state(entry.state, statement.satellites)
    await session.connection.run(b";".join(entry.sets), len(entry.sets))
    return await run_in_its_state(
        session, statement, text, then=then, leaves_state=leaves_state, file=file, lacking=lacking
    )


async def run_in_its_state(
    session: TargetSession,
    statement: Statement,
    text: bytes,
    *,
    then: Callable[[], Awaitable[None]] | None = None,
    leaves_state: bool = False,
    file: AsyncIterator[bytes] | None = None,
    lacking: bool = False,
    sent: bool = False,
) -> LoadCounts | None:
    """Run a translated statement, to whose state an `Entry` has led; see `run_statement`.

    `sent`: it was, in a packet with others; what comes behind it there is still to be received.
    Such a text has to be `surely_one`, to return no rows, and to compute no values.
    """
    connection = session.connection
    query = statement.query
    loaded = None
    try:
        await session.reached(FaultPoint.BEFORE_STATEMENT)
        if file is not None:
            loaded = await connection.load(text, _passing(file, session.reached))
            session.changed_rows += loaded.records
            if loaded.skipped or loaded.deleted:
                await _check_loaded(connection, statement, loaded)
            if loaded.warnings:
                await _check_results(session)
        elif sent:
            await session.reached(FaultPoint.STATEMENT_SENT)
            await connection.receive(1, more=True)
        else:
            connection.ask(text)
            await session.reached(FaultPoint.STATEMENT_SENT)
            await connection.results()
            session.changed_rows += connection.affected_rows
            # After CREATE TABLE … START TRANSACTION, SHOW WARNINGS is refused (error 3977).
            if connection.warnings and statement.kind is StatementKind.DML:
                await _check_results(session)
            elif connection.warnings and statement.kind is not StatementKind.CREATE_SELECT:
                # It has committed: an interruption must not look like its failure.
                await insist(connection, lambda: _check_results(session))
        if then is not None:
            await then()
    except ServerError as error:
        if first_secret(text, query.context) is not None:
            error.conceal()
        if error.number != query.error_code:
            await session.undo(error)
            if lacking and error.says(_OF_NEUTRAL):
                raise _unknown_database(query.database) from error
            raise
        if then is not None:
            try:
                await then()
            except ServerError as interrupted:
                await session.undo(interrupted)
                raise
        await session.clean_left()
        return loaded
    if not leaves_state:
        await session.clean_left()
    if query.error_code:
        raise ServerError(
            query.error_code,
            "",
            f"the statement failed with this error on the source but succeeded here:"
            f" {shown(query, 200)!r}",
        )
    return loaded


async def _passing(pieces: AsyncIterator[bytes], reached: FaultHook) -> AsyncIterator[bytes]:
    """Yield the pieces of a file that the target has asked for, with a fault point."""
    await reached(FaultPoint.STATEMENT_SENT)
    async for piece in pieces:
        yield piece


@understood("target")
async def _check_loaded(connection: Connection, statement: Statement, loaded: LoadCounts) -> None:
    """Raise ServerError if a LOAD DATA has left out or replaced rows, unlike on the source."""
    if statement.file is None or statement.file.duplicates is not Duplicates.ERROR:
        return
    for level, number, text in await connection.query(b"SHOW WARNINGS"):
        if level != "Note" and loaded.skipped:
            raise ServerError(
                literals.number(number),
                "",
                f"{text!s}: {loaded.skipped} of {loaded.records} rows of a LOAD DATA that"
                " succeeded on the source would be left out",
            )
    raise ServerError(
        ER.DUP_ENTRY,
        "23000",
        f"{loaded.deleted + loaded.skipped} of {loaded.records} rows of a LOAD DATA that"
        " succeeded on the source have keys that exist on the target",
    )


@understood("target")
async def _check_results(session: TargetSession) -> None:
    """Raise ServerError if the result of a function was too large for the target.

    Outside of strict mode it is NULL then, with a warning. A server's own replica has a limit
    of its own (replica_max_allowed_packet), of 1 GiB. What is larger than that cannot have been
    smaller than the limit of the source: it is NULL on both.
    """
    if session.traits.max_allowed_packet >= _GREATEST_PACKET:
        return
    for _, number, text in await session.connection.query(b"SHOW WARNINGS"):
        if number == ER.WARN_ALLOWED_PACKET_OVERFLOWED:
            raise ServerError(
                ER.WARN_ALLOWED_PACKET_OVERFLOWED,
                "HY000",
                f"{text!s}: raise max_allowed_packet on the target, to that of the source or"
                " more. If the source truncated it too, which it does not log, only 1 GiB"
                " (max_allowed_packet = 1073741824), the limit of a server's own replica, lets"
                " mtsd go on",
            )


@understood("target")
async def _use(session: TargetSession, statement: Statement) -> bool:
    """Make the statement's database the default one; return whether the target lacks it.

    A server has no way to unset a default database. So a statement without one runs in
    information_schema, where nothing can be created, changed or dropped: an unqualified name
    cannot refer to the database of an earlier statement. The same applies to a statement whose
    database does not exist, as long as its names match nothing in information_schema.
    Raises ServerError 1049 if they might.
    """
    query = statement.query
    if query.database:
        if session.family.keeps_collation_in_use:
            await session.connection.command(_INIT_DB, NEUTRAL, answer=True)
        try:
            wanted = query.database.encode("utf-8", "surrogateescape")
            await session.connection.command(_INIT_DB, wanted, answer=True)
        except ServerError as error:
            if error.number != ER.BAD_DB_ERROR:
                raise
        else:
            return False
        # With SUPPRESS_USE the database is what the statement creates or drops, or all of its
        # names are qualified.
        if not statement.flags & SUPPRESS_USE:
            rows = await session.connection.query(_NEUTRAL_NAMES)
            neutral = {str(name).upper() for (name,) in rows} | _ITS_NAME
            named = await aside(len(query.statement), lambda: names(query.text))
            if not neutral.isdisjoint(named):
                raise _unknown_database(query.database)
    await session.connection.command(_INIT_DB, NEUTRAL, answer=True)
    return bool(query.database)


def _unknown_database(database: str) -> ServerError:
    return ServerError(ER.BAD_DB_ERROR, "42000", f"Unknown database '{database}'")
