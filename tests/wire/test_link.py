"""What is known of a connection that is lost, and when the log says so."""

from mtsd.wire.link import Link, Outage


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def shown(link: Link) -> tuple[bool, float, int, float | None]:
    return link.connected, link.since, link.attempts, link.next_in


def wrong(link: Link) -> tuple[int, float] | None:
    return None if link.error is None else (link.error.number, link.error.time)


def test_an_outage_is_told_at_once_and_then_more_and_more_rarely() -> None:
    outage = Outage(0.0)
    told = [second for second in range(0, 7300, 7) if outage.is_due("away", float(second))]
    assert told == [0, 63, 301, 1806, 3605, 5404, 7203]


def test_another_reason_is_told_at_once_but_not_a_new_one_each_time() -> None:
    outage = Outage(0.0)
    assert outage.is_due("connection lost", 0.0)
    assert outage.is_due("nothing is listening", 1.0)
    assert not outage.is_due("connection lost", 2.0)
    assert not outage.is_due("nothing is listening", 59.0)
    assert sum(outage.is_due(f"packet {each}", 10.0) for each in range(100)) == 6
    assert outage.is_due("packet 200", 60.0)


def test_a_link() -> None:
    clock, wall = Clock(), Clock()
    link = Link(clock, wall)
    link.up()
    assert link.works() is None
    wall.now += 5
    assert link.lost(0, "it was closed", 2.0)
    assert shown(link) == (False, 1005.0, 1, 2.0)
    clock.now += 3
    wall.now += 3
    assert shown(link) == (False, 1005.0, 1, 0.0)
    link.tries()
    assert shown(link) == (False, 1005.0, 1, None)
    assert link.lost(1040, "too many connections", 4.0)
    assert shown(link) == (False, 1005.0, 2, 4.0)
    assert wrong(link) == (1040, 1008.0)
    # A server that takes the connection and ends it again is not back.
    link.up()
    assert not link.lost(0, "it was closed", 4.0)
    assert link.attempts == 3
    link.up()
    clock.now += 7
    assert link.works() == 10.0
    assert shown(link) == (True, 1008.0, 0, None)
    assert wrong(link) is None
    link.closed()
    assert shown(link)[0] is False
    link.up()
    assert link.works() is None
