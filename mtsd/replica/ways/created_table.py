"""The table of a CREATE TABLE … SELECT, whose rows come after it, in chunks if it is streamed.

A target that can create the table and fill it in one transaction does so, under a record that the
group is in doubt. If the end does not come, nothing remains. Elsewhere the table is created by
itself: its rows commit with the record, and until then the table shows by its existence that it
was created. If the end does not come, it stays, with its record, for when the group comes again.
"""

from dataclasses import replace

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.binlog.sql.repeatable import errors_of_a_second_time
from mtsd.model.errors import ApplyError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Statement, StatementKind, Step
from mtsd.replica.ways.doubtful import Doubtful
from mtsd.replica.ways.in_doubt import InDoubtWorker, doubt_of, doubt_of_definition
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL, Effect, Outcome

_FILLS = Effect(noted=False, settles=True)
_FILLS_FOR_EVER = PARTIAL._replace(settles=True)


class CreatedTable:
    """One such group; `group` is what is known of it at its beginning.

    If it `repeats`, the table may have been created before, and an error that says so is ignored.
    The life: `create`; `fill` where it `is_separate`; the rows, unless it `is_there`; `end`. If one
    of them raises ServerError, `failed` is due, after an undo; for other errors, `drop`.
    """

    def __init__(
        self,
        applier: Applier,
        group: Group,
        worker: InDoubtWorker,
        reached: FaultHook,
        *,
        repeats: bool,
    ) -> None:
        self._applier = applier
        self._group = group
        self._worker = worker
        self._reached = reached
        self._repeats = repeats or applier.definitions.has_made_table(group.number)
        self._doubt: Doubtful | None = None
        self.is_separate = not applier.rows.creates_and_fills
        """Whether the table is created by itself, and its rows are an ordinary transaction."""
        self.is_there = False
        """Whether the table was there with its rows already."""
        self._by_pieces = False
        self.steps: tuple[Step, ...] = ()
        """The statement that creates the table, once it has come."""

    async def create(self, definition: Statement) -> None:
        """Create the table. Raises ServerError; ApplyError if that is not possible."""
        applier = self._applier
        query = definition.query
        databases = tuple(filter(None, query.updated_databases or (query.database,)))
        known = self._group.databases or databases
        self.steps = (definition,)
        self._group = group = replace(self._group, steps=self.steps, databases=known)
        record = await doubt_of_definition(
            applier, group, self._worker, is_separate=self.is_separate, repeats=self._repeats
        )
        before = errors_of_a_second_time(query.text) or frozenset()
        self._doubt = doubt = Doubtful(
            applier.records,
            record,
            self._reached,
            repeats=self._repeats,
            says_done=before if self._repeats else frozenset(),
        )
        await doubt.begin()
        try:
            if self.is_separate:
                await applier.definitions.make_table(group)
            else:
                await applier.begin_table(group, record.evidence, record.thread)
        except ServerError as error:
            await applier.undo(error, 0)
            if await self._came_of(error) is not Outcome.DONE:
                raise
            self.is_there = not self.is_separate

    async def fill(self, *, partial: bool) -> None:
        """Begin the transaction of the rows; `partial`: it cannot be rolled back."""
        doubt = self._begun
        if partial:
            half = doubt_of(self._group, self._worker.id, kind=GroupKind.NON_TRANSACTIONAL)
            await doubt.then(_FILLS_FOR_EVER, half)
        else:
            await doubt.then(_FILLS, doubt.record)
        await self._applier.begin(self._group.format_description, self._group.gtid)

    async def go_by_pieces(self, record: InDoubt) -> None:
        """Commit the rows so far: the rest cannot be rolled back, as that record says."""
        await self._begun.then(PARTIAL, record, self._applier.commit_in_doubt)
        self._by_pieces = True

    async def end(self, group: Group, row: WorkerRow) -> None:
        """Commit the rows, and settle the group. Raises ServerError, ApplyError."""
        doubt = self._begun
        if self.is_separate and not self._by_pieces:
            await doubt.done_by(lambda: self._applier.commit_settled(row, group.number))
            return
        if not self.is_separate and not self.is_there:
            await self._applier.commit_table()
        await doubt.done(lambda: self._applier.records.settle(row, group.number))

    async def drop(self) -> None:
        """Roll back what is open. Raises ServerError, ConnectionLostError."""
        await self._applier.rollback()
        if self._doubt is not None:
            await self._doubt.dropped()

    async def failed(self, error: ServerError) -> None:
        """Note that it has failed, after an undo; the error says whether something remains."""
        if self._doubt is not None and self._doubt.is_acting:
            await self._came_of(error)

    async def _came_of(self, error: ServerError) -> Outcome:
        outcome = await self._begun.failed(error)
        # It may have committed in spite of the error.
        error.leaves_changes = error.leaves_changes or outcome is Outcome.REMAINS
        return outcome

    @property
    def _begun(self) -> Doubtful:
        if self._doubt is None:
            raise RuntimeError(f"the table of group {self._group.number} is not created yet")
        return self._doubt


def definition_of_streamed(steps: tuple[Step, ...]) -> Statement:
    """Return the statement that the first steps of a streamed group create its table with.

    Raises ApplyError if it cannot be streamed.
    """
    first = steps[0]
    if not isinstance(first, Statement) or first.kind is not StatementKind.CREATE_SELECT:
        raise ApplyError(
            "it is a CREATE TABLE … SELECT with user variables that are too large to be held"
            " in memory. Raise replica.pending_jobs_size_max above its size"
        )
    if b"REFERENCES" in first.query.statement.upper():
        raise ApplyError(
            "it is a CREATE TABLE … SELECT with foreign keys that is too large to be held in"
            " memory. Raise replica.pending_jobs_size_max above its size"
        )
    return first
