"""Groups that come back to the target that they began on: it is asked once for several."""

from contextlib import suppress
from dataclasses import replace

from mtsd.model.group import GroupOpened, StreamItem
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position
from mtsd.replica.stages.returned_groups import ReturnedGroups
from mtsd.source.stream_end import StreamClosedError
from tests.replica.item_stream import ItemStream
from tests.schedule.worlds.streams import SOURCE_UUID, Shape, group_of

TARGET = "22222222-2222-2222-2222-222222222222"


def rows(number: int, uuid: str) -> StreamItem:
    """Return a group of rows with that GTID."""
    group = group_of(Shape(("a",)), number, Position("binlog.000001", 100 * number))
    return replace(group, gtid=Gtid(uuid, number))


async def test_the_target_is_asked_about_its_own() -> None:
    """It has executed 1 before, and 2 to 4 since; it has lost 5, which is passed on."""
    executed = GtidSet.parse(f"{TARGET}:1")
    asked = []

    async def ask() -> None:
        asked.append(str(executed))
        executed.update(GtidSet.parse(f"{TARGET}:1-4"))

    items = [
        rows(1, TARGET), rows(1, SOURCE_UUID), rows(2, TARGET), rows(3, TARGET),
        GroupOpened(4, Gtid(TARGET, 4), 0, 1 << 30, b""), rows(5, TARGET), rows(2, SOURCE_UUID),
    ]  # fmt: skip
    stream = ReturnedGroups(ItemStream(items), executed, TARGET, ask)
    read: list[StreamItem] = []
    with suppress(StreamClosedError):
        while True:
            read += await stream.read()
    assert read == items
    assert asked == [f"{TARGET}:1", f"{TARGET}:1-4"]
