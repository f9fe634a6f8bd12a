"""Groups whose commit and whose record cannot be one: recorded before, settled after.

DDL commits by itself. So its group is written to slave_in_doubt first; it runs under a GTID of the
daemon's own, or where the target has none, under a thread id of its own; and then one transaction
moves the worker's row and removes the record. A restart that finds the record looks for that
evidence (`mtsd.replica.evidence`): the statement is not repeated to find out.
"""

import secrets
from collections.abc import Sequence

from mtsd.binlog.repeatable import errors_of_a_second_time
from mtsd.binlog.statement import without_secrets
from mtsd.model.errors import ApplyError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Statement
from mtsd.target import literals
from mtsd.target.binlog_applier import BinlogApplier
from mtsd.target.position_tables import InDoubt, PositionTables
from mtsd.target.session import TargetSession
from mtsd.wire.binlog_status import binlog_status

_STATEMENT_EXCERPT = 65_536
_NOT_ALLOWED = 1227


def evidence_gtid(daemon_uuid: str, number: int) -> str:
    """Return the GTID under which a group in doubt runs on the target."""
    return f"{daemon_uuid}:{number}"


async def apply_in_doubt(
    applier: BinlogApplier,
    tables: PositionTables,
    group: Group,
    *,
    worker_id: int,
    daemon_uuid: str,
    record: Sequence[bytes],
    shows_itself: bool = False,
    reached: Reached,
) -> None:
    """Apply a group that commits by itself; `record` holds the statements of the worker's row.

    With `shows_itself`, it may have been applied before, and an error that says so is none.
    Raises ServerError with nothing left behind, ConnectionLostError with the record left.
    """
    session = applier.session
    # Only where it is logged does the server keep CREATE TABLE … START TRANSACTION open for the
    # rows. Elsewhere the rows commit with their record, and the table shows whether it was made.
    apart = group.kind is GroupKind.CREATE_SELECT and not session.is_logged
    shows_itself = shows_itself or apart
    by_gtid = session.traits.gtid_mode and not apart
    gtid = ""
    if by_gtid:
        own = str(group.gtid) if applier.preserves else ""
        gtid = own or evidence_gtid(daemon_uuid, group.number)
    file, offset = ("", 0) if gtid else await _own_log(session)
    thread = 1 + secrets.randbelow(0xFFFF_FFFF) if file else 0
    statement = _excerpt(group)
    doubt = InDoubt(
        number=group.number,
        worker_id=worker_id,
        end=group.end,
        kind=group.kind.value,
        evidence=gtid,
        source_gtid=str(group.gtid or ""),
        databases=",".join(group.databases),
        statement=statement,
        target_file=file,
        target_offset=offset,
        thread=thread,
    )
    await reached(FaultPoint.BEFORE_IN_DOUBT)
    former = [tables.delete_in_doubt(group.number)] if shows_itself else []
    await session.record([*former, tables.insert_in_doubt(doubt)])
    await reached(FaultPoint.AFTER_IN_DOUBT)
    # The description of the format would reset the GTID below, so it comes first.
    await applier.describe_format(group.format_description)
    try:
        await session.set_gtid(gtid)
        if apart:
            await applier.create_table(group)
        elif group.kind is GroupKind.DDL:
            await applier.run_step(group.steps[0], thread=thread)
        elif group.kind is GroupKind.CREATE_SELECT:
            await applier.create_select(group, thread=thread)
        else:
            await session.connection.run(b"BEGIN", 1)
            await applier.apply_steps(group.steps)
        # Also ends the GTID of a statement that wrote nothing.
        await session.connection.run(b"COMMIT", 1)
    except ServerError as error:
        await session.undo(error)
        if not shows_itself or error.number not in (errors_of_a_second_time(statement) or ()):
            await session.set_gtid("")
            await session.record([tables.delete_in_doubt(group.number)])
            raise
    await reached(FaultPoint.AFTER_STATEMENT)
    await session.set_gtid("")
    await reached(FaultPoint.BEFORE_SETTLED)
    settled = [*record, tables.delete_in_doubt(group.number)]
    if apart:
        await applier.fill_table(group, settled)
        await reached(FaultPoint.AFTER_SETTLED)
        return
    try:
        await session.record(settled)
    except ServerError as error:
        # The group is applied: whoever would try it again must not see this as its failure.
        raise ApplyError(
            f"group {group.number}, ending at {group.end}, is applied, and its record cannot be"
            f" written: {error}. The next start settles it"
        ) from error
    await reached(FaultPoint.AFTER_SETTLED)


async def _own_log(session: TargetSession) -> tuple[str, int]:
    """Return the end of the target's own binlog, where that holds all that the session does.

    ("", 0) where it does not, or where the user may not ask.
    """
    if not session.is_logged:
        return "", 0
    try:
        rows = await session.connection.query(binlog_status(session.traits.version))
    except ServerError as error:
        if error.number != _NOT_ALLOWED:
            raise
        return "", 0
    file, offset, only, ignored, *_ = rows[0]
    return ("", 0) if only or ignored else (str(file), literals.number(offset))


def _excerpt(group: Group) -> bytes:
    for step in group.steps:
        if isinstance(step, Statement):
            query = step.query
            return without_secrets(query.statement, query.context)[:_STATEMENT_EXCERPT]
    return b""
