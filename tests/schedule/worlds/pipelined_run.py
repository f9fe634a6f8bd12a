"""A simulated run whose workers send ahead: packets on their way, answered, failed, replayed.

The server runs what was sent whether the daemon lives or not, so the steps of the two are apart.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Self

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.batches.in_flight import InFlight, Packet
from tests.schedule.worlds.simulated_run import Choice, RunSettings, SimulatedRun, Step
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Stream


@dataclass(slots=True)
class OnTheWire:
    """A packet as the server sees it: how many of its transactions it has run, and how."""

    packet: Packet
    executed: int = 0
    answered: int = 0
    failed: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the server does no more of it."""
        return self.failed or self.executed == len(self.packet.transactions)


class PipelinedRun(SimulatedRun):
    """As `SimulatedRun`, with `mtsd.schedule.batches.in_flight` between the queues and the target.

    Each transaction may fail, once; everything of a group that failed is replayed.
    """

    def __init__(self, stream: Stream, target: SimulatedTarget, settings: RunSettings) -> None:
        self.flights: list[InFlight] = []
        self.wires: list[deque[OnTheWire]] = []
        self.replayed: list[tuple[Group, ...]] = []
        self.failed_once: set[int] = set()
        self.held: list[Packet | None] = [None] * settings.workers
        """What a worker has applied before its turn, or while it commits, and holds open."""
        self.made: list[Packet | None] = [None] * settings.workers
        """What a worker has made to be applied after that."""
        self.gave_way: set[int] = set()
        """The first groups of batches that were rolled back before they could commit."""
        super().__init__(stream, target, settings)
        for row in self.rows:
            token = target.tokens.setdefault(row.id, 1000 * row.id)
            self.flights.append(InFlight(replace(row, token=token)))
            self.wires.append(deque())
            self.replayed.append(())

    def take(self, worker: int) -> None:
        """Begin a batch."""
        super().take(worker)
        if self.running[worker]:
            self.flights[worker].begin(self.running[worker])

    # Sending

    def can_send(self, worker: int) -> bool:
        """Tell whether the worker may have something to send, first or behind other packets."""
        flight = self.flights[worker]
        if self.replayed[worker] or self.halted or self.held[worker]:
            return False
        if flight.is_empty:
            return (
                flight.has_begun
                and flight.next_begun()[0].kind is GroupKind.ROWS
                and self.scheduler.may_commit(flight.next_begun()[0].number)
            )
        return flight.wants_more and bool(len(self.scheduler.workers[worker]))

    def send(self, worker: int) -> None:
        """Send what comes next, as `Worker` does it."""
        flight = self.flights[worker]
        follows = not flight.is_empty

        def more() -> tuple[Group, ...]:
            batch = self.tell(lambda scheduler: scheduler.take(worker, ahead=True))
            if batch:
                self.running[worker] += batch
                self.begun = max(self.begun, batch[-1].number)
            return batch

        batches = flight.gather(more, shared=True)
        if batches:
            packet = flight.packet(batches, self.scheduler.stored)
            single = all(_is_single(each.batch) for each in packet.transactions)
            if len(batches) > 1 and not single:
                flight.give_back(batches[1:])
                packet = flight.packet(batches[:1], self.scheduler.stored)
                single = _is_single(batches[0])
            if flight.may_send(packet, single_statements=single):
                flight.sent(packet, 1)
                self.wires[worker].append(OnTheWire(packet))
            else:
                assert follows
                flight.give_back([each.batch for each in packet.transactions])
        self.check()

    # Before its turn, or while the one before it commits

    def can_hold(self, worker: int) -> bool:
        """Tell whether the worker may apply its next batch and hold it open."""
        flight = self.flights[worker]
        if self.replayed[worker] or self.halted or self.held[worker] or not flight.has_begun:
            return False
        first = flight.next_begun()[0]
        if first.kind is not GroupKind.ROWS or first.number in self.gave_way:
            return False
        its_turn = self.scheduler.may_commit(first.number)
        return not its_turn if flight.is_empty else self._commits_one(worker) and its_turn

    def _commits_one(self, worker: int) -> bool:
        """Tell whether all that the worker has in flight is the COMMIT of one transaction."""
        wire = self.wires[worker]
        return self.settings.overlaps and len(wire) == 1 and len(wire[0].packet.transactions) == 1

    def _may_begin_ahead(self, worker: int) -> bool:
        """Tell whether the batch that is applied next, or behind that, has not begun."""
        flight = self.flights[worker]
        if self.settings.overlaps and self.held[worker] is not None:
            return not flight.begun_after(1)
        return self._commits_one(worker) and not flight.has_begun

    def begin_ahead(self, worker: int) -> None:
        """Begin the batch after the one that commits, if it is full."""
        batch = self.tell(lambda scheduler: scheduler.take(worker, ahead=True))
        if batch:
            self.running[worker] += batch
            self.begun = max(self.begun, batch[-1].number)
            self.flights[worker].begin(batch)
        self.check()

    def can_make(self, worker: int) -> bool:
        """Tell whether the worker may make what it sends after what the server applies."""
        batch = self.flights[worker].begun_after(1)
        if not self.settings.overlaps or self.held[worker] is None or self.made[worker] is not None:
            return False
        return bool(batch) and self.scheduler.may_commit(batch[0].number)

    def make(self, worker: int) -> None:
        """Make it, as if what is held had committed."""
        flight = self.flights[worker]
        batch = flight.begun_after(1)
        self.made[worker] = flight.packet([batch], self.scheduler.stored, self.held[worker])
        self.check()

    def hold(self, worker: int) -> None:
        """Let the server apply a batch and leave it open."""
        flight = self.flights[worker]
        batch = flight.next_begun()
        sent = [g for each in self.wires[worker] for t in each.packet.transactions for g in t.batch]
        for group in batch:
            self._check_turn(group, (*sent, *batch))
        self.held[worker] = self.made[worker] or flight.packet([batch], self.scheduler.stored)
        self.made[worker] = None
        self.check()

    def can_send_commit(self, worker: int) -> bool:
        """Tell whether what is held has found the worker's row, and may commit."""
        held = self.held[worker]
        if held is None or not self.flights[worker].is_empty:
            return False
        (transaction,) = held.transactions
        found = self.target.tokens[transaction.row.id] == transaction.before.token
        return found and self.scheduler.may_commit(transaction.batch[0].number)

    def give_way(self, worker: int) -> None:
        """Roll back what is held, or let it fail."""
        packet = self.held[worker]
        assert packet is not None
        self.held[worker] = self.made[worker] = None
        self.gave_way.add(packet.transactions[0].batch[0].number)
        self.check()

    def send_commit(self, worker: int) -> None:
        """Send the COMMIT of what is held."""
        packet = self.held[worker]
        assert packet is not None
        flight = self.flights[worker]
        self.held[worker] = None
        for group in packet.transactions[0].batch:
            self._check_turn(group, packet.transactions[0].batch)
        assert flight.take_begun() == packet.transactions[0].batch
        flight.sent(packet, 1)
        self.wires[worker].append(OnTheWire(packet))
        self.check()

    # The server

    def can_execute(self, worker: int) -> bool:
        """Tell whether the server has something of the worker's to run."""
        return any(not sent.is_done for sent in self.wires[worker])

    def execute(self, worker: int, *, fails: bool) -> None:
        """Let the server run the next transaction; it fails, or finds the row that it looks for."""
        sent = next(sent for sent in self.wires[worker] if not sent.is_done)
        transaction = sent.packet.transactions[sent.executed]
        token = self.target.tokens[transaction.row.id]
        if fails or token != transaction.before.token:
            sent.failed = True
            self.failed_once.update(group.number for group in transaction.batch)
        else:
            self._check_commit(transaction.batch)
            self.target.commit(transaction.batch, transaction.row)
            sent.executed += 1
            self.running[worker] = self.running[worker][len(transaction.batch) :]
            self.unlearned[worker] += transaction.batch
        self.check()

    # Answers

    def can_learn(self, worker: int) -> bool:
        """Tell whether the answer that is due is there; a failure is undone behind all answers."""
        wire = self.wires[worker]
        if not wire:
            return False
        sent = wire[0]
        return sent.answered < sent.executed or (
            sent.failed and all(behind.is_done for behind in wire)
        )

    def learn_answer(self, worker: int) -> None:
        """Take in the answer that is due."""
        wire = self.wires[worker]
        sent = wire[0]
        flight = self.flights[worker]
        if sent.answered < sent.executed:
            due = flight.due
            assert due.first == (sent.answered == 0)
            transaction = flight.committed()
            sent.answered += 1
            assert due.last == (sent.answered == len(sent.packet.transactions))
            if due.last:
                wire.popleft()
            self._learned(worker, transaction.batch)
        else:
            assert not any(behind.executed for behind in list(wire)[1:]), "behind a failure"
            left = tuple(group for batch in flight.failed() for group in batch)
            wire.clear()
            self.held[worker] = self.made[worker] = None
            self.replayed[worker] = left
            assert not any(group.number in self.target.applied for group in left)
        self.check()

    def can_replay(self, worker: int) -> bool:
        """Tell whether a group is to be applied by itself."""
        flight = self.flights[worker]
        if self.unlearned[worker] or not flight.is_empty or self.halted or self.held[worker]:
            return False
        return bool(self.replayed[worker]) or (
            flight.has_begun and flight.next_begun()[0].kind is not GroupKind.ROWS
        )

    def replay(self, worker: int) -> None:
        """Let the target commit one group by itself, and learn it."""
        flight = self.flights[worker]
        if self.replayed[worker]:
            group, *left = self.replayed[worker]
            self.replayed[worker] = tuple(left)
        else:
            group = flight.take_begun()[0]
        row = flight.row_after((group,), self.scheduler.stored)
        self._check_commit((group,))
        self.target.commit((group,), row)
        self.running[worker] = self.running[worker][1:]
        flight.applied(row)
        self.unlearned[worker] = (group,)
        self._learned(worker, (group,))
        self.check()

    # What is owed

    def can_owe(self, worker: int) -> bool:
        """Tell whether a definition is to be applied by itself, which may be settled later."""
        flight = self.flights[worker]
        return (
            self.can_replay(worker)
            and not self.replayed[worker]
            and flight.next_begun()[0].kind is GroupKind.DDL
        )

    def owe(self, worker: int) -> None:
        """Let the target have a definition; its record brings what was owed before it."""
        flight = self.flights[worker]
        if flight.owed:
            self.settle(worker)
        group = flight.take_begun()[0]
        self._check_commit((group,))
        self.target.have(group)
        self.running[worker] = self.running[worker][1:]
        flight.owe(group, self.scheduler.stored)
        self.unlearned[worker] = (group,)
        self._learned(worker, (group,))
        self.check()

    def can_settle(self, worker: int) -> bool:
        """Tell whether something is owed, and nothing else is going on."""
        flight = self.flights[worker]
        return bool(flight.owed) and flight.is_empty and not self.held[worker]

    def settle(self, worker: int) -> None:
        """Let the target commit the row with what is owed; its record goes."""
        flight = self.flights[worker]
        self.target.recorded.discard(flight.owed)
        row = flight.row_after((), self.scheduler.stored)
        self.target.commit((), row)
        flight.applied(row)
        self.check()

    def _learned(self, worker: int, batch: tuple[Group, ...]) -> None:
        assert self.unlearned[worker][: len(batch)] == batch
        self.unlearned[worker] = self.unlearned[worker][len(batch) :]
        for group in batch:
            del self.unfinished[group.number]
        for other in self.tell(lambda scheduler: scheduler.commit(worker, batch)):
            self.told[other] = True
        if not self.running[worker] and not self.unlearned[worker]:
            self.told[worker] = True

    def fork(self) -> Self:
        """Return an independent copy."""
        copy = super().fork()
        copy.flights = [_copied(flight) for flight in self.flights]
        copy.wires = [deque(map(replace, wire)) for wire in self.wires]
        copy.replayed = self.replayed.copy()
        copy.failed_once = self.failed_once.copy()
        copy.held = self.held.copy()
        copy.made = self.made.copy()
        copy.gave_way = self.gave_way.copy()
        return copy

    # Choosing

    def choices(self) -> list[Choice]:
        """Return every step that can come next."""
        known = {Step.COMMIT, Step.COMMIT_FIRST, Step.LEARN}
        result = [choice for choice in super().choices() if choice[0] not in known]
        for worker, wire in enumerate(self.wires):
            if self.can_hold(worker):
                result.append((Step.HOLD, worker))
            if self.held[worker] is not None:
                result.append((Step.GIVE_WAY, worker))
            if self.can_send_commit(worker):
                result.append((Step.SEND_COMMIT, worker))
            full = len(self.scheduler.workers[worker]) >= self.settings.limits.batch_groups
            if full and self._may_begin_ahead(worker):
                result.append((Step.BEGIN_AHEAD, worker))
            if self.can_make(worker):
                result.append((Step.MAKE, worker))
            if self.can_send(worker):
                result.append((Step.SEND, worker))
            if self.can_execute(worker):
                result.append((Step.EXECUTE, worker))
                sent = next(sent for sent in wire if not sent.is_done)
                batch = sent.packet.transactions[sent.executed].batch
                if not any(group.number in self.failed_once for group in batch):
                    result.append((Step.FAIL, worker))
            if self.can_learn(worker):
                result.append((Step.LEARN, worker))
            if self.can_replay(worker):
                result.append((Step.REPLAY, worker))
            if self.can_owe(worker):
                result.append((Step.OWE, worker))
            if self.can_settle(worker):
                result.append((Step.SETTLE, worker))
        return result

    def step(self, choice: Choice) -> None:
        """Take one step."""
        step, worker = choice
        match step:
            case Step.BEGIN_AHEAD:
                self.begin_ahead(worker)
            case Step.MAKE:
                self.make(worker)
            case Step.HOLD:
                self.hold(worker)
            case Step.GIVE_WAY:
                self.give_way(worker)
            case Step.SEND_COMMIT:
                self.send_commit(worker)
            case Step.SEND:
                self.send(worker)
            case Step.EXECUTE | Step.FAIL:
                self.execute(worker, fails=step is Step.FAIL)
            case Step.LEARN:
                self.learn_answer(worker)
            case Step.REPLAY:
                self.replay(worker)
            case Step.OWE:
                self.owe(worker)
            case Step.SETTLE:
                self.settle(worker)
            case _:
                super().step(choice)

    def key(self) -> tuple[object, ...]:
        """Return what tells two states apart for every step that may follow."""
        wires = tuple(
            tuple(
                (
                    tuple(tuple(g.number for g in t.batch) for t in sent.packet.transactions),
                    sent.executed,
                    sent.answered,
                    sent.failed,
                )
                for sent in wire
            )
            for wire in self.wires
        )
        begun = tuple(
            tuple(tuple(g.number for g in batch) for batch in flight._begun)
            for flight in self.flights
        )
        replayed = tuple(tuple(g.number for g in groups) for groups in self.replayed)
        rows = tuple((f.row.executed.base, f.row.executed.bits) for f in self.flights)
        held = tuple(packet is not None for packet in (*self.held, *self.made))
        once = frozenset(self.failed_once), frozenset(self.gave_way)
        owed = tuple(flight.owed for flight in self.flights)
        return super().key(), wires, begun, replayed, rows, held, once, owed


def _is_single(batch: tuple[Group, ...]) -> bool:
    """Tell whether a batch becomes one statement: its row events have the same flags."""
    return len({group.row_flags for group in batch}) == 1 and batch[0].row_flags is not None


def _copied(flight: InFlight) -> InFlight:
    """Return an independent copy: all that it has consists of values."""
    copy = InFlight(flight.row)
    copy._owed = flight._owed
    copy._begun = flight._begun.copy()
    copy._sent = flight._sent.copy()
    copy._answered = flight._answered
    return copy
