"""A run over recorded groups in simulated time: who has a processor, a sync or work, and when.

The schedule, and the grouping of transactions into packets, are the daemon's own (`mtsd.schedule`).
The stages around them are simulated, in this order:

- the source sends pieces of the stream, until the unread ones fill the connection's buffers;
- the daemon does one thing at a time: it reads a piece and schedules its groups, builds and sends a
  worker's packets, or takes an answer;
- each session of the target runs its transactions one after the other, on a processor;
- transactions that have run wait for a sync; syncs run one at a time, each for all transactions
  that are waiting when it begins;
- checkpoints are transactions, too.

Daemon, source and target share processors if they are on the same machine.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heappop
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.plan.candidate import DEFAULT_SETTINGS, Candidate, CommonSettings
from mtsd.plan.costs import COLD_GROUPS, COLD_SHARE, Costs, Machines
from mtsd.plan.processors import Processors
from mtsd.plan.replayed_group import ReplayedGroup
from mtsd.plan.simulated_run import SimulatedRun
from mtsd.plan.source_stage import SourceStage
from mtsd.plan.tally import Tally
from mtsd.plan.target_stage import CHECKPOINTER, Ran, TargetStage
from mtsd.plan.timeline import (
    CHECKPOINT,
    JOB_DONE,
    PIECE_SENT,
    RAN,
    SLICE_HERE,
    SLICE_THERE,
    SYNCED,
    WRITTEN,
    Timeline,
)
from mtsd.schedule.admission import Filler
from mtsd.schedule.batches.in_flight import Batch, InFlight, Packet, Transaction
from mtsd.schedule.batches.statement_runs import MAX_STATEMENTS
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow, blank_row
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.assignment import Need, Policy
from mtsd.schedule.policies.choice import choose_policy
from mtsd.schedule.scheduler import Scheduler

_ROWS: Final = GroupKind.ROWS
_CHECKPOINT_S: Final = 0.05
"""The shortest interval, as in `mtsd.replica.run.checkpointer`, however fast the groups are."""
_READ: Final = -1
"""The daemon's own job, which belongs to no worker."""
_SENDS: Final = 0
_ANSWERED: Final = 1


class NotRecordedError(ValueError):
    """A policy needs a field of the groups that the record does not contain."""


def _as_recorded(group: Group) -> Group:
    return group


class _Worker:
    """A worker, as seen by the daemon."""

    __slots__ = ("flight", "has_job", "to_send", "waits_since")

    def __init__(self, row: WorkerRow) -> None:
        self.flight = InFlight(row)
        self.has_job = False
        """Whether the daemon's queue contains a job to look for work for this worker."""
        self.to_send: list[Batch] = []
        """What is sent when the daemon's current job is done."""
        self.waits_since = -1.0
        """Since when its first group has waited for the groups of others; -1 if it does not."""


class Simulation:
    """A single run of a configuration over groups that are numbered from 1.

    `recorded` contains those fields that only some policies need and that the record has. `ran` is
    called for every transaction. Raises NotRecordedError.
    """

    def __init__(
        self,
        candidate: Candidate,
        groups: Iterable[ReplayedGroup],
        costs: Costs,
        machines: Machines,
        *,
        recorded: frozenset[Need] = frozenset(),
        settings: CommonSettings = DEFAULT_SETTINGS,
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
            settings.checkpoint_group,
            settings.pending_jobs_size_max,
            candidate.batch_groups,
            settings.batch_bytes,
        )
        fillers: dict[Need, Filler] = dict.fromkeys(policy.needs, _as_recorded)
        self._scheduler = Scheduler(
            policy, count, limits, mark, ExecutedGroups(1), alone=settings.alone, fillers=fillers
        )
        self._costs = costs
        timeline = self._time = Timeline()
        background = costs.background
        if machines.target is None:
            here = there = Processors(
                timeline, machines.daemon, SLICE_HERE, background, costs.contention
            )
        else:
            here = Processors(timeline, machines.daemon, SLICE_HERE)
            there = Processors(timeline, machines.target, SLICE_THERE, background, costs.contention)
        self._here = here
        self._there = there
        self._source = SourceStage(
            groups, costs.source_group, timeline, here if machines.source_is_here else None
        )
        self._target = TargetStage(count, costs, timeline, there, ran)
        self._workers = [_Worker(blank_row(1, mark, 1)) for _ in range(count)]
        self._tally = Tally()
        self._jobs: deque[tuple[int, int]] = deque()
        """The daemon's queue of jobs: the worker, and the kind of job."""
        self._is_busy = False
        self._present = _READ
        """Whose job the daemon is doing, if it is busy."""
        self._reads = False
        """Whether a reading job is in the daemon's queue or running."""
        self._piece: deque[ReplayedGroup] = deque()
        """The rest of the piece that is being read."""
        self._blocked_since = -1.0
        """Since when the next group has had no room; -1 if it has room."""
        self._blocked_by = ""
        self._work: dict[int, float] = {}
        """The cost of a group's contents in seconds of the target's processors, by its number."""
        self._checkpoint_from = 0.0
        """The earliest time of the next checkpoint."""
        self._has_checkpoint = False
        """Whether a checkpoint is due or running."""
        self._mark: LowWaterMark | None = None

    def run(self) -> SimulatedRun:
        """Run to the end of the stream."""
        self._source.send()
        timeline = self._time
        events = timeline.events
        while events:
            timeline.now, _, kind, who = heappop(events)
            if kind <= SLICE_THERE:
                processors = self._here if kind == SLICE_HERE else self._there
                ended = processors.end_slice(who)
                if ended is not None:
                    self._happened(ended[0], ended[1])
                elif self._there.background and self._is_over():
                    self._there.end_background()
                processors.go_on()
            else:
                self._happened(kind, who)
        if not self._is_over():
            number = self._scheduler.gaq.number
            raise RuntimeError(f"the simulation stands still after group {number}")
        target = self._target
        tally = self._tally
        stretch = self._here.stretch
        tally.reading *= stretch
        tally.sending *= stretch
        busy = target.busy * self._there.stretch
        return tally.outcome(timeline.now, busy, target.synced, target.workers)

    def _is_over(self) -> bool:
        return self._source.is_over and not self._piece and self._scheduler.idle

    def _happened(self, kind: int, who: int) -> None:
        if kind == RAN:
            self._target.has_run(who)
        elif kind == WRITTEN:
            self._target.has_written()
        elif kind == SYNCED:
            self._synced()
        elif kind == JOB_DONE:
            self._job_done()
        elif kind == PIECE_SENT:
            self._source.sent()
            self._read_on()
            self._next_job()
        elif kind == CHECKPOINT:
            self._checkpoint()
        else:
            # This is a worker that has finished its delay, or a checkpoint.
            self._target.wait_for_sync(who)

    def _synced(self) -> None:
        for worker in self._target.has_synced():
            if worker == CHECKPOINTER:
                self._checkpointed()
            else:
                self._jobs.append((worker, _ANSWERED))
        self._next_job()

    def _read_on(self) -> None:
        """Queue a reading job if there is something to read, and room for it."""
        if not self._reads and self._blocked_since < 0.0 and (self._piece or self._source.pieces):
            self._reads = True
            self._jobs.append((_READ, 0))

    def _next_job(self) -> None:
        while not self._is_busy and self._jobs:
            who, what = self._jobs.popleft()
            if who == _READ:
                spent = self._read()
                if spent < 0.0:
                    continue
                self._tally.reading += spent
            else:
                worker = self._workers[who]
                if what == _ANSWERED:
                    spent = self._take_answer(who, worker)
                else:
                    worker.has_job = False
                    spent = self._go_on(who, worker)
                if not (spent or worker.to_send):
                    continue
                self._tally.sending += spent
            self._is_busy = True
            self._present = who
            self._here.run(spent, JOB_DONE, who, urgent=True)

    def _job_done(self) -> None:
        self._is_busy = False
        who = self._present
        if who == _READ:
            self._reads = False
            self._read_on()
        else:
            worker = self._workers[who]
            work = self._work
            sent: list[tuple[Batch, float]] = []
            for batch in worker.to_send:
                seconds = [work[group.number] for group in batch]
                sent.append((batch, sum(seconds) + COLD_SHARE * sum(seconds[:COLD_GROUPS])))
            worker.to_send = []
            self._target.send(who, sent)
        self._next_job()

    def _read(self) -> float:
        """Schedule as many groups of a piece as there is room for; return -1 if there is none."""
        if not self._piece:
            self._piece = self._source.take()
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
        """Resume reading if there is room again."""
        since = self._blocked_since
        if since >= 0.0 and self._scheduler.blocked(self._piece[0].group.size) is None:
            self._tally.blocked(self._blocked_by, self._time.now - since)
            self._blocked_since = -1.0
            self._read_on()

    def _wake(self, index: int) -> None:
        """Make a worker look for work."""
        worker = self._workers[index]
        if not worker.has_job:
            worker.has_job = True
            self._jobs.append((index, _SENDS))

    def _go_on(self, index: int, worker: _Worker) -> float:
        """Begin the worker's next batch if it has nothing in flight."""
        flight = worker.flight
        if not flight.is_empty:
            return 0.0
        if not flight.has_begun:
            batch = self._scheduler.take(index, statements=MAX_STATEMENTS)
            if not batch:
                if worker.waits_since < 0.0 and self._scheduler.workers[index].head is not None:
                    worker.waits_since = self._time.now
                return 0.0
            if worker.waits_since >= 0.0:
                self._tally.waited(batch[0], self._time.now - worker.waits_since)
                worker.waits_since = -1.0
            flight.begin(batch)
        if flight.next_begun()[0].kind is not _ROWS:
            row = flight.row
            batch = flight.take_begun()
            transaction = Transaction(batch, row, row, batch)
            flight.sent(Packet((transaction,), batch[0].format_description), 1)
            worker.to_send.append(batch)
            return self._sending(batch)
        return self._send(index, worker)

    def _send(self, index: int, worker: _Worker) -> float:
        """Send the worker's packets for as long as the daemon would."""
        flight = worker.flight
        spent = 0.0
        while flight.is_empty or flight.wants_more:
            batches = flight.gather(lambda: self._scheduler.take(index, ahead=True), shared=True)
            if not batches:
                break
            row = flight.row
            packet = Packet(
                tuple([Transaction(batch, row, row, batch) for batch in batches]),
                batches[0][0].format_description,
            )
            single = all(is_single_statement(batch) for batch in batches)
            if not flight.may_send(packet, single_statements=single):
                flight.give_back(batches)
                break
            flight.sent(packet, 1)
            worker.to_send += batches
            spent += sum([self._sending(batch) for batch in batches])
        return spent

    def _sending(self, batch: Batch) -> float:
        costs = self._costs
        return costs.send + COLD_SHARE * costs.read_group * min(len(batch), COLD_GROUPS)

    def _take_answer(self, index: int, worker: _Worker) -> float:
        """Record what has committed, and wake the workers that can begin because of it."""
        batch = worker.flight.committed().batch
        scheduler = self._scheduler
        work = self._work
        for group in batch:
            del work[group.number]
        for other in scheduler.commit(index, batch):
            self._wake(other)
        self._tally.committed(len(batch), self._time.now)
        self._room()
        self._checkpoint_if_urgent()
        if worker.flight.is_empty:
            return self._go_on(index, worker)
        return self._send(index, worker) if worker.flight.wants_more else 0.0

    def _checkpoint_if_urgent(self) -> None:
        if not self._has_checkpoint and self._scheduler.checkpoint_is_urgent():
            self._has_checkpoint = True
            self._time.at(max(self._time.now, self._checkpoint_from), CHECKPOINT, CHECKPOINTER)

    def _checkpoint(self) -> None:
        self._mark = self._scheduler.checkpoint()
        if self._mark is None:
            self._has_checkpoint = False
        else:
            self._target.send_checkpoint()

    def _checkpointed(self) -> None:
        self._has_checkpoint = False
        self._checkpoint_from = self._time.now + _CHECKPOINT_S
        if self._mark is not None:
            self._scheduler.checkpointed(self._mark)
        self._checkpoint_if_urgent()
        self._room()


def is_single_statement(batch: Batch) -> bool:
    """Return whether a batch becomes a single, autocommitted statement."""
    flags = batch[0].row_flags
    return (
        flags is not None
        and batch[0].kind is _ROWS
        and all(group.row_flags == flags for group in batch)
    )
