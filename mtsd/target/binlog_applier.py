"""The applier that passes row events on undecoded, by the BINLOG statement."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from mtsd.binlog.statement import disable_on_replica, without_start_transaction
from mtsd.model.errors import MtsdError, NotSupportedError, ServerError
from mtsd.model.fault_points import FaultPoint, Reached, nothing
from mtsd.model.group import Group
from mtsd.model.gtid import Gtid
from mtsd.model.step import Rows, Statement, StatementKind, Step
from mtsd.target.bundle import (
    BASE64_SHARE,
    ENOUGH,
    Packet,
    Record,
    binlog_statement,
    packets,
    row_statements,
)
from mtsd.target.pace import Pace
from mtsd.target.session import TargetSession, next_gtid
from mtsd.target.streaming import RowStream

_LARGEST_PACKET_SHARE = 0.96


@dataclass(frozen=True, slots=True)
class Bundle:
    """One target transaction, ready to be sent; packets of a large one are made as they go.

    Or several `transactions`, each of one statement, in one packet: where one of them fails, the
    server runs none of those behind it.
    """

    format_description: bytes
    packets: Iterable[Packet]
    transactions: int = 1

    @property
    def is_one_statement(self) -> bool:
        """Whether it is one transaction of one statement, which commits by itself."""
        packets = self.packets
        return isinstance(packets, tuple) and len(packets) == 1 and packets[0].statements == 1


def together(bundles: Sequence[Bundle]) -> Bundle:
    """Return bundles that are all one statement, and of one format, as one."""
    if len(bundles) == 1:
        return bundles[0]
    sql = b";".join(packet.sql for bundle in bundles for packet in bundle.packets)
    packet = Packet(sql, len(bundles))
    return Bundle(bundles[0].format_description, (packet,), len(bundles))


@dataclass(slots=True)
class _OnItsWay:
    """A packet that was sent: its transactions, statements of each, transactions not answered."""

    transactions: int
    statements: int
    left: int
    began: float = 0.0
    """When the server can have begun with it, on the event loop's clock."""


class BinlogApplier:
    """Applies groups on one session, its own. After a ServerError all is rolled back.

    `batch_bytes`: the row bytes of one BINLOG statement at most. With `preserves`, each group
    commits under its own GTID, which it must have.
    """

    def __init__(
        self,
        session: TargetSession,
        batch_bytes: int,
        *,
        preserves: bool = False,
        reached: Reached = nothing,
    ) -> None:
        self.session = session
        self.preserves = preserves
        self._reached = reached
        packet = session.traits.max_allowed_packet
        self._chunk_bytes = min(batch_bytes, int(packet * BASE64_SHARE))
        self._packet_limit = int(packet * _LARGEST_PACKET_SHARE)
        self._format = b""
        self._stream = RowStream(self._chunk_bytes)
        self._on_their_way: deque[_OnItsWay] = deque()
        self._pace = Pace()

    @property
    def packets_on_their_way(self) -> int:
        """How many packets the server has not answered whole yet."""
        return len(self._on_their_way)

    def bundle(self, groups: Sequence[Group], record: Record | None = None) -> Bundle:
        """Return groups of rows, and the events of `record` behind them, as a target transaction.

        One packet, where its size allows: the server does not wait for us between its parts. A
        BINLOG statement that is alone commits by itself: it is applied whole or not at all.
        """
        rows = row_statements(groups, self._chunk_bytes, record)
        first = list(islice(rows, 2))
        whole: Iterable[Packet]
        if self.preserves:
            before = [next_gtid(str(groups[0].gtid)), b"BEGIN"]
            after = [b"COMMIT", next_gtid("")]
            whole = packets(before, chain(first, rows), after, self._packet_limit)
        elif len(first) == 1:
            whole = packets([], first, [], self._packet_limit)
        else:
            whole = packets([b"BEGIN"], chain(first, rows), [b"COMMIT"], self._packet_limit)
        if sum(group.size for group in groups) <= ENOUGH:
            whole = tuple(whole)
        return Bundle(groups[0].format_description, whole)

    async def apply_bundle(self, bundle: Bundle) -> None:
        """Apply a bundle and await its commit."""
        await self.begin_bundle(bundle)
        for _ in range(bundle.transactions):
            await self.finish_transaction()

    async def begin_bundle(self, bundle: Bundle) -> None:
        """Send a bundle while none is on its way.

        A `finish_transaction` must follow for each of its transactions.
        """
        connection = self.session.connection
        try:
            await self.describe_format(bundle.format_description)
            await self._reached(FaultPoint.BEFORE_BUNDLE)
            for packet in bundle.packets:
                if self._on_their_way:
                    await connection.receive(self._on_their_way.pop().statements)
                await self._send(packet, bundle.transactions)
        except MtsdError as error:
            await self._undo(error)
            raise

    def can_follow(self, bundle: Bundle) -> bool:
        """Tell whether a bundle may be sent behind one that is on its way.

        Only single statements: where the bundle before it fails and leaves its transaction open, a
        BEGIN would commit that half.
        """
        if bundle.format_description != self._format:
            return False
        return bundle.transactions > 1 or bundle.is_one_statement

    async def follow(self, bundle: Bundle) -> None:
        """Send a bundle that can follow: the server begins it at once when the last one ends.

        It must fail by itself where the one before it does, or any part of that. Another
        `finish_transaction` is due for each of its transactions.
        """
        (packet,) = bundle.packets
        await self._reached(FaultPoint.BEFORE_BUNDLE)
        await self._send(packet, bundle.transactions)

    async def finish_transaction(self) -> None:
        """Await the commit of the first transaction on its way. After an error none is any more."""
        connection = self.session.connection
        clock = asyncio.get_running_loop().time
        packet = self._on_their_way[0]
        shared = packet.transactions > 1
        if shared and packet.left == packet.transactions:
            packet.began = clock()
            connection.rest(self._pace.rest(packet.transactions))
        packet.left -= 1
        if not packet.left:
            self._on_their_way.popleft()
        try:
            await connection.receive(packet.statements, more=packet.left > 0)
        except MtsdError as error:
            if packet.left:
                self._on_their_way.popleft()
            await self._undo(error)
            raise
        if shared and not packet.left:
            self._pace.learn(packet.transactions, clock() - packet.began)
        await self._reached(FaultPoint.AFTER_BUNDLE)

    async def _send(self, packet: Packet, transactions: int) -> None:
        self.session.connection.send(packet.sql)
        each = packet.statements // transactions
        self._on_their_way.append(_OnItsWay(transactions, each, transactions))
        await self._reached(FaultPoint.BUNDLE_SENT)

    async def apply_in_order(self, group: Group, record: Sequence[bytes]) -> None:
        """Apply a transaction's statements and row events in their order, then `record`.

        Under REPEATABLE READ: under READ COMMITTED a statement could read other rows than it did
        on the source.
        """
        try:
            await self.describe_format(group.format_description)
            await self._set_gtid(str(group.gtid))
            await self.session.connection.run(
                b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;BEGIN", 2
            )
            await self.apply_steps(group.steps)
            await self.commit(record)
        except MtsdError as error:
            await self._undo(error)
            raise

    async def begin(self, format_description: bytes, gtid: Gtid | None) -> None:
        """Begin a transaction whose events come chunk by chunk."""
        await self.describe_format(format_description)
        await self._set_gtid(str(gtid))
        self._stream = RowStream(self._chunk_bytes)
        await self.session.connection.run(b"BEGIN", 1)

    async def commit(self, record: Sequence[bytes]) -> None:
        """Commit the open transaction with the statements of `record`."""
        await self.session.commit(record)
        await self._set_gtid("")

    async def rollback(self) -> None:
        """Undo the open transaction."""
        await self.session.rollback()
        await self._set_gtid("")

    async def _set_gtid(self, gtid: str) -> None:
        if self.preserves:
            await self.session.set_gtid(gtid)

    async def apply_steps(self, steps: Sequence[Step]) -> None:
        """Apply steps in their order inside the open transaction.

        Before that transaction began, the session was given the format's description: inside it
        the server refuses what goes with one (error 1766).
        """
        for step in steps:
            await self.run_step(step)

    async def create_select(self, group: Group, *, thread: int = 0) -> None:
        """Apply CREATE TABLE … SELECT of the row format, and commit it; `thread` as `run_step`.

        Between its `CREATE TABLE … START TRANSACTION` and COMMIT the server takes nothing but
        BINLOG statements, so the session state is taken away after that.
        """
        first, *rows = group.steps

        async def fill() -> None:
            await self.apply_steps(rows)
            await self.session.connection.run(b"COMMIT", 1)

        await self.session.connection.run(b"BEGIN", 1)
        created = _of_thread(_statement(first), thread)
        await self.session.run_statement(created, created.query.statement, then=fill)

    async def create_table(self, group: Group) -> None:
        """Make the table of a CREATE TABLE … SELECT, and commit that."""
        created = _statement(group.steps[0])
        table = without_start_transaction(created.query.statement, created.query.context)
        await self.session.run_statement(created, table)

    async def fill_table(self, group: Group, record: Sequence[bytes]) -> None:
        """Apply the rows of a CREATE TABLE … SELECT, and commit them with the record."""
        try:
            await self.describe_format(group.format_description)
            await self.session.connection.run(b"BEGIN", 1)
            await self.apply_steps(group.steps[1:])
            await self.session.commit(record)
        except MtsdError as error:
            await self._undo(error)
            raise

    async def run_step(self, step: Step, *, thread: int = 0) -> None:
        """Apply rows, or run a statement in its own session state.

        In the target's own binlog it has the id of that `thread`, or where that is 0, that of
        the source's. An event of the event scheduler is made disabled: on the source it runs, and
        its changes come by themselves.
        """
        if isinstance(step, Rows):
            await self._reached(FaultPoint.BEFORE_CHUNK)
            rows = self._stream.statements(step.events)
            for packet in packets([], rows, [], self._packet_limit):
                await self.session.connection.run(packet.sql, packet.statements)
            return
        statement = _of_thread(_statement(step), thread)
        query = statement.query
        text = query.statement
        if statement.kind is StatementKind.EVENT_DDL:
            text = disable_on_replica(text, context=query.context)
        await self.session.run_statement(statement, text)

    async def describe_format(self, format_description: bytes) -> None:
        """Give the session the source's format description, unless it has it."""
        if format_description == self._format:
            return
        # The description leaves the session with an anonymous GTID: error 1782 after it where there
        # are GTIDs, and where not even a binlog is, 1837 after the next implicit commit.
        await self.session.connection.run(
            b";".join((binlog_statement(format_description), next_gtid(""))), 2
        )
        self._format = format_description

    async def _undo(self, error: MtsdError) -> None:
        while self._on_their_way and not self.session.connection.closed:
            packet = self._on_their_way.popleft()
            try:
                await self.session.connection.receive(packet.statements, more=packet.left > 1)
            except ServerError:
                continue
            raise RuntimeError(f"a bundle was committed behind one that failed: {error}")
        if self.session.connection.closed:
            return
        if isinstance(error, ServerError):
            await self.session.undo(error)
        else:
            await self.session.rollback()
        await self._set_gtid("")


def _of_thread(statement: Statement, thread: int) -> Statement:
    if not thread:
        return statement
    return replace(statement, query=replace(statement.query, thread_id=thread))


def _statement(step: Step) -> Statement:
    if not isinstance(step, Statement):
        raise NotSupportedError(f"a step of type {type(step).__name__} where a statement is due")
    return step
