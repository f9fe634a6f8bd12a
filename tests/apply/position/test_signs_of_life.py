"""A daemon is known to live by its sessions' work, and a dead one's last statements are no work."""

import itertools
import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mtsd.apply.position.signs_of_life import Session, SignsOfLife

Busy = tuple[float, float]
"""When a statement began and ended, on the server's clock, in s."""


def seen(id_: int, statements: Sequence[Busy], now: float) -> Session:
    """Return what SHOW PROCESSLIST says; the session was opened at 0."""
    last = max((busy for busy in statements if busy[0] <= now), default=(0.0, 0.0))
    command = "Query" if last[1] > now else "Sleep"
    return Session(id_, command, math.floor(now - last[0]), "", "")


def watched(sessions: Sequence[Sequence[Busy]], *, start: float, period: float, looks: int) -> bool:
    """Tell whether a number of looks finds life; each takes 20 ms."""
    life = SignsOfLife()
    for number in range(looks):
        now = start + number * period
        life.observe(
            [seen(id_, statements, now) for id_, statements in enumerate(sessions)],
            now - 0.01,
            now + 0.01,
        )
    return life.alive


def pings(every: float, lasting: float = 0.001) -> list[Busy]:
    return [(every * n, every * n + lasting) for n in range(1, int(100 / every))]


TIMES = st.floats(0, 100)


@given(start=st.floats(0, 30))
def test_an_idle_daemon_is_known_by_its_pings(start: float) -> None:
    assert watched([pings(5.3)], start=start, period=1.05, looks=13)


@given(start=st.floats(0, 30), every=st.floats(0.05, 0.9), share=st.floats(0.01, 0.5))
def test_a_busy_daemon_is_known_at_once(start: float, every: float, share: float) -> None:
    work = [pings(every, every * share), pings(5.3)]
    assert watched(work, start=start, period=1.05, looks=13)


@given(started=TIMES, statements=st.lists(st.floats(0.001, 30), max_size=8), start=st.floats(0, 60))
def test_a_dead_one_that_goes_on_with_a_packet_is_not_alive(
    started: float, statements: list[float], start: float
) -> None:
    """One statement after the other, and it is gone when the server would wait for its client."""
    ends = list(itertools.accumulate(statements, initial=started))
    packet = list(itertools.pairwise(ends))
    life = SignsOfLife()
    for number in range(60):
        now = start + number * 1.05
        alive = started <= now < ends[-1]
        life.observe([seen(1, packet, now)] if alive else [], now - 0.01, now + 0.01)
    assert not life.alive


@given(last=st.floats(0, 20), start=st.floats(20.5, 40))
def test_a_silent_one_is_not_alive(last: float, start: float) -> None:
    assert not watched([[(last, last + 0.1)]], start=start, period=1.05, looks=60)


@given(step=st.floats(-20, 20), at=st.integers(1, 20))
def test_a_step_of_the_servers_clock_is_no_life(step: float, at: int) -> None:
    life = SignsOfLife()
    for number in range(30):
        now = 30 + number * 1.05
        seconds = math.floor(now - 20 + (step if number >= at else 0))
        life.observe([Session(1, "Sleep", seconds, "", "")], now - 0.01, now + 0.01)
    assert not life.alive


def test_sessions_that_follow_on_each_other_are_no_life() -> None:
    life = SignsOfLife()
    for number in range(30):
        life.observe([Session(number, "Sleep", 0, "", "")], number, number + 0.01)
    assert not life.alive
