"""Temporary tables stay with one worker: every short history of the threads that have them."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from mtsd.model.group import GroupKind
from mtsd.model.position import Position
from mtsd.model.temporary_tables import NONE_OPEN, SourceThread, TableName, TemporaryUse
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.scheduler import Scheduler
from mtsd.schedule.temporary_sessions import LostTables, TemporarySessions
from tests.schedule.worlds.exploring import crash_anywhere_once
from tests.schedule.worlds.simulated_run import RunSettings
from tests.schedule.worlds.streams import START_MARK, Shape, Stream
from tests.schedule.worlds.whole_worlds import distinct, some

ONE: SourceThread = (1, 7)
SAME_ID: SourceThread = (2, 7)
OTHER: SourceThread = (1, 8)
THREADS = (ONE, SAME_ID, OTHER)
TABLES: tuple[TableName, ...] = (("a", "t"), ("b", "u"))
LIMITS = Limits(checkpoint_group=99, pending_jobs_size_max=9999, batch_groups=9, batch_bytes=9999)

Operation = tuple[str, SourceThread]


def uses_of(operations: Sequence[Operation]) -> Iterator[TemporaryUse]:
    """Yield what the groups of a history say: a thread has the first table, the second, or both."""
    has: dict[SourceThread, frozenset[TableName]] = {}
    for what, thread in operations:
        before = has.get(thread, frozenset())
        missing = [table for table in TABLES if table not in before]
        left = before
        if what == "create" and missing:
            left = before | {missing[0]}
        elif what == "drop":
            left = frozenset()
        has[thread] = left
        yield TemporaryUse(thread, before, left, what == "use", what != "use")


def histories(
    length: int, threads: Sequence[SourceThread] = THREADS
) -> Iterator[tuple[Operation, ...]]:
    yield from product(product(("create", "use", "drop"), threads), repeat=length)


OPERATIONS = list(product(("create", "use", "drop"), THREADS))
MIRROR = {ONE: SAME_ID, SAME_ID: ONE, OTHER: OTHER}
"""Which of two servers a thread is one of makes no difference."""


@pytest.mark.parametrize("workers", [2, 3])
def test_from_the_first_to_the_last_table_it_is_one_worker(workers: int) -> None:
    databases = (("a",), ("b",), ("a", "b"))
    mirror = {(what, thread): (what, MIRROR[thread]) for what, thread in OPERATIONS}
    for operations in some(distinct(OPERATIONS, 4, mirror)):
        scheduler = Scheduler(
            DatabasePolicy(workers), workers, LIMITS, START_MARK, ExecutedGroups(0)
        )
        uses = list(uses_of(operations))
        shapes = [
            Shape(
                databases[(at + len(use.left)) % 3], kind=GroupKind.STATEMENTS, uses_temporary=use
            )
            for at, use in enumerate(uses)
        ]
        held: dict[SourceThread, int] = {}
        for group, use in zip(Stream.of(shapes).groups, uses, strict=True):
            possible = scheduler.sessions.can_hold(use.thread)
            assert possible
            scheduler.add(group)
            (worker,) = (
                index
                for index, queue in enumerate(scheduler.workers)
                if any(each.number == group.number for each in queue.pending())
            )
            assert held.get(use.thread, worker) == worker
            for thread, holder in held.items():
                if thread != use.thread and thread[1] == use.thread[1]:
                    assert holder != worker
            assert scheduler.sessions.elsewhere(use.thread[1], worker) == any(
                thread[1] == use.thread[1] and holder != worker for thread, holder in held.items()
            )
            if use.left:
                held[use.thread] = worker
            else:
                held.pop(use.thread, None)


def test_one_worker_cannot_hold_two_threads_of_one_id() -> None:
    sessions = TemporarySessions(1)
    for use in uses_of([("create", ONE)]):
        sessions.assigned(use, 0)
    assert sessions.can_hold(ONE)
    assert sessions.can_hold(OTHER)
    assert not sessions.can_hold(SAME_ID)
    assert sessions.ended({ONE: frozenset(TABLES[:1])}) == {}
    assert sessions.ended(NONE_OPEN.by_thread) == {ONE: 0}
    sessions.only(NONE_OPEN.by_thread)
    assert sessions.can_hold(SAME_ID)
    assert sessions.ended(NONE_OPEN.by_thread) == {}


def test_a_worker_is_excluded_by_another_servers_thread_of_the_same_id() -> None:
    sessions = TemporarySessions(2)
    for use in uses_of([("create", ONE)]):
        sessions.assigned(use, 0)
    assert [sessions.excluded(SAME_ID, worker) for worker in (0, 1)] == [True, False]
    assert not sessions.excluded(ONE, 0)
    assert not sessions.excluded(OTHER, 0)


def test_a_restart_of_the_source_releases_its_threads() -> None:
    scheduler = Scheduler(DatabasePolicy(1), 1, LIMITS, START_MARK, ExecutedGroups(0))
    (use,) = uses_of([("create", ONE)])
    shape = Shape(("a",), kind=GroupKind.STATEMENTS, uses_temporary=use)
    scheduler.add(Stream.of([shape]).groups[0])
    possible = [scheduler.sessions.can_hold(SAME_ID)]
    restarted = Position("binlog.000002", 4)
    scheduler.reach(restarted, None)
    possible.append(scheduler.sessions.can_hold(SAME_ID))
    scheduler.reach(restarted, None, NONE_OPEN)
    possible.append(scheduler.sessions.can_hold(SAME_ID))
    assert possible == [False, False, True]


@pytest.mark.parametrize("applied", list(product((True, False), repeat=4)), ids=str)
def test_what_is_lost_is_what_no_group_of_this_run_has_created(applied: tuple[bool, ...]) -> None:
    for operations in histories(4, (ONE, OTHER)):
        lost = LostTables({OTHER: frozenset({TABLES[1]})})
        there: dict[SourceThread, set[TableName]] = {ONE: set(), OTHER: set()}
        source: dict[SourceThread, set[TableName]] = {ONE: set(), OTHER: {TABLES[1]}}
        for (what, thread), is_applied in zip(operations, applied, strict=True):
            before = frozenset(source[thread])
            missing = [table for table in TABLES if table not in before]
            if what == "create" and missing:
                source[thread].add(missing[0])
                if is_applied:
                    there[thread].add(missing[0])
            elif what == "drop":
                source[thread].clear()
                there[thread].clear()
            left = frozenset(source[thread])
            lost.passed(
                TemporaryUse(thread, before, left, what == "use", what != "use"), applied=is_applied
            )
            for each in (ONE, OTHER):
                assert lost.of(each) == source[each] - there[each]
        lost.only({})
        assert not lost.of(OTHER)


@pytest.mark.parametrize(
    "operations",
    [
        (("create", ONE), ("use", ONE), ("drop", ONE)),
        (("create", ONE), ("create", OTHER), ("use", ONE)),
        (("create", ONE), ("create", SAME_ID), ("use", ONE)),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "between",
    [
        Shape(("a", "b")),
        pytest.param(Shape(("a",)), marks=pytest.mark.long),
        pytest.param(Shape((), alone=True), marks=pytest.mark.long),
    ],
)
def test_nothing_waits_for_ever(operations: tuple[Operation, ...], between: Shape) -> None:
    first, second, third = (
        Shape((name,), kind=GroupKind.STATEMENTS, uses_temporary=use)
        for name, use in zip("aba", uses_of(operations), strict=True)
    )
    crash_anywhere_once((first, between, second, third), RunSettings(workers=2))


def use(thread: int, *tables: str, before: tuple[str, ...] = ()) -> TemporaryUse:
    has, left = (frozenset(("a", name) for name in names) for names in (before, tables))
    return TemporaryUse((1, thread), has, left, uses=True, only=False)


def test_sessions_that_change_the_same_databases_meet_on_one_worker() -> None:
    sessions = TemporarySessions(2)
    sessions.assigned(use(7, "t"), 0, ["a"])
    sessions.assigned(use(8, "u"), 1, ["b"])
    assert [sessions.home([name]) for name in "abc"] == [0, 1, -1]
    sessions.assigned(use(7, "t", before=("t",)), 0, ["a", "b"])
    assert [sessions.home([name]) for name in "abc"] == [0, 0, -1]
    assert sessions.forced((1, 8), [0, 0], ["b"]) == 1
    sessions.assigned(use(8, before=("u",)), 1, ["b"])
    assert sessions.forced((1, 8), [0, 0], ["b"]) == 0
    assert sessions.forced((1, 9), [0, 0], ["c"]) == -1
    sessions.assigned(use(7, before=("t",)), 0, ["a"])
    assert sessions.forced((1, 8), [0, 0], ["b"]) == -1


def test_where_databases_do_not_count_they_are_all_on_one_worker() -> None:
    sessions = TemporarySessions(2, by_names=False)
    sessions.assigned(use(7, "t"), 1, ["a"])
    assert sessions.forced((1, 8), [0, 0], ["b"]) == 1
