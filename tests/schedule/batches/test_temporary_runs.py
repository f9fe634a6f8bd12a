"""Runs of statements on temporary tables: what a session has of them, in every short history.

A worker's session is simulated: it can undo what has been changed in a table, and neither a CREATE
nor a DROP of one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.model.statement_text import StatementText
from mtsd.model.step import Statement, StatementKind
from mtsd.model.temporary_tables import SourceThread, TableName, TemporaryUse
from mtsd.schedule.batches.temporary_runs import TemporaryRun, temporary_run
from tests.schedule.batches.queues import QUERY
from tests.schedule.worlds.streams import group

T: TableName = ("a", "t")
TEXTS = {
    "create": "CREATE TEMPORARY TABLE t (a INT)",
    "create another": "CREATE TEMPORARY TABLE t (b INT)",
    "fill": "INSERT INTO t VALUES (1)",
    "drop": "DROP TEMPORARY TABLE t",
    "other": "UPDATE y SET t_a = 1",
    "base": "UPDATE t SET a = 1",
}
"""By operation; `base` is a change of the table that a temporary one would hide."""
KINDS = {
    "create": StatementKind.TEMPORARY,
    "create another": StatementKind.TEMPORARY,
    "drop": StatementKind.DROP_TEMPORARY,
}

Operation = tuple[str, int]
Tables = dict[int, tuple[str, int]]
"""By thread: what has created its table, and how many rows that has."""


def statement(what: str, thread: int) -> Statement:
    query = QUERY._replace(thread_id=thread, text=StatementText(TEXTS[what].encode()))
    return Statement(query, KINDS.get(what, StatementKind.DML), 0)


def possible(operations: Sequence[Operation]) -> bool:
    has: set[int] = set()
    for what, thread in operations:
        if (thread in has) == (what in {"create", "create another", "base"}) and what != "other":
            return False
        if what == "drop":
            has.remove(thread)
        elif what.startswith("create"):
            has.add(thread)
    return True


def groups_of(operations: Sequence[Operation]) -> Iterator[Group]:
    has: set[int] = set()
    for number, (what, thread) in enumerate(operations, 1):
        before = frozenset({T} if thread in has else ())
        created = frozenset({T} if what.startswith("create") else ())
        left = frozenset() if what == "drop" else before | created
        use = None
        if what not in {"other", "base"}:
            use = TemporaryUse(
                (1, thread), before, left, what == "fill", only=False, created=created
            )
            (has.add if left else has.discard)(thread)
        steps = (statement(what, thread),)
        yield replace(
            group(number, "a", kind=GroupKind.STATEMENTS), steps=steps, uses_temporary=use
        )


@dataclass(slots=True)
class Session:
    """What it has; `created` are its tables that the open transaction has created."""

    tables: Tables = field(default_factory=dict)
    created: set[int] = field(default_factory=set)

    def alike(self, thread: SourceThread, table: TableName, step: Statement) -> bool:
        assert table == T
        return self.tables[thread[1]][0] == step.query.statement.decode()

    def apply(self, each: Group, what: str, thread: int, run: TemporaryRun) -> None:
        if each.number in run.behind:
            return
        if each.number in run.emptied:
            self.tables[thread] = (self.tables[thread][0], 0)
        elif what.startswith("create"):
            assert thread not in self.tables
            self.tables[thread] = (TEXTS[what], 0)
            self.created.add(thread)
        elif what == "fill":
            made, rows = self.tables[thread]
            self.tables[thread] = (made, rows + 1)
        elif what == "drop":
            assert thread in self.created, "no ROLLBACK would bring it back"
            del self.tables[thread]
        elif what == "base":
            assert thread not in self.tables, "it is hidden"


def as_on_the_source(operations: Sequence[Operation]) -> Tables:
    tables: Tables = {}
    for what, thread in operations:
        if what == "drop":
            del tables[thread]
        elif what.startswith("create"):
            tables[thread] = (TEXTS[what], 0)
        elif what == "fill":
            tables[thread] = (tables[thread][0], tables[thread][1] + 1)
    return tables


@pytest.mark.parametrize(("threads", "length"), [(1, 6), (2, 4)])
def test_each_run_leaves_what_the_source_has_or_can_be_undone(threads: int, length: int) -> None:
    each = list(product(TEXTS, range(1, threads + 1)))
    for operations in filter(possible, product(each, repeat=length)):
        groups = list(groups_of(operations))
        for most in (2, length):
            session, at = Session(), 0
            while at < length:
                run = temporary_run(groups[at : at + most], session.alike)
                assert run.groups
                session.created = set()
                before = set(session.tables)
                for done in range(at, at + run.groups):
                    session.apply(groups[done], *operations[done], run)
                    assert before <= set(session.tables)
                for (_, thread), tables in run.drops.items():
                    assert tables == {T}
                    del session.tables[thread]
                at += run.groups
                assert session.tables == as_on_the_source(operations[:at])


def test_the_worked_example() -> None:
    """Session 8 has had its table before; session 7 creates one, and drops it again."""
    operations = [
        ("create", 7), ("drop", 8), ("fill", 7), ("drop", 7), ("other", 8), ("create", 8),
    ]  # fmt: skip
    groups = list(groups_of([("create", 8), *operations]))[1:]
    whole = temporary_run(groups, lambda *_: True)
    assert whole == TemporaryRun(6, {}, frozenset({3}), {7: T})
    assert temporary_run(groups, lambda *_: False) == TemporaryRun(5, {(1, 8): {T}}, frozenset({3}))


def test_a_transaction_that_drops_what_was_there_before_is_applied_by_itself() -> None:
    fill, drop = statement("fill", 1), statement("drop", 1)
    before = TemporaryUse((1, 1), frozenset({T}), frozenset(), uses=True, only=False)
    both = replace(
        group(2, "a", kind=GroupKind.STATEMENTS), steps=(fill, drop), uses_temporary=before
    )
    assert temporary_run([both], lambda *_: True).groups == 0
