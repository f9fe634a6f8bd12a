"""The assigned partition hash, by example and against a plain list of unfinished groups."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.schedule.policies.assigned_partition_hash import AssignedPartitionHash

WORKERS = 3


def test_usage_counts_and_takes_over() -> None:
    partitions = AssignedPartitionHash(WORKERS)
    assert partitions.owner("a") is None
    partitions.assign(["a"], 0, 1)
    partitions.assign(["b", "c"], 1, 2)
    assert partitions.usage() == {"a": (0, 1), "b": (1, 1), "c": (1, 1)}
    assert [partitions.held(worker) for worker in range(WORKERS)] == [1, 2, 0]

    # Worker 0 takes b over.
    partitions.assign(["a", "b"], 0, 3)
    assert partitions.usage() == {"a": (0, 2), "b": (0, 2), "c": (1, 1)}
    assert [partitions.held(worker) for worker in range(WORKERS)] == [2, 1, 0]
    owner = partitions.owner("b")
    assert owner is not None
    assert (owner.worker, owner.usage, owner.last) == (0, 2, 3)

    partitions.execute(["b", "c"])
    assert partitions.usage() == {"a": (0, 2), "b": (0, 1)}
    assert [partitions.held(worker) for worker in range(WORKERS)] == [2, 0, 0]
    partitions.execute(["a"])
    partitions.execute(["a", "b"])
    assert partitions.usage() == {}
    assert [partitions.held(worker) for worker in range(WORKERS)] == [0, 0, 0]


def test_unused_partitions_are_forgotten_when_they_are_many() -> None:
    partitions = AssignedPartitionHash(WORKERS)
    partitions.assign(["used"], 1, 1)
    for number in range(2, 50_000):
        name = f"db{number}"
        partitions.assign([name], 0, number)
        partitions.execute([name])
    names = {each.name for each in partitions.statistics({})}
    assert len(names) < 20_000
    assert {"used", "db49999"} <= names
    assert [partitions.held(worker) for worker in range(WORKERS)] == [0, 1, 0]


def test_other_weights_count_for_what_is_in_use_alone() -> None:
    partitions = AssignedPartitionHash(WORKERS)
    partitions.assign(["a"], 0, 1)
    partitions.assign(["b"], 1, 2)
    partitions.execute(["a"])
    partitions.weigh(lambda _: 3)
    assert [partitions.held(worker) for worker in range(WORKERS)] == [0, 3, 0]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True),
                st.integers(0, WORKERS - 1),
            ),
            st.integers(0, 20),
        ),
        max_size=40,
    )
)
def test_against_a_list_of_unfinished_groups(
    steps: list[tuple[list[str], int] | int],
) -> None:
    partitions = AssignedPartitionHash(WORKERS)
    unfinished: list[tuple[int, int, list[str]]] = []
    for number, step in enumerate(steps, 1):
        if isinstance(step, tuple):
            cgap, worker = step
            partitions.assign(cgap, worker, number)
            unfinished.append((number, worker, cgap))
        elif unfinished:
            partitions.execute(unfinished.pop(_next_to_finish(unfinished, step))[2])
        expected: dict[str, tuple[int, int]] = {}
        newest: dict[str, int] = {}
        for group, worker, cgap in unfinished:
            for name in cgap:
                expected[name] = (worker, expected.get(name, (0, 0))[1] + 1)
                newest[name] = group
        assert partitions.usage() == expected
        for name, last in newest.items():
            owner = partitions.owner(name)
            assert owner is not None
            assert owner.last == last
        for worker in range(WORKERS):
            held = [sum(w == each for w, _ in expected.values()) for each in range(WORKERS)]
            assert partitions.held(worker) == held[worker]
            for name, (owner_of, _) in expected.items():
                entry = partitions.owner(name)
                assert entry is not None
                assert partitions.is_crowded(entry) == (held[owner_of] - min(held) >= 2)


def _next_to_finish(unfinished: list[tuple[int, int, list[str]]], choice: int) -> int:
    """Choose among the groups that no earlier one of their partitions precedes."""
    free = [
        at
        for at, (_, _, cgap) in enumerate(unfinished)
        if not any(set(cgap) & set(before) for _, _, before in unfinished[:at])
    ]
    return free[choice % len(free)]
