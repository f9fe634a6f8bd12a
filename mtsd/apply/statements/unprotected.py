"""Groups on non-transactional tables: applied once and completely, or known to be partial.

Changes to such a table remain, whatever fails afterwards. So the order is: the record that the
group is in doubt; the group; and, sent together with its end, the settlement, which advances the
worker's row and removes the record. The server continues to the settlement by itself if the daemon
dies in the meantime, and never reaches it if anything in the group has failed.

The rows are inside BEGIN … COMMIT, although that undoes nothing for these tables: the ROLLBACK
after an error then shows by a warning whether something remained (1196; outside of a transaction, a
session that is not logged does not warn). A group that the source has rolled back ends with
ROLLBACK here too: what is transactional in it is undone, the rest remains. One GTID serves only one
statement, because the server uses it up with the first change, so a group of several statements
runs under automatic ones.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from mtsd.apply.rows.bundle import Command, RowTooLargeError, commands, encoded_length
from mtsd.apply.session.session import STATEMENTS_READ, TargetSession, next_gtid
from mtsd.binlog.groups.rewrite import statements_of
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import Group
from mtsd.model.step import LoadFile, Rows, Step


class NotSettledError(NeedsPersonError):
    """A group is applied, but its record could not be written."""

    def __init__(self, number: int, error: ServerError) -> None:
        super().__init__(f"group {number} is applied, but its record cannot be written: {error}")
        self.error = error


class RemainsError(NeedsPersonError):
    """Something other than the server ended a group, of which a part remains, or may."""


def statement_count(group: Group, statement_bytes: int, command_bytes: int) -> int:
    """Return how many statements a group becomes, each of at most `statement_bytes`.

    Raises RowTooLargeError if one of them is larger than a command may be.
    """
    if not _is_rows(group):
        return sum(not isinstance(step, LoadFile) for step in group.steps)
    count = 0
    for part in _row_statements(group, statement_bytes):
        length = encoded_length(len(part))
        if length > command_bytes:
            raise RowTooLargeError(length, command_bytes)
        count += 1
    return count


def _is_rows(group: Group) -> bool:
    return all(isinstance(step, Rows) for step in group.steps)


def _row_statements(group: Group, statement_bytes: int) -> Iterator[bytes]:
    return statements_of(group.rows, statement_bytes, merge=group.row_flags is not None)


async def apply_unprotected(
    session: TargetSession,
    group: Group,
    gtid: str,
    settled: Sequence[bytes],
    apply_steps: Callable[[Sequence[Step]], Awaitable[None]],
    *,
    statement_bytes: int,
    command_bytes: int,
    step_by_step: bool = False,
    reached: FaultHook,
) -> None:
    """Apply a group, then commit the statements of `settled`; the session knows its format.

    `step_by_step`: rows too are applied by `apply_steps`.
    `gtid` is that of a group of one statement, or "" for automatic ones. Raises ServerError, whose
    `leaves_changes` says whether a part of the group remains, RemainsError, NotSettledError,
    ConnectionLostError; any other NeedsPersonError with nothing left behind.
    """
    connection = session.connection
    session.refuse_too_large(group.steps)
    isolation = [] if _is_rows(group) else [STATEMENTS_READ]
    opening = [*_gtid(session, gtid), *isolation, b"BEGIN"]
    # A COMMIT also releases the GTID of a statement that has changed nothing.
    closing = [b"ROLLBACK" if group.rolled_back else b"COMMIT", *_gtid(session, "")]
    settlement = [b"BEGIN", *settled, b"COMMIT"]
    try:
        await session.set_up_for(group.steps)
        if _is_rows(group) and not step_by_step:
            rows = _row_statements(group, statement_bytes)
            last = Command(b"", 0)
            for command in commands(opening, rows, [*closing, *settlement], command_bytes):
                if last.statements:
                    await connection.run(last.sql, last.statements)
                    await reached(FaultPoint.BEFORE_CHUNK)
                last = command
        else:
            await connection.run(b";".join(opening), len(opening))
            if not gtid:
                # Its savepoint would be another transaction in the target's binlog.
                await session.guard()
            await apply_steps(group.steps)
            try:
                await session.unguard()
            except ServerError as error:
                error.leaves_changes = True
                raise
            after = [*closing, *settlement]
            last = Command(b";".join(after), len(after))
        await reached(FaultPoint.BEFORE_COMMIT)
        connection.send(last.sql)
        await reached(FaultPoint.COMMIT_SENT)
        changes = last.statements - len(closing) - len(settlement)
        if changes:
            await connection.receive(changes, more=True)
    except ServerError as error:
        await session.undo(error, unsure=True)
        await session.set_gtid("")
        raise
    except NeedsPersonError as error:
        if connection.closed:
            raise RemainsError(str(error)) from error
        remains = ServerError(0, "", "")
        await session.undo(remains, unsure=True)
        await session.set_gtid("")
        if remains.leaves_changes:
            raise RemainsError(str(error)) from error
        raise
    try:
        await connection.receive(len(closing), more=True)
    except ServerError as error:
        await session.undo(error, unsure=True)
        await session.set_gtid("")
        error.leaves_changes = True
        raise
    await reached(FaultPoint.AFTER_STATEMENT)
    try:
        await connection.receive(len(settlement))
    except ServerError:
        await session.rollback()
        try:
            await session.record(settled)
        except ServerError as error:
            raise NotSettledError(group.number, error) from error
    await reached(FaultPoint.AFTER_SETTLED)


def _gtid(session: TargetSession, gtid: str) -> list[bytes]:
    return [next_gtid(gtid)] if session.has_gtids else []
