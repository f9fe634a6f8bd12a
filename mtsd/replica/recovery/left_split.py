"""What a restart finds of a transaction that was split, and settles: all of it, or nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.position.split_table import SplitRecord, branch_xid
from mtsd.apply.session.xa import prepared_xids, statement
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import ER
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.xa_xid import XaXid
from mtsd.replica.core.report import half_applied
from mtsd.replica.recovery.verdict import Verdict
from mtsd.schedule.batches.split_settlement import Settlement, settle
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.25

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeftSplit:
    """What a run has left of a split transaction; `xids` are those of its branches, in order."""

    todo: Settlement
    xids: Sequence[XaXid]

    @property
    def verdict(self) -> Verdict:
        """What becomes of the transaction: APPLIED or NOT_APPLIED."""
        return Verdict.APPLIED if self.todo.applied else Verdict.NOT_APPLIED


@understood("target")
async def left_split(
    connection: Connection, tables: PositionTables, doubt: InDoubt, daemon_uuid: str
) -> LeftSplit:
    """Find out what is left of a split transaction, on which nothing else may be working.

    Raises NeedsPersonError if a branch is lost, or the user may not see what is prepared;
    ServerError, ConnectionLostError.
    """
    record = SplitRecord.parse(doubt.statement)
    xids = branch_xids(daemon_uuid, doubt)
    try:
        listed = await prepared_xids(connection)
    except ServerError as error:
        if error.number != ER.XAER_RMERR:
            raise
        raise NeedsPersonError(
            f"group {doubt.number}{doubt.end.as_ending}, was split, and what the target has"
            f" prepared shows what is left of it, but {connection.endpoint.user!r} may not list"
            f" that ({error}): GRANT XA_RECOVER_ADMIN on the target"
        ) from error
    prepared = {branch for branch, xid in enumerate(xids) if xid in listed}
    rows = await connection.query(tables.split.select_branches(doubt.number))
    committed = {literals.number(branch) for (branch,) in rows}
    todo = settle(record.branches, decided=record.decided, prepared=prepared, committed=committed)
    if doubt.resolution:
        applied = doubt.resolution == Verdict.APPLIED.value
        left = tuple(sorted(prepared))
        todo = Settlement(left if applied else (), () if applied else left, applied)
    if todo.lost:
        raise NeedsPersonError(_lost(doubt, record, todo))
    return LeftSplit(todo, xids)


async def complete(connection: Connection, left: LeftSplit) -> None:
    """Commit or roll back what is prepared. Repeating it after an interruption does no harm.

    Raises ServerError, ConnectionLostError.
    """
    for verb, branches in ((b"COMMIT", left.todo.commit), (b"ROLLBACK", left.todo.roll_back)):
        for branch in branches:
            await _complete(connection, statement(verb, left.xids[branch]))


async def settle_split(
    connection: Connection, tables: PositionTables, doubt: InDoubt, daemon_uuid: str
) -> Verdict:
    """Commit what is left of a split transaction, or roll it back; return what it is then.

    APPLIED or NOT_APPLIED. Raises as `left_split` does.
    """
    left = await left_split(connection, tables, doubt, daemon_uuid)
    record = SplitRecord.parse(doubt.statement)
    log.info(
        "settling a split group", group=doubt.number, branches=record.branches,
        decided=record.decided, commit=len(left.todo.commit), roll_back=len(left.todo.roll_back),
    )  # fmt: skip
    await complete(connection, left)
    return left.verdict


def branch_xids(daemon_uuid: str, doubt: InDoubt) -> list[XaXid]:
    """Return the xids of the branches of a split transaction, by their numbers."""
    branches = range(SplitRecord.parse(doubt.statement).branches)
    return [branch_xid(daemon_uuid, doubt.number, branch) for branch in branches]


async def _complete(connection: Connection, sql: bytes) -> None:
    """Complete a branch; its session may have ended just now, and still have it."""
    for attempt in range(_ATTEMPTS):
        try:
            await connection.query(sql)
        except ServerError:
            if attempt == _ATTEMPTS - 1:
                raise
            await asyncio.sleep(_PAUSE_S)
        else:
            return


def _lost(doubt: InDoubt, record: SplitRecord, settlement: Settlement) -> str:
    branches = ", ".join(map(str, settlement.lost))
    what = (
        f"the target has neither committed nor prepared branches {branches} of it, all of which"
        " were prepared: somebody has rolled them back there, or the target has lost them in a"
        " crash"
        if record.decided
        else f"branches {branches} of it are committed, which mtsd has not done: somebody has"
    )
    return (
        f"group {doubt.number}{doubt.end.as_ending}, was split into {record.branches} branches,"
        f" and {what}. {half_applied(doubt.number)}, then start again"
    )
