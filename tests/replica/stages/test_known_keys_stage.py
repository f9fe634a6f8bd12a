"""Groups after a definition wait until the keys are read, if there are many; and never for long."""

from collections.abc import Callable, Iterator

from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.apply.tables.key_definitions import KeyDefinitions
from mtsd.model.group import Group, GroupKind, StreamItem
from mtsd.replica.stages.known_keys_stage import KnownKeysStage
from tests.schedule.worlds.streams import group

NOTHING = KeyDefinitions(frozenset("ab"), {}, ())


class Stage:
    """A stage over a list; what it yields gets its keys, as the scheduler does that."""

    def __init__(self, *items: StreamItem, learns: bool = True) -> None:
        self.changed = ChangedKeys(NOTHING)
        self.stage = KnownKeysStage(self, self.changed, self.wait)
        self.items = iter([iter(items), iter(())])
        self.learns = learns
        self.waits = 0

    async def read(self) -> Iterator[StreamItem]:
        return next(self.items)

    async def wait(self, seconds_left: Callable[[], float]) -> None:
        self.waits += 1
        assert 0 < seconds_left() <= 1
        if self.learns:
            self.changed.learn(NOTHING, self.changed.due(lambda _: True))
            assert not seconds_left()

    async def taken(self) -> list[int]:
        found = []
        for item in await self.stage.read():
            assert isinstance(item, Group)
            self.changed(item)
            found.append(item.number)
        return found


def ddl(number: int, *databases: str) -> Group:
    return group(number, *databases, kind=GroupKind.DDL)


def rows(first: int, last: int, *databases: str) -> list[Group]:
    return [group(number, *databases) for number in range(first, last + 1)]


async def test_few_groups_are_not_held_back() -> None:
    stage = Stage(ddl(1, "a"), *rows(2, 129, "a"))
    assert await stage.taken() == list(range(1, 130))
    assert await stage.taken() == []
    assert not stage.waits


async def test_many_wait_until_the_keys_are_read() -> None:
    stage = Stage(ddl(1, "a"), *rows(2, 400, "a"))
    assert await stage.taken() == list(range(1, 130))
    assert await stage.taken() == list(range(130, 401))
    assert stage.waits == 1


async def test_others_do_not_wait() -> None:
    stage = Stage(ddl(1, "a"), *rows(2, 400, "b"))
    assert await stage.taken() == list(range(1, 401))


async def test_they_wait_once_for_a_definition_that_takes_long() -> None:
    stage = Stage(
        ddl(1, "a"), *rows(2, 200, "a"), ddl(201, "a"), *rows(202, 400, "a"), learns=False
    )
    assert await stage.taken() == list(range(1, 130))
    # The next definition counts anew.
    assert await stage.taken() == list(range(130, 330))
    assert await stage.taken() == list(range(330, 401))
    assert stage.waits == 2
