"""Groups of XA transactions: prepared on a worker's session, completed by a later group on any.

Neither commits together with its record, so each is in doubt (`mtsd.replica.ways.in_doubt`). Inside
a branch the worker's row would stay locked until the completion. What shows what became of a group:
the GTID that it ran under; where there are none, what the target has prepared. That is looked at
before the record is written, too: so afterwards it can only be the group that has changed it. A
target without a binary log may lose a GTID in a crash (MySQL 9.7: that of a completion without
changes), so there, too, what is prepared counts.
"""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.prepared_table import PreparedRow
from mtsd.apply.rows.bundle import table_maps
from mtsd.apply.session.xa import RB_ROLLBACK, UNKNOWN_XID, XID_EXISTS
from mtsd.model.error_numbers import ER
from mtsd.model.errors import NotSupportedError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.step import Step, row_events
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.doubtful import Doubtful
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, gtid_for
from mtsd.schedule.batches.xa_pairs import commits
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import NOTHING, WHOLE

log = structlog.get_logger(__name__)

USES_TEMPORARY = (
    "it prepares an XA transaction that uses temporary tables of its session, and on a MariaDB such"
    " a transaction has a session of its own, without them"
)


async def apply_completion(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: FaultHook
) -> None:
    """Commit or roll back what an earlier group has prepared; `row` is its worker's row then.

    Raises as `mtsd.replica.ways.xa_branch.apply_prepare` does.
    """
    xid = required_xid(applier, group)
    gtid = await gtid_for(applier, group, worker)
    record = (await applier.branches.records_of([xid])).get(xid)
    theirs = None
    if record is None or not record.changes:
        theirs = await applier.branches.channel_with(xid)
    if theirs is not None and record is None:
        raise explained(_unknown_xid(), xid, channel=theirs)
    evidence = _evidence(applier, gtid)
    skipped = record is not None and record.skipped
    is_there = theirs is None and not skipped and (evidence or await _is_prepared(applier, xid))
    has_nothing = _has_changed_nothing(record)
    if not is_there and not has_nothing:
        raise explained(_unknown_xid(), xid)
    doubtful = Doubtful(
        applier.records,
        doubt_of(group, worker.id, evidence),
        reached,
        WHOLE if is_there else NOTHING,
        says_done=_GONE if has_nothing else frozenset(),
    )

    async def act() -> None:
        try:
            if is_there:
                await applier.branches.complete(xid, gtid, commits=commits(group))
                return
        except ServerError as error:
            if error.number in doubtful.says_done:
                _log_gone(record)
            raise explained(error, xid) from error
        _log_gone(record)

    await doubtful.carry_out(act, lambda: applier.branches.settle_completed(row, group.number, xid))


def required_xid(applier: Applier, group: Group) -> XaXid:
    """Return a group's xid. Raises NeedsPersonError if the target cannot prepare transactions."""
    if group.xid is None:
        raise TypeError(f"group {group.number} of kind {group.kind.value} without an xid")
    refused = applier.branches.why_not or applier.branches.why_not_named(group.xid)
    if refused is not None:
        failed = FailedGroup.of(group)
        raise NotSupportedError(f"{failed}: {refused}. {failed.way_past}", group=failed)
    return group.xid


async def without_transactions(applier: Applier, steps: tuple[Step, ...], definitions: int) -> str:
    """Return what steps may change that is not transactional on the target; "" if nothing.

    `definitions` is that of `TableQuestions.may_change_without_transactions`.
    """
    maps = frozenset(table_maps(row_events(steps)))
    if maps and not applier.tables.are_safe(maps):
        named = await applier.tables.without_transactions(maps, steps)
        if named:
            return ", ".join(named)
    if await applier.tables.may_change_without_transactions(steps, definitions):
        return "a table that one of its statements names"
    return ""


async def evidence_of_prepare(applier: Applier, xid: XaXid, gtid: str) -> str:
    """Return the GTID that shows whether a group is prepared; "": what the target has prepared.

    Raises ServerError, explained, if that already has the xid.
    """
    evidence = _evidence(applier, gtid)
    if evidence:
        return evidence
    if await _is_prepared(applier, xid):
        raise explained(ServerError(XID_EXISTS, "XAE08", "XAER_DUPID: The XID already exists"), xid)
    return ""


def _evidence(applier: Applier, gtid: str) -> str:
    return gtid if applier.session.is_logged or applier.preserves else ""


async def _is_prepared(applier: Applier, xid: XaXid) -> bool:
    try:
        return await applier.branches.is_prepared(xid)
    except ServerError as error:
        raise explained(error, xid) from error


def _unknown_xid() -> ServerError:
    """Return what a server answers that has not prepared a transaction."""
    return ServerError(UNKNOWN_XID, "XAE04", "XAER_NOTA: Unknown XID")


async def record_skipped(applier: Applier, unit: Sequence[Group], row: WorkerRow) -> None:
    """Record that a group, or a pair, is passed over because of its error.

    Of an XA transaction, the completion is passed over with its prepare: there is nothing to do.
    """
    group = unit[0]
    if group.xid is None or len(unit) > 1:
        await applier.records.settle(row, group.number)
    elif group.kind is GroupKind.XA_PREPARE:
        await applier.branches.settle_prepared(row, skipped_row(group, group.xid))
    else:
        await applier.branches.settle_completed(row, group.number, group.xid)


def skipped_row(group: Group, xid: XaXid) -> PreparedRow:
    """Return the record of a transaction whose prepare is passed over."""
    return replace(prepared_row(group, xid, changes=False), skipped=True)


def has_changed(applier: Applier, *, rows: bool) -> bool:
    """Return whether the branch that was prepared last has changed anything; `rows`: it has some.

    What has changed nothing, its server may forget.
    """
    return applier.branch_rows > 0 or (rows and not applier.rows.may_find_nothing)


def prepared_row(group: Group, xid: XaXid, *, changes: bool) -> PreparedRow:
    """Return the record of a transaction that a group has prepared."""
    return PreparedRow(xid, group.number, group.databases, group.alone, changes)


def explained(error: ServerError, xid: XaXid, *, channel: str | None = None) -> ServerError:
    """Return an error of an XA statement with what it means here.

    `channel` is the other one that has a transaction with that xid.
    """
    meaning = _MEANINGS.get(error.number)
    if channel is not None:
        meaning = _OF_ANOTHER_CHANNEL
    if meaning is None or meaning in error.text:
        return error
    meaning = meaning.format(xid=xid, channel=repr(channel))
    error_in_words = ServerError(error.number, error.sqlstate, f"{error.text}: {meaning}")
    error_in_words.server, error_in_words.warnings, error_in_words.leaves_changes = (
        error.server, error.warnings, error.leaves_changes
    )  # fmt: skip
    return error_in_words


_OF_ANOTHER_CHANNEL = (
    "the transaction {xid} that the target has prepared is that of the channel {channel}, and this"
    " channel has prepared none: it was prepared before replication began, or its group was"
    " skipped. Compare its changes on both servers; when they are equal, skip this group"
)
_MEANINGS: dict[int, str] = {
    UNKNOWN_XID: (
        "the target has not prepared the transaction {xid}. Either it was prepared before"
        " replication began, or its group was skipped, or somebody has committed or rolled it back"
        " there, or the target, a MySQL, has rolled it back in a crash because the xids of what is"
        " prepared have different format ids: compare its changes on both servers; when they are"
        " equal, skip this group"
    ),
    XID_EXISTS: (
        "the target has already prepared a transaction with the xid {xid}, which is not this"
        " channel's: commit or roll it back there (XA RECOVER lists it)"
    ),
    RB_ROLLBACK: (
        "the target has rolled back the transaction {xid} by itself: make its changes there, then"
        " skip this group"
    ),
    ER.XAER_RMERR: "mtsd may not list what the target has prepared: GRANT XA_RECOVER_ADMIN there",
}


def _has_changed_nothing(record: PreparedRow | None) -> bool:
    """Return whether a transaction had nothing to commit, so that its server could forget it."""
    return record is not None and not record.changes


def _log_gone(record: PreparedRow | None) -> None:
    if record is not None and not record.skipped:
        log.info("an XA transaction without changes is no longer prepared", xid=str(record.xid))


_GONE = frozenset({UNKNOWN_XID, RB_ROLLBACK})
"""What a server answers that has forgotten a transaction without changes: a MariaDB the second, if
nothing has logged it."""
