"""The table of a streamed CREATE TABLE … SELECT: created with the group's first rows.

As with one that is held in memory (`mtsd.replica.ways.in_doubt`), a target that can create the
table and fill it in one transaction does so, under a record that the group is in doubt. If the end
does not come, nothing remains. Elsewhere the table is created by itself, and stays, with its
record: the group fills it when it comes again.
"""

from mtsd.apply.appliers.applier import Applier
from mtsd.binlog.sql.repeatable import errors_of_a_second_time
from mtsd.model.errors import ApplyError, NeedsPersonError, ServerError
from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import NOWHERE
from mtsd.model.step import Statement, StatementKind, Step
from mtsd.replica.ways.in_doubt import InDoubtWorker, depends_on_thread, doubt_of, gtid_for
from mtsd.replica.ways.xa_groups import not_settled
from mtsd.schedule.done.worker_row import WorkerRow


class StreamedTable:
    """Begins with the group's first steps, of which the first one creates the table.

    `shows_itself`: it may have been created before, and an error that says so is ignored.
    """

    def __init__(
        self, applier: Applier, opened: GroupOpened, worker: InDoubtWorker, *, shows_itself: bool
    ) -> None:
        self._applier = applier
        self._opened = opened
        self._worker = worker
        self.is_apart = not applier.creates_and_fills
        """Whether the table is created by itself, and its rows are an ordinary transaction."""
        self._shows_itself = shows_itself or applier.has_made_table(opened.number)
        self._gtid = ""
        self._noted = False
        """Whether there is a record to be removed when the group is rolled back."""
        self.is_there = False
        """Whether the table was there with its rows already."""
        self.definition: tuple[Step, ...] = ()

    async def begin(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Create the table, if these are the first steps; return what comes after that.

        Raises ServerError, after which undo is required, and ApplyError if it cannot be applied.
        """
        if self.definition:
            return () if self.is_there else steps
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
        self.definition = (first,)
        group = _known_of(self._opened, first)
        if self.is_apart:
            await self._make(group)
        else:
            await self._create(group)
        return () if self.is_there else steps[1:]

    async def end(self, group: Group, row: WorkerRow) -> None:
        """Commit the rows, and record that. Raises ServerError, after which undo is required."""
        if self.is_apart:
            await self._applier.commit_settled(row, group.number)
            return
        if not self.is_there:
            await self._applier.commit_table()
        self._noted = False
        try:
            await self._applier.settle(row, group.number)
        except ServerError as error:
            raise not_settled(FailedGroup.of(group), error) from error

    async def drop(self) -> None:
        """Roll back what is open. Raises ServerError, ConnectionLostError."""
        await self._applier.rollback()
        await self._forget()

    async def failed(self, error: ServerError) -> None:
        """Remove the record, after undo, of a group that has left nothing behind."""
        if self._gtid and await self._applier.has_executed(self._gtid):
            # It has committed in spite of the error.
            error.leaves_changes = True
        if error.leaves_changes:
            self._noted = False
        await self._forget()

    async def _make(self, group: Group) -> None:
        applier = self._applier
        await applier.note(doubt_of(group, self._worker.id), anew=self._shows_itself)
        try:
            await applier.make_table(group)
        except ServerError as error:
            if not self._shows_itself or error.number not in _second_time(group):
                self._noted = not self._shows_itself
                raise
        except NeedsPersonError:
            self._noted = not self._shows_itself
            raise
        await applier.begin(group.format_description, group.gtid)

    async def _create(self, group: Group) -> None:
        applier = self._applier
        self._gtid = await gtid_for(applier, group, self._worker)
        traceable = not self._gtid and not depends_on_thread(group)
        log = await applier.log_position() if traceable else ("", 0)
        thread = applier.thread_of_its_own() if log[0] else 0
        doubt = doubt_of(group, self._worker.id, self._gtid, log, thread)
        await applier.note(doubt, anew=self._shows_itself)
        self._noted = True
        try:
            await applier.begin_table(group, self._gtid, thread)
        except ServerError as error:
            if not self._shows_itself or error.number not in _second_time(group):
                raise
            await applier.undo(error, 0)
            self.is_there = True

    async def _forget(self) -> None:
        if self._noted:
            self._noted = False
            await self._applier.forget(self._opened.number)


def _second_time(group: Group) -> frozenset[int]:
    (definition,) = group.steps
    if not isinstance(definition, Statement):
        raise TypeError(f"group {group.number} without a statement that creates its table")
    query = definition.query
    return errors_of_a_second_time(query.text) or frozenset()


def _known_of(opened: GroupOpened, definition: Statement) -> Group:
    """Return what is known about a group before its end."""
    query = definition.query
    return Group(
        number=opened.number,
        kind=GroupKind.CREATE_SELECT,
        end=NOWHERE,
        databases=tuple(filter(None, query.updated_databases or (query.database,))),
        alone=True,
        steps=(definition,),
        size=0,
        row_flags=None,
        format_description=opened.format_description,
        gtid=opened.gtid,
        last_committed=0,
        sequence_number=0,
        commit_time=opened.commit_time,
    )
