"""A run over recorded groups in simulated time: who has a processor, a sync or work, and when.

The schedule is the daemon's own (`mtsd.schedule`), and so is what shares a packet. Around it are
the stages of a transaction's way, in the order in which they are passed:

- the source sends pieces of the stream, until as many as a connection holds have not been read;
- the daemon does one thing at a time: it reads a piece and schedules its groups, builds and sends a
  worker's packets, takes an answer;
- each session of the target runs its transactions one after the other, on a processor;
- transactions that have run wait for a sync: one at a time, for all that wait when it begins;
- checkpoints are transactions, too.

Daemon, source and target share processors where they are on the same machine.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.plan.candidate import Candidate
from mtsd.plan.costs import Costs, Machines
from mtsd.plan.outcome import Outcome
from mtsd.plan.processors import Processors, Timeline
from mtsd.plan.replayed_group import ReplayedGroup
from mtsd.schedule.alone import BY_THEMSELVES, AloneRule
from mtsd.schedule.assignment import Need, Policy
from mtsd.schedule.executed_groups import ExecutedGroups
from mtsd.schedule.in_flight import Batch, InFlight, Packet, Transaction
from mtsd.schedule.policies import choose_policy
from mtsd.schedule.scheduler import Filler, Limits, Scheduler
from mtsd.schedule.worker_row import WorkerRow, blank_row

_ROWS: Final = GroupKind.ROWS
_DEFINITIONS: Final = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})
_PIECE: Final = 1 << 16
"""Bytes that a socket gives at once."""
_PIECES_AHEAD: Final = 24
"""Pieces that the source has sent and the daemon has not read: what connections hold."""
_CHECKPOINT_S: Final = 0.05
"""As `mtsd.replica.checkpointer` does, however fast the groups are."""
_EDGE: Final = 0.05
"""Of the groups, at either end, that do not count for the rate."""
_FEWEST: Final = 50
"""Transactions that are enough to leave out the edges."""

_SLICE_HERE: Final = 0
_SLICE_THERE: Final = 1
_PIECE_SENT: Final = 2
_DAEMON_DONE: Final = 3
_RAN: Final = 4
_WAITED: Final = 5
_SYNCED: Final = 6
_CHECKPOINT: Final = 7
_CHECKPOINT_RAN: Final = 8

_READ: Final = -1
"""The daemon's job that is no worker's."""
_SENDS: Final = 0
_ANSWERED: Final = 1


class NotRecordedError(ValueError):
    """A policy needs something of the groups that the record does not have."""


def _as_recorded(group: Group) -> Group:
    return group


Ran = Callable[[int, Batch, float, float], None]
"""Is told of a transaction of the target: worker, groups, when it began and when it was synced."""


class Session:
    """A worker and its session on the target."""

    __slots__ = (
        "answers", "begun", "busy", "flight", "has_to_send", "has_work", "queue", "running",
        "waits_since",
    )  # fmt: skip

    def __init__(self, row: WorkerRow) -> None:
        self.flight = InFlight(row)
        self.queue: deque[Batch] = deque()
        """What was sent and not begun."""
        self.running: Batch = ()
        self.begun = 0.0
        self.busy = 0.0
        """Seconds in which it ran something, or waited for the sync of that."""
        self.answers = 0
        """Those that the daemon has not taken."""
        self.has_work = False
        """Whether the daemon has a job of the worker in its queue."""
        self.has_to_send: list[Batch] = []
        """What is sent when the daemon's present job is done."""
        self.waits_since = -1.0
        """Since when its head has waited for the groups of others; -1: it does not."""


class Simulation:
    """One run of one configuration over groups numbered from 1 on; use it once.

    `recorded` are the fields of a group that the record has, of those that a policy may need. `ran`
    is told of every transaction. Raises NotRecordedError.
    """

    def __init__(
        self,
        candidate: Candidate,
        groups: Iterable[ReplayedGroup],
        costs: Costs,
        machines: Machines,
        *,
        recorded: frozenset[Need] = frozenset(),
        batch_bytes: int = 4 << 20,
        pending_jobs_size_max: int = 32 << 20,
        checkpoint_group: int = 8192,
        alone: AloneRule = BY_THEMSELVES,
        ran: Ran | None = None,
    ) -> None:
        policy: Policy = choose_policy(
            candidate.parallel_type, candidate.parallel_workers, candidate.bind
        )
        if missing := sorted(need.value for need in policy.needs - recorded):
            raise NotRecordedError(
                f"{candidate.parallel_type} needs {' and '.join(missing)} of the groups, which"
                " the record does not have"
            )
        count = max(1, candidate.parallel_workers)
        mark = LowWaterMark(0, Position("", FIRST_EVENT), None)
        limits = Limits(
            checkpoint_group, pending_jobs_size_max, candidate.batch_groups, batch_bytes
        )
        fillers: dict[Need, Filler] = dict.fromkeys(policy.needs, _as_recorded)
        self._scheduler = Scheduler(
            policy, count, limits, mark, ExecutedGroups(1), alone=alone, fillers=fillers
        )
        self._costs = costs
        self._source = iter(groups)
        self._told = ran
        self._time = Timeline()
        self._here = Processors(self._time, machines.daemon, _SLICE_HERE)
        self._there = (
            self._here
            if machines.target is None
            else Processors(self._time, machines.target, _SLICE_THERE)
        )
        self._source_is_here = machines.source_is_here
        self._slow = 1.0 / (1.0 - min(0.9, machines.background / max(1, machines.daemon)))
        """How much longer everything takes there because of what else runs."""
        self._slow_there = self._slow if self._there is self._here else 1.0
        self._sessions = [Session(blank_row(1, mark, 1)) for _ in range(count)]
        # What the source has sent.
        self._pieces: deque[deque[ReplayedGroup]] = deque()
        self._next_piece: deque[ReplayedGroup] = deque()
        self._is_sending = False
        self._source_ended = False
        # What the daemon is at.
        self._jobs: deque[tuple[int, int]] = deque()
        self._is_busy = False
        self._sender = -1
        self._reads = False
        """Whether it has a job to read in its queue, or runs one."""
        self._piece: deque[ReplayedGroup] = deque()
        self._blocked_since = -1.0
        self._blocked_by = ""
        self._work: dict[int, float] = {}
        """What is in a group, in seconds of the target's processors, by its number."""
        # The target's syncs.
        self._to_sync: list[int] = []
        self._syncing: list[int] = []
        self._is_syncing = False
        # Checkpoints.
        self._checkpoint_from = 0.0
        self._checkpoints = False
        self._mark: LowWaterMark | None = None
        # What is told in the end.
        self._reading = 0.0
        self._sending = 0.0
        self._target = 0.0
        self._synced = 0.0
        self._blocked: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._committed: list[float] = []
        self._counts: list[int] = []
        self._done = 0
        self._transactions = 0

    def run(self) -> Outcome:
        """Run to the end of the stream."""
        self._send_piece()
        events = self._time.events
        timeline = self._time
        while events:
            timeline.now, _, kind, who = heappop(events)
            if kind <= _SLICE_THERE:
                processors = self._here if kind == _SLICE_HERE else self._there
                ended = processors.end_slice(who)
                if ended is not None:
                    self._happened(ended[0], ended[1])
                processors.go_on()
            else:
                self._happened(kind, who)
        return self._outcome()

    def _happened(self, kind: int, who: int) -> None:
        if kind == _RAN:
            self._ran(who)
        elif kind == _SYNCED:
            self._sync_ended()
        elif kind == _DAEMON_DONE:
            self._job_ended()
        elif kind == _PIECE_SENT:
            self._piece_sent()
        elif kind == _WAITED:
            self._wait_for_sync(who)
        elif kind == _CHECKPOINT:
            self._checkpoint()
        else:
            self._wait_for_sync(who)

    # The source.

    def _send_piece(self) -> None:
        """Let the source send the next piece, unless it is at it, or too far ahead."""
        if self._is_sending or self._source_ended or len(self._pieces) >= _PIECES_AHEAD:
            return
        piece: deque[ReplayedGroup] = deque()
        size = 0
        for replayed in self._source:
            piece.append(replayed)
            size += replayed.length
            if size >= _PIECE:
                break
        else:
            self._source_ended = True
        if not piece:
            return
        self._next_piece = piece
        self._is_sending = True
        spent = self._costs.source_group * len(piece)
        if self._source_is_here:
            self._here.run(spent * self._slow, _PIECE_SENT, 0, urgent=True)
        else:
            self._time.at(self._time.now + spent, _PIECE_SENT, 0)

    def _piece_sent(self) -> None:
        self._is_sending = False
        self._pieces.append(self._next_piece)
        self._read_on()
        self._next_job()
        self._send_piece()

    # The daemon.

    def _read_on(self) -> None:
        """Put reading in the daemon's queue if there is something to read, and room for it."""
        if not self._reads and self._blocked_since < 0.0 and (self._piece or self._pieces):
            self._reads = True
            self._jobs.append((_READ, 0))

    def _next_job(self) -> None:
        while not self._is_busy and self._jobs:
            who, what = self._jobs.popleft()
            if who == _READ:
                spent = self._read()
                self._reading += max(0.0, spent)
            else:
                session = self._sessions[who]
                if what == _ANSWERED:
                    spent = self._take_answer(who, session)
                else:
                    session.has_work = False
                    spent = self._go_on(who, session)
                self._sending += spent
                if not (spent or session.has_to_send):
                    continue
            if spent >= 0.0:
                self._is_busy = True
                self._sender = who
                self._here.run(spent * self._slow, _DAEMON_DONE, who, urgent=True)

    def _job_ended(self) -> None:
        self._is_busy = False
        who = self._sender
        if who == _READ:
            self._reads = False
            self._read_on()
        else:
            session = self._sessions[who]
            session.queue.extend(session.has_to_send)
            session.has_to_send = []
            self._run_next(who, session)
        self._next_job()

    def _read(self) -> float:
        """Schedule the groups of a piece, as many as there is room for; return -1 if for none."""
        if not self._piece:
            self._piece = self._pieces.popleft()
            self._send_piece()
        scheduler = self._scheduler
        piece = self._piece
        costs = self._costs
        count = 0
        while piece:
            group, rows, _ = piece[0]
            blocked = scheduler.blocked(group.size)
            if blocked is not None:
                self._blocked_since = self._time.now
                self._blocked_by = blocked.value
                break
            piece.popleft()
            count += 1
            self._work[group.number] = costs.group + rows * costs.row
            worker = scheduler.add(group)
            if worker is not None:
                self._wake(worker)
        if not count:
            self._reads = False
            return -1.0
        return count * costs.read_group

    def _room(self) -> None:
        """Read on if what was in the way is not any more."""
        since = self._blocked_since
        if since < 0.0:
            return
        if self._scheduler.blocked(self._piece[0].group.size) is None:
            by = self._blocked_by
            self._blocked[by] = self._blocked.get(by, 0.0) + self._time.now - since
            self._blocked_since = -1.0
            self._read_on()

    def _wake(self, worker: int) -> None:
        """Let a worker that has nothing in flight look for work."""
        session = self._sessions[worker]
        if not session.has_work:
            session.has_work = True
            self._jobs.append((worker, _SENDS))

    def _go_on(self, worker: int, session: Session) -> float:
        """Begin the worker's next batch if nothing of it is in flight."""
        flight = session.flight
        if not flight.is_empty:
            return 0.0
        if not flight.has_begun:
            batch = self._scheduler.take(worker)
            if not batch:
                if session.waits_since < 0.0 and self._scheduler.workers[worker].head is not None:
                    session.waits_since = self._time.now
                return 0.0
            if session.waits_since >= 0.0:
                self._waited(batch[0], self._time.now - session.waits_since)
                session.waits_since = -1.0
            flight.begin(batch)
        if flight.next_begun()[0].kind is not _ROWS:
            row = flight.row
            batch = flight.take_begun()
            transaction = Transaction(batch, row, row)
            flight.sent(Packet((transaction,), batch[0].format_description), 1)
            session.has_to_send.append(batch)
            return self._costs.send
        return self._send(worker, session)

    def _send(self, worker: int, session: Session) -> float:
        """Send packets of the worker as long as the daemon would."""
        flight = session.flight
        spent = 0.0
        while flight.is_empty or flight.wants_more:
            batches = flight.gather(lambda: self._scheduler.take(worker, ahead=True), shared=True)
            if not batches:
                break
            row = flight.row
            packet = Packet(
                tuple([Transaction(batch, row, row) for batch in batches]),
                batches[0][0].format_description,
            )
            single = all(is_single_statement(batch) for batch in batches)
            if not flight.may_send(packet, single_statements=single):
                flight.give_back(batches)
                break
            flight.sent(packet, 1)
            session.has_to_send += batches
            spent += self._costs.send * len(batches)
        return spent

    def _take_answer(self, worker: int, session: Session) -> float:
        """Note what has committed, and who can begin because of it."""
        session.answers -= 1
        batch = session.flight.committed().batch
        scheduler = self._scheduler
        work = self._work
        for group in batch:
            del work[group.number]
        for other in scheduler.commit(worker, batch):
            self._wake(other)
        self._transactions += 1
        self._done += len(batch)
        self._committed.append(self._time.now)
        self._counts.append(self._done)
        self._room()
        if scheduler.checkpoint_is_urgent():
            self._checkpoint_soon()
        if session.flight.is_empty:
            return self._go_on(worker, session)
        return self._send(worker, session) if session.flight.wants_more else 0.0

    def _waited(self, head: Group, seconds: float) -> None:
        what = f"alone: {head.kind.value}" if head.alone else "+".join(sorted(head.databases))
        self._waits[what] = self._waits.get(what, 0.0) + seconds

    # The target.

    def _run_next(self, worker: int, session: Session) -> None:
        if session.running or not session.queue:
            return
        batch = session.running = session.queue.popleft()
        session.begun = self._time.now
        costs = self._costs
        work = self._work
        seconds = costs.transaction
        for group in batch:
            seconds += work[group.number]
        self._target += seconds
        self._there.run(seconds * self._slow_there, _RAN, worker)

    def _ran(self, worker: int) -> None:
        costs = self._costs
        delay = costs.delay
        if self._sessions[worker].running[0].kind in _DEFINITIONS:
            delay += costs.definition
        if delay:
            self._time.at(self._time.now + delay, _WAITED, worker)
        else:
            self._wait_for_sync(worker)

    def _wait_for_sync(self, worker: int) -> None:
        self._to_sync.append(worker)
        if not self._is_syncing:
            self._begin_sync()

    def _begin_sync(self) -> None:
        self._is_syncing = True
        self._syncing, self._to_sync = self._to_sync, []
        self._synced += self._costs.sync
        self._time.at(self._time.now + self._costs.sync, _SYNCED, 0)

    def _sync_ended(self) -> None:
        self._is_syncing = False
        synced, self._syncing = self._syncing, []
        if self._to_sync:
            self._begin_sync()
        for worker in synced:
            if worker < 0:
                self._checkpointed()
                continue
            session = self._sessions[worker]
            if self._told is not None:
                self._told(worker, session.running, session.begun, self._time.now)
            session.running = ()
            session.busy += self._time.now - session.begun
            session.answers += 1
            self._jobs.append((worker, _ANSWERED))
            self._run_next(worker, session)
        self._next_job()

    # Checkpoints.

    def _checkpoint_soon(self) -> None:
        if not self._checkpoints:
            self._checkpoints = True
            when = max(self._time.now, self._checkpoint_from)
            self._time.at(when, _CHECKPOINT, 0)

    def _checkpoint(self) -> None:
        self._mark = self._scheduler.checkpoint()
        if self._mark is None:
            self._checkpoints = False
            return
        seconds = self._costs.transaction
        self._target += seconds
        self._there.run(seconds * self._slow_there, _CHECKPOINT_RAN, -1)

    def _checkpointed(self) -> None:
        self._checkpoints = False
        self._checkpoint_from = self._time.now + _CHECKPOINT_S
        if self._mark is not None:
            self._scheduler.checkpointed(self._mark)
        if self._scheduler.checkpoint_is_urgent():
            self._checkpoint_soon()
        self._room()

    def _outcome(self) -> Outcome:
        scheduler = self._scheduler
        if not scheduler.idle or self._pieces or self._piece:
            raise RuntimeError(f"the simulation stands still after group {scheduler.gaq.number}")
        seconds = self._time.now
        share = 1.0 / seconds if seconds else 0.0
        return Outcome(
            groups=self._done,
            transactions=self._transactions,
            seconds=seconds,
            rate=self._rate(),
            reading=self._reading * share,
            sending=self._sending * share,
            target=self._target * share,
            sync=self._synced * share,
            workers=tuple([session.busy * share for session in self._sessions]),
            blocked={cause: waited * share for cause, waited in self._blocked.items()},
            waits=self._waits,
        )

    def _rate(self) -> float:
        """Return groups a second, without the run's edges."""
        counts = self._counts
        if not counts:
            return 0.0
        first = bisect_left(counts, int(self._done * _EDGE))
        last = bisect_left(counts, int(self._done * (1 - _EDGE)))
        seconds = self._committed[last] - self._committed[first]
        if last - first < _FEWEST or seconds <= 0.0:
            return self._done / self._time.now if self._time.now else 0.0
        return (counts[last] - counts[first]) / seconds


def is_single_statement(batch: Batch) -> bool:
    """Return whether a batch becomes one statement, which commits by itself."""
    flags = batch[0].row_flags
    return (
        flags is not None
        and batch[0].kind is _ROWS
        and all(group.row_flags == flags for group in batch)
    )
