"""XA transactions in the schedule: every order in which short streams of them can commit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import GroupKeys
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.prepared_transactions import Prepared, PreparedTransactions
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.streams import START_MARK, group
from tests.schedule.worlds.whole_worlds import some

X, Y = XaXid(1, b"x", b""), XaXid(1, b"y", b"")
LIMITS = Limits(
    checkpoint_group=1000, pending_jobs_size_max=1 << 20, batch_groups=8, batch_bytes=1 << 20
)
PREPARE, COMPLETE, ROWS = GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE, GroupKind.ROWS
Kind = tuple[GroupKind, tuple[str, ...], XaXid | None]
KINDS: tuple[Kind, ...] = (
    (PREPARE, ("a",), X),
    (PREPARE, ("b",), X),
    (PREPARE, ("a", "b"), Y),
    (COMPLETE, (), X),
    (COMPLETE, (), Y),
    (ROWS, ("a",), None),
    (ROWS, ("b",), None),
)


def stream_of(kinds: Sequence[Kind]) -> list[Group]:
    return [
        replace(group(number, *databases, kind=kind), xid=xid)
        for number, (kind, databases, xid) in enumerate(kinds, 1)
    ]


def edges(stream: Sequence[Group]) -> list[tuple[int, int]]:
    """Return which groups have to commit before which: what a sequential reading tells."""
    prepared: dict[XaXid, tuple[str, ...]] = {}
    found: list[tuple[int, int]] = []
    seen: list[tuple[int, frozenset[str] | None, XaXid | None]] = []
    for each in stream:
        partitions: frozenset[str] | None = frozenset(each.databases)
        if each.xid is not None and each.kind is PREPARE:
            prepared[each.xid] = each.databases
        elif each.xid is not None:
            known = prepared.pop(each.xid, None)
            partitions = None if known is None else frozenset(known)
        for number, others, xid in seen:
            alone = partitions is None or others is None
            if alone or partitions & others or (xid is not None and xid == each.xid):  # type: ignore[operator] # neither is None
                found.append((number, each.number))
        seen.append((each.number, partitions, each.xid))
    return found


class Run:
    """A schedule of a whole stream, whose workers begin what they can at once."""

    def __init__(
        self,
        stream: Sequence[Group],
        workers: int,
        mark: LowWaterMark = START_MARK,
        executed: ExecutedGroups | None = None,
        prepared: PreparedTransactions | None = None,
    ) -> None:
        executed = executed or ExecutedGroups(mark.number + 1)
        self.scheduler = Scheduler(
            DatabasePolicy(workers), workers, LIMITS, mark, executed, prepared=prepared
        )
        for each in stream[mark.number :]:
            self.scheduler.add(each)
        self.done: list[int] = []

    def running(self) -> list[int]:
        """Let the workers begin; return those that have."""
        found = []
        for worker, queue in enumerate(self.scheduler.workers):
            batch = self.scheduler.take(worker)
            kinds = {each.kind for each in batch}
            assert len(batch) < 2 or kinds == {ROWS} or ROWS not in kinds, "combined with XA"
            if ROWS not in kinds:
                assert len({each.xid for each in batch}) == len(batch), "two groups of one xid"
            if queue.running:
                found.append(worker)
        return found

    def commit(self, worker: int) -> None:
        batch = self.scheduler.workers[worker].running
        self.done += [each.number for each in batch]
        self.scheduler.commit(worker, batch)


def orders(stream: Sequence[Group], workers: int) -> Iterator[list[int]]:
    """Yield the numbers in every order in which they can commit."""
    paths: list[list[int]] = [[]]
    while paths:
        path = paths.pop()
        run = Run(stream, workers)
        for worker in path:
            assert worker in run.running()
            run.commit(worker)
        running = run.running()
        if running:
            paths += [[*path, worker] for worker in running]
        else:
            yield run.done


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_order_of_every_short_stream(workers: int) -> None:
    for kinds in some(product(KINDS, repeat=4)):
        stream = stream_of(kinds)
        before = edges(stream)
        for done in orders(stream, workers):
            assert sorted(done) == [1, 2, 3, 4], (stream, done)
            for earlier, later in before:
                assert done.index(earlier) < done.index(later), (stream, done)


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_crash_anywhere(seed: int, remembered: bool) -> None:
    """After a restart, what was prepared before the low-water mark is known, or runs alone."""
    chance = Random(seed)
    stream = stream_of(chance.choices(KINDS, k=12))
    before = edges(stream)
    run = Run(stream, 3)
    for _ in range(chance.randrange(12)):
        if running := run.running():
            run.commit(chance.choice(running))
    # Those that are recorded together happen one after another: a crash may come in between.
    for queue in run.scheduler.workers:
        batch = [each.number for each in queue.running if each.xid is not None]
        run.done += batch[: chance.randrange(len(batch) + 1)]
    mark = run.scheduler.gaq.mark()
    executed = ExecutedGroups(mark.number + 1).with_numbers(
        number for number in sorted(run.done) if number > mark.number
    )
    left: dict[XaXid, Prepared] = {}
    for each in stream[: mark.number]:
        if each.xid is not None and each.kind is PREPARE:
            left[each.xid] = Prepared(each.databases, alone=False)
        elif each.xid is not None:
            left.pop(each.xid, None)
    again = Run(stream, 3, mark, executed, PreparedTransactions(left.items() if remembered else ()))
    while running := again.running():
        again.commit(chance.choice(running))
    done = run.done + again.done
    assert sorted(done) == list(range(1, 13))
    for earlier, later in before:
        assert done.index(earlier) < done.index(later)


def test_a_completion_has_the_partitions_of_its_prepare() -> None:
    known = PreparedTransactions()
    prepare, complete = stream_of([(PREPARE, ("a", "b"), X), (COMPLETE, (), X)])
    prepare = replace(prepare, alone=True, tables=("a.t",), keys=GroupKeys((7,)))
    assert known.place(prepare, 0) == (prepare, 0)
    found, earlier = known.place(complete, 0)
    assert earlier == 1
    assert (found.databases, found.alone) == (("a", "b"), True)
    assert (found.tables, found.keys) == (("a.t",), GroupKeys((7,)))
    again, earlier = known.place(replace(complete, number=3), 1)
    assert (again.alone, again.databases, earlier) == (True, (), 2)


def test_what_was_left_prepared_is_known() -> None:
    known = PreparedTransactions([(X, Prepared(("a",), alone=False))])
    (complete,) = stream_of([(COMPLETE, (), X)])
    found, earlier = known.place(complete, 0)
    assert (found.databases, found.alone, earlier) == (("a",), False, 0)


def test_memory_is_bounded() -> None:
    known = PreparedTransactions()
    for number in range(1, 80_000):
        xid = XaXid(1, b"%d" % number, b"")
        known.place(replace(group(number, "a", kind=PREPARE), xid=xid), number - 1)
    assert len(known._prepared) == 65_536
    assert len(known._newest) <= 1025
    (complete,) = stream_of([(COMPLETE, (), XaXid(1, b"1", b""))])
    assert known.place(complete, 80_000)[0].alone
    newest = replace(complete, xid=XaXid(1, b"79999", b""))
    assert known.place(newest, 80_000)[0].databases == ("a",)


def test_the_first_group_past_the_mark_is_not_forgotten() -> None:
    """Its completion waits for it, although the group between them has made others be forgotten."""
    known = PreparedTransactions()
    for number in range(1, 1026):
        xid = XaXid(1, b"%d" % number, b"")
        known.place(replace(group(number, "a", kind=PREPARE), xid=xid), max(0, number - 2))
    assert len(known._newest) < 9, "those that have committed are forgotten"
    complete = replace(group(1026, kind=COMPLETE), xid=XaXid(1, b"1024", b""))
    assert known.place(complete, 1023)[1] == 1024
