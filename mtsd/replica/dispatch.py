"""Takes groups from the source and hands them to the scheduler, one after another."""

import asyncio

import structlog

from mtsd.model.errors import (
    ApplyError,
    ConnectionLostError,
    NeedsPersonError,
    NotSupportedError,
    ServerError,
)
from mtsd.model.group import (
    Group,
    GroupChunk,
    GroupClosed,
    GroupDropped,
    GroupKind,
    GroupOpened,
    StreamItem,
)
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.pulse import Wait
from mtsd.model.step import row_events
from mtsd.replica.coordinator import Coordinator
from mtsd.replica.worker import Worker, contents, tables_of
from mtsd.source.stream import SourceStream, StreamClosedError
from mtsd.target.bundle import RowTooLargeError
from mtsd.target.retry import worth_a_retry

_ROWS = GroupKind.ROWS

log = structlog.get_logger(__name__)


class StreamedGroupError(ConnectionLostError):
    """A streamed group has to be read again from the source: its transaction was rolled back."""

    def __init__(self, number: int, error: ServerError) -> None:
        super().__init__("target", f"streamed group {number} is tried again: {error}")
        self.number = number
        self.error = error


class Dispatcher:
    """The way of a group from the source to its worker's queue.

    A streamed group has no place in the queues: it waits until everything before it has committed
    and is applied by the first worker while it is being read.
    """

    def __init__(
        self,
        stream: SourceStream,
        coordinator: Coordinator,
        streaming_worker: Worker,
        preserved: GtidSet | None = None,
    ) -> None:
        """`preserved`: where each group keeps its GTID, those that the target has executed.

        A server passes over what comes under one of them again.
        """
        self._preserved = preserved
        self._stream = stream
        self._coordinator = coordinator
        self._worker = streaming_worker
        self._opened: GroupOpened | None = None
        self._passing = False
        """The streamed group was committed by a former run: its chunks are passed over."""

    async def run(self) -> None:
        """Dispatch until the stream is closed or the coordinator has ended."""
        # Most groups are rows, and there is room: that way has no await.
        add_at_once = self._coordinator.add_at_once
        pulse = self._coordinator.pulse
        try:
            while not self._stopped():
                pulse.turn()
                # Reading a backlog never waits, and the workers would never get their turn.
                await asyncio.sleep(0)
                items = await self._stream.read()
                for item in items if self._preserved is None else map(self._kept, items):
                    if type(item) is Group:
                        if item.kind is _ROWS and not item.unsupported and add_at_once(item):
                            continue
                        await self._group(item)
                    else:
                        await self._other(item)
                    if self._stopped():
                        break
        except StreamClosedError:
            pass
        finally:
            pulse.waits_for = Wait.END
            if self._opened is not None and not self._worker.applier.session.connection.closed:
                await self._drop()

    def _kept(self, item: StreamItem) -> StreamItem:
        """Return an item with the groups emptied that the target has executed by their GTID."""
        if isinstance(item, GroupOpened):
            _require_gtid(item.gtid, f"{item.number}, streamed for its size,")
        elif isinstance(item, GroupClosed):
            return GroupClosed(self._emptied(item.group))
        return self._emptied(item) if isinstance(item, Group) else item

    def _emptied(self, group: Group) -> Group:
        gtid = _require_gtid(group.gtid, f"{group.number}, ending at {group.end},")
        if self._preserved is None or gtid not in self._preserved:
            return group
        return group._replace(kind=GroupKind.EMPTY, steps=(), size=0, unsupported="")

    async def _group(self, group: Group) -> None:
        if group.kind is GroupKind.INCIDENT or group.unsupported:
            await self._refuse(group.number, group.unsupported, str(group.end), contents(group))
        await self._coordinator.add(group)

    async def _other(self, item: StreamItem) -> None:
        if isinstance(item, GroupOpened):
            await self._open(item)
        elif isinstance(item, GroupChunk):
            await self._chunk(item)
        elif isinstance(item, GroupClosed):
            await self._close(item.group)
        elif isinstance(item, GroupDropped):
            if self._opened is not None:
                await self._drop()
        elif not isinstance(item, Group):
            self._coordinator.reach(item.end, item.gtids)

    async def _refuse(self, number: int, what: str, position: str, contained: str) -> None:
        await self._coordinator.drained()
        if not what:
            raise ApplyError(
                f"the source reports an incident at {position}: events may be missing from its"
                " binlog. Copy the data anew, then set the position behind it"
            )
        raise NotSupportedError(
            f"group {number}, ending at {position}, holds {what}, which this version of mtsd does"
            f" not apply ({contained}). Everything before it has been applied"
        )

    async def _open(self, opened: GroupOpened) -> None:
        if opened.unsupported:
            await self._refuse(opened.number, opened.unsupported, "(streamed)", "a large group")
        self._passing = self._coordinator.scheduler.executed_before(opened.number) or (
            self._preserved is not None
            and opened.gtid is not None
            and opened.gtid in self._preserved
        )
        await self._coordinator.drained()
        self._opened = opened
        if self._passing or self._stopped():
            return
        log.info("streaming a large group", group=opened.number, bytes=opened.length)
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._worker.apply_stream_begin(opened)

    async def _chunk(self, chunk: GroupChunk) -> None:
        opened = self._opened
        if opened is None or self._passing or self._stopped():
            return
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._worker.applier.apply_steps(chunk.steps)
        except ServerError as error:
            await self._failed(opened.number, error)
        except RowTooLargeError as error:
            await self._drop()
            tables = ", ".join(tables_of(row_events(chunk.steps)))
            raise ApplyError(
                f"group {opened.number}, which is streamed for its size, cannot be applied:"
                f" {error}. Tables of the part that it is in:"
                f" {tables or 'not known'}. No later group has been applied. Start again then"
            ) from error

    async def _close(self, group: Group) -> None:
        if self._opened is None or self._stopped():
            return
        if self._passing:
            self._opened = None
            await self._coordinator.add(group)
            return
        if group.unsupported or group.kind not in {GroupKind.ROWS, GroupKind.STATEMENTS}:
            await self._drop()
            await self._refuse(
                group.number,
                group.unsupported or f"a large group of kind {group.kind.value}",
                str(group.end),
                f"databases {', '.join(group.databases)}",
            )
        try:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._worker.commit_stream(group)
        except ServerError as error:
            await self._failed(group.number, error)
        self._opened = None

    async def _failed(self, number: int, error: ServerError) -> None:
        self._opened = None
        with self._coordinator.pulse.waiting(Wait.TARGET):
            await self._worker.applier.session.undo(error)
        if worth_a_retry(error.number):
            raise StreamedGroupError(number, error) from error
        raise ApplyError(
            f"group {number}, which is streamed for its size, cannot be applied: {error}."
            f" {error.warnings} No later group has been applied. Mend the target and start again"
        ) from error

    async def _drop(self) -> None:
        self._opened = None
        if not self._passing:
            with self._coordinator.pulse.waiting(Wait.TARGET):
                await self._worker.applier.rollback()

    def _stopped(self) -> bool:
        return not self._coordinator.reads_on


def _require_gtid(gtid: Gtid | None, group: str) -> Gtid:
    if gtid is None:
        raise NeedsPersonError(
            f"group {group} has no GTID to be applied under: set gtid_mode = ON on the source,"
            ' or [target] gtid = "off"'
        )
    return gtid
