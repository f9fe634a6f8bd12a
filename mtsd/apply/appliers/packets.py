"""The other end of packets of rows: the commit of what is held, and the answers of the target."""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.bundle import Bundle
from mtsd.apply.rows.recorded_rows import RecordedPacket, recorded_packet
from mtsd.apply.session.lock_waits import sessions_waiting
from mtsd.apply.session.pace import Pace
from mtsd.apply.session.session import TargetSession
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.schedule.batches.in_flight import Due, Packet
from mtsd.schedule.done.worker_row import WorkerRow


class Packets:
    """What a session has sent of packets of rows (`RowWriter.send`, `hold`) and waits for.

    Methods raise ServerError, after which `Applier.undo` is required, and ConnectionLostError.
    """

    def __init__(
        self, session: TargetSession, position: PositionTables, reached: FaultHook
    ) -> None:
        self._session = session
        self._position = position
        self._connection = session.connection
        self._reached = reached
        self._pace = Pace()
        self._began = 0.0
        """When the server can have begun the packet that is due, on the loop's clock."""

    async def send_commit(self, bundle: Bundle) -> int:
        """Send what commits a bundle that is held; returns what `RowWriter.send` does."""
        return await send_commit(self._session, bundle, self._reached)

    async def answer(self, due: Due) -> None:
        """Await the next answer: the transaction has committed."""
        shared = due.transactions > 1
        clock = asyncio.get_running_loop().time
        if shared and due.first:
            self._began = clock()
            self._connection.rest(self._pace.rest(due.transactions))
        await self._connection.receive(due.statements, more=not due.last)
        if shared and due.last:
            self._pace.learn(due.transactions, clock() - self._began)
        await self._reached(FaultPoint.AFTER_BUNDLE)

    def recorded(
        self,
        packet: Packet,
        bundle: Bundle,
        lasting: AbstractSet[int],
        doubts: Sequence[InDoubt],
    ) -> RecordedPacket:
        """Return what to send of a packet, of whose groups some cannot be rolled back.

        `doubts` are their records; see `recorded_packet`.
        """
        return recorded_packet(
            packet,
            bundle,
            lasting,
            self._position.doubts.insert_all(doubts),
            self._position.workers,
            apart=self._session.traits.enforces_gtid_consistency,
        )

    async def place(self, row: WorkerRow) -> None:
        """Record by itself what has been applied."""
        await self._session.record(self._position.advanced(row))

    async def sessions_waiting(self) -> frozenset[int] | None:
        """Return the ids of the target's sessions that wait for a lock of the open transaction.

        None if the user may not read the server's lock tables, or nothing is in them.
        """
        session = self._session
        if session.family.grants_locks_by_table and not session.traits.observes_locks:
            return None
        return await sessions_waiting(self._connection, session.family)


async def send_commit(session: TargetSession, bundle: Bundle, reached: FaultHook) -> int:
    """Send the ending of a bundle; return how many statements it has."""
    await reached(FaultPoint.BEFORE_COMMIT)
    session.connection.send(b";".join(bundle.ending))
    await reached(FaultPoint.COMMIT_SENT)
    return len(bundle.ending)
