"""Groups that are too large to be held in memory: applied while they are read.

A streamed group has no place in the queues: it waits until everything before it has committed and
is applied by the first worker, chunk by chunk, in its way (`mtsd.replica.ways.streamed_ways`). Its
size is known before it is read; what it changes is known only as it arrives.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn

import structlog

from mtsd.apply.rows.bundle import RowTooLargeError
from mtsd.apply.session.obstacle import obstacle_of, obstacles_here
from mtsd.apply.session.packet_limit import OVER_THE_LIMIT, require_latest_limit
from mtsd.apply.session.retry import worth_a_retry
from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, nothing
from mtsd.model.group import Group, GroupChunk, GroupKind, GroupOpened
from mtsd.model.gtid import GtidSet
from mtsd.model.pulse import Wait
from mtsd.model.step import Statement, Step, row_events
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.report import tables_of, wrong_position
from mtsd.replica.ways.in_doubt import InDoubtWorker
from mtsd.replica.ways.pieces import UNDONE
from mtsd.replica.ways.streamed_failures import (
    StreamedGroupError,
    failed_stream,
    stopped,
    stopped_half,
    streamed,
)
from mtsd.replica.ways.streamed_ways import StreamedWay, streamed_way
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.schedule.wait_cause import WaitCause

log = structlog.get_logger(__name__)

_APPLIED = frozenset({
    GroupKind.ROWS, GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL, GroupKind.XA_PREPARE,
})  # fmt: skip


class StreamedGroups:
    """Applies the streamed groups of a stream, one after another, with the first worker.

    `preserved`: if each group keeps its GTID, those that the target has executed.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        worker: Worker,
        preserved: GtidSet | None = None,
        *,
        reached: FaultHook = nothing,
    ) -> None:
        self._coordinator = coordinator
        self._reached = reached
        self._worker = worker
        self._applier = worker.applier
        self._preserved = preserved
        self._opened: GroupOpened | None = None
        self._passing = False
        """The group was committed by a previous run: its chunks are skipped."""
        self._way: StreamedWay | None = None
        """How it is applied; None where it is not, or has failed."""
        self._skips: ServerError | None = None
        """The error of skip_errors because of which the rest of the group is passed over."""

    @property
    def at_work(self) -> Collection[int]:
        """The indexes of the workers that apply a large group now: it is in no queue."""
        return () if self._opened is None or self._passing else (self._worker.index,)

    def passes(self, opened: GroupOpened) -> bool:
        """Return whether a group is skipped: it has already been applied, or was skipped."""
        return self._coordinator.scheduler.former.has(opened.number) or (
            self._preserved is not None
            and opened.gtid is not None
            and opened.gtid in self._preserved
        )

    async def split(self, group: Group) -> bool:
        """Apply a large group that is in memory in branches; return whether that was done."""
        del group
        return False

    async def open(self, opened: GroupOpened) -> None:
        """Begin a group that can be applied. Raises what an applier does, and NeedsPersonError."""
        self._passing = self.passes(opened)
        if self._coordinator.scheduler.former.must_apply_again(opened.number):
            raise NeedsPersonError(
                f"group {opened.number}, beginning at {opened.begin}, has to be applied once more,"
                " in order, because the last run ended without order. It is larger than"
                " replica.pending_jobs_size_max, which has been lowered since: set that to what it"
                " was, or more, for this start"
            )
        await self._coordinator.drained(WaitCause.STREAMED)
        if not self._passing:
            await self._coordinator.released(self._worker.index)
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._coordinator.passed_in_order(opened.number)
        if self._passing:
            self._opened = opened
            return
        if not self._coordinator.reads_on:
            # After a failure, the worker may still be using its session.
            return
        self._opened = opened
        log.info("streaming a large group", group=opened.number, bytes=opened.length)
        worker = InDoubtWorker(self._worker.index + 1, self._worker.settings.daemon_uuid)
        self._way = streamed_way(
            self._applier,
            self._coordinator,
            opened,
            worker,
            self._reached,
            repeats=opened.number in self._worker.settings.show_themselves,
        )
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._way.open()

    async def chunk(self, chunk: GroupChunk) -> None:
        """Apply the next part of the group.

        Raises StreamedGroupError if the group has to be read again, ApplyError.
        """
        opened, way = self._opened, self._way
        if opened is None or way is None or self._passing or not self._coordinator.reads_on:
            return
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                steps = await way.take(chunk.steps)
                if self._uses_other_session(steps):
                    await self._fail(
                        opened,
                        "it uses temporary tables that are in the session of another worker. Raise"
                        " replica.pending_jobs_size_max above its size, or set"
                        " replica.parallel_workers = 0",
                    )
                if steps:
                    await self._applier.apply_steps(steps)
        except ServerError as error:
            await self._failed(opened, error, row_events(chunk.steps))
        except RowTooLargeError as error:
            if not way.is_half:
                await require_latest_limit(self._applier.session)
            named = ", ".join(tables_of(row_events(chunk.steps))) or "not known"
            await self._fail(opened, f"{error}. Tables of the part that contains it: {named}")
        except NeedsPersonError as error:
            if error.group is not None:
                raise
            await self._fail(opened, str(error))

    async def close(self, group: Group) -> None:
        """Commit the group with its record. Raises as `chunk` does."""
        opened = self._opened
        if opened is None:
            return
        if self._passing:
            self._opened = None
            await self._coordinator.add(group)
            return
        if not self._coordinator.reads_on:
            return
        if group.xid is not None and self._coordinator.scheduler.looks_inside:
            # Triggers of the target, say, may have changed what its databases do not tell.
            group = replace(group, alone=True)
        row = self._worker.progress.row_after((group,))
        way = self._way
        if way is not None:
            if group.rolled_back and way.is_half:
                self._opened = self._way = None
                raise stopped_half(
                    opened,
                    UNDONE.format(what="back on the source, which only its end says"),
                )
            await self._commit(opened, way, group, row)
        skipped = self._skips
        if skipped is not None:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._applier.records.settle(row, group.number)
        elif way is not None and way.definition:
            group = replace(group, steps=way.definition)
            self._coordinator.defined(group)
        self._opened = self._way = self._skips = None
        if group.uses_temporary is not None and skipped is None:
            self._coordinator.scheduler.sessions.assigned(group.uses_temporary, self._worker.index)
            self._applier.temporary.used(group.uses_temporary)
        if (obstacles := obstacles_here()) is not None:
            obstacles.passed(streamed(group.number))
        self._worker.progress.applied(group, row, skipped=skipped)

    async def _commit(
        self, opened: GroupOpened, way: StreamedWay, group: Group, row: WorkerRow
    ) -> None:
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                if group.rolled_back:
                    await self._applier.rollback()
                    await self._applier.begin(group.format_description, group.gtid)
                await way.close(group, row)
        except ServerError as error:
            await self._failed(opened, error)

    async def drop(self) -> None:
        """Leave no trace of a group that does not end. Raises ApplyError if that is impossible."""
        opened, self._opened = self._opened, None
        way, self._way = self._way, None
        self._skips = None
        if opened is None or way is None or self._passing or self._applier.closed:
            return
        if way.is_half:
            raise stopped_half(opened, "its end has not arrived")
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await way.drop()

    def can_apply(self, group: Group) -> bool:
        """Return whether a group of that kind can be streamed, now that its end has arrived."""
        opened = self._opened
        creates = self._skips is not None or (opened is not None and opened.creates_table)
        applied = group.kind in _APPLIED or (group.kind is GroupKind.CREATE_SELECT and creates)
        return self._passing or (not group.unsupported and applied)

    def lacks(self, use: TemporaryUse) -> str:
        """Return why a group cannot be applied in this worker's session; "" if it can.

        Only at its end is it known which session of the source it concerns.
        """
        if self._coordinator.scheduler.sessions.excluded(use.thread, self._worker.index):
            return (
                "a session with the same id as another server's, whose temporary tables are where"
                " large transactions are applied (raise replica.pending_jobs_size_max above its"
                " size)"
            )
        return ""

    def _uses_other_session(self, steps: tuple[Step, ...]) -> bool:
        sessions = self._coordinator.scheduler.sessions
        return any(
            isinstance(step, Statement)
            and bool(step.flags & THREAD_SPECIFIC)
            and sessions.elsewhere(step.query.thread_id, self._worker.index)
            for step in steps
        )

    async def _failed(
        self, opened: GroupOpened, error: ServerError, rows: tuple[bytes, ...] = ()
    ) -> None:
        """Undo what is open; raise what has failed, unless the group is skipped because of it."""
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._applier.undo(error, 0)
            explained = await self._applier.rows.explain(error, rows)
        self._opened = None
        way, self._way = self._way, None
        # Its record says so.
        is_half = way is not None and way.is_half
        if way is not None:
            await way.failed(error)
        if is_half or error.leaves_changes:
            raise stopped_half(opened, str(explained), error.number) from error
        group = failed_stream(opened, explained.number)
        if worth_a_retry(explained):
            if obstacle_of(explained) and (obstacles := obstacles_here()) is not None:
                obstacles.met(streamed(opened.number), explained, 0.0)
            raise StreamedGroupError(group, explained) from error
        skips = way is not None and way.may_be_skipped
        if skips and explained.number in self._worker.settings.skip_errors:
            self._opened = opened
            self._skips = explained
            return
        if explained.number in OVER_THE_LIMIT:
            await require_latest_limit(self._applier.session)
        reason = ". ".join(filter(None, (str(explained), error.warnings)))
        first = wrong_position(explained, group.number, self._worker.settings.first_groups)
        raise stopped(group, reason, f"{first}Fix the target and start again")

    async def _fail(self, opened: GroupOpened, reason: str) -> NoReturn:
        """Undo what is open, and raise the error that needs a person."""
        if self._way is not None and self._way.is_half:
            self._opened = self._way = None
            raise stopped_half(opened, reason)
        await self.drop()
        raise stopped(failed_stream(opened), reason, "Start again then")
