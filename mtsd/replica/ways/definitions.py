"""Groups that commit implicitly: a definition, which may create a table together with its rows.

What fails leaves nothing, but for the few that stop in their middle; then a person is asked.
"""

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import table_maps
from mtsd.apply.statements.unprotected import RemainsError
from mtsd.binlog.sql.repeatable import errors_of_a_second_time
from mtsd.model.errors import ApplyError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.outcome.command import command
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Statement
from mtsd.replica.recovery.verdict import creates_table
from mtsd.replica.ways.created_table import CreatedTable
from mtsd.replica.ways.doubtful import Doubtful, HalfAppliedError
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of_definition
from mtsd.replica.ways.settlements import Settlements
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import Effect, lasts


async def apply_definition(
    applier: Applier,
    group: Group,
    settlements: Settlements,
    worker: InDoubtWorker,
    *,
    repeats: bool = False,
    reached: FaultHook,
) -> None:
    """Apply a group that commits implicitly, and settle it, or owe that.

    If it `repeats`, it may have been applied before, and an error that says so is ignored.
    Raises ServerError with nothing left behind, HalfAppliedError and ConnectionLostError with the
    record left.
    """
    if group.kind is GroupKind.CREATE_SELECT:
        table = CreatedTable(applier, group, worker, reached, repeats=repeats)
        row = settlements.row_after((group,))
        await _apply_table(applier, table, group, row)
        settlements.settled(row)
        return
    record = await doubt_of_definition(applier, group, worker, is_separate=False, repeats=repeats)
    trace_lasts = lasts(
        has_gtid=bool(record.evidence),
        has_thread=bool(record.thread),
        may_be_undone=applier.session.family.undoes_logged and creates_table(record.statement),
    )
    definition = await applier.definitions.ready(group, record.evidence, record.thread)
    doubtful = Doubtful(
        applier.records,
        record,
        reached,
        Effect(lasts=trace_lasts),
        repeats=repeats,
        says_done=(errors_of_a_second_time(StatementText(record.statement)) or frozenset())
        if repeats
        else frozenset(),
    )

    async def act() -> None:
        try:
            await applier.definitions.run(definition)
        except NeedsPersonError:
            # Also releases the GTID.
            await applier.rollback()
            raise

    try:
        await doubtful.carry_out(
            act,
            lambda: settlements.settle(group),
            note=lambda record: settlements.note(record, definition.with_record, anew=repeats),
            owe=lambda: settlements.owe(group, record),
        )
    except HalfAppliedError as error:
        if not isinstance(error.error, RemainsError):
            raise
        raise ApplyError(
            f"group {group.number}{group.end.as_ending}, is applied, but is {error.error}. Drop it"
            " on the source. Then say that it is applied:"
            f" {command('resolve', '--group', str(group.number), '--applied')}, and start again",
            group=FailedGroup.of(group),
        ) from error


async def _apply_table(applier: Applier, table: CreatedTable, group: Group, row: WorkerRow) -> None:
    """Apply a group that creates a table and fills it: as one that is streamed, in one chunk."""
    definition, *rows = group.steps
    if not isinstance(definition, Statement):
        raise TypeError(f"group {group.number} without a statement that creates its table")
    try:
        await table.create(definition)
        if table.is_separate:
            maps = frozenset(table_maps(group.rows))
            named = await applier.tables.without_transactions(maps, group.steps)
            await table.fill(partial=bool(named))
        if not table.is_there:
            await applier.apply_steps(rows)
        await table.end(group, row)
    except ServerError as error:
        await applier.undo(error, 0)
        await table.failed(error)
        if error.leaves_changes:
            raise HalfAppliedError(group.number, error) from error
        raise
    except NeedsPersonError:
        await table.drop()
        raise
