"""Homes: what is changed together has one worker, and nothing waits for less than without them."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.distribution import Distribution
from mtsd.schedule.done.group_assigned_queue import GroupAssignedQueue
from mtsd.schedule.policies.assigned_partition_hash import AssignedPartitionHash
from mtsd.schedule.policies.assignment import Assignment
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.policies.homes import Homes, joined, placed
from mtsd.schedule.policies.partition_placement import PartitionPlacement
from mtsd.schedule.policies.schedule_view import ScheduleView
from tests.schedule.worlds.exploring import go_through
from tests.schedule.worlds.simulated_run import Mode, RunSettings
from tests.schedule.worlds.streams import START_MARK, Shape, group

WORKERS = 4
TOGETHER = {("a", "b"): 60, ("b", "c"): 50, ("c", "d"): 3}


def view(*frozen: int) -> ScheduleView:
    return ScheduleView(
        [0] * WORKERS,
        [0] * WORKERS,
        GroupAssignedQueue(START_MARK),
        100,
        [worker in frozen for worker in range(WORKERS)],
    )


class Policy:
    """The database policy, which looks every 16 groups, and groups of which none commits."""

    def __init__(self, pin: tuple[tuple[str, int], ...] = ()) -> None:
        self.policy = DatabasePolicy(WORKERS)
        self.policy.placement.homes = Homes(WORKERS, 16)
        if pin:
            self.policy.distribute(Distribution(pin=pin), ())
        self.view = view()
        self.assigned: list[tuple[str, ...]] = []

    def assign(self, *databases: str) -> Assignment:
        self.assigned.append(databases)
        return self.policy.assign(group(len(self.assigned), *databases), self.view)

    def load(self) -> None:
        """Let a and b, c and d be changed together; each also by itself, and e only so."""
        for _ in range(16):
            for databases in ("ab", "a", "b", "cd", "c", "d", "e"):
                self.assign(*databases)

    @property
    def homes(self) -> dict[str, int]:
        return self.policy.placement.homes.of


@pytest.mark.parametrize(
    ("most", "expected"),
    [(113, []), (112, ["ab"]), (53, ["ab"]), (52, ["abc"]), (3, ["abc"]), (2, ["abcd"])],
)
def test_as_few_are_joined_as_leave_no_more_waits(most: int, expected: list[str]) -> None:
    assert joined(TOGETHER, most) == [frozenset(each) for each in expected]


def test_it_does_not_matter_in_which_order_they_were_counted() -> None:
    every = {(a, b): 5 for a, b in product("abcd", repeat=2) if a < b}
    backwards = dict(reversed(every.items()))
    assert [joined(every, most) for most in range(31)] == [
        joined(backwards, most) for most in range(31)
    ]


def test_clusters_stay_where_they_are_and_large_ones_apart() -> None:
    aph = AssignedPartitionHash(3)
    aph.assign(["a", "b", "c", "x"], 1, 1)
    clusters = [frozenset("abc"), frozenset("de"), frozenset("xy")]
    homes = placed(clusters, {}, aph)
    assert homes == {**dict.fromkeys("abc", 1), **dict.fromkeys("de", 0), **dict.fromkeys("xy", 2)}
    assert placed(clusters, homes, aph) == homes
    aph.weigh(lambda name: 9 if name == "y" else 1)
    assert placed(clusters, {"a": 1, "y": 1}, aph)["x"] == 1


def test_what_is_changed_together_comes_to_one_worker() -> None:
    policy = Policy()
    policy.load()
    homes = policy.homes
    assert set(homes) == set("abcd")
    assert homes["a"] == homes["b"] != homes["c"] == homes["d"]
    for databases in ("ab", "a", "b", "cd", "c", "d"):
        assert policy.assign(*databases) == Assignment(homes[databases[0]])
    # What has no home keeps away from them.
    assert policy.assign("e").worker not in homes.values()
    # Once they are changed apart, and long enough, they may spread again.
    for _ in range(32):
        for database in "abcde":
            policy.assign(database)
    assert policy.homes == {}
    assert len({policy.assign(database).worker for database in "abcd"}) > 2


def test_a_person_has_the_last_word() -> None:
    pinned = Policy(pin=(("a", 4),))
    pinned.load()
    assert set(pinned.homes) == set("cd")
    assert pinned.assign("a", "b").worker == 3

    frozen = Policy()
    frozen.load()
    frozen.policy.finished([group(at + 1, *names) for at, names in enumerate(frozen.assigned)])
    frozen.view = view(frozen.homes["a"])
    assert frozen.assign("a", "b").worker != frozen.homes["a"]


def test_one_worker_is_the_home_of_all() -> None:
    homes = Homes(1)
    homes.note("ab")
    assert homes.due > 1 << 60


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    period=st.integers(1, 8),
    groups=st.lists(
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True),
        min_size=20,
        max_size=80,
    ),
    unfinished=st.integers(2, 30),
)
def test_a_group_waits_for_what_is_before_it_elsewhere(
    period: int, groups: list[list[str]], unfinished: int
) -> None:
    """On each of its partitions: for the newest group, unless that is in the same queue."""
    placement = PartitionPlacement(WORKERS)
    placement.homes = Homes(WORKERS, period)
    newest: dict[str, tuple[int, int]] = {}
    for number, partitions in enumerate(groups, 1):
        assignment = placement.assign(group(number), view(), -1, partitions)
        before = [newest[name] for name in partitions if name in newest]
        worker = assignment.worker
        assert assignment.after == {last for last, other in before if other != worker}
        newest.update(dict.fromkeys(partitions, (number, worker)))
        if number > unfinished:
            done = groups[number - unfinished - 1]
            placement.aph.execute(done)
            for name in done:
                if newest[name][0] == number - unfinished:
                    del newest[name]


A, B, AB = (
    Shape(tuple(names), tables=tuple(f"{n}.t" for n in names)) for names in ("a", "b", "ab")
)


@pytest.mark.parametrize("mode", [Mode.DATABASE, Mode.TABLE])
def test_small_worlds(mode: Mode) -> None:
    by_homes = RunSettings(mode=mode, workers=2, homes_after=2)
    for later in product((A, B, AB), repeat=2):
        go_through([A, B, AB, *later], by_homes)
