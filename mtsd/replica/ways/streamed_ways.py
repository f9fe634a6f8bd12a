"""The ways of a group that is applied while it is read, which have one life.

It is `open`, then `take` for each chunk, whose steps are applied after it, and `close`; or `drop`
if the end does not come.
"""

from typing import Protocol

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.model.errors import ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.step import Step
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.ways.choose import Way, choose_streamed
from mtsd.replica.ways.created_table import CreatedTable, definition_of_streamed
from mtsd.replica.ways.doubtful import Doubtful, keep_record
from mtsd.replica.ways.in_doubt import InDoubtWorker, beginning_of
from mtsd.replica.ways.pieces import Pieces
from mtsd.replica.ways.xa_branch import Branch, check_streamed
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.doubt import PARTIAL


class StreamedWay(Protocol):
    """One such group. If a method raises ServerError, `failed` is due, after an undo.

    If it raises another error, `drop` is. NeedsPersonError says why the group cannot be applied.
    """

    @property
    def is_half(self) -> bool:
        """Whether a part of the group has committed, and cannot be undone."""
        ...

    @property
    def may_be_skipped(self) -> bool:
        """Whether skip_errors count for it."""
        ...

    @property
    def definition(self) -> tuple[Step, ...]:
        """The statement that has created its table, if it creates one."""
        ...

    async def open(self) -> None:
        """Begin what can be begun before the first steps."""
        ...

    async def take(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Get ready for the next steps; return what of them is to be applied."""
        ...

    async def close(self, group: Group, row: WorkerRow) -> None:
        """Commit, with the record of the group."""
        ...

    async def drop(self) -> None:
        """Leave no trace of the group, which must not be half applied."""
        ...

    async def failed(self, error: ServerError) -> None:
        """Note that it has failed; the error says whether something remains."""
        ...


def streamed_way(
    applier: Applier,
    coordinator: Coordinator,
    opened: GroupOpened,
    worker: InDoubtWorker,
    reached: FaultHook,
    *,
    repeats: bool,
) -> StreamedWay:
    """Return the way of a group; if it `repeats`, its table may have been created before."""
    way = choose_streamed(opened)
    if way is Way.BRANCH:
        branch = Branch(applier, beginning_of(opened, GroupKind.XA_PREPARE), worker, reached)
        return StreamedBranch(applier, coordinator, branch)
    pieces = Pieces(applier, coordinator, opened, worker.id)
    if way is Way.TABLE:
        group = beginning_of(opened, GroupKind.CREATE_SELECT)
        table = CreatedTable(applier, group, worker, reached, repeats=repeats)
        return StreamedTable(table, pieces)
    return StreamedTransaction(applier, opened, pieces, reached)


class StreamedTransaction:
    """One transaction, or in pieces."""

    may_be_skipped = True
    definition: tuple[Step, ...] = ()

    def __init__(
        self, applier: Applier, opened: GroupOpened, pieces: Pieces, reached: FaultHook
    ) -> None:
        self._applier = applier
        self._opened = opened
        self._pieces = pieces
        self._reached = reached
        self._doubt: Doubtful | None = None

    @property
    def is_half(self) -> bool:
        """See `StreamedWay`."""
        return self._pieces.have_begun

    async def open(self) -> None:
        """See `StreamedWay`."""
        opened = self._opened
        await self._applier.begin(
            opened.format_description,
            opened.gtid,
            timestamp_defaults=opened.timestamp_defaults,
        )

    async def take(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """See `StreamedWay`."""
        return await self._pieces.take(steps, self._go_by_pieces)

    async def _go_by_pieces(self, record: InDoubt) -> None:
        # A former attempt may have left one.
        doubt = Doubtful(self._applier.records, record, self._reached, PARTIAL, repeats=True)
        await doubt.begin(self._applier.commit_in_doubt)
        self._doubt = doubt

    async def close(self, group: Group, row: WorkerRow) -> None:
        """See `StreamedWay`."""
        if self._doubt is None:
            await self._applier.commit(row)
        else:
            await self._doubt.done(lambda: self._applier.records.settle(row, group.number))

    async def drop(self) -> None:
        """See `StreamedWay`."""
        await self._applier.rollback()

    async def failed(self, error: ServerError) -> None:
        """See `StreamedWay`."""
        if error.leaves_changes and not self.is_half:
            await keep_record(self._applier.records, self._pieces.record())


class StreamedTable:
    """A table that is created, and then filled; in pieces, if it was created by itself."""

    may_be_skipped = True

    def __init__(self, table: CreatedTable, pieces: Pieces) -> None:
        self._table = table
        self._pieces = pieces

    @property
    def is_half(self) -> bool:
        """See `StreamedWay`."""
        return self._pieces.have_begun

    @property
    def definition(self) -> tuple[Step, ...]:
        """See `StreamedWay`."""
        return self._table.steps

    async def open(self) -> None:
        """See `StreamedWay`."""

    async def take(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """See `StreamedWay`: the first step creates the table."""
        table = self._table
        if not table.steps:
            await table.create(definition_of_streamed(steps))
            if table.is_separate:
                await table.fill(partial=False)
            steps = steps[1:]
        if table.is_there:
            return ()
        return await self._pieces.take(steps, table.go_by_pieces) if table.is_separate else steps

    async def close(self, group: Group, row: WorkerRow) -> None:
        """See `StreamedWay`."""
        await self._table.end(group, row)

    async def drop(self) -> None:
        """See `StreamedWay`."""
        await self._table.drop()

    async def failed(self, error: ServerError) -> None:
        """See `StreamedWay`."""
        if not self.is_half:
            await self._table.failed(error)


class StreamedBranch:
    """The branch of an XA transaction."""

    is_half = False
    may_be_skipped = False
    definition: tuple[Step, ...] = ()

    def __init__(self, applier: Applier, coordinator: Coordinator, branch: Branch) -> None:
        self._applier = applier
        self._coordinator = coordinator
        self._branch = branch

    async def open(self) -> None:
        """See `StreamedWay`."""

    async def take(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """See `StreamedWay`: the first steps begin the branch."""
        await check_streamed(self._applier, steps, self._coordinator.definitions)
        if not self._branch.has_begun:
            await self._branch.begin(steps)
        return steps

    async def close(self, group: Group, row: WorkerRow) -> None:
        """See `StreamedWay`."""
        if not self._branch.has_begun:
            await self._branch.begin(())
        await self._branch.end(group, row)

    async def drop(self) -> None:
        """See `StreamedWay`."""
        await self._branch.drop()

    async def failed(self, error: ServerError) -> None:
        """See `StreamedWay`."""
        await self._branch.failed(error)
