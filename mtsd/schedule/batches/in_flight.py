"""What one worker has in flight to the target: sent, and not yet answered.

A packet is what the server receives at once: transactions, each a batch of groups together with
the worker's row that commits with them. The next packet is sent before the last one is answered,
so that the server never waits for the daemon between two of them. Pure: it is told what was sent
and what was answered, and says what may be sent and what has committed.

What keeps this safe, whoever dies and whichever transaction fails:

1. The server runs the packets of a session in the order in which they were sent, and the
   transactions of a packet in their order; it stops a packet at the first one that fails. It does
   not stop the packets after that one.
2. Every transaction finds the worker's row by its token and by nothing else, and fails if no
   row has that token (error 1032). Only the last transaction of a packet moves the token, to a
   value that no row has had; all transactions of the next packet look for the value that it sets.
3. So, if a transaction fails, its packet does not move the token, every transaction of the
   next packet fails, that packet does not move the token either, and so on: of everything
   that was sent, what commits is always a prefix. Nothing commits after a failure.
4. A packet that follows another consists of single statements, each of which commits by itself.
   If the previous packet has failed inside BEGIN … COMMIT, that transaction is still open: another
   BEGIN would commit it, whereas a single statement joins it, fails because of its token, and the
   ROLLBACK after that undoes both.
5. What is owed (`owe`), a group that is on the target without a place in the worker's row, goes
   into the row with the next transaction, and finds the token where it was.
6. A format description event has to be sent, and answered, between packets: a packet with a
   different format does not follow.

Therefore the first failure means that nothing unanswered has left any trace, and `row` is
what the target's row contains; and a predecessor's packets that a server still runs after its
daemon has died can only extend that prefix, until the predecessor's session ends.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mtsd.model.group import Group, GroupKind
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.batches.combining import is_of_rows_for_good
from mtsd.schedule.batches.xa_pairs import as_rows
from mtsd.schedule.done.worker_row import WorkerRow

MAX_PACKETS: Final = 2
"""The one that the server works on, and one ready for when it has finished that."""
_PACKET_BYTES: Final = 1 << 16
_PACKET_BATCHES: Final = 16
"""Maximum per packet: more saves nothing, and is wasted if one before it fails."""
_ROWS: Final = GroupKind.ROWS

Batch = tuple[Group, ...]


class Transaction(NamedTuple):
    """A batch and the rows of its worker: `row` commits with it, and is written over `before`."""

    batch: Batch
    before: WorkerRow
    row: WorkerRow
    groups: Batch
    """What is applied of it: see `as_rows`."""


class Packet(NamedTuple):
    """Transactions that are sent at once, of groups with the same event format."""

    transactions: tuple[Transaction, ...]
    format_description: bytes


class Due(NamedTuple):
    """The answer awaited next: that of a transaction of `statements` statements.

    `first` and `last` say where it is in its packet of `transactions`.
    """

    statements: int
    transactions: int
    first: bool
    last: bool


class _Sent(NamedTuple):
    packet: Packet
    statements: int
    """Of each of its transactions, as far as they are still unanswered."""


class _Owed(NamedTuple):
    number: int
    """Of the group that has no place in the worker's row yet."""
    row: WorkerRow
    """What the row would be if it had one; with the token that it has."""


class InFlight:
    """The batches that one worker has begun, and the packets of them that are in flight."""

    __slots__ = ("_answered", "_begun", "_owed", "_sent", "row")

    def __init__(self, row: WorkerRow) -> None:
        self.row = row
        """The worker's row on the target, as far as answers have confirmed it."""
        self._owed: _Owed | None = None
        self._begun: deque[Batch] = deque()
        self._sent: deque[_Sent] = deque()
        self._answered = 0
        """Transactions of the first packet in flight that have committed."""

    @property
    def has_begun(self) -> bool:
        """Whether there are batches that are begun but not sent."""
        return bool(self._begun)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in flight."""
        return not self._sent

    @property
    def packets(self) -> int:
        """The number of packets in flight."""
        return len(self._sent)

    @property
    def wants_more(self) -> bool:
        """Whether another packet should be prepared.

        What has already begun could not follow: it waits until nothing is in flight.
        """
        return not self._begun and len(self._sent) < MAX_PACKETS

    def begin(self, batch: Batch) -> None:
        """Add a batch that the worker has begun."""
        self._begun.append(batch)

    def next_begun(self) -> Batch:
        """Return the first batch that is begun but not sent."""
        return self._begun[0]

    def begun_after(self, count: int) -> Batch:
        """Return the batch after the first `count` of these; an empty one if there is none."""
        return self._begun[count] if len(self._begun) > count else ()

    def take_begun(self) -> Batch:
        """Remove and return that batch, to be applied by itself."""
        return self._begun.popleft()

    def gather(self, more: Callable[[], Batch], *, shared: bool) -> list[Batch]:
        """Remove and return the first batch, begun or from `more`, and those that share its packet.

        Only batches of small groups of rows share a packet, and none unless `shared`; what cannot
        be rolled back may be among them, and is then recorded before the packet begins. `more`
        returns an empty batch if there is none.
        """
        batches: list[Batch] = []
        room = _PACKET_BYTES
        while room > 0 and len(batches) < _PACKET_BATCHES:
            batch = self._begun.popleft() if self._begun else more()
            if not batch:
                break
            if batches and not (shared and _may_share_packet(batches[0], batch)):
                self._begun.appendleft(batch)
                break
            batches.append(batch)
            room -= sum(group.size for group in batch)
        return batches

    def give_back(self, batches: Sequence[Batch]) -> None:
        """Put back batches that were gathered but not sent: they come next, in order."""
        self._begun.extendleft(reversed(batches))

    def packet(
        self, batches: Sequence[Batch], stored: LowWaterMark, after: Packet | None = None
    ) -> Packet:
        """Return a packet of batches, each a transaction, to follow everything that was sent.

        `after` is a packet that will have been sent before it, if there is one. `stored` is the
        low-water mark stored on the target. Raises ValueError if a group has already committed.
        """
        if after is None and self._sent:
            after = self._sent[-1].packet
        if after is not None:
            before = done = after.transactions[-1].row
        else:
            before, done = self.row, self._row_with_owed
        last = batches[-1]
        transactions: list[Transaction] = []
        for batch in batches:
            row = done.advanced(batch, stored, same_token=batch is not last)
            transactions.append(Transaction(batch, before, row, as_rows(batch)))
            before = done = row
        return Packet(tuple(transactions), batches[0][0].format_description)

    def may_send(self, packet: Packet, *, single_statements: bool) -> bool:
        """Return whether a packet may be sent now.

        `single_statements`: each of its transactions is one statement, which commits by itself.
        """
        if not self._sent:
            return True
        return (
            single_statements
            and len(self._sent) < MAX_PACKETS
            and packet.format_description == self._sent[-1].packet.format_description
        )

    def sent(self, packet: Packet, statements: int) -> None:
        """Note that a packet was sent; each of its transactions gets `statements` answers."""
        self._sent.append(_Sent(packet, statements))

    @property
    def due(self) -> Due:
        """The next answer to come."""
        packet, statements = self._sent[0]
        count = len(packet.transactions)
        return Due(statements, count, self._answered == 0, self._answered + 1 == count)

    @property
    def awaited(self) -> Batch:
        """The batch whose answer that is."""
        return self._sent[0].packet.transactions[self._answered].batch

    def committed(self) -> Transaction:
        """Note that the transaction that was due has committed, and return it."""
        transactions = self._sent[0].packet.transactions
        transaction = transactions[self._answered]
        self._answered += 1
        if self._answered == len(transactions):
            self._sent.popleft()
            self._answered = 0
        self.row = transaction.row
        self._owed = None
        return transaction

    def applied(self, row: WorkerRow) -> None:
        """Note that a group that was applied by itself has committed with that row."""
        if self._sent:
            raise ValueError("a group was applied by itself while packets were in flight")
        self.row = row
        self._owed = None

    def row_after(self, groups: Batch, stored: LowWaterMark) -> WorkerRow:
        """Return what the worker's row becomes with groups, and what is owed, by itself.

        Raises ValueError if one of them has already committed.
        """
        return self._row_with_owed.advanced(groups, stored)

    def owe(self, group: Group, stored: LowWaterMark) -> None:
        """Note that a group is on the target, and has no place in the worker's row.

        Only one at a time, and while nothing is in flight: else ValueError.
        """
        if self._sent or self._owed is not None:
            raise ValueError(f"group {group.number} is owed, and something is before it")
        self._owed = _Owed(group.number, self.row.advanced((group,), stored, same_token=True))

    @property
    def owed(self) -> int:
        """The number of the group that has no place in the worker's row yet; 0 if none."""
        return self._owed.number if self._owed is not None else 0

    @property
    def _row_with_owed(self) -> WorkerRow:
        return self._owed.row if self._owed is not None else self.row

    def failed(self) -> list[Batch]:
        """Note that the transaction that was due has failed; nothing is in flight any more.

        Returns the batches that were sent and have not committed, that one first: they have left
        nothing on the target.
        """
        left = [each.batch for sent in self._sent for each in sent.packet.transactions]
        left = left[self._answered :]
        self._sent.clear()
        self._answered = 0
        return left


def _may_share_packet(first: Batch, batch: Batch) -> bool:
    """Return whether two batches may share a packet: each has to become one statement."""
    if batch[0].kind is not _ROWS and not is_of_rows_for_good(batch[0]):
        return False
    return (
        batch[0].format_description == first[0].format_description
        and first[0].row_flags is not None
        and batch[0].row_flags is not None
        and len({group.row_flags for group in batch}) == 1
    )
