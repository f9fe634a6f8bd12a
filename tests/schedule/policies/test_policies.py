"""The choice of the policy, and what each says of its partitions."""

from typing import get_args

import pytest

from mtsd.config.settings import ParallelType
from mtsd.model.parallel_type import BY_THE_SOURCE, POLICY_NAMES
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.policies.choice import POLICIES, choose_policy
from mtsd.schedule.policies.commit_parent_policy import CommitParentPolicy
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.policies.first_available_policy import FirstAvailablePolicy
from mtsd.schedule.policies.logical_clock_policy import LogicalClockPolicy
from mtsd.schedule.policies.partition_statistics import PartitionStatistics
from mtsd.schedule.policies.row_policy import RowPolicy
from mtsd.schedule.policies.sequential_policy import SequentialPolicy
from mtsd.schedule.policies.table_policy import TablePolicy
from mtsd.schedule.scheduler import Scheduler
from tests.schedule.worlds.simulated_run import ROOMY
from tests.schedule.worlds.streams import START_MARK, group


def test_every_parallel_type_that_may_be_given_has_its_policy() -> None:
    assert set(POLICIES) == set(POLICY_NAMES) == {*get_args(ParallelType)} - {"auto"}
    for parallel_type in POLICIES:
        assert isinstance(choose_policy(parallel_type, 0), SequentialPolicy)
        assert not isinstance(choose_policy(parallel_type, 1), SequentialPolicy)
    assert isinstance(choose_policy("database", 4), DatabasePolicy)
    assert isinstance(choose_policy("logical_clock", 4), LogicalClockPolicy)
    assert isinstance(choose_policy("commit_parent", 4), CommitParentPolicy)
    assert isinstance(choose_policy("table", 4), TablePolicy)
    assert isinstance(choose_policy("row", 4), RowPolicy)
    by_the_source = {
        name for name in POLICIES if isinstance(choose_policy(name, 4), FirstAvailablePolicy)
    }
    assert by_the_source == BY_THE_SOURCE
    with pytest.raises(KeyError):
        choose_policy("no_such_type", 4)


@pytest.mark.parametrize("workers", [0, 3])
def test_the_partitions_are_the_databases(workers: int) -> None:
    scheduler = Scheduler(
        choose_policy("database", workers), max(workers, 1), ROOMY, START_MARK, ExecutedGroups(1)
    )
    assert scheduler.partitions() == []
    for number, names in enumerate(("b", "a", "ab", "b"), 1):
        scheduler.add(group(number, *names))
    # Worker 2 has become crowded when b comes again.
    of_a, of_b = (2, 3) if workers else (1, 1)
    assert scheduler.partitions() == [
        PartitionStatistics("a", of_a, 2, 2_000_000, 0),
        PartitionStatistics("b", of_b, 3, 1_000_000, 0),
    ]
    while not scheduler.idle:
        for worker in range(max(workers, 1)):
            scheduler.commit(worker, scheduler.take(worker))
    scheduler.add(group(5, "c"))
    assert scheduler.partitions() == [
        PartitionStatistics("a", 0, 0, None, 2),
        PartitionStatistics("b", 0, 0, None, 3),
        PartitionStatistics("c", 1, 1, 5_000_000, 0),
    ]


def test_bound_databases_are_told_as_one() -> None:
    policy = choose_policy("database", 2, [["a", "b"]])
    scheduler = Scheduler(policy, 2, ROOMY, START_MARK, ExecutedGroups(1))
    for number, name in enumerate("abc", 1):
        scheduler.add(group(number, name))
    assert scheduler.partitions() == [
        PartitionStatistics("a+b", 1, 2, 1_000_000, 0),
        PartitionStatistics("c", 2, 1, 3_000_000, 0),
    ]
