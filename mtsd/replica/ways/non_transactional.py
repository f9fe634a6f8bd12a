"""Groups on non-transactional tables: what they have changed cannot be undone.

If one fails or is interrupted after its first effect, its record stays: every start stops and asks,
until a person has said what is there (`mtsd.apply.statements.unprotected`).
"""

from mtsd.apply.appliers.applier import Applier
from mtsd.model.errors import ApplyError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.replica.ways.doubtful import Doubtful
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, gtid_for
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL

_AT_ONCE = PARTIAL._replace(settles=True)
"""Both are settled by the packet that ends them."""


async def apply_unprotected(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: FaultHook
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
    if applier.rows.statement_count(group) == 1 and not group.rolled_back:
        gtid = await gtid_for(applier, group, worker, executed=applier.records.has_used)
    elif applier.preserves:
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, GTID {group.gtid}, changes"
            " non-transactional tables and is too large for one statement, which is all that its"
            " GTID can hold: raise max_allowed_packet on the target, or set [target] gtid to"
            ' a value other than "preserve", then start again',
            group=FailedGroup.of(group),
        )
    doubtful = await _doubtful(applier, group, worker, gtid, reached)
    await doubtful.carry_out(lambda: applier.apply_unprotected(group, gtid, row))


async def apply_under_its_gtid(
    applier: Applier, group: Group, row: WorkerRow, worker: InDoubtWorker, *, reached: FaultHook
) -> None:
    """Apply a transaction of statements under its own GTID, perhaps on non-transactional tables.

    The first statement on such a table would commit the GTID, and a restart would take the group
    for applied: so it is recorded. `row` is what its worker's row becomes. Raises as
    `apply_unprotected` does.
    """
    gtid = await gtid_for(applier, group, worker, executed=applier.records.has_used)
    doubtful = await _doubtful(applier, group, worker, gtid, reached)
    await doubtful.carry_out(lambda: applier.apply_in_order(group, row, in_doubt=True))


async def _doubtful(
    applier: Applier, group: Group, worker: InDoubtWorker, gtid: str, reached: FaultHook
) -> Doubtful:
    log = ("", 0)
    if gtid and applier.session.is_logged:
        log = await applier.records.log_position(is_read=False)
    record = doubt_of(group, worker.id, gtid, log, kind=GroupKind.NON_TRANSACTIONAL)
    return Doubtful(applier.records, record, reached, _AT_ONCE)
