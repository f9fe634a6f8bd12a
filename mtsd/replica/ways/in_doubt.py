"""Groups that cannot commit together with their record: recorded before, settled after.

DDL commits implicitly. So its group is written to slave_in_doubt first; it runs under a GTID of the
daemon's own or, if the target has no GTIDs, under a thread id of its own; and then one transaction
advances the worker's row and removes the record. A restart that finds the record looks for that
evidence (`mtsd.replica.recovery.evidence`): the statement is not repeated to find out.

Changes to non-transactional tables can fail after their first effect, which cannot be undone
(`mtsd.apply.statements.unprotected`). Then the record stays: every start stops and asks, until a
person has said what is there.
"""

import asyncio
from dataclasses import dataclass

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.position_tables import InDoubt
from mtsd.apply.rows.bundle import table_maps
from mtsd.apply.session.retry import pause_before
from mtsd.apply.session.statement_states import is_of_its_thread
from mtsd.apply.statements.unprotected import NotSettledError, RemainsError
from mtsd.binlog.sql.repeatable import errors_of_a_second_time
from mtsd.binlog.sql.statement_secrets import excerpt
from mtsd.model.errors import ApplyError, MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.command import command
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Statement
from mtsd.replica.recovery.left_prepared import OF_ROWS
from mtsd.schedule.done.worker_row import WorkerRow

log = structlog.get_logger(__name__)


class HalfAppliedError(NeedsPersonError):
    """A part of a group remained on the target when it failed; its in-doubt record is kept."""

    def __init__(self, number: int, error: MtsdError) -> None:
        super().__init__(
            f"a part of group {number} has been applied and cannot be rolled back, because it is in"
            f" non-transactional tables: {error}"
        )
        self.number = number
        self.error = error


@dataclass(frozen=True, slots=True)
class InDoubtWorker:
    """The identity that groups are applied with: the worker's Id, and the UUID of its GTIDs."""

    id: int
    daemon_uuid: str


def evidence_gtid(daemon_uuid: str, number: int) -> str:
    """Return the GTID that an in-doubt group runs under on the target."""
    return f"{daemon_uuid}:{number}"


async def apply_definition(
    applier: Applier,
    group: Group,
    row: WorkerRow,
    worker: InDoubtWorker,
    *,
    shows_itself: bool = False,
    reached: Reached,
) -> None:
    """Apply a group that commits implicitly; `row` is what its worker's row becomes.

    With `shows_itself`, it may have been applied before, and an error that says so is ignored.
    Raises ServerError with nothing left behind, HalfAppliedError and ConnectionLostError with the
    record left.
    """
    # If the table cannot be created together with its rows, these commit with their record, and the
    # table shows whether it was created.
    apart = group.kind is GroupKind.CREATE_SELECT and not applier.creates_and_fills
    shows_itself = shows_itself or applier.has_made_table(group.number)
    is_new = not shows_itself
    gtid = "" if apart else await gtid_for(applier, group, worker)
    # What shows itself leaves no other trace: a log that lacks it a second time tells nothing.
    traceable = not gtid and not shows_itself and not depends_on_thread(group)
    recorded = (gtid or traceable) and not apart
    log = await applier.log_position() if recorded else ("", 0)
    thread = applier.thread_of_its_own() if traceable and log[0] else 0
    doubt = doubt_of(group, worker.id, gtid, log, thread)
    await reached(FaultPoint.BEFORE_IN_DOUBT)
    await applier.note(doubt, anew=shows_itself)
    await reached(FaultPoint.AFTER_IN_DOUBT)
    try:
        if apart:
            await applier.make_table(group)
        else:
            await applier.run_definition(group, gtid, thread)
    except ServerError as error:
        if error.leaves_changes or (gtid and await applier.has_executed(gtid)):
            await keep_in_doubt(applier, doubt, error)
        if not shows_itself or error.number not in (
            errors_of_a_second_time(StatementText(doubt.statement)) or ()
        ):
            await applier.forget(group.number)
            raise
    except RemainsError as error:
        # Also releases the GTID.
        await applier.rollback()
        await keep_record(applier, doubt_of(group, worker.id, kind=GroupKind.NON_TRANSACTIONAL))
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, is applied, but is {error}. Drop it"
            f" on the source. Then say that it is applied: {_say_applied(group)}, and start again",
            group=FailedGroup.of(group),
        ) from error
    except NeedsPersonError:
        # The statement cannot be sent as it is.
        if is_new:
            await applier.rollback()
            await applier.forget(group.number)
        raise
    await reached(FaultPoint.BEFORE_SETTLED)
    if apart:
        await _fill(applier, group, row, worker, doubt)
        await reached(FaultPoint.AFTER_SETTLED)
        return
    try:
        await applier.settle(row, group.number)
    except ServerError as error:
        # The group is applied: callers must not take this for its failure and retry it.
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, is applied, but its record cannot be"
            f" written: {error}. The next start settles it"
        ) from error
    await reached(FaultPoint.AFTER_SETTLED)


def depends_on_thread(group: Group) -> bool:
    """Return whether a group may do something else under another thread id.

    It would not find its session's temporary tables, and CONNECTION_ID() would be another.
    """
    step = group.steps[0]
    return group.uses_temporary is not None or (
        isinstance(step, Statement) and is_of_its_thread(step)
    )


async def _fill(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, doubt: InDoubt
) -> None:
    """Fill a table that was created by itself; `doubt` is its record, and says so.

    Where its rows cannot be rolled back, the record says that, until they are there.
    """
    maps = frozenset(table_maps(group.rows))
    can_be_undone = not await applier.without_transactions(maps)
    if not can_be_undone:
        kind = GroupKind.NON_TRANSACTIONAL
        await applier.note(doubt_of(group, worker.id, kind=kind), anew=True)
    try:
        await applier.fill_table(group, row)
    except ServerError as error:
        if error.leaves_changes:
            await keep_in_doubt(applier, doubt, error)
        if not can_be_undone:
            await applier.note(doubt, anew=True)
        raise


async def apply_unprotected(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: Reached
) -> None:
    """Apply a group on non-transactional tables; `row` is what its worker's row becomes.

    Raises ServerError with nothing left behind, HalfAppliedError and ConnectionLostError with the
    record left, NeedsPersonError if it cannot be applied as a whole.
    """
    gtid = ""
    if group.rolled_back and applier.preserves:
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, GTID {group.gtid}, was rolled back on"
            " the source after it had changed non-transactional tables, which a server does not"
            " do under a GTID: apply it manually, then skip it, or set [target] gtid to a value"
            ' other than "preserve"',
            group=FailedGroup.of(group),
        )
    if applier.statement_count(group) == 1 and not group.rolled_back:
        gtid = await gtid_for(applier, group, worker)
    elif applier.preserves:
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, GTID {group.gtid}, changes"
            " non-transactional tables and is too large for one statement, which is all that its"
            " GTID can hold: raise max_allowed_packet on the target, or set [target] gtid to"
            ' a value other than "preserve", then start again',
            group=FailedGroup.of(group),
        )
    log = await applier.log_position() if gtid and applier.is_logged else ("", 0)
    doubt = doubt_of(group, worker.id, gtid, log, kind=GroupKind.NON_TRANSACTIONAL)
    await reached(FaultPoint.BEFORE_IN_DOUBT)
    await applier.note(doubt)
    await reached(FaultPoint.AFTER_IN_DOUBT)
    try:
        await applier.apply_unprotected(group, gtid, row)
    except NotSettledError as error:
        raise ApplyError(
            f"{error}. Position {group.end}. Once the target accepts it, say that it is applied:"
            f" {_say_applied(group)}, then start again"
        ) from error
    except RemainsError as error:
        raise HalfAppliedError(group.number, error) from error
    except NeedsPersonError:
        await applier.forget(group.number)
        raise
    except ServerError as error:
        if error.leaves_changes:
            raise HalfAppliedError(group.number, error) from error
        await applier.forget(group.number)
        raise


async def apply_under_its_gtid(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: Reached
) -> None:
    """Apply a transaction of statements under its own GTID, perhaps on non-transactional tables.

    The first statement on such a table would commit the GTID, and a restart would take the group
    for applied: so it is recorded. `row` is what its worker's row becomes. Raises as
    `apply_unprotected` does.
    """
    gtid = await gtid_for(applier, group, worker)
    log = await applier.log_position() if applier.is_logged else ("", 0)
    doubt = doubt_of(group, worker.id, gtid, log, kind=GroupKind.NON_TRANSACTIONAL)
    await reached(FaultPoint.BEFORE_IN_DOUBT)
    await applier.note(doubt)
    await reached(FaultPoint.AFTER_IN_DOUBT)
    try:
        await applier.apply_in_order(group, row, in_doubt=True)
    except NeedsPersonError:
        await applier.forget(group.number)
        raise
    except ServerError as error:
        if error.leaves_changes or await applier.has_executed(gtid):
            raise HalfAppliedError(group.number, error) from error
        await applier.forget(group.number)
        raise


async def keep_in_doubt(applier: Applier, doubt: InDoubt, error: ServerError) -> None:
    """Replace a group's record with one saying that a part remained; raise HalfAppliedError."""
    await keep_record(applier, half_of(doubt))
    raise HalfAppliedError(doubt.number, error) from error


def half_of(doubt: InDoubt) -> InDoubt:
    """Return the record of that group which says that a part of it remained."""
    return InDoubt(
        number=doubt.number,
        worker_id=doubt.worker_id,
        end=doubt.end,
        kind=GroupKind.NON_TRANSACTIONAL.value,
        evidence="",
        source_gtid=doubt.source_gtid,
        databases=doubt.databases,
        statement=doubt.statement,
    )


async def keep_record(applier: Applier, doubt: InDoubt) -> None:
    """Write the record of a group of which a part remains, however long that takes.

    Without it, the group would be tried again, or be applied again by the next start.
    """
    attempt = 0
    while True:
        try:
            await applier.note(doubt, anew=True)
        except ServerError as refused:
            error = refused
        else:
            return
        attempt += 1
        pause = pause_before(attempt)
        log.error(
            "a part of a group has been applied, and cannot be rolled back; the record that keeps"
            " it from being applied again cannot be written: let the target accept it",
            group=doubt.number, position=str(doubt.end), error=str(error), next_try_s=pause,
        )  # fmt: skip
        await asyncio.sleep(pause)


def doubt_of(
    group: Group,
    worker_id: int,
    gtid: str = "",
    log: tuple[str, int] = ("", 0),
    thread: int = 0,
    *,
    kind: GroupKind | None = None,
) -> InDoubt:
    """Return the record of a group, which runs under a GTID or a thread id of its own, or neither.

    `log` is the end of the target's own binlog before it.
    """
    return InDoubt(
        number=group.number,
        worker_id=worker_id,
        end=group.end,
        kind=(kind or group.kind).value,
        evidence=gtid,
        source_gtid=str(group.gtid or ""),
        databases=",".join(group.databases),
        statement=_excerpt(group),
        target_file=log[0],
        target_offset=log[1],
        thread=thread,
    )


async def gtid_for(applier: Applier, group: Group, worker: InDoubtWorker) -> str:
    """Return the GTID that a group has to run under; "" if it cannot have one of its own.

    Under a GTID that is used up, the server silently skips the group.
    """
    if not applier.has_gtids:
        return ""
    if not applier.preserves:
        gtid = evidence_gtid(worker.daemon_uuid, group.number)
        return "" if await applier.has_executed(gtid) else gtid
    own = str(group.gtid)
    if await applier.has_executed(own):
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, has GTID {own}, which the target has"
            " already executed, so it would skip the group: once all of the group's changes are"
            " there, or have been applied manually, say so with"
            f" {FailedGroup.of(group).skip_command}, then start again",
            group=FailedGroup.of(group),
        )
    return own


def _say_applied(group: Group) -> str:
    return command("resolve", "--group", str(group.number), "--applied")


def _excerpt(group: Group) -> bytes:
    if group.xid is not None and group.kind is GroupKind.XA_PREPARE:
        return f"XA PREPARE {group.xid}".encode() + (OF_ROWS if group.rows else b"")
    if group.xid is not None and not group.steps:
        return f"XA COMMIT {group.xid}".encode()
    for step in group.steps:
        if isinstance(step, Statement):
            return excerpt(step.query)
    return b""
