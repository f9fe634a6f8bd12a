"""What a source is told of what is applied, and when this replica withdraws and returns."""

import pytest

from mtsd.model.group import Group, GroupClosed, GroupDropped, GroupKind, PositionReached
from mtsd.model.position import Position
from mtsd.source.semi_sync import BOUNDS_S, Acknowledged, SemiSync, Turn

LIMIT = 2.0


def end(offset: int) -> Position:
    return Position("binlog.000001", offset)


def group(number: int) -> Group:
    """Return a group that ends at 100 times its number."""
    return group_to(number, end(number * 100))


def group_to(number: int, place: Position) -> Group:
    return Group(number, GroupKind.EMPTY, place, (), False, (), 0, 0, b"", None, 0, 0, 0)


def state_of(semi_sync: SemiSync) -> str:
    return semi_sync.state


@pytest.fixture
def semi_sync() -> SemiSync:
    connected = SemiSync(LIMIT, 0, Acknowledged())
    connected.connected(asked=True)
    return connected


def test_the_end_of_what_is_waited_for_is_acknowledged_in_order(semi_sync: SemiSync) -> None:
    semi_sync.asks([100, 300])
    list(semi_sync.noted(map(group, (1, 2, 3)), 0.0))
    assert semi_sync.applied(0, 0.1) is None
    assert semi_sync.applied(1, 0.2) == end(100)
    assert semi_sync.applied(2, 0.3) is None
    assert semi_sync.applied(3, 0.4) == end(300)
    assert sum(semi_sync.acknowledged.latencies) == 2
    assert semi_sync.acknowledged.latency_s == pytest.approx(0.6)


def test_the_last_of_what_is_applied_at_once_is_acknowledged(semi_sync: SemiSync) -> None:
    semi_sync.asks([100, 200])
    list(semi_sync.noted(map(group, (1, 2, 3)), 0.0))
    assert semi_sync.applied(3, 100.0) == end(200)
    assert semi_sync.acknowledged.latencies[len(BOUNDS_S)] == 2


def test_ends_that_no_group_has_are_passed_over(semi_sync: SemiSync) -> None:
    semi_sync.asks([150, 170, 200])
    list(semi_sync.noted((group(1), GroupDropped(2), group(2)), 0.0))
    assert semi_sync.applied(2, 0.0) == end(200)


def test_offsets_past_4_gib_and_large_groups(semi_sync: SemiSync) -> None:
    large = group_to(1, end((1 << 32) + 7))
    semi_sync.asks([7])
    list(semi_sync.noted((GroupClosed(large),), 0.0))
    assert semi_sync.applied(1, 0.0) == large.end


def test_what_uses_no_number_is_acknowledged_with_what_comes_before_it(
    semi_sync: SemiSync,
) -> None:
    semi_sync.asks([250])
    list(semi_sync.noted((group(1), group(2), PositionReached(end(250))), 0.0))
    assert semi_sync.applied(1, 0.0) is None
    assert semi_sync.applied(2, 0.0) == end(250)


def test_another_connection_is_asked_anew(semi_sync: SemiSync) -> None:
    semi_sync.asks([100])
    list(semi_sync.noted((group(1),), 0.0))
    semi_sync.disconnected()
    assert state_of(semi_sync) == "not connected"
    # A dump acknowledges the place that it begins from.
    assert not semi_sync.begins(2, now=1.0, deadline=3.0)
    assert semi_sync.applied(1, 0.0) is None
    assert semi_sync.begins(2, now=2.0, deadline=3.0)
    semi_sync.connected(asked=True)
    assert state_of(semi_sync) == "acknowledging"


def test_a_source_is_not_kept_waiting_for_a_target_that_is_behind(semi_sync: SemiSync) -> None:
    list(semi_sync.noted((group(1),), 0.0))
    semi_sync.disconnected()
    assert not semi_sync.begins(2, now=3.1, deadline=3.0)
    assert semi_sync.is_withdrawn
    semi_sync.applied(1, 3.2)
    assert not semi_sync.begins(2, now=3.3, deadline=4.0)


def test_it_withdraws_and_returns(semi_sync: SemiSync) -> None:
    semi_sync.asks([100])
    list(semi_sync.noted((group(1),), 0.0))
    assert semi_sync.turn(1, LIMIT) is None
    assert semi_sync.turn(1, LIMIT + 0.1) is Turn.WITHDRAW
    semi_sync.disconnected()
    semi_sync.connected(asked=False)
    assert state_of(semi_sync) == "withdrawn"
    # It is behind by more than half of the limit, until the target has the group.
    assert semi_sync.turn(1, 3 * LIMIT) is None
    semi_sync.applied(1, 3 * LIMIT)
    assert semi_sync.turn(2, 3 * LIMIT) is Turn.RETURN
    assert semi_sync.acknowledged.withdrawals == 1


def test_it_does_not_return_within_the_limit(semi_sync: SemiSync) -> None:
    semi_sync.withdraw(0.0)
    assert semi_sync.turn(0, LIMIT - 0.1) is None
    assert semi_sync.turn(0, LIMIT) is Turn.RETURN
