"""Takes groups from the source and passes them to the scheduler, one after another."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Final, NoReturn

import structlog

from mtsd.model.errors import ApplyError, NeedsPersonError, NotSupportedError
from mtsd.model.group import (
    Group,
    GroupChunk,
    GroupClosed,
    GroupDropped,
    GroupKind,
    GroupOpened,
    LargeGroup,
    StreamItem,
)
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import LogFile
from mtsd.model.pulse import Wait
from mtsd.model.temporary_tables import (
    NOT_KNOWN,
    TableName,
    TemporaryTables,
    TemporaryUse,
    described,
)
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.report import contents
from mtsd.replica.stages.skipped_groups import GroupStream
from mtsd.replica.stages.until_stage import UntilReachedError
from mtsd.replica.ways.streamed_failures import failed_stream
from mtsd.replica.ways.xa_groups import skipped_row
from mtsd.replica.workers.streamed_groups import StreamedGroups
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.temporary_sessions import LostTables
from mtsd.source.stream_end import StreamClosedError

log = structlog.get_logger(__name__)

_AT_ONCE_S: Final = 0.001
"""How long groups are read before workers, to which the target has answered, go on.

One of statements takes many times as long as one of rows. A piece of the stream with hundreds of
them, read at once, would leave the target without work for as long as that takes. Not once a
piece prepares an XA transaction: with its completion, it is one where a worker gets both at once.
"""


class Dispatcher:
    """The path of a group from the source to its worker's queue."""

    def __init__(
        self,
        stream: GroupStream,
        coordinator: Coordinator,
        streamed: StreamedGroups,
        preserved: GtidSet | None = None,
        temporary: TemporaryTables = NOT_KNOWN,
        workers: Sequence[Worker] = (),
        skipped: Iterable[FailedGroup] = (),
    ) -> None:
        """`preserved`: if each group keeps its GTID, those that the target has executed.

        A server skips whatever is sent to it again under one of them. `temporary` are the temporary
        tables that the source has where reading begins: the target has none of them. `workers`
        will have those that are created from there on. `skipped` are those that a person has
        skipped.
        """
        self._lost = LostTables(temporary.by_thread)
        report_lost(temporary.tables)
        self._preserved = preserved
        self._stream = stream
        self._coordinator = coordinator
        self._streamed = streamed
        self._workers = workers
        self._skipped = {group.number for group in skipped}
        self.commit_time: int | None = None
        """That of the large group that it applies, which is in no queue, in µs; None without."""

    @property
    def at_work(self) -> Collection[int]:
        """See `StreamedGroups`."""
        return self._streamed.at_work

    async def run(self) -> None:
        """Dispatch until the stream is closed or the coordinator has ended."""
        # Most groups are rows, and there is room: that path has no await.
        take_in = self._coordinator.take_in
        pulse = self._coordinator.pulse
        try:
            while not self._stopped():
                pulse.turn()
                # Reading a backlog never waits, so the workers would never get to run.
                await asyncio.sleep(0)
                items = await self._stream.read()
                if self._preserved is not None:
                    items = map(self._kept, items)
                began = monotonic()
                prepares = False
                while not self._stopped() and (item := take_in(items)) is not None:
                    if type(item) is Group:
                        await self._group(item)
                        prepares = prepares or item.kind is GroupKind.XA_PREPARE
                        if not prepares and monotonic() - began > _AT_ONCE_S:
                            await asyncio.sleep(0)
                            began = monotonic()
                    else:
                        await self._other(item)
        except StreamClosedError:
            pass
        except UntilReachedError:
            await self._coordinator.drained()
            self._coordinator.finish()
        finally:
            pulse.waits_for = Wait.END
            await self._streamed.drop()

    def _kept(self, item: StreamItem) -> StreamItem:
        """Return an item with those groups emptied whose GTID the target has executed."""
        if isinstance(item, GroupOpened):
            _require_gtid(item.gtid, f"{item.number}, streamed because of its size,")
        elif isinstance(item, GroupClosed):
            return GroupClosed(self._emptied(item.group))
        return self._emptied(item) if isinstance(item, Group) else item

    def _emptied(self, group: Group) -> Group:
        gtid = _require_gtid(group.gtid, f"{group.number}{group.end.as_ending},")
        if self._preserved is None or gtid not in self._preserved:
            return group
        if group.number in self._skipped:
            # Not applied in any case; its GTID counts as executed, but what it prepares is not.
            return group
        return replace(group, kind=GroupKind.EMPTY, steps=(), size=0, unsupported="")

    async def _group(self, group: Group) -> None:
        if group.number in self._skipped:
            await self._pass_over(group)
        cannot = group.kind is GroupKind.INCIDENT or group.unsupported
        if cannot and not self._coordinator.scheduler.former.has(group.number):
            await self._refuse(FailedGroup.of(group), group.unsupported, contents(group))
        if group.uses_temporary is not None:
            await self._require_temporary(group, group.uses_temporary)
        await self._coordinator.add(group)

    async def _pass_over(self, group: Group) -> None:
        """If a skipped group prepares an XA transaction, let its completion complete nothing."""
        if group.kind is not GroupKind.XA_PREPARE or group.xid is None:
            return
        # An earlier transaction of the same xid has the record until it is completed.
        await self._coordinator.drained()
        if not self._stopped():
            branches = self._workers[0].applier.branches
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await branches.note_skipped(skipped_row(group, group.xid))

    async def _require_temporary(self, group: Group, use: TemporaryUse) -> None:
        """Refuse a group if the target lacks the temporary tables of its session."""
        lost = self._lost.of(use.thread)
        applied = self._is_applied(group)
        if applied and (what := self._lacks(use)):
            await self._refuse(FailedGroup.of(group), what, contents(group))
        self._lost.passed(use, applied=applied)
        if more := self._lost.of(use.thread) - lost:
            report_lost(more)

    def _lacks(self, use: TemporaryUse) -> str:
        """Return what a group needs of temporary tables that the target lacks; "" if nothing."""
        lost = self._lost.of(use.thread)
        if use.uses and lost:
            return (
                "a statement that may use a temporary table of its session on the source, of which"
                f" the target has lost {described(lost)}: they were in a session of mtsd that has"
                " ended, or their creation was skipped"
            )
        if not self._coordinator.scheduler.sessions.can_hold(use.thread):
            return (
                "temporary tables of a session with the same id as another server's, which needs"
                " another worker (raise [replica] parallel_workers)"
            )
        return ""

    def _is_applied(self, group: Group) -> bool:
        executed = self._coordinator.scheduler.former.has(group.number)
        return group.kind is not GroupKind.EMPTY and not executed

    async def _other(self, item: StreamItem) -> None:
        if isinstance(item, GroupOpened):
            if item.unsupported and not self._streamed.passes(item):
                await self._refuse(failed_stream(item), item.unsupported, "a large group")
            if not self._streamed.passes(item):
                self.commit_time = item.commit_time
            await self._streamed.open(item)
        elif isinstance(item, GroupChunk):
            await self._streamed.chunk(item)
        elif isinstance(item, GroupClosed):
            await self._close(item.group)
            self.commit_time = None
        elif isinstance(item, GroupDropped):
            await self._streamed.drop()
            self.commit_time = None
        elif isinstance(item, LargeGroup):
            self.commit_time = item.group.commit_time
            if not await self._streamed.split(item.group):
                await self._group(item.group)
            self.commit_time = None
        elif isinstance(item, LogFile):
            self._coordinator.scheduler.gaq.read_file(item)
        elif not isinstance(item, Group):
            if item.temporary is not None:
                self._lost.only(item.temporary.by_thread)
                await self._end_threads(item.temporary)
            self._coordinator.reach(item)

    async def _end_threads(self, temporary: TemporaryTables) -> None:
        """Drop what the target has of threads that have ended with the source.

        What comes next may be of another thread with the same id.
        """
        ended = self._coordinator.scheduler.sessions.ended(temporary.by_thread)
        if not ended:
            return
        await self._coordinator.drained()
        if self._stopped():
            return
        with self._coordinator.pulse.waiting(Wait.TARGET):
            for (_, thread_id), worker in ended.items():
                await self._workers[worker].applier.temporary.end(thread_id)

    async def _close(self, group: Group) -> None:
        if group.number in self._skipped:
            await self._pass_over(group)
        use = group.uses_temporary
        applied = self._is_applied(group)
        lacking = ""
        if use is not None and applied:
            lacking = self._lacks(use) or self._streamed.lacks(use)
        if self._streamed.can_apply(group) and not lacking:
            if use is not None:
                self._lost.passed(use, applied=applied)
            await self._streamed.close(group)
            return
        await self._streamed.drop()
        await self._refuse(
            FailedGroup.of(group),
            group.unsupported or lacking or f"a large group of kind {group.kind.value}",
            f"databases {', '.join(group.databases)}",
        )

    async def _refuse(self, group: FailedGroup, what: str, contained: str) -> NoReturn:
        await self._coordinator.drained()
        if self._stopped():
            # What comes before it may not have been applied: the next start reads it again.
            raise StreamClosedError
        if not what:
            raise ApplyError(
                f"the source reports an incident at {group.end}: events may be missing from its"
                " binlog. Copy the data again, then set the position after it."
                f" {group.way_past}",
                group=group,
            )
        raise NotSupportedError(
            f"{group}, contains {what}, which this version of mtsd does not apply ({contained})."
            f" Everything before it has been applied. {group.way_past}",
            group=group,
        )

    def _stopped(self) -> bool:
        return not self._coordinator.reads_on


def report_lost(tables: Collection[TableName]) -> None:
    """Log which temporary tables of the source the target does not have any more."""
    if tables:
        log.warning(
            "the source has temporary tables that the target has lost: a statement that uses them"
            " stops the replica",
            tables=described(tables),
        )


def _require_gtid(gtid: Gtid | None, group: str) -> Gtid:
    if gtid is None:
        raise NeedsPersonError(
            f"group {group} has no GTID to be applied under: set gtid_mode = ON on the source,"
            ' or [target] gtid = "off"'
        )
    return gtid
