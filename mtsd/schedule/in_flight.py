"""What one worker has on its way to the target: sent, and not yet answered.

A packet is what the server receives at once: transactions, each a batch of groups together with
the worker's row that commits with them. The next packet is sent before the last one is answered,
so that the server never waits for the daemon between two of them. Pure: it is told what was sent
and what was answered, and says what may be sent and what has committed.

What keeps this safe, whoever dies and whichever transaction fails:

1. The server runs the packets of a session in the order in which they were sent, and the
   transactions of a packet in their order; it stops a packet at the first one that fails. It does
   not stop the packets behind that one.
2. Every transaction finds the worker's row by its token and by nothing else, and fails where no
   row has that token (error 1032). Only the last transaction of a packet moves the token, to a
   value that no row has had; all transactions of the next packet look for the value that it sets.
3. So, if a transaction fails, the token is not moved by its packet, every transaction of the
   packet behind it fails, that packet does not move the token either, and so on: of everything
   that was sent, what commits is always a prefix. Nothing commits behind a failure.
4. A packet that follows another consists of single statements, each of which commits by itself.
   Where the packet before it has failed inside BEGIN … COMMIT, its half is still open: another
   BEGIN would commit that half, while a single statement joins it, fails by its token, and the
   ROLLBACK after that undoes both.
5. A description of the events' format has to be sent, and answered, between packets: one of
   another format does not follow.

Therefore the first failure tells that everything unanswered has left nothing behind, and `row`
is what the target's row contains; and a predecessor's packets that a server still runs after its
daemon has died can only add to that prefix, until the predecessor's session ends.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mtsd.model.group import Group, GroupKind
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.worker_row import WorkerRow

MOST_PACKETS: Final = 2
"""The one that the server works on, and one that it finds when it is done with that."""
_PACKET_BYTES: Final = 1 << 16
_PACKET_BATCHES: Final = 16
"""What shares a packet: more saves nothing, and is in vain where one before it fails."""
_ROWS: Final = GroupKind.ROWS

Batch = tuple[Group, ...]


class Transaction(NamedTuple):
    """A batch and the rows of its worker: `row` commits with it, and is written over `before`."""

    batch: Batch
    before: WorkerRow
    row: WorkerRow


class Packet(NamedTuple):
    """Transactions that are sent at once, of groups of one event format."""

    transactions: tuple[Transaction, ...]
    format_description: bytes


class Due(NamedTuple):
    """The answer that is awaited next: that of a transaction of `statements` statements.

    `first` and `last` tell where it stands in its packet of `transactions`.
    """

    statements: int
    transactions: int
    first: bool
    last: bool


class _Sent(NamedTuple):
    packet: Packet
    statements: int
    """Of each of its transactions, as far as they are still to be answered."""


class InFlight:
    """The batches that one worker has begun, and the packets of them that are on their way."""

    __slots__ = ("_answered", "_begun", "_sent", "row")

    def __init__(self, row: WorkerRow) -> None:
        self.row = row
        """The worker's row as the target has it, as far as that has been answered."""
        self._begun: deque[Batch] = deque()
        self._sent: deque[_Sent] = deque()
        self._answered = 0
        """Transactions of the first packet on its way that have committed."""

    @property
    def has_begun(self) -> bool:
        """Whether there are batches that are begun and not sent."""
        return bool(self._begun)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on its way."""
        return not self._sent

    @property
    def packets(self) -> int:
        """How many packets are on their way."""
        return len(self._sent)

    @property
    def wants_more(self) -> bool:
        """Whether another packet should be made ready.

        What is begun by now could not follow: it waits until nothing is on its way.
        """
        return not self._begun and len(self._sent) < MOST_PACKETS

    def begin(self, batch: Batch) -> None:
        """Take in a batch that the worker has begun."""
        self._begun.append(batch)

    def next_begun(self) -> Batch:
        """Return the first batch that is begun and not sent."""
        return self._begun[0]

    def take_begun(self) -> Batch:
        """Take that one away, to be applied by itself."""
        return self._begun.popleft()

    def gather(self, more: Callable[[], Batch], *, shared: bool) -> list[Batch]:
        """Take the first batch away that is begun or that `more` gives, and what joins its packet.

        Only batches of small groups of rows share a packet, and none where not `shared`; `more`
        returns an empty batch where there is none.
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
        """Take batches in again that were gathered and not sent: they come next, in order."""
        self._begun.extendleft(reversed(batches))

    def packet(self, batches: Sequence[Batch], stored: LowWaterMark) -> Packet:
        """Return a packet of batches, each a transaction, behind everything that was sent.

        `stored` is the low-water mark that the target holds. Raises ValueError where a group has
        committed already.
        """
        before = self._sent[-1].packet.transactions[-1].row if self._sent else self.row
        last = batches[-1]
        transactions: list[Transaction] = []
        for batch in batches:
            row = before.advanced(batch, stored, same_token=batch is not last)
            transactions.append(Transaction(batch, before, row))
            before = row
        return Packet(tuple(transactions), batches[0][0].format_description)

    def may_send(self, packet: Packet, *, single_statements: bool) -> bool:
        """Tell whether a packet may be sent now.

        `single_statements`: each of its transactions is one statement, which commits by itself.
        """
        if not self._sent:
            return True
        return (
            single_statements
            and len(self._sent) < MOST_PACKETS
            and packet.format_description == self._sent[-1].packet.format_description
        )

    def sent(self, packet: Packet, statements: int) -> None:
        """Learn that a packet is sent; each of its transactions is to be answered so often."""
        self._sent.append(_Sent(packet, statements))

    @property
    def due(self) -> Due:
        """The answer that comes next."""
        packet, statements = self._sent[0]
        count = len(packet.transactions)
        return Due(statements, count, self._answered == 0, self._answered + 1 == count)

    def committed(self) -> Transaction:
        """Learn that the transaction that was due has committed; return it."""
        transactions = self._sent[0].packet.transactions
        transaction = transactions[self._answered]
        self._answered += 1
        if self._answered == len(transactions):
            self._sent.popleft()
            self._answered = 0
        self.row = transaction.row
        return transaction

    def applied(self, row: WorkerRow) -> None:
        """Learn that a group that was applied by itself has committed with that row."""
        if self._sent:
            raise ValueError("a group was applied by itself while packets are on their way")
        self.row = row

    def failed(self) -> list[Batch]:
        """Learn that the transaction that was due has failed; nothing is on its way any more.

        Returns the batches that were sent and have not committed, that one first: nothing of them
        is left on the target.
        """
        left = [each.batch for sent in self._sent for each in sent.packet.transactions]
        left = left[self._answered :]
        self._sent.clear()
        self._answered = 0
        return left


def _may_share_packet(first: Batch, batch: Batch) -> bool:
    """Tell whether two batches may go in one packet: each has to become one statement."""
    return (
        batch[0].kind is _ROWS
        and batch[0].format_description == first[0].format_description
        and first[0].row_flags is not None
        and batch[0].row_flags is not None
        and len({group.row_flags for group in batch}) == 1
    )
