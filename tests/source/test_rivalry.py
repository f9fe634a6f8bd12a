"""Two daemons that read from a source as the same replica: the newcomer gives way."""

import pytest

from mtsd.source.rivalry import ESTABLISHED_S, Rivalry


class World:
    """A source that feeds one of them at a time; `lists`: it tells who is registered (MySQL)."""

    def __init__(self, *, lists: bool) -> None:
        self.lists = lists
        self.now = 1000.0
        self.fed: Rivalry | None = None

    def connect(self, daemon: Rivalry) -> Rivalry | None:
        """Let it connect; return the one who gives way to it, or comes back in vain."""
        found = self.lists and self.fed is not None
        other, self.fed = self.fed, daemon
        daemon.connected(self.now, found_another=found)
        if other is None or other is daemon:
            return None
        self.now += 0.1
        if other.gives_way(self.now):
            return other
        self.now += other.pause
        return self.connect(other)

    def lose(self, daemon: Rivalry, seconds: float) -> None:
        """Let its connection end, of which the source knows nothing yet, and `seconds` pass."""
        daemon.ended(self.now)
        self.now += seconds


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("head_start", [0.5, 10.0, ESTABLISHED_S - 1, ESTABLISHED_S + 1, 9999.0])
def test_the_newcomer_gives_way(head_start: float, *, lists: bool) -> None:
    world, first, second = World(lists=lists), Rivalry(), Rivalry()
    assert world.connect(first) is None
    world.now += head_start
    assert world.connect(second) is second
    assert world.fed is first


@pytest.mark.parametrize("lists", [True, False])
def test_a_newcomer_that_came_during_a_moment_without_connection(*, lists: bool) -> None:
    world, first, second = World(lists=lists), Rivalry(), Rivalry()
    world.connect(first)
    world.now += 9999
    world.lose(first, 5)
    world.fed = None
    world.connect(second)
    world.now += 5
    assert world.connect(first) is second


@pytest.mark.parametrize("restarts", [1, 100])
def test_newcomers_do_not_wear_it_down(restarts: int) -> None:
    world, first = World(lists=True), Rivalry()
    world.connect(first)
    world.now += ESTABLISHED_S
    for _ in range(restarts):
        newcomer = Rivalry()
        assert world.connect(newcomer) is newcomer
        world.now += 1


@pytest.mark.parametrize("lists", [True, False])
def test_who_was_away_for_long_is_the_newcomer(*, lists: bool) -> None:
    world, first, second = World(lists=lists), Rivalry(), Rivalry()
    world.connect(first)
    world.now += 9999
    world.lose(first, 2 * ESTABLISHED_S)
    world.fed = None
    world.connect(second)
    world.now += 9999
    assert world.connect(first) is first
    assert world.fed is second


def test_the_end_of_its_own_former_connection_is_no_rival() -> None:
    """It is still registered when the daemon starts again; nobody fights for it."""
    world, daemon = World(lists=True), Rivalry()
    world.fed = Rivalry()
    daemon.connected(world.now, found_another=True)
    world.now += ESTABLISHED_S
    world.fed = daemon
    newcomer = Rivalry()
    assert world.connect(newcomer) is newcomer
