"""What a transaction costs the daemon in each of its stages: no servers, sockets or event loop.

`python -m benchmarks.processes.stages FILE` processes a recorded binlog file as a daemon processes
a backlog: the bytes of a dump arrive in pieces, become events, groups, batches of a worker, the
rows of slave_worker_info, and finally packets of BINLOG statements. It prints JSON: µs of CPU per
transaction by stage, as a list of runs. `python -m benchmarks --part cpu` runs it, compiled and
pure. With `--policy`, scheduling includes reading the keys that the policy needs, and statements
include joining rows by them.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.processes.key_guess import keys_by_first_columns
from mtsd.apply.position.worker_info import WorkerInfo, WorkerRowChange
from mtsd.apply.rows.bundle import commands, row_statements
from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.apply.tables.key_definitions import KeyDefinitions
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.groups.updated_tables import UpdatedTables
from mtsd.daemon.memory import keep_freed_memory
from mtsd.filter.filter import Filter
from mtsd.model.group import Group
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.parallel_type import BY_THE_SOURCE
from mtsd.model.position import Position
from mtsd.schedule.admission import Filler
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow, blank_row
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.assignment import Need
from mtsd.schedule.policies.choice import POLICIES, choose_policy
from mtsd.schedule.scheduler import Scheduler
from mtsd.wire.dump_packets import event_of
from mtsd.wire.framing import PacketFramer

STAGES: Final = ("framing", "grouping", "scheduling", "worker rows", "statements")
"""In order; "framing" is that of the protocol's packets."""

_PIECE: Final = 1 << 16
"""Bytes that a socket gives at once."""
_WORKERS: Final = 4
_LIMITS: Final = Limits(
    checkpoint_group=8192,
    pending_jobs_size_max=64 << 20,
    batch_groups=512,
    batch_bytes=4 << 20,
)
"""The daemon's defaults."""
_CHECKPOINT_GROUPS: Final = 2048
"""Groups between two checkpoints: every 50 ms, at 40,000 groups per second."""
_PACKET_LIMIT: Final = 60 << 20
_GC_THRESHOLD: Final = 200_000
"""The same as in `mtsd run`."""


def main() -> None:
    """Print the figures of every run as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processes.stages", description=__doc__
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--transactions", type=int, default=sys.maxsize, help="from the first on")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--until", choices=("", *STAGES), default=STAGES[-1], help='"": none')
    parser.add_argument("--policy", choices=POLICIES, default="database")
    args = parser.parse_args()
    pieces, transactions = dumped(args.file, args.transactions)
    known = keys_by_first_columns(event[:-4] for event in _events(args.file))
    until = ("", *STAGES).index(args.until)
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 50, 100)
    keep_freed_memory()
    runs = []
    for _ in range(args.runs):
        gc.collect()
        run = Run(args.file.name, until, args.policy, known)
        run.take(pieces)
        found = dict(zip(STAGES[:until], run.nanoseconds, strict=False))
        runs.append({name: spent / 1000 / transactions for name, spent in found.items()})
    json.dump({"transactions": transactions, "runs": runs}, sys.stdout)


def dumped(file: Path, most: int) -> tuple[list[bytes], int]:
    """Return a dump of the file's first `most` transactions in pieces, and how many they are."""
    packed: list[bytes] = []
    transactions = 0
    for number, event in enumerate(_events(file)):
        if event[4] == _GTID:
            if transactions == most:
                break
            transactions += 1
        size = len(event) + 1
        packed.append(size.to_bytes(3, "little") + bytes((number & 0xFF, 0)) + event)
    whole = b"".join(packed)
    return [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)], transactions


_GTID: Final = 33


def _events(file: Path) -> Iterator[bytes]:
    framer = FileFramer()
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            yield from framer.feed(piece)
    framer.finish()


class Run:
    """One pass over a dump, up to the stage of index `until` - 1; `nanoseconds` by stage.

    `known` are the target's keys.
    """

    def __init__(self, file: str, until: int, policy: str, known: KeyDefinitions) -> None:
        start = Position(file, 4)
        mark = LowWaterMark(0, start, None)
        self.nanoseconds = [0] * len(STAGES)
        self._until = until
        self._framer = PacketFramer(0, event_of)
        self._grouper = Grouper(
            start=start,
            next_number=1,
            checksums=True,
            hold_bytes=_LIMITS.pending_jobs_size_max,
            chunk_bytes=_LIMITS.batch_bytes,
            replicated=Filter(position_schema="mtsd"),
        )
        fillers: dict[Need, Filler] = {
            Need.TABLES: UpdatedTables(fold_case=False),
            Need.KEYS: ChangedKeys(known),
        }
        self._scheduler = Scheduler(
            choose_policy(policy, _WORKERS),
            _WORKERS,
            _LIMITS,
            mark,
            ExecutedGroups(1),
            fillers=fillers,
        )
        self._by_clock = policy in BY_THE_SOURCE
        self._info = WorkerInfo("mtsd", "")
        self._rows = [blank_row(worker + 1, mark, worker + 1) for worker in range(_WORKERS)]

    def take(self, pieces: Sequence[bytes]) -> None:
        """Pass the pieces, one after the other, through all stages."""
        clock = time.thread_time_ns
        spent = self.nanoseconds
        until = self._until
        if not until:
            return
        for piece in pieces:
            began = clock()
            events = self._framer.feed(piece)
            ended = clock()
            spent[0] += ended - began
            if until == 1:
                continue
            groups = [item for item in self._grouper.groups(events) if type(item) is Group]
            began = clock()
            spent[1] += began - ended
            if until == 2:
                continue
            for group in groups:
                if self._scheduler.blocked(group.size) is not None:
                    spent[2] += clock() - began
                    self._work(least=1)
                    began = clock()
                    if self._scheduler.blocked(group.size) is not None:
                        raise RuntimeError("the scheduler has no room: the figures are meaningless")
                self._scheduler.add(group)
            spent[2] += clock() - began
            self._work(least=_LIMITS.batch_groups)
        if until > 2:
            self._work(least=1)
            if not self._scheduler.idle:
                raise RuntimeError("groups are left over: the figures are meaningless")

    def _work(self, *, least: int) -> None:
        """Let each worker apply its batches while `least` groups wait for it, and may begin."""
        has_applied = True
        while has_applied:
            has_applied = False
            for worker in range(_WORKERS):
                has_applied |= self._work_of(worker, least)

    def _work_of(self, worker: int, least: int) -> bool:
        clock = time.thread_time_ns
        spent = self.nanoseconds
        scheduler = self._scheduler
        has_applied = False
        while len(scheduler.workers[worker]) >= least:
            began = clock()
            batch = scheduler.take(worker)
            ended = clock()
            spent[2] += ended - began
            if not batch:
                break
            has_applied = True
            if self._until > 3:
                record = self._advanced(worker, batch)
                began = clock()
                spent[3] += began - ended
                if self._until > 4:
                    _statements(batch, record, by_clock=self._by_clock)
                    ended = clock()
                    spent[4] += ended - began
            began = clock()
            scheduler.commit(worker, batch)
            if scheduler.gaq.number - scheduler.stored.number >= _CHECKPOINT_GROUPS:
                mark = scheduler.checkpoint()
                if mark is not None:
                    scheduler.checkpointed(mark)
            spent[2] += clock() - began
        return has_applied

    def _advanced(self, worker: int, batch: Sequence[Group]) -> WorkerRowChange:
        before = self._rows[worker]
        row: WorkerRow = before.advanced(batch, self._scheduler.stored)
        self._rows[worker] = row
        return WorkerRowChange(self._info, row, before)


def _statements(batch: Sequence[Group], change: WorkerRowChange, *, by_clock: bool) -> None:
    rows = row_statements(batch, _LIMITS.batch_bytes, change, set(), by_clock=by_clock)
    first = list(islice(rows, 2))
    if len(first) != 1:
        raise RuntimeError("a batch is not one statement: the figures are meaningless")
    tuple(commands([], first, [], _PACKET_LIMIT))


if __name__ == "__main__":
    main()
