"""Transactions of statements that are applied together: which, how many, and in which order."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC
from mtsd.model.group import Group, GroupKind
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Duplicates as OnDuplicates
from mtsd.model.step import FromFile, Rows, Statement, StatementKind
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.schedule.batches.statement_runs import MAX_STATEMENTS, StatementRuns
from tests.schedule.batches.queues import MANY, QUERY, numbers, queue_of
from tests.schedule.worlds.exploring import go_through
from tests.schedule.worlds.simulated_run import Mode, RunSettings
from tests.schedule.worlds.streams import Shape, group
from tests.schedule.worlds.whole_worlds import some

STATEMENTS = GroupKind.STATEMENTS
DML = Statement(
    QUERY._replace(text=StatementText(b"INSERT INTO t VALUES (1)")), StatementKind.DML, 0
)
FAILED = DML._replace(query=DML.query._replace(error_code=1062))
CREATED = DML._replace(kind=StatementKind.TEMPORARY)
ALTERED = DML._replace(kind=StatementKind.DDL)
A_FILE = FromFile(1, 0, 0, OnDuplicates.ERROR)
TEMPORARY = TemporaryUse((1, 1), frozenset(), frozenset(), uses=True, only=False)


def of_statements(number: int, *steps: Statement | Rows) -> Group:
    return replace(group(number, "a", kind=STATEMENTS), steps=steps or (DML, DML))


def test_consecutive_transactions_of_statements_begin_together() -> None:
    queue = queue_of(*map(of_statements, (1, 4, 5, 6)))
    assert numbers(queue.take(MANY, MANY, None, statements=3)) == [1, 4, 5]
    queue.running = ()
    assert numbers(queue.take(MANY, MANY, None, statements=3)) == [6]


@pytest.mark.parametrize(
    "other",
    [
        group(2),
        group(2, kind=GroupKind.DDL),
        replace(group(2, kind=GroupKind.NON_TRANSACTIONAL), steps=(DML, Rows((b"",)))),
        replace(group(2, kind=GroupKind.NON_TRANSACTIONAL), steps=(Rows((b"",)),)),
        replace(group(2, kind=GroupKind.XA_PREPARE), steps=(DML,)),
        of_statements(2, DML, Rows((b"",))),
        of_statements(2, DML, DML._replace(file=A_FILE)),
        of_statements(2, FAILED),
        of_statements(2, DML._replace(kind=StatementKind.SAVEPOINT), DML),
        of_statements(2, DML._replace(kind=StatementKind.OTHER)),
        replace(of_statements(2), unsupported="it"),
        replace(of_statements(2), rolled_back=True),
        replace(of_statements(2, ALTERED, CREATED), uses_temporary=TEMPORARY),
    ],
)
def test_others_do_not_begin_with_them(other: Group) -> None:
    queue = queue_of(of_statements(1), other, of_statements(3))
    assert numbers(queue.take(MANY, MANY, None, statements=MANY)) == [1]
    queue.running = ()
    assert numbers(queue.take(MANY, MANY, None, statements=MANY)) == [2]


@pytest.mark.parametrize("first", [STATEMENTS, GroupKind.NON_TRANSACTIONAL])
def test_what_has_changed_no_row_on_the_source_begins_with_them(first: GroupKind) -> None:
    others = (of_statements(2), of_statements(3), of_statements(4))
    groups = (replace(of_statements(1), kind=first), *others)
    queue = queue_of(*groups[:2], replace(groups[2], kind=GroupKind.NON_TRANSACTIONAL), groups[3])
    assert numbers(queue.take(MANY, MANY, None, statements=MANY)) == [1, 2, 3, 4]


def test_what_is_of_its_session_begins_with_them() -> None:
    queue = queue_of(
        of_statements(1),
        of_statements(2, DML._replace(flags=THREAD_SPECIFIC)),
        replace(of_statements(3, CREATED), kind=GroupKind.DDL, uses_temporary=TEMPORARY),
        replace(of_statements(4), uses_temporary=TEMPORARY),
    )
    assert numbers(queue.take(MANY, MANY, None, statements=MANY)) == [1, 2, 3, 4]
    queue = queue_of(replace(of_statements(1, ALTERED), kind=GroupKind.DDL), of_statements(2))
    assert numbers(queue.take(MANY, MANY, None, statements=MANY)) == [1]


def test_without_being_asked_each_begins_by_itself() -> None:
    queue = queue_of(of_statements(1), of_statements(2))
    assert numbers(queue.take(MANY, MANY, None)) == [1]


def test_limits_and_waits_end_a_run() -> None:
    queue = queue_of(*map(of_statements, range(1, 7)), unmet={4: 1}, marks={6: 5})
    for most, most_bytes, limit, expected in (
        (2, MANY, None, [1, 2]),
        (MANY, 99, None, [3]),
        (MANY, MANY, 5, []),
    ):
        assert numbers(queue.take(most, most_bytes, limit, statements=MANY)) == expected
        queue.running = ()
    queue.met(4)
    assert numbers(queue.take(MANY, MANY, None, 4, statements=MANY)) == [4, 5]
    queue.running = ()
    assert numbers(queue.take(MANY, MANY, None, 5, statements=MANY)) == [6]


ORDERS = [
    RunSettings(mode=Mode.DATABASE, workers=3, statements=4),
    RunSettings(mode=Mode.DATABASE, workers=3, statements=4, in_order=True),
]
SHAPES = [
    Shape(("a",), kind=STATEMENTS),
    Shape(("b",), kind=STATEMENTS),
    Shape(("a", "b"), kind=STATEMENTS),
    Shape((), alone=True, kind=STATEMENTS),
    Shape(("a",)),
]


@pytest.mark.parametrize("settings", ORDERS, ids=["partition", "any_time"])
@pytest.mark.parametrize(
    "first", [0, 3, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 2, 4))]
)
def test_every_choice_of_statements(first: int, settings: RunSettings) -> None:
    for others in some(product(SHAPES, repeat=3)):
        go_through([SHAPES[first], *others], settings)


def test_runs_get_longer_while_they_are_short() -> None:
    runs = StatementRuns()
    lengths = []
    for _ in range(9):
        assert runs.may_try()
        lengths.append(runs.most)
        runs.succeeded(runs.most, 0.01)
    assert lengths == [1, 2, 4, 8, 16, 32, 64, 128, 128]
    assert runs.most == MAX_STATEMENTS


def test_runs_get_shorter_when_they_take_long() -> None:
    runs = StatementRuns()
    for _ in range(4):
        runs.succeeded(runs.most, 0.0)
    runs.succeeded(16, 0.1)
    assert runs.most == 16
    runs.succeeded(16, 1.0)
    assert runs.most == 8
    for _ in range(9):
        runs.succeeded(runs.most, 1.0)
    assert runs.most == 1


def test_runs_get_shorter_when_what_begins_with_others_takes_long() -> None:
    runs = StatementRuns()
    for _ in range(3):
        runs.succeeded(runs.most, 0.0)
    runs.took(0.1)
    assert runs.most == 8
    runs.took(1.0)
    assert runs.most == 4


def test_a_short_queue_is_no_reason_for_longer_runs() -> None:
    runs = StatementRuns()
    runs.succeeded(1, 0.0)
    runs.succeeded(1, 0.0)
    assert runs.most == 2


def test_what_fails_again_and_again_is_tried_less_and_less() -> None:
    runs = StatementRuns()
    tried = []
    for number in range(400):
        if runs.may_try():
            tried.append(number)
            runs.failed()
    assert tried == [0, 2, 5, 10, 19, 36, 69, 134, 199, 264, 329, 394]
    runs = StatementRuns()
    runs.failed()
    assert not runs.may_try()
    assert runs.may_try()
    runs.succeeded(1, 0.0)
    runs.failed()
    assert [runs.may_try(), runs.may_try()] == [False, True]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 5)), max_size=60))
def test_a_run_is_never_empty_and_never_too_long(outcomes: list[tuple[bool, float]]) -> None:
    runs = StatementRuns()
    for succeeds, seconds in outcomes:
        assert 1 <= runs.most <= MAX_STATEMENTS
        if not runs.may_try():
            continue
        if succeeds:
            runs.succeeded(runs.most, seconds)
        else:
            runs.failed()
            assert runs.most == 1
