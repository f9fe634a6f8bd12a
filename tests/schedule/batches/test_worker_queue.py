"""The worker queue, and which groups share a target transaction."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Rows
from mtsd.model.temporary_tables import TemporaryUse
from mtsd.schedule.batches.combining import may_share_commit
from tests.schedule.batches.queues import MANY, numbers, queue_of
from tests.schedule.worlds.streams import group


def test_consecutive_row_groups_share_a_transaction() -> None:
    queue = queue_of(group(1), group(4), group(5))
    assert numbers(queue.take(MANY, MANY, None)) == [1, 4, 5]
    assert queue.head is None
    assert len(queue) == 0


def test_nothing_begins_while_a_batch_runs() -> None:
    queue = queue_of(group(1), group(2))
    assert numbers(queue.take(1, MANY, None)) == [1]
    assert queue.take(1, MANY, None) == ()
    assert numbers(tuple(queue.pending())) == [1, 2]
    queue.running = ()
    assert numbers(queue.take(1, MANY, None)) == [2]


def test_a_batch_ends_before_a_group_that_waits() -> None:
    queue = queue_of(group(1), group(2), group(3), unmet={2: 1})
    assert numbers(queue.take(MANY, MANY, None)) == [1]
    queue.running = ()
    assert queue.take(MANY, MANY, None) == ()
    queue.met(2)
    assert numbers(queue.take(MANY, MANY, None)) == [2, 3]


def test_a_batch_ends_before_a_group_that_waits_for_a_mark() -> None:
    queue = queue_of(group(1), group(4), group(5), marks={4: 3, 5: 2})
    assert queue.has_marks
    assert numbers(queue.take(MANY, MANY, None, 2)) == [1]
    queue.running = ()
    assert queue.take(MANY, MANY, None, 2) == ()
    able = [queue.can_begin]
    queue.mark_reached(4)
    able.append(queue.can_begin)
    assert able == [False, True]
    assert numbers(queue.take(MANY, MANY, None, 0)) == [4]
    queue.running = ()
    queue.mark_reached(5)
    assert numbers(queue.take(MANY, MANY, None, 0)) == [5]


def test_what_only_waits_for_its_own_queue_shares_a_transaction() -> None:
    queue = queue_of(group(1), group(4), group(5), group(7), marks={4: 3, 5: 4, 7: 6})
    # The other queues have nothing up to 5.
    assert numbers(queue.take(MANY, MANY, None, 5)) == [1, 4, 5]
    queue.mark_reached(4)
    assert queue.oldest == 1
    queue.running = ()
    assert queue.oldest == 7
    assert queue.take(MANY, MANY, None, 5) == ()
    assert numbers(queue.take(MANY, MANY, None, 6)) == [7]
    queue.running = ()
    assert queue.oldest is None


def test_a_batch_ends_at_the_stops_limit() -> None:
    queue = queue_of(group(1), group(3), group(5))
    assert numbers(queue.take(MANY, MANY, 4)) == [1, 3]
    queue.running = ()
    assert queue.take(MANY, MANY, 4) == ()


@pytest.mark.parametrize("kind", [kind for kind in GroupKind if kind is not GroupKind.ROWS])
def test_only_rows_are_combined(kind: GroupKind) -> None:
    queue = queue_of(group(1), group(2, kind=kind), group(3), group(4))
    assert numbers(queue.take(MANY, MANY, None)) == [1]
    queue.running = ()
    assert numbers(queue.take(MANY, MANY, None)) == [2]
    queue.running = ()
    assert numbers(queue.take(MANY, MANY, None)) == [3, 4]


def test_what_differs_is_not_combined() -> None:
    plain = group(1)
    assert may_share_commit(plain, group(2))
    assert may_share_commit(plain, replace(group(2), row_flags=None))
    assert not may_share_commit(plain, replace(group(2), format_description=b"another"))
    assert not may_share_commit(plain, replace(group(2), unsupported="partial JSON"))
    assert not may_share_commit(replace(plain, unsupported="partial JSON"), group(2))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=20),
    st.integers(1, 6),
    st.integers(1, 600),
)
def test_batches_are_as_large_as_they_may_be(
    sizes: list[int], batch_groups: int, batch_bytes: int
) -> None:
    waiting = [group(number, size=size) for number, size in enumerate(sizes, 1)]
    queue = queue_of(*waiting)
    while waiting:
        batch = queue.take(batch_groups, batch_bytes, None)
        assert list(batch) == waiting[: len(batch)]
        waiting = waiting[len(batch) :]
        queue.running = ()
        size = sum(each.size for each in batch)
        assert 1 <= len(batch) <= batch_groups
        assert len(batch) == 1 or size <= batch_bytes
        if waiting and len(batch) < batch_groups:
            assert size + waiting[0].size > batch_bytes
    assert queue.take(batch_groups, batch_bytes, None) == ()


def test_the_next_batch_is_taken_ahead_when_it_is_full() -> None:
    queue = queue_of(group(1), group(2), group(3), group(4), group(5))
    assert numbers(queue.take(2, MANY, None)) == [1, 2]
    assert numbers(queue.take_ahead(2, MANY, None)) == [3, 4]
    assert numbers(queue.running) == [1, 2, 3, 4]
    assert queue.take_ahead(2, MANY, None) == ()
    assert numbers(tuple(queue.pending())) == [1, 2, 3, 4, 5]


def test_nothing_is_taken_ahead_that_waits_or_is_no_row_group() -> None:
    waiting = queue_of(group(1), group(2), unmet={2: 1})
    assert numbers(waiting.take(1, MANY, None)) == [1]
    assert waiting.take_ahead(1, MANY, None) == ()
    definition = queue_of(group(1), group(2, kind=GroupKind.DDL))
    assert numbers(definition.take(1, MANY, None)) == [1]
    assert definition.take_ahead(1, MANY, None) == ()
    stopped = queue_of(group(1), group(2))
    assert numbers(stopped.take(1, MANY, 1)) == [1]
    assert stopped.take_ahead(1, MANY, 1) == ()


TEMPORARY = TemporaryUse((1, 1), frozenset(), frozenset(), uses=True, only=False)


def for_good(number: int) -> Group:
    """Return a group of rows that perhaps cannot be rolled back."""
    return replace(
        group(number, kind=GroupKind.NON_TRANSACTIONAL), steps=(Rows((b"",)),), row_flags=1
    )


def test_rows_for_good_are_batches_and_end_those_before_them() -> None:
    queue = queue_of(group(1), for_good(2), for_good(3), group(4), for_good(5), group(6))
    assert numbers(queue.take(MANY, MANY, None, statements=MANY)) == [1]
    taken = [numbers(queue.take_ahead(MANY, MANY, None)) for _ in range(5)]
    assert taken == [[2], [3], [4], [5], []]


@pytest.mark.parametrize(
    "other",
    [
        replace(for_good(2), rolled_back=True),
        replace(for_good(2), alone=True),
        replace(for_good(2), unsupported="it"),
        replace(for_good(2), row_flags=None),
        replace(for_good(2), databases=("mysql",)),
        replace(for_good(2), uses_temporary=TEMPORARY),
        replace(for_good(2), steps=()),
    ],
)
def test_what_may_share_no_record_is_not_taken_ahead(other: Group) -> None:
    queue = queue_of(for_good(1), other, for_good(3))
    assert numbers(queue.take(MANY, MANY, None)) == [1]
    assert queue.take_ahead(MANY, MANY, None) == ()
