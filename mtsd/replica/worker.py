"""A worker: takes what the scheduler gives it, and applies it with its record in one commit."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from mtsd.binlog.event_type import EventType
from mtsd.binlog.statement import without_secrets
from mtsd.binlog.table_map import parse_table_map
from mtsd.model.errors import (
    ApplyError,
    MtsdError,
    NeedsPersonError,
    NotSupportedError,
    ServerError,
)
from mtsd.model.fault_points import FaultPoint, Reached
from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.step import QueryEvent, Statement
from mtsd.replica.coordinator import Coordinator
from mtsd.replica.in_doubt import apply_in_doubt
from mtsd.schedule.worker_row import WorkerRow
from mtsd.target.binlog_applier import BinlogApplier, Bundle, together
from mtsd.target.bundle import RowTooLargeError
from mtsd.target.position_tables import PositionTables
from mtsd.target.retry import INTERRUPTED, pause_before, worth_a_retry
from mtsd.wire.refusal import remedy_of

_PACKETS = 2
"""The one that the server works on, and one that it finds when it is done with that."""
_PACKET_BYTES = 1 << 16
_PACKET_BATCHES = 16
"""What shares a packet: more saves nothing, and is applied for nothing if one before it fails."""
_TABLE_MAP = EventType.TABLE_MAP_EVENT

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker needs to know of the settings."""

    transaction_retries: int
    skip_errors: frozenset[int]
    daemon_uuid: str
    show_themselves: frozenset[int]
    """See `mtsd.replica.recovery.Recovered`."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch on its way, and the row that it commits."""

    batch: tuple[Group, ...]
    row: WorkerRow


class Worker:
    """Worker `index` (its Id in the tables is one more), on a session of its own."""

    def __init__(
        self,
        index: int,
        applier: BinlogApplier,
        tables: PositionTables,
        coordinator: Coordinator,
        row: WorkerRow,
        settings: WorkerSettings,
        reached: Reached,
    ) -> None:
        self.index = index
        self.applier = applier
        self.row = row
        self._tables = tables
        self._coordinator = coordinator
        self.settings = settings
        """May be changed at any time: the next attempt goes by it."""
        self._reached = reached
        self._begun: deque[tuple[Group, ...]] = deque()
        """Batches that the coordinator has given, and that were not sent yet."""
        self.transactions = 0
        """Target transactions committed."""
        self.groups = 0
        self.retries = 0
        self.skipped = 0
        """Groups passed over by skip_errors."""
        self.busy_seconds = 0.0
        self.last: Group | None = None

    async def run(self) -> None:
        """Apply batch after batch until the coordinator has no more."""
        clock = asyncio.get_running_loop().time
        while batch := await self._coordinator.work(self.index):
            began = clock()
            self._begun.append(batch)
            try:
                while self._begun and self._coordinator.failure is None:
                    await self._apply_next()
            except RowTooLargeError as error:
                raise self._too_large(error) from error
            finally:
                self.busy_seconds += clock() - began

    async def apply_stream_begin(self, opened: GroupOpened) -> None:
        """Begin a streamed group."""
        await self.applier.begin(opened.format_description, opened.gtid)

    async def commit_stream(self, group: Group) -> None:
        """Commit a streamed group with its record."""
        row, record = self._record((group,), self.row)
        await self.applier.commit(record)
        self._count(row, (group,))
        self._coordinator.add_committed(group)

    async def _apply_next(self) -> None:
        """Apply the first batch that is begun, and others that follow it."""
        batch = self._begun[0]
        if batch[0].kind is GroupKind.ROWS:
            await self._apply_rows()
            return
        self._begun.popleft()
        try:
            row = await self._apply_once(batch)
        except ServerError as error:
            await self._retry(batch[0], error)
        else:
            self._committed(row, batch)

    async def _apply_rows(self) -> None:
        """Apply batches of rows, one packet ahead, until one has to wait or none is there."""
        batches = self._next_batches()
        sent, bundle = self._packet(batches, self.row)
        try:
            await self.applier.begin_bundle(bundle)
            while sent:
                # What is begun by now cannot follow: it waits until nothing is on its way.
                if not self._begun and self.applier.packets_on_their_way < _PACKETS:
                    await self._send_ahead(sent)
                await self.applier.finish_transaction()
                first = sent.popleft()
                self._committed(first.row, first.batch)
        except ServerError as error:
            if len(sent) == len(sent[0].batch) == 1:
                await self._retry(sent[0].batch[0], error)
            else:
                for each in sent:
                    await self._replay(each.batch)

    async def _send_ahead(self, sent: deque[_Sent]) -> None:
        """Send the next packet behind the one that the server works on, if there is a full one.

        The server does not wait for us between them then.
        """
        if self._coordinator.failure is not None:
            return
        batches = self._next_batches()
        if not batches:
            return
        try:
            more, bundle = self._packet(batches, sent[-1].row)
        except NeedsPersonError:
            # Raised again at its turn: now an answer is still to come on the connection.
            self._begun.extendleft(reversed(batches))
            return
        if not self.applier.can_follow(bundle):
            self._begun.extendleft(each.batch for each in reversed(more))
            return
        sent.extend(more)
        await self.applier.follow(bundle)

    def _next_batches(self) -> list[tuple[Group, ...]]:
        """Return the first batch that is begun or can be, and what may share its packet."""
        batches: list[tuple[Group, ...]] = []
        room = _PACKET_BYTES
        while room > 0 and len(batches) < _PACKET_BATCHES:
            batch = self._begun.popleft() if self._begun else ()
            batch = batch or self._coordinator.work_ahead(self.index)
            if not batch:
                break
            if batches and (self.applier.preserves or not _may_share_packet(batches[0], batch)):
                self._begun.append(batch)
                break
            batches.append(batch)
            room -= sum(group.size for group in batch)
        return batches

    def _packet(
        self, batches: Sequence[tuple[Group, ...]], after: WorkerRow
    ) -> tuple[deque[_Sent], Bundle]:
        """Return what to send of batches, at least the first, each a transaction of its own.

        The first follows on the row `after`. Only the last one moves the row's token, by which
        what is sent next finds it: that fails, then, where any of these has failed. What does not
        fit in is begun, and waits.
        """
        sent: deque[_Sent] = deque()
        bundles: list[Bundle] = []
        row = after
        for batch in batches:
            row, bundle = self._bundle(batch, row, same_token=batch is not batches[-1])
            sent.append(_Sent(batch, row))
            bundles.append(bundle)
        if len(bundles) > 1 and not all(bundle.is_one_statement for bundle in bundles):
            self._begun.extendleft(reversed(batches[1:]))
            return self._packet(batches[:1], after)
        return sent, together(bundles)

    async def _replay(self, batch: tuple[Group, ...]) -> None:
        await self._reached(FaultPoint.BEFORE_REPLAY)
        for group in batch:
            try:
                row = await self._apply_once((group,))
            except ServerError as error:
                await self._retry(group, error)
                continue
            self._committed(row, (group,))

    async def _retry(self, group: Group, error: ServerError) -> None:
        attempt = 0
        while True:
            if _may_pass(error, group) and attempt < self.settings.transaction_retries:
                attempt += 1
                self.retries += 1
                log.info(
                    "retrying", worker=self.index + 1, group=group.number, attempt=attempt,
                    error=error.number,
                )  # fmt: skip
                await asyncio.sleep(pause_before(attempt))
            elif not await self._at_its_turn(group):
                break
            try:
                row = await self._apply_once((group,))
            except ServerError as again:
                error = again
                continue
            self._committed(row, (group,))
            return
        if error.number not in self.settings.skip_errors:
            raise self._report(group, error, remedy_of(error) or "Mend the target") from error
        log.warning(
            "group skipped by skip_errors", worker=self.index + 1, group=group.number,
            position=str(group.end), gtid=str(group.gtid or ""), error=str(error),
        )  # fmt: skip
        self.skipped += 1
        row, record = self._record((group,), self.row)
        await self.applier.session.record(record)
        self._committed(row, (group,))

    async def _at_its_turn(self, group: Group) -> bool:
        """Wait until all earlier groups have committed; tell whether that was any wait.

        What a group only reads or refers to is no partition of it: a definition may need one of
        another database, that is still under way. It is the group's own fault only at its turn.
        """
        coordinator = self._coordinator
        if coordinator.scheduler.queue.number >= group.number - 1:
            return False
        await coordinator.turn(group.number)
        return coordinator.scheduler.queue.number >= group.number - 1

    async def _apply_once(self, batch: tuple[Group, ...]) -> WorkerRow:
        first = batch[0]
        kind = first.kind
        if kind is GroupKind.ROWS:
            row, bundle = self._bundle(batch, self.row)
            await self.applier.apply_bundle(bundle)
            return row
        row, record = self._record(batch, self.row)
        if kind is GroupKind.STATEMENTS:
            await self.applier.apply_in_order(first, record)
        elif kind in _COMMIT_BY_THEMSELVES:
            await apply_in_doubt(
                self.applier,
                self._tables,
                first,
                worker_id=self.index + 1,
                daemon_uuid=self.settings.daemon_uuid,
                record=record,
                shows_itself=first.number in self.settings.show_themselves,
                reached=self._reached,
            )
        else:
            raise NotSupportedError(f"a group of kind {kind.value} cannot be applied")
        return row

    def _record(self, batch: Sequence[Group], after: WorkerRow) -> tuple[WorkerRow, list[bytes]]:
        """Return the row that follows on `after` with the batch, and the statement that sets it."""
        row = after.advanced(batch, self._coordinator.scheduler.stored)
        return row, [self._tables.workers.update(row)]

    def _bundle(
        self, batch: Sequence[Group], after: WorkerRow, *, same_token: bool = False
    ) -> tuple[WorkerRow, Bundle]:
        """Return the row that follows on `after` with a batch of rows, and the bundle of both.

        The bundle fails where the table holds no row with the token of `after`.
        """
        stored = self._coordinator.scheduler.stored
        row = after.advanced(batch, stored, same_token=same_token)

        def record(last: bytes, flags: int) -> tuple[bytes, bytes]:
            return self._tables.workers.events(row, after, last, flags)

        return row, self.applier.bundle(batch, record)

    def _committed(self, row: WorkerRow, batch: Sequence[Group]) -> None:
        self._count(row, batch)
        self._coordinator.committed(self.index, batch)

    def _count(self, row: WorkerRow, batch: Sequence[Group]) -> None:
        self.row = row
        self.transactions += 1
        self.groups += len(batch)
        self.last = batch[-1]

    def _too_large(self, error: RowTooLargeError) -> ApplyError:
        running = self._coordinator.scheduler.workers[self.index].running
        return self._report(max(running, key=_longest_event), error, "Do that")

    def _report(self, group: Group, error: MtsdError, remedy: str) -> ApplyError:
        queue = self._coordinator.scheduler.queue
        later = queue.highest_done > group.number
        aftermath = (
            f"Later groups up to {queue.highest_done} have been applied already: the next start"
            " fills the gap by itself, nothing has to be set."
            if later
            else "No later group has been applied."
        )
        warnings = error.warnings if isinstance(error, ServerError) else ""
        said = f" Warnings: {warnings}." if warnings else ""
        return ApplyError(
            f"group {group.number} cannot be applied: {error}.{said}"
            f" Position {group.end}, GTID {group.gtid or 'none'}, databases"
            f" {', '.join(group.databases) or 'none'}, worker {self.index + 1},"
            f" {contents(group)}. {aftermath} {remedy}, then start again"
        )


def _longest_event(group: Group) -> int:
    return max(map(len, group.rows))


def _may_pass(error: ServerError, group: Group) -> bool:
    """Tell whether a group may go through at the next attempt; half of it may not stay behind."""
    whole = error.number != INTERRUPTED or group.kind is not GroupKind.NON_TRANSACTIONAL
    return worth_a_retry(error.number) and whole


def _may_share_packet(first: Sequence[Group], batch: Sequence[Group]) -> bool:
    """Tell whether a batch may go with others in a packet: each is to be one statement."""
    return (
        batch[0].kind is GroupKind.ROWS
        and batch[0].format_description == first[0].format_description
        and batch[0].row_flags is not None
        and len({group.row_flags for group in batch}) == 1
    )


def contents(group: Group) -> str:
    """Return the tables of a group's rows, or its statement, for a message."""
    for step in group.steps:
        if isinstance(step, Statement):
            return f"statement {shown(step.query)!r}"
    return f"tables {', '.join(tables_of(group.rows))}"


def tables_of(events: Sequence[bytes]) -> Sequence[str]:
    """Return the names of the tables whose definitions are among the events."""
    tables: dict[str, None] = {}
    for event in events:
        if event[4] == _TABLE_MAP:
            table = parse_table_map(event)
            tables[f"{table.database}.{table.table}"] = None
    return tuple(tables)


def shown(query: QueryEvent) -> str:
    """Return the beginning of a statement, without passwords."""
    return without_secrets(query.statement, query.context)[:500].decode("utf-8", "replace")


_COMMIT_BY_THEMSELVES = frozenset({
    GroupKind.DDL, GroupKind.CREATE_SELECT, GroupKind.NON_TRANSACTIONAL,
})  # fmt: skip
