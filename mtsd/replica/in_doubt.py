"""Groups whose commit and whose record cannot be one: recorded before, settled after.

DDL commits by itself. So its group is written to slave_in_doubt first; it runs under a GTID of the
daemon's own; and then one transaction moves the worker's row and removes the record. A restart
that finds the record asks the target whether that GTID was executed: the statement is never
repeated to find out.
"""

from collections.abc import Sequence

from mtsd.binlog.event_type import EventType
from mtsd.binlog.query import parse_query
from mtsd.model.errors import ApplyError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.group import Group, GroupKind
from mtsd.target.binlog_applier import BinlogApplier
from mtsd.target.position_tables import InDoubt, PositionTables
from mtsd.wire.connection import Connection

_STATEMENT_EXCERPT = 65_536


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
    reached: Reached,
) -> None:
    """Apply a group that commits by itself; `record` holds the statements of the worker's row.

    Raises ServerError with nothing left behind, ConnectionLostError with the record left.
    """
    session = applier.session
    gtid = evidence_gtid(daemon_uuid, group.number) if session.traits.gtid_mode else ""
    doubt = InDoubt(
        number=group.number,
        worker_id=worker_id,
        end=group.end,
        kind=group.kind.value,
        evidence=gtid,
        source_gtid=str(group.gtid or ""),
        databases=",".join(group.databases),
        statement=_excerpt(group),
    )
    await reached(FaultPoint.BEFORE_IN_DOUBT)
    await session.record([tables.insert_in_doubt(doubt)])
    await reached(FaultPoint.AFTER_IN_DOUBT)
    # The description of the format would reset the GTID below, so it comes first.
    await applier.describe_format(group.format_description)
    try:
        await session.set_gtid(gtid)
        if group.kind is GroupKind.DDL:
            await applier.run_query(group.events[0])
        elif group.kind is GroupKind.CREATE_SELECT:
            await applier.create_select(group)
        else:
            await session.connection.run(b"BEGIN", 1)
            await applier.apply_events(group.events)
        # Also ends the GTID of a statement that wrote nothing.
        await session.connection.run(b"COMMIT", 1)
    except ServerError as error:
        await session.undo(error)
        await session.set_gtid("")
        await session.record([tables.delete_in_doubt(group.number)])
        raise
    await reached(FaultPoint.AFTER_STATEMENT)
    await session.set_gtid("")
    await reached(FaultPoint.BEFORE_SETTLED)
    try:
        await session.record([*record, tables.delete_in_doubt(group.number)])
    except ServerError as error:
        # The group is applied: whoever would try it again must not see this as its failure.
        raise ApplyError(
            f"group {group.number}, ending at {group.end}, is applied, and its record cannot be"
            f" written: {error}. The next start settles it by its GTID"
        ) from error
    await reached(FaultPoint.AFTER_SETTLED)


async def has_happened(connection: Connection, doubt: InDoubt) -> bool:
    """Tell by the evidence whether a group in doubt was applied.

    Raises NeedsPersonError where there is no evidence either way.
    """
    where = f"group {doubt.number}, ending at {doubt.end}, in databases {doubt.databases!r}"
    if not doubt.evidence:
        raise NeedsPersonError(
            f"{where} was being applied when mtsd or the target was killed, and the target has no"
            f" GTIDs to tell whether it happened: {doubt.statement[:200]!r}. Look, and delete its"
            " row of slave_in_doubt if it did not happen; set gtid_mode = ON on the target"
        )
    rows = await connection.query(
        b"SELECT GTID_SUBSET('%b', @@global.gtid_executed)" % doubt.evidence.encode("ascii")
    )
    happened = rows[0][0] == 1
    if not happened and doubt.kind == GroupKind.NON_TRANSACTIONAL.value:
        raise NeedsPersonError(
            f"{where} changes a table without transactions and was cut off: part of it may have"
            " been applied. Compare its rows with the source's"
        )
    return happened


def _excerpt(group: Group) -> bytes:
    for event in group.events:
        if event[4] == EventType.QUERY_EVENT:
            return parse_query(event).statement[:_STATEMENT_EXCERPT]
    return b""
