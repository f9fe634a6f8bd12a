"""Large groups of rows, which several workers apply at once (P2 and P3 of WL#4648).

A group that is split runs alone, as a streamed one does: everything before it has committed, and
what comes after it waits. If it cannot be split, it is applied as any other: one that is in memory
by its worker, a streamed one by the first worker, once it has been read again.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import structlog

from mtsd.apply.rows.split_rows import RANGE_BYTES, RowSplitter
from mtsd.model.errors import BinlogError, MtsdError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.group import Group, GroupChunk, GroupOpened
from mtsd.model.gtid import Gtid
from mtsd.model.pulse import Wait
from mtsd.model.session import RowState
from mtsd.model.step import Rows, Step, state_of_rows
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.ways.split_branches import SplitBranches, SplitFailedError
from mtsd.replica.ways.split_by_table import apply_by_table
from mtsd.replica.ways.split_keys import SplitKeys
from mtsd.replica.ways.split_meetings import Meetings
from mtsd.replica.ways.streamed_failures import StreamedGroupError, failed_stream
from mtsd.replica.workers.streamed_groups import StreamedGroups
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.batches.row_branches import NotSplitError
from mtsd.schedule.wait_cause import WaitCause

_RANGES: Final = 16
"""Of rows that stay together, at least, in what is split at a time: each branch gets some."""

log = structlog.get_logger(__name__)


class SplitGroups(StreamedGroups):
    """Applies large groups with all workers, and by `StreamedGroups` what cannot be split.

    Streamed groups up to number `unsplit` are not split: one of them has failed to be. `as_sql`:
    rows are applied as SQL statements. Unless `strict`, a row that is missing is no error.
    `mariadb`: the source is one.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        workers: Sequence[Worker],
        keys: SplitKeys,
        meetings: Meetings,
        *,
        as_sql: bool,
        strict: bool,
        by_table: bool,
        unsplit: int,
        mariadb: bool,
        reached: FaultHook,
    ) -> None:
        super().__init__(coordinator, workers[0], reached=reached)
        self._workers = workers
        self._keys = keys
        self._meetings = meetings
        self._as_sql = as_sql
        self._strict = strict
        self._by_table = by_table
        self._unsplit = unsplit
        self._mariadb = mariadb
        self._splitter: RowSplitter | None = None
        self._branches: SplitBranches | None = None
        self._waits_for_rows: GroupOpened | None = None
        """A streamed group that is split, if its first steps can be."""
        self._is_split: GroupOpened | None = None
        """A streamed group that is being split."""
        self._is_split_by_table = False

    @property
    def at_work(self) -> Collection[int]:
        """See `StreamedGroups`."""
        if self._branches is None and not self._is_split_by_table:
            return super().at_work
        return range(len(self._workers))

    async def split(self, group: Group) -> bool:
        """See `StreamedGroups.split`. Raises ApplyError, ConnectionLostError."""
        coordinator = self._coordinator
        if coordinator.scheduler.former.has(group.number):
            return False
        await self._turn(group.number)
        if not coordinator.reads_on:
            return False
        events = group.rows
        try:
            with coordinator.pulse.waiting(Wait.TARGET):
                splitter = await self._splitter_of(events)
                if self._by_table:
                    transactional, others = splitter.by_engine(events)
                    if others:
                        await self._apply_by_table(group, transactional, others)
                        return True
                splitter.look_through(events)
                if not splitter.divides:
                    self._splitter = None
                    return False
                await self._begin(group.number, group.size, group.gtid, group.format_description)
                state = state_of_rows(group.steps)
                for piece in _pieces(events, self._piece_bytes()):
                    await self._apply(splitter.split(piece), state)
                await self._commit_split(group)
        except (NotSplitError, SplitFailedError, BinlogError, ServerError) as error:
            await self._give_up(group.number, error)
            return False
        return True

    async def open(self, opened: GroupOpened) -> None:
        """See `StreamedGroups`."""
        if opened.xid is not None or opened.number <= self._unsplit or self.passes(opened):
            await super().open(opened)
            return
        await self._turn(opened.number)
        if self._coordinator.reads_on:
            self._waits_for_rows = opened

    async def chunk(self, chunk: GroupChunk) -> None:
        """See `StreamedGroups`; also StreamedGroupError if the group turns out not to be split."""
        opened, self._waits_for_rows = self._waits_for_rows, None
        if opened is not None and self._coordinator.reads_on:
            if not await self._starts_with(opened, chunk.steps):
                await super().open(opened)
                await super().chunk(chunk)
            return
        opened = self._is_split
        if opened is None:
            await super().chunk(chunk)
            return
        if not self._coordinator.reads_on:
            return
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                parts = await self._parts(chunk.steps)
                await self._apply(parts, state_of_rows(chunk.steps))
        except (NotSplitError, SplitFailedError, BinlogError, ServerError) as error:
            await self._read_again(opened, error)

    async def close(self, group: Group) -> None:
        """See `StreamedGroups`."""
        opened, self._waits_for_rows = self._waits_for_rows, None
        if opened is not None and self._coordinator.reads_on:
            # It has no steps.
            await super().open(opened)
        if self._is_split is None:
            await super().close(group)
            return
        if not self._coordinator.reads_on:
            return
        opened = self._is_split
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                if group.rolled_back:
                    raise NotSplitError("the source has rolled it back")
                await self._commit_split(group)
        except (NotSplitError, SplitFailedError) as error:
            await self._read_again(opened, error)

    async def drop(self) -> None:
        """See `StreamedGroups`."""
        self._waits_for_rows = self._is_split = self._splitter = None
        branches, self._branches = self._branches, None
        if branches is not None:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await branches.drop()
        await super().drop()

    async def _turn(self, number: int) -> None:
        """Wait until everything before the group has committed, and no worker is frozen."""
        await self._coordinator.drained(WaitCause.STREAMED)
        for worker in self._workers:
            await self._coordinator.released(worker.index)
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._coordinator.passed_in_order(number)

    async def _starts_with(self, opened: GroupOpened, steps: Sequence[Step]) -> bool:
        """Begin to split a streamed group; return whether that is possible, as far as is known."""
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                parts = await self._parts(steps)
                await self._begin(
                    opened.number, opened.length, opened.gtid, opened.format_description
                )
                self._is_split = opened
                await self._apply(parts, state_of_rows(steps))
        except (NotSplitError, SplitFailedError, BinlogError, ServerError) as error:
            await self._give_up(opened.number, error)
            return False
        return True

    async def _parts(self, steps: Sequence[Step]) -> list[tuple[bytes, ...]]:
        events: list[bytes] = []
        for step in steps:
            if not isinstance(step, Rows):
                raise NotSplitError("it contains statements")
            events += step.events
        splitter = await self._splitter_of(events)
        return splitter.split(events)

    async def _splitter_of(self, events: Sequence[bytes]) -> RowSplitter:
        """Return the splitter of the group, which knows the keys of these events' tables."""
        definitions = self._coordinator.definitions
        splitter = self._splitter
        if splitter is None:
            known = await self._keys.of(frozenset(), definitions)
            splitter = self._splitter = RowSplitter(
                known,
                len(self._workers),
                fold_case=self._keys.fold_case,
                as_sql=self._as_sql,
                strict=self._strict,
                by_table=self._by_table,
                loses_cascade_errors=self._keys.loses_cascade_errors,
                range_bytes=min(RANGE_BYTES, self._piece_bytes() // _RANGES),
                mariadb=self._mariadb,
                whole=self._meetings.tables,
            )
        if lacking := splitter.lacks(events):
            splitter.learn(await self._keys.of(lacking, definitions))
        return splitter

    def _piece_bytes(self) -> int:
        """Return how much of a group in memory is split at a time."""
        return self._coordinator.scheduler.limits.batch_bytes

    async def _begin(
        self, number: int, size: int, gtid: Gtid | None, format_description: bytes
    ) -> None:
        log.info("splitting a large group", group=number, bytes=size, branches=len(self._workers))
        self._branches = SplitBranches(
            [worker.applier for worker in self._workers],
            number,
            str(gtid or ""),
            self._workers[0].settings.daemon_uuid,
            self._meetings,
            self._reached,
        )
        await self._branches.begin(format_description)

    async def _apply(self, parts: Sequence[tuple[bytes, ...]], state: RowState | None) -> None:
        if self._branches is not None:
            await self._branches.apply(parts, state)

    async def _apply_by_table(
        self, group: Group, transactional: Sequence[bytes], others: Sequence[bytes]
    ) -> None:
        """Apply a group that changes tables without transactions."""
        splitter, self._splitter = self._splitter, None
        if splitter is None:
            return
        parts = splitter.split(transactional)
        of_others = splitter.split(others)
        log.info("splitting a large group by table", group=group.number, bytes=group.size)
        worker = self._workers[0]
        row = worker.progress.row_after((group,))
        appliers = [worker.applier for worker in self._workers]
        self._is_split_by_table = True
        try:
            await apply_by_table(appliers, group, row, parts, of_others, self._reached)
        finally:
            self._is_split_by_table = False
        worker.progress.applied(group, row)

    async def _commit_split(self, group: Group) -> None:
        if self._branches is None:
            return
        worker = self._workers[0]
        row = worker.progress.row_after((group,))
        await self._branches.commit(row, group.end, group.databases)
        self._branches = self._splitter = self._is_split = None
        worker.progress.applied(group, row)

    async def _give_up(self, number: int, error: Exception) -> None:
        """Leave nothing of the branches, so that the group can be applied in another way."""
        branches, self._branches = self._branches, None
        splitter, self._splitter = self._splitter, None
        self._is_split = None
        if splitter is not None and isinstance(error, SplitFailedError) and error.has_met:
            # Where it was seen in which of them, no other one has to suffer.
            divided = splitter.divided
            if self._meetings.tables.isdisjoint(divided):
                self._meetings.note(divided)
        log.info("not split", group=number, reason=str(error))
        if branches is not None:
            await branches.drop()

    async def _read_again(self, opened: GroupOpened, error: Exception) -> None:
        await self._give_up(opened.number, error)
        cause = error if isinstance(error, MtsdError) else MtsdError(str(error))
        raise StreamedGroupError(failed_stream(opened), cause, cannot_be_split=True) from error


def _pieces(events: Sequence[bytes], most: int) -> Iterator[Sequence[bytes]]:
    """Yield events in pieces of about so many bytes."""
    begin = size = 0
    for at, event in enumerate(events):
        if size >= most:
            yield events[begin:at]
            begin, size = at, 0
        size += len(event)
    yield events[begin:]
