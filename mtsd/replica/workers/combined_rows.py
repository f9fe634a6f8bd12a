"""Batches of rows in one commit each, one packet ahead, or held open before their turn."""

from collections.abc import Sequence

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.rows.bundle import Bundle
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import GroupKind
from mtsd.replica.core.worker_progress import WorkerProgress
from mtsd.replica.ways.choose import RowsWay
from mtsd.replica.ways.held_batches import can_be_held, make
from mtsd.replica.ways.overlapping import Overlapping
from mtsd.replica.ways.single_groups import SingleGroups
from mtsd.replica.workers.attempts import Attempts
from mtsd.replica.workers.commit_order import CommitOrder
from mtsd.schedule.batches.in_flight import Batch, Packet
from mtsd.schedule.batches.side_by_side import are_large


class CombinedRows:
    """Applies the batches of one worker that are `BatchWay.COMBINED`.

    What fails is rolled back, and applied by `attempts`, group by group.
    """

    def __init__(
        self,
        applier: Applier,
        progress: WorkerProgress,
        singly: SingleGroups,
        attempts: Attempts,
        overlapping: Overlapping,
        reached: FaultHook,
    ) -> None:
        self._applier = applier
        self._progress = progress
        self._index = progress.index
        self._coordinator = progress.coordinator
        self._flight = progress.flight
        self._singly = singly
        self._attempts = attempts
        self.overlapping = overlapping
        self._order = CommitOrder(progress.index, progress.coordinator, applier)
        self._reached = reached

    @property
    def gave_way(self) -> int:
        """Batches rolled back, and applied again at their turn, for an earlier group's locks."""
        return self._order.gave_way + self.overlapping.gave_way

    async def apply(self) -> None:
        """Apply batches of rows, one packet ahead, until one has to wait or there are none."""
        flight = self._flight
        batch = flight.next_begun()
        way = self.overlapping.way_of(batch)
        if way is RowsWay.HELD:
            if await self._apply_held():
                return
            if not await self._coordinator.turn(self._index, batch[0].number):
                return
            batch = flight.next_begun()
            way = self.overlapping.way_of(batch)
        if way is RowsWay.OVERLAPPING:
            failure = await self.overlapping.apply()
            if failure is not None:
                await self._replay(failure.batch, failure.error)
                return
            if not flight.has_begun or flight.next_begun() is not batch:
                return
        packet, bundle = self._singly.packet(self._gather())
        if not await self._applier.tables.are_transactional(bundle.table_maps, bundle.steps):
            await self._apply_for_good(packet, bundle)
            return
        try:
            flight.sent(packet, await self._applier.rows.send(bundle, follows=False))
            while not flight.is_empty:
                if flight.wants_more:
                    await self._send_ahead()
                await self._applier.packets.answer(flight.due)
                self._progress.committed(flight.committed().batch)
        except MtsdError as error:
            await self._applier.undo(error, max(flight.packets - 1, 0))
            if not isinstance(error, ServerError):
                raise
            left = flight.failed() or [packet.transactions[0].batch]
            await self._replay(left[0], error)

    async def _apply_for_good(self, packet: Packet, bundle: Bundle) -> None:
        """Apply a packet with rows that cannot be rolled back."""
        recorded = self._singly.recorded
        if not bundle.is_single_statements:
            # As long as its tables were not known, it could not be.
            self._flight.give_back([each.batch for each in packet.transactions])
            packet, bundle = self._singly.packet(self._gather())
            await self._applier.tables.are_transactional(bundle.table_maps, bundle.steps)
        if lasting := await recorded.lasting(packet, bundle):
            failure = await recorded.apply(packet, bundle, lasting)
            if failure is not None:
                await self._replay(failure.batch, failure.error)
            return
        await self._apply_each(self._progress.all_begun(pairs=False))

    async def _apply_held(self) -> bool:
        """Apply the next batch before its turn and commit it then; return whether that succeeded.

        If not, nothing of it remains, and it is still to be applied, at its turn. Until then a
        failure is not its own: an earlier group may hold a lock, or have failed itself.
        """
        flight = self._flight
        batch = flight.next_begun()
        made = make(self._applier, self._progress, batch)
        if made is None or not await can_be_held(self._applier, made):
            return False
        packet, bundle = made
        try:
            await self._applier.rows.hold(bundle)
            if not await self._order.comes(batch[0].number):
                await self._applier.rollback()
                return False
            statements = await self._applier.packets.send_commit(bundle)
            flight.take_begun()
            flight.sent(packet, statements)
            await self._applier.packets.answer(flight.due)
        except MtsdError as error:
            flight.give_back(flight.failed())
            await self._applier.undo(error, 0)
            if not isinstance(error, ServerError):
                raise
            if error.leaves_changes:
                await self._singly.half_applied(batch, error)
            return False
        self._progress.committed(flight.committed().batch)
        return True

    async def _send_ahead(self) -> None:
        """Send the next packet while the server works on one, if there is a full one.

        The server then does not wait for mtsd between them.
        """
        if self._coordinator.failure is not None:
            return
        flight = self._flight
        batches = self._gather()
        if not batches:
            return
        if are_large(batches[0]) and self.overlapping.way_of(batches[0]) is RowsWay.OVERLAPPING:
            flight.give_back(batches)
            return
        try:
            packet, bundle = self._singly.packet(batches)
        except NeedsPersonError:
            # Raised again later: at this point an answer is still due on the connection.
            flight.give_back(batches)
            return
        if not (
            flight.may_send(packet, single_statements=bundle.is_single_statements)
            and self._applier.tables.are_safe(bundle.table_maps)
        ):
            flight.give_back([each.batch for each in packet.transactions])
            return
        flight.sent(packet, await self._applier.rows.send(bundle, follows=True))

    def _gather(self) -> list[Batch]:
        return self._flight.gather(
            lambda: self._coordinator.work_ahead(self._index),
            shared=not self._applier.preserves,
        )

    async def _replay(self, failed: Batch, error: ServerError) -> None:
        """Apply what has begun one by one after a batch has failed; the others left nothing."""
        if error.leaves_changes:
            await self._singly.half_applied(failed, error)
        units = self._progress.all_begun(pairs=True)
        if len(units) == 1:
            await self._attempts.retry(units[0], error)
            return
        await self._reached(FaultPoint.BEFORE_REPLAY)
        await self._apply_each(units)

    async def _apply_each(self, units: Sequence[Batch]) -> None:
        """Apply what has begun one by one."""
        for unit in units:
            kind = unit[0].kind
            if kind is GroupKind.NON_TRANSACTIONAL and not await self._coordinator.passed_in_order(
                unit[0].number
            ):
                return
            await self._attempts.apply(unit)
