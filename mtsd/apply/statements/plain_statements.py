"""Transactions of plain statements, in as few packets as possible.

A statement of the source runs in the session state that it had there. By itself it costs four round
trips: its database, that state and what its Intvar, Rand and User_var events hold, the statement,
and the way back to the session's own state. What goes wrong is then seen at each of them.

Most statements change rows and leave the session as it was. Those are sent together: before each,
only what differs from the state of the one before, and the way back once, with the commit. The
server stops a packet at the first error, and its answers count the warnings. Whatever is not as
expected is rolled back, and applied again one by one: nothing is decided here that would not be
found out there.

A packet takes as many statements as there are in it, so a text is in one with others only if it is
one statement in every way of reading it. By itself it runs where the server takes no second one.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from mtsd.apply.session.satellites import Collation, before_statement, finds_null, is_geometry
from mtsd.apply.session.session import STATEMENTS_READ, TargetSession, next_gtid
from mtsd.apply.session.session_state import changes
from mtsd.apply.sql import literals
from mtsd.apply.statements.source_statements import use_of
from mtsd.apply.statements.statements import rewritten
from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.binlog.sql.one_statement import surely_one
from mtsd.model.errors import MtsdError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import Group
from mtsd.model.step import Satellite, Statement, StatementKind, UserVar
from mtsd.model.temporary_tables import TableName
from mtsd.schedule.batches.temporary_runs import TemporaryRun

_VERBS_OF: Final = {
    StatementKind.DML: (b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"),
    StatementKind.TEMPORARY: (b"CREATE TEMPORARY ",),
    StatementKind.DROP_TEMPORARY: (b"DROP ",),
}
"""A statement that begins otherwise, with a comment for example, is applied by itself."""
_QUERY: Final = b"SELECT"
_RETURNS_ROWS: Final = b"RETURNING"
_ON_LOCKS: Final = b"_LOCK"
"""In the names of the functions that could release mtsd's own lock."""
_CLIENT: Final = b"character_set_client"
_DATABASE: Final = b"collation_database"
_SET: Final = b"SET "
_END: Final = b";"
_FIRST_PACKET: Final = 48
"""Statements in the first packet of a run."""


class NotPlainError(MtsdError):
    """Statements have to be applied one by one, for this reason."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement of the source, the last of `count` in `sql`, behind those that prepare it.

    `state` is the one that it runs in.
    """

    sql: bytes
    count: int
    state: dict[bytes, bytes]
    may_warn: bool = False
    """Whether a warning of the last one says nothing of what it has done."""


@dataclass(frozen=True, slots=True)
class PlainRun:
    """Statements of the source with all that goes before them, made while they are sent.

    `satellites` are those of all. To take a part may raise NotPlainError.
    """

    parts: Iterator[_Part]
    satellites: tuple[Satellite, ...]


def is_plain(statement: Statement) -> bool:
    """Return whether a statement returns no rows and takes and releases no locks.

    Nor does it fire triggers of tables that it does not name, by a cascade. It changes rows, or
    creates or drops temporary tables.
    """
    verbs = _VERBS_OF[statement.kind]
    text = statement.query.statement[: max(map(len, verbs))].upper()
    if not text.startswith(verbs) or statement.query.context.enable_cascade_triggers:
        return False
    if len(statement.query.statement) > LONGEST_READ:
        return False
    whole = statement.query.statement.upper()
    return _RETURNS_ROWS not in whole and _ON_LOCKS not in whole


async def plain_run(
    session: TargetSession, groups: Sequence[Group], temporary: TemporaryRun
) -> PlainRun:
    """Return what to send for groups of statements, which may not run any routine.

    Raises NotPlainError, as its parts may, ServerError, ConnectionLostError.
    """
    found: list[tuple[Statement, bytes]] = []
    for group in groups:
        instead = _instead(group, temporary.emptied.get(group.number))
        for step in group.steps if group.number not in temporary.behind else ():
            if not isinstance(step, Statement) or not is_plain(step):
                raise NotPlainError("a statement is not plain")
            found.append((step, instead))
    try:
        statements = [session.states.translated(each) for each, _ in found]
        satellites = tuple(each for statement in statements for each in statement.satellites)
        if any(map(is_geometry, satellites)):
            # The block that sets it is not one under every sql_mode that statements before leave.
            raise NotPlainError("a user variable is a geometry")
        collations = await session.known_collations(statements)
    except NotSupportedError as error:
        raise NotPlainError(str(error)) from error
    await _set_up(session, statements)
    texts = [instead for _, instead in found]
    return PlainRun(_parts(session, statements, texts, collations), satellites)


def _parts(
    session: TargetSession,
    statements: Sequence[Statement],
    texts: Sequence[bytes],
    collations: Mapping[int, Collation],
) -> Iterator[_Part]:
    """Yield the parts of statements, of which those with a text run as that. See `PlainRun`."""
    states = session.states
    own = states.own
    state = own
    last: Statement | None = None
    for statement, instead in zip(statements, texts, strict=True):
        sql: list[bytes] = []
        satellites = statement.satellites
        wanted = None if last is None else states.later(state, last, statement)
        if wanted is None or any(isinstance(each, UserVar) for each in satellites):
            wanted = states.wanted(statement, calls_nothing=True)
            sql, state = _moved(session, last, state, statement, wanted)
        try:
            before = before_statement(satellites, collations, finds_null=finds_null(statement))
        except (NotSupportedError, ServerError) as error:
            raise NotPlainError(str(error)) from error
        differing = b"" if wanted is state else changes(state, wanted)
        sets = [each.removeprefix(_SET) for each in (before, differing) if each]
        if sets:
            sql.append(_SET + b",".join(sets))
        state = wanted
        last = statement
        try:
            text = instead or rewritten(session, statement)[1]
        except NotSupportedError as error:
            raise NotPlainError(str(error)) from error
        if not surely_one(text, statement.query.context):
            raise NotPlainError("a text that may not be one statement in each way of reading it")
        sql.append(text)
        yield _Part(_END.join(sql), len(sql), state, _may_warn(statement))


def _moved(
    session: TargetSession,
    last: Statement | None,
    state: dict[bytes, bytes],
    statement: Statement,
    wanted: dict[bytes, bytes],
) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Return what to send before the SETs of a statement behind `last`, and the state after it.

    That is the way to its database, and to the character set of the names in those SETs.
    """
    own = session.states.own
    database = statement.query.database
    moves = (
        last is None
        or database != last.query.database
        or (_DATABASE in state and _DATABASE not in wanted)
    )
    sql: list[bytes] = []
    named = moves or any(isinstance(each, UserVar) for each in statement.satellites)
    if named and state[_CLIENT] != own[_CLIENT]:
        # Names are in the session's own character set.
        state = {**state, _CLIENT: own[_CLIENT]}
        sql.append(b"SET @@session.%b=%b" % (_CLIENT, own[_CLIENT]))
    if moves:
        sql += use_of(database, again=session.family.keeps_collation_in_use)
        state = {name: value for name, value in state.items() if name != _DATABASE}
    return sql, state


def _instead(group: Group, emptied: TableName | None) -> bytes:
    """Return what is sent instead of the one statement of a group; b"" if that itself is.

    A source says in a comment that a session which has ended drops its tables, with their names
    in the character set of the server.
    """
    use, steps = group.uses_temporary, group.steps
    text = b""
    if emptied is not None:
        text = b"DELETE FROM " + _quoted(emptied)
    elif use is not None and len(steps) == 1 and isinstance(steps[0], Statement):
        dropped = use.before - use.left
        if dropped and steps[0].kind is StatementKind.DROP_TEMPORARY:
            text = b"DROP TEMPORARY TABLE IF EXISTS " + b",".join(map(_quoted, sorted(dropped)))
    # Other names are in the character set of the statement.
    return text if text.isascii() else b""


def _quoted(table: TableName) -> bytes:
    return b".".join(map(literals.quoted, table))


def _may_warn(statement: Statement) -> bool:
    """Return whether warnings of a statement say nothing of the rows that it has changed."""
    if statement.kind is StatementKind.TEMPORARY:
        return _QUERY not in statement.query.statement.upper()
    return statement.kind is StatementKind.DROP_TEMPORARY


async def begin_plain(
    session: TargetSession, run: PlainRun, gtid: str, limit: int, reached: FaultHook
) -> None:
    """Begin a transaction, under a GTID if it is not "", and run the statements in it.

    `session.commit_left` must follow. Raises NotPlainError if one of them has left warnings, which
    is all that is known of it, or was several to the target; ServerError, ConnectionLostError;
    `session.undo` or `rollback` must follow each of the first two.
    """
    first = [STATEMENTS_READ, b"BEGIN", *session.guarding()]
    if gtid:
        first.insert(0, next_gtid(gtid))
    begin = _Part(_END.join(first), len(first), session.states.own)
    packets = _packets(chain((begin,), run.parts), limit)
    packet = _next(packets)
    has_warned = False
    while packet is not None:
        if isinstance(packet, NotPlainError):
            raise packet
        session.leave_state(packet[-1].state, run.satellites)
        await reached(FaultPoint.BEFORE_STATEMENT)
        session.connection.send(_END.join(part.sql for part in packet))
        await reached(FaultPoint.STATEMENT_SENT)
        # It is written now, so that the target runs it while the next one is made.
        await asyncio.sleep(0)
        following = _next(packets)
        try:
            answers = await session.connection.receive_answers(sum(part.count for part in packet))
        except NotSupportedError as error:
            raise NotPlainError(str(error)) from error
        at = 0
        for part in packet:
            at += part.count
            has_warned = has_warned or (answers[at - 1].warnings > 0 and not part.may_warn)
        packet = following
    if has_warned:
        raise NotPlainError("one of several statements has left warnings")


def _next(packets: Iterator[list[_Part]]) -> list[_Part] | NotPlainError | None:
    """Return the next packet, or why there is none; None behind the last one."""
    try:
        return next(packets, None)
    except NotPlainError as error:
        return error


async def _set_up(session: TargetSession, statements: Sequence[Statement]) -> None:
    """Set what all statements need, and no transaction can set. Raises NotPlainError."""
    defaults = {each.query.context.explicit_defaults_for_timestamp for each in statements} - {None}
    if len(defaults) > 1:
        raise NotPlainError("statements differ in explicit_defaults_for_timestamp")
    for explicit in defaults:
        await session.set_timestamp_defaults(explicit)


def _packets(parts: Iterable[_Part], limit: int) -> Iterator[list[_Part]]:
    """Yield parts that fit into a packet of `limit` bytes. Raises NotPlainError if one does not.

    Each packet has twice as many as the one before: it is made while the target runs that one,
    and to make a part takes less than to run it. So 500 parts take four round trips.
    """
    packet: list[_Part] = []
    size = 0
    most = _FIRST_PACKET
    for part in parts:
        length = len(part.sql) + 1
        if length > limit:
            raise NotPlainError("a statement is too large for a packet with others")
        if size + length > limit or len(packet) == most:
            yield packet
            packet = []
            size = 0
            most *= 2
        packet.append(part)
        size += length
    yield packet
