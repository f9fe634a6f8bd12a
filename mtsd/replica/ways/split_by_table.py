"""A transaction on tables without transactions, split by table (method P2 of WL#4648).

Each worker applies what changes its tables. Tables with transactions come first, so that their
errors leave nothing; what changes the others cannot be undone. So the transaction is in doubt, as
if one worker applied it: if anything is interrupted or fails after its first effect, the record
remains, and each start stops and asks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mtsd.apply.appliers.applier import Applier
from mtsd.model.errors import ApplyError, ConnectionLostError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.step import Rows, state_of_rows
from mtsd.replica.core.report import half_applied
from mtsd.replica.ways.doubtful import Doubtful, HalfAppliedError
from mtsd.replica.ways.in_doubt import doubt_of
from mtsd.replica.ways.split_branches import SplitFailedError
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL

Parts = Sequence[tuple[bytes, ...]]
"""Row events by worker; () for one that has none."""


async def apply_by_table(
    appliers: Sequence[Applier],
    group: Group,
    row: WorkerRow,
    transactional: Parts,
    others: Parts,
    reached: FaultHook,
) -> None:
    """Apply a group with all workers, each with an applier; `row` is what the first one's becomes.

    Nothing else uses their sessions. Raises SplitFailedError with nothing left behind, ApplyError
    and ConnectionLostError with the record left.
    """
    first = appliers[0]
    record = doubt_of(group, 1, kind=GroupKind.NON_TRANSACTIONAL)
    doubt = Doubtful(first.records, record, reached, PARTIAL)
    try:
        await doubt.begin()
    except ServerError as error:
        raise SplitFailedError(str(error)) from error
    used = [(applier, part) for applier, part in zip(appliers, transactional, strict=True) if part]
    errors = await _with_each(len(used), lambda at: _apply(group, *used[at]))
    if any(errors):
        for (applier, _), failure in zip(used, errors, strict=True):
            if isinstance(failure, ServerError):
                await applier.undo(failure, 0)
            else:
                await applier.rollback()
        await doubt.dropped()
        cause = next(filter(None, errors))
        raise SplitFailedError(str(cause)) from cause
    errors = await _with_each(len(used), lambda at: used[at][0].commit_part())
    _stop_half_applied(group, errors)
    left = [(applier, part) for applier, part in zip(appliers, others, strict=True) if part]
    errors = await _with_each(len(left), lambda at: _apply_at_once(group, *left[at]))
    _stop_half_applied(group, errors)
    await doubt.done(lambda: first.records.settle(row, group.number))


async def _apply(group: Group, applier: Applier, part: tuple[bytes, ...]) -> None:
    await applier.begin(group.format_description, None)
    await applier.apply_steps((Rows(part, state_of_rows(group.steps)),))


async def _apply_at_once(group: Group, applier: Applier, part: tuple[bytes, ...]) -> None:
    """Apply statements that commit by themselves: with GTIDs, a server allows no others here."""
    await applier.begin(group.format_description, None)
    await applier.commit_part()
    await applier.apply_steps((Rows(part, state_of_rows(group.steps)),))


async def _with_each(count: int, step: Callable[[int], Awaitable[None]]) -> list[Exception | None]:
    """Take a step with each; return what has failed. Raises ConnectionLostError."""
    done = await asyncio.gather(*map(step, range(count)), return_exceptions=True)
    errors: list[Exception | None] = []
    for outcome in done:
        if isinstance(outcome, ConnectionLostError) or (
            isinstance(outcome, BaseException) and not isinstance(outcome, Exception)
        ):
            raise outcome
        errors.append(outcome if isinstance(outcome, Exception) else None)
    return errors


def _stop_half_applied(group: Group, errors: Sequence[Exception | None]) -> None:
    for error in filter(None, errors):
        half = HalfAppliedError(group.number, SplitFailedError(str(error)))
        raise ApplyError(
            f"{half}. {half_applied(group.number)}, then start again",
            group=FailedGroup.of(group),
        ) from error
