"""Bundles on their way to a target, as a worker sends and awaits them."""

from collections import deque
from collections.abc import Sequence

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.appliers.making import applier_by_binlog
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.bundle import Bundle
from mtsd.apply.session.session import TargetSession
from mtsd.model.errors import ServerError
from mtsd.model.group import Group
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.schedule.batches.in_flight import Due, InFlight
from mtsd.schedule.done.worker_row import WorkerRow, blank_row
from tests.servers.mysqld import Server

TABLES = PositionTables("mtsd", "")
MARK = LowWaterMark(0, Position("f.000001", 4), None)


class Sending:
    """Sends bundles one behind another, and awaits the answers of each."""

    def __init__(self, applier: Applier) -> None:
        self._applier = applier
        self._sent: deque[tuple[Bundle, int]] = deque()
        self._answered = 0

    def __len__(self) -> int:
        return len(self._sent)

    async def send(self, bundle: Bundle) -> None:
        """Send a bundle behind those that are on their way."""
        statements = await self._applier.rows.send(bundle, follows=bool(self._sent))
        self._sent.append((bundle, statements))

    async def answer(self) -> None:
        """Await the commit of the next transaction; after an error nothing is on its way."""
        bundle, statements = self._sent[0]
        count = bundle.transactions
        last = self._answered + 1 == count
        try:
            await self._applier.packets.answer(Due(statements, count, not self._answered, last))
        except ServerError as error:
            await self._applier.undo(error, len(self._sent) - 1)
            self._sent.clear()
            self._answered = 0
            raise
        self._answered += 1
        if last:
            self._sent.popleft()
            self._answered = 0

    async def apply(self, bundle: Bundle) -> None:
        """Send a bundle and await its commits."""
        await self.send(bundle)
        for _ in range(bundle.transactions):
            await self.answer()


class Applying:
    """One worker's row and applier: groups are applied as they come, in batches."""

    def __init__(self, server: Server, session: TargetSession, statement_bytes: int) -> None:
        row = blank_row(1, MARK, 1)
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        server.sql(TABLES.workers.replace(row).decode())
        self.applier = applier_by_binlog(session, TABLES, statement_bytes)
        self._sending = Sending(self.applier)
        self._flight = InFlight(row)

    def row_after(self, group: Group) -> WorkerRow:
        """Return what the row becomes with a group."""
        return self._flight.row.advanced((group,), MARK)

    def applied(self, row: WorkerRow) -> None:
        """Go on from this row."""
        self._flight.applied(row)

    async def rows(self, groups: Sequence[Group]) -> None:
        """Apply groups of rows as one transaction."""
        packet = self._flight.packet([tuple(groups)], MARK)
        bundle = self.applier.rows.bundle(packet)
        assert bundle is not None
        await self._sending.apply(bundle)
        self._flight.applied(packet.transactions[-1].row)
