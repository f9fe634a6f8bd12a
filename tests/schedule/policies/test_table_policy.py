"""The table policy: tables, whole databases, tables that foreign keys join."""

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import pytest

from mtsd.model.distribution import Distribution
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Step
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.policies.foreign_key_families import ForeignKeys, families
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.table_policy import TablePolicy
from mtsd.schedule.scheduler import Scheduler
from tests.binlog.building import query
from tests.binlog.transactions import grouped
from tests.schedule.worlds.simulated_run import ROOMY, as_filled
from tests.schedule.worlds.streams import START_MARK, group


def statement(database: str, text: bytes) -> Step:
    (found,) = grouped(query(text, database=database.encode()))
    assert isinstance(found, Group)
    (step,) = found.steps
    return step


def joined_by(tables: Iterable[tuple[str, str]]) -> ForeignKeys:
    """Return foreign keys between tables, "a.t" each."""
    found = tuple(tables)
    databases = [frozenset(name.partition(".")[0] for name in pair) for pair in found]
    return ForeignKeys(found, tuple(each for each in databases if len(each) > 1))


class Scheduled:
    """Groups on tables, given as "a.t b.u", or on whole databases, given as "a b"."""

    def __init__(
        self,
        *,
        workers: int = 3,
        bind: tuple[tuple[str, ...], ...] = (),
        foreign_keys: Iterable[tuple[str, str]] = (),
    ) -> None:
        policy = TablePolicy(workers, bind, joined_by(foreign_keys))
        self.scheduler = Scheduler(
            policy, workers, ROOMY, START_MARK, ExecutedGroups(1), fillers=as_filled(policy)
        )
        self.number = 0

    def add(self, names: str, kind: GroupKind = GroupKind.ROWS, *steps: Step) -> None:
        self.number += 1
        databases = dict.fromkeys(name.partition(".")[0] for name in names.split())
        tables = tuple(name for name in names.split() if "." in name)
        made = group(self.number, *databases, kind=kind)
        self.scheduler.add(replace(made, tables=tables, steps=steps))

    def begun(self) -> list[list[int]]:
        """Begin what can begin; return it by worker."""
        return [
            [each.number for each in self.scheduler.take(worker)]
            for worker in range(len(self.scheduler.workers))
        ]

    def commit(self) -> None:
        for worker, queue in enumerate(self.scheduler.workers):
            if queue.running:
                self.scheduler.commit(worker, queue.running)


def test_tables_of_a_database_run_in_parallel() -> None:
    scheduled = Scheduled()
    for names in ("a.t", "a.u", "a.v", "a.t", "a.u"):
        scheduled.add(names)
    assert scheduled.begun() == [[1, 4], [2, 5], [3]]


def test_a_group_of_several_tables_waits_for_each() -> None:
    scheduled = Scheduled()
    for names in ("a.t", "a.u", "b.t", "a.t a.u", "a.t"):
        scheduled.add(names)
    assert scheduled.begun() == [[1], [2], [3]]
    scheduled.commit()
    # The fifth moves to a worker with fewer tables.
    assert scheduled.begun() == [[], [4], []]
    scheduled.commit()
    assert scheduled.begun() == [[5], [], []]


@pytest.mark.parametrize("kind", [GroupKind.DDL, GroupKind.STATEMENTS])
def test_without_tables_it_is_the_whole_database(kind: GroupKind) -> None:
    scheduled = Scheduled()
    scheduled.add("a.t")
    scheduled.add("a.u")
    scheduled.add("b.t")
    scheduled.add("a", kind)
    scheduled.add("b.t")
    scheduled.add("a.t")
    scheduled.add("a", kind)
    assert scheduled.begun() == [[1], [2], [3, 5]]
    scheduled.commit()
    assert [*chain(*scheduled.begun())] == [4]
    scheduled.commit()
    assert [*chain(*scheduled.begun())] == [6]
    scheduled.commit()
    assert [*chain(*scheduled.begun())] == [7]


def test_what_foreign_keys_join_is_one_table() -> None:
    keys = [("a.child", "a.parent"), ("a.grandchild", "a.child"), ("b.own", "b.own")]
    scheduled = Scheduled(foreign_keys=keys)
    for names in ("a.parent", "a.grandchild", "a.other", "b.own", "a.child a.parent"):
        scheduled.add(names)
    assert scheduled.begun() == [[1, 2, 5], [3], [4]]
    assert [each.name for each in scheduled.scheduler.partitions()] == [
        "a.child+a.grandchild+a.parent", "a.other", "b.own",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", [b"ALTER TABLE u ADD FOREIGN KEY (i) references t (i)", b"RENAME TABLE t TO z"]
)
def test_foreign_keys_that_may_have_changed(text: bytes) -> None:
    scheduled = Scheduled()
    scheduled.add("a", GroupKind.DDL, statement("a", text))
    scheduled.add("b", GroupKind.DDL, statement("b", b"CREATE TABLE u (i INT PRIMARY KEY)"))
    scheduled.begun()
    scheduled.commit()
    for names in ("a.t", "a.u", "b.t", "b.u", "a.t b.t"):
        scheduled.add(names)
    assert sorted(scheduled.begun()) == [[3, 4], [5], [6]]
    scheduled.commit()
    assert [*chain(*scheduled.begun())] == [7]


def test_foreign_keys_that_may_have_changed_stay_so_when_others_are_bound() -> None:
    scheduled = Scheduled()
    text = b"ALTER TABLE u ADD FOREIGN KEY (i) REFERENCES t (i)"
    scheduled.add("a", GroupKind.DDL, statement("a", text))
    scheduled.begun()
    scheduled.commit()
    scheduled.scheduler.distribute(Distribution(bind=(("c", "d"),)))
    for names in ("a.t", "a.u"):
        scheduled.add(names)
    assert sorted(scheduled.begun()) == [[], [], [2, 3]]


def test_databases_that_a_definition_may_have_joined() -> None:
    scheduled = Scheduled()
    scheduled.add("a.t")
    text = b"ALTER TABLE b.u ADD FOREIGN KEY (i) REFERENCES a.t (i)"
    scheduled.add("b a", GroupKind.DDL, statement("b", text))
    for names in ("b.u", "a.t", "c.t"):
        scheduled.add(names)
    assert [*chain(*scheduled.begun())] == [1, 5]
    for _ in range(2):
        scheduled.commit()
        scheduled.begun()
    scheduled.commit()
    for names in ("b.u", "a.t"):
        scheduled.add(names)
    assert [each for each in scheduled.begun() if each] == [[6, 7]]


def test_what_foreign_keys_join_to_a_bound_database_is_bound_to_it() -> None:
    scheduled = Scheduled(bind=(("a", "c"),), foreign_keys=[("b.child", "a.parent")])
    for names in ("b.child", "a.parent", "c.t", "d.t"):
        scheduled.add(names)
    assert scheduled.begun() == [[1, 2, 3], [4], []]


def test_of_very_many_tables_those_in_use_are_not_forgotten() -> None:
    """A definition waits for what was begun on its database before, however much came since."""
    scheduled = Scheduled(workers=2)
    scheduled.add("a.used")
    scheduled.add(" ".join(f"a.t{number}" for number in range(20_000)))
    assert scheduled.begun() == [[1], [2]]
    queues = scheduled.scheduler.workers
    scheduled.scheduler.commit(1, queues[1].running)
    scheduled.add("a.t0")
    scheduled.add("a", GroupKind.DDL)
    assert scheduled.begun() == [[], [3]]
    scheduled.scheduler.commit(1, queues[1].running)
    assert scheduled.begun() == [[], []]
    scheduled.scheduler.commit(0, queues[0].running)
    assert scheduled.begun() == [[], [4]]


def test_bound_databases_are_one_partition() -> None:
    scheduled = Scheduled(bind=(("a", "b"),))
    for names in ("a.t", "b.t", "c.t", "a b"):
        scheduled.add(names)
    assert scheduled.begun() == [[1, 2, 4], [3], []]
    assert scheduled.scheduler.partitions() == [
        PartitionStatistics("a+b", 1, 3, 1_000_000, 0),
        PartitionStatistics("c.t", 2, 1, 3_000_000, 0),
    ]


def test_a_completion_has_the_tables_of_its_prepare() -> None:
    scheduled = Scheduled()
    prepared = group(1, "a", kind=GroupKind.XA_PREPARE)
    policy = TablePolicy(2)
    view = scheduled.scheduler.view
    assert policy.assign(replace(prepared, tables=("a.t",)), view).worker == 0
    assert policy.assign(replace(group(2, "a"), tables=("a.u",)), view).worker == 1
    complete = replace(group(3, "a", kind=GroupKind.XA_COMPLETE), tables=("a.t",))
    assert policy.assign(complete, view) == (0, frozenset(), 0)


def test_order_and_progress_of_any_stream() -> None:
    """No group begins before one on the same table, or on a whole database with it."""
    chance = random.Random(5)
    names = ["a.t", "a.u", "a.v", "b.t", "b.u", "a.t a.u", "a.v b.t", "a", "b", "a b", "c.t"]
    for _ in range(100):
        bind = chance.choice(((), (("b", "c"),)))
        scheduled = Scheduled(
            workers=chance.choice((1, 2, 4)),
            bind=bind,
            foreign_keys=chance.choice(([], [("a.v", "b.u")])),
        )
        touched: dict[int, str] = {}
        done: set[int] = set()
        while len(done) < 60:
            while len(touched) < 60 and chance.random() < 0.7:
                touched[scheduled.number + 1] = chance.choice(names)
                scheduled.add(touched[scheduled.number + 1])
            worker = chance.randrange(len(scheduled.scheduler.workers))
            queue = scheduled.scheduler.workers[worker]
            batch = queue.running or scheduled.scheduler.take(worker)
            here = {each.number for each in batch}
            for number in here:
                for earlier in range(1, number):
                    if earlier not in done | here:
                        assert not meet(touched[earlier], touched[number], bind=bool(bind))
            if batch and chance.random() < 0.6:
                scheduled.scheduler.commit(worker, batch)
                done |= here
            if not batch:
                able = any(each.running or each.can_begin for each in scheduled.scheduler.workers)
                assert able or len(done) == len(touched)
        assert all(not each.pending_groups for each in scheduled.scheduler.partitions())


def meet(one: str, other: str, *, bind: bool) -> bool:
    for a in one.split():
        for b in other.split():
            databases = {a.partition(".")[0], b.partition(".")[0]}
            if a == b or (len(databases) == 1 and not ("." in a and "." in b)):
                return True
            if bind and databases <= {"b", "c"}:
                return True
    return False


def test_families() -> None:
    assert families([]) == {}
    assert families([("a.t", "a.t")]) == {}
    found = families([
        ("a.b", "a.a"), ("a.d", "a.c"), ("a.e", "a.d"), ("a.f", "a.e"), ("b.b", "a.a"),
    ])  # fmt: skip
    assert found == {
        **dict.fromkeys(("a.a", "a.b", "b.b"), "a.a+a.b+b.b"),
        **dict.fromkeys(("a.c", "a.d", "a.e", "a.f"), "a.c+a.d+a.e+1 more"),
    }
    everything = [(f"a.{one}", f"a.{one // 2}") for one in range(1, 100)]
    random.Random(1).shuffle(everything)
    assert len(set(families(everything).values())) == 1
