"""What the record of a group in doubt says: by what its effect shows itself.

`mtsd.replica.ways.doubtful` writes it, and a restart judges it (`mtsd.replica.recovery.evidence`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.session.statement_states import is_of_its_thread
from mtsd.binlog.sql.statement_secrets import excerpt
from mtsd.model.errors import ApplyError
from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import NOWHERE
from mtsd.model.step import Statement
from mtsd.replica.recovery.left_prepared import OF_ROWS
from mtsd.schedule.doubt import trace_of_definition


@dataclass(frozen=True, slots=True)
class InDoubtWorker:
    """The identity that groups are applied with: the worker's Id, and the UUID of its GTIDs."""

    id: int
    daemon_uuid: str


def evidence_gtid(daemon_uuid: str, number: int) -> str:
    """Return the GTID that an in-doubt group runs under on the target."""
    return f"{daemon_uuid}:{number}"


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


async def doubt_of_definition(
    applier: Applier, group: Group, worker: InDoubtWorker, *, is_separate: bool, repeats: bool
) -> InDoubt:
    """Return the record of a definition, whether in memory or streamed.

    Raises ServerError, and ApplyError if the group has to keep a GTID that is used up.
    """
    gtid = ""
    if not is_separate:
        gtid = await gtid_for(applier, group, worker, executed=applier.records.has_used)
    trace = trace_of_definition(
        has_gtid=bool(gtid),
        is_separate=is_separate,
        repeats=repeats,
        depends_on_thread=depends_on_thread(group),
    )
    # Beside a GTID, the file tells whether the target has been restarted, and nothing else.
    log = await applier.records.log_position(is_read=trace.thread) if trace.place else ("", 0)
    thread = applier.session.thread_of_its_own() if trace.thread and log[0] else 0
    return doubt_of(group, worker.id, gtid, log, thread)


async def gtid_for(
    applier: Applier,
    group: Group,
    worker: InDoubtWorker,
    *,
    executed: Callable[[str, int], Awaitable[bool]] | None = None,
) -> str:
    """Return the GTID that a group has to run under; "" if it cannot have one of its own.

    Under a GTID that is used up, the server silently skips the group. `executed` is asked for those
    of the daemon, instead of the target.
    """
    if not applier.session.has_gtids:
        return ""
    if not applier.preserves:
        gtid = evidence_gtid(worker.daemon_uuid, group.number)
        if executed is not None:
            return "" if await executed(worker.daemon_uuid, group.number) else gtid
        return "" if await applier.records.has_executed(gtid) else gtid
    own = str(group.gtid)
    if await applier.records.has_executed(own):
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, has GTID {own}, which the target has"
            " already executed, so it would skip the group. If the target's own replica, or another"
            " mtsd, applies the same source, stop that first, and start again. Else, once all of"
            " the group's changes are there, or have been applied manually, say so with"
            f" {FailedGroup.of(group).skip_command}, then start again",
            group=FailedGroup.of(group),
        )
    return own


def depends_on_thread(group: Group) -> bool:
    """Return whether a group may do something else under another thread id.

    It would not find its session's temporary tables, and CONNECTION_ID() would be another.
    """
    step = group.steps[0]
    return group.uses_temporary is not None or (
        isinstance(step, Statement) and is_of_its_thread(step)
    )


def _excerpt(group: Group) -> bytes:
    if group.xid is not None and group.kind is GroupKind.XA_PREPARE:
        return f"XA PREPARE {group.xid}".encode() + (OF_ROWS if group.rows else b"")
    if group.xid is not None and not group.steps:
        return f"XA COMMIT {group.xid}".encode()
    for step in group.steps:
        if isinstance(step, Statement):
            return excerpt(step.query)
    return b""


def beginning_of(opened: GroupOpened, kind: GroupKind) -> Group:
    """Return what is known about a streamed group of that kind before its first steps."""
    return Group(
        number=opened.number,
        kind=kind,
        end=NOWHERE,
        databases=(),
        alone=True,
        steps=(),
        size=0,
        row_flags=None,
        format_description=opened.format_description,
        gtid=opened.gtid,
        last_committed=0,
        sequence_number=0,
        commit_time=opened.commit_time,
        xid=opened.xid,
    )
