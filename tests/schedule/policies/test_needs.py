"""What a policy needs of a group is filled before it is asked, and only if it asks."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.xa_xid import XaXid
from mtsd.schedule.admission import Filler
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.prepared_transactions import Prepared, PreparedTransactions
from mtsd.schedule.policies.assignment import NO_NEEDS, Need
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.planned_policy import PlannedPolicy
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import START_MARK, group


def fill_tables(plain: Group) -> Group:
    return replace(plain, tables=tuple(f"{name}.t" for name in plain.databases))


def fill_keys(plain: Group) -> Group:
    return replace(plain, keys=GroupKeys((plain.number,)))


FILLERS: Mapping[Need, Filler] = {Need.TABLES: fill_tables, Need.KEYS: fill_keys}


def scheduler_of(
    policy: PlannedPolicy, fillers: Mapping[Need, Filler], *executed: int
) -> Scheduler:
    done = ExecutedGroups(1).with_numbers(executed)
    return Scheduler(policy, 1, ROOMY, START_MARK, done, fillers=fillers)


@pytest.mark.parametrize(
    "needs",
    [NO_NEEDS, {Need.TABLES}, {Need.KEYS}, {Need.TABLES, Need.KEYS}],
    ids=["nothing", "tables", "keys", "tables and keys"],
)
def test_a_policy_gets_what_it_asks_for_and_no_more(needs: frozenset[Need]) -> None:
    policy = PlannedPolicy(needs=frozenset(needs))
    scheduler = scheduler_of(policy, FILLERS)
    scheduler.add(group(1, "a", "b"))
    (asked,) = policy.asked
    assert asked.tables == (("a.t", "b.t") if Need.TABLES in needs else ())
    assert asked.keys == (GroupKeys((1,)) if Need.KEYS in needs else NO_KEYS)
    # What it counts out again is what it has counted in.
    batch = scheduler.take(0)
    scheduler.commit(0, batch)
    assert policy.told == policy.asked


def test_nothing_is_filled_of_what_is_not_assigned() -> None:
    filled: list[int] = []

    def fill(plain: Group) -> Group:
        filled.append(plain.number)
        return plain

    policy = PlannedPolicy(needs=frozenset({Need.KEYS}))
    scheduler = scheduler_of(policy, {Need.KEYS: fill}, 2)
    scheduler.add(group(1, kind=GroupKind.EMPTY))
    scheduler.add(group(2, "a"))
    scheduler.add(group(3, "a"))
    assert filled == [3]


def test_a_need_that_nothing_fills_is_refused_at_once() -> None:
    policy = PlannedPolicy(needs=frozenset({Need.TABLES, Need.KEYS}))
    with pytest.raises(ValueError, match="the policy needs fields that nothing fills in: keys"):
        scheduler_of(policy, {Need.TABLES: fill_tables})


def test_a_completion_gets_what_is_not_known_of_its_prepare() -> None:
    xid = XaXid(1, b"x", b"")
    left = PreparedTransactions([(xid, Prepared(("a",), alone=False))])
    policy = PlannedPolicy(needs=frozenset({Need.KEYS}))
    done = ExecutedGroups(1).with_numbers(())
    scheduler = Scheduler(
        policy, 1, ROOMY, START_MARK, done, fillers={Need.KEYS: fill_keys}, prepared=left
    )
    kinds = (GroupKind.XA_COMPLETE, GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE)
    for number, kind in enumerate(kinds, 1):
        databases = ("b",) if kind is GroupKind.XA_PREPARE else ()
        scheduler.add(replace(group(number, *databases, kind=kind), xid=xid))
    first, prepare, second = policy.asked
    assert first.databases == ("a",)
    assert first.keys == fill_keys(group(1)).keys
    assert (second.databases, second.keys) == (("b",), prepare.keys)


def test_a_completion_keeps_the_tables_of_its_prepare() -> None:
    """It names none itself: filled in once more, it would have those of its databases only."""
    filled: list[int] = []

    def fill(plain: Group) -> Group:
        filled.append(plain.number)
        return replace(plain, tables=("b.t", "b.u"))

    policy = PlannedPolicy(needs=frozenset({Need.TABLES}))
    scheduler = scheduler_of(policy, {Need.TABLES: fill})
    xid = XaXid(1, b"x", b"")
    scheduler.add(replace(group(1, "b", kind=GroupKind.XA_PREPARE), xid=xid))
    scheduler.add(replace(group(2, kind=GroupKind.XA_COMPLETE), xid=xid))
    assert filled == [1]
    assert policy.asked[1].tables == ("b.t", "b.u")
