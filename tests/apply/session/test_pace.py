"""How long a connection is left alone while several transactions are on their way."""

from hypothesis import given
from hypothesis import strategies as st

from mtsd.apply.session.pace import Pace


def test_nothing_is_left_alone_before_something_is_known() -> None:
    assert Pace().rest(16) == 0


def test_it_follows_the_server() -> None:
    pace = Pace()
    for seconds in (0.001, 0.0002):
        for _ in range(20):
            pace.learn(16, 16 * seconds)
        assert 0.7 * 15 * seconds < pace.rest(16) < 0.9 * 15 * seconds
    assert pace.rest(2) < pace.rest(16)


def test_a_rest_that_was_too_long_gets_shorter() -> None:
    pace = Pace()
    pace.learn(16, 0.020)
    # The server is done with all of it long before anybody looks.
    for _ in range(30):
        pace.learn(16, pace.rest(16) + 0.0001)
    assert pace.rest(16) < 0.0015


@given(st.lists(st.tuples(st.integers(2, 16), st.floats(0, 3600)), max_size=9), st.integers(2, 16))
def test_nobody_waits_for_long(packets: list[tuple[int, float]], transactions: int) -> None:
    pace = Pace()
    for count, seconds in packets:
        pace.learn(count, seconds)
    assert 0 <= pace.rest(transactions) <= 0.02
