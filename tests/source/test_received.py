"""What has been received is told by whole groups, and what came before is passed over."""

from mtsd.model.group import Group, GroupClosed, GroupDropped, PositionReached
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.source.received import Received
from tests.binlog.transactions import begin, grouper, gtid, placed, rows, table_map, xid

START = Position("f.000001", 4)
UUID = "11111111-1111-1111-1111-111111111111"


def transaction(number: int, size: int = 0) -> tuple[bytes, ...]:
    """Return the events of a transaction with the GTID of a number."""
    return gtid(number), begin(), table_map(1), rows(1, bytes(size)), xid()


def received(executed: str | None = "") -> Received:
    return Received(LowWaterMark(0, START, None if executed is None else GtidSet.parse(executed)))


def test_only_whole_groups_count() -> None:
    events = placed((*transaction(1), *transaction(2)))
    known = received()
    items = list(known.items(grouper(), events[:-1]))
    (whole,) = items
    assert isinstance(whole, Group)
    assert (known.position, known.next_number) == (whole.end, 2)
    assert str(known.gtids) == f"{UUID}:1"


def test_a_transaction_that_another_source_has_sent_takes_no_number() -> None:
    known = received(f"{UUID}:1")
    items = list(known.items(grouper(), placed((*transaction(1), *transaction(2)))))
    assert isinstance(items[0], PositionReached)
    assert [item.number for item in items if isinstance(item, Group)] == [1]
    assert known.next_number == 2
    assert str(known.gtids) == f"{UUID}:1-2"


def test_one_that_was_streamed_is_dropped() -> None:
    known = received(f"{UUID}:1")
    reader = grouper(hold_bytes=100, chunk_bytes=100)
    items = list(known.items(reader, placed((*transaction(1, size=500), *transaction(2)))))
    assert not any(isinstance(item, GroupClosed) for item in items)
    assert any(isinstance(item, GroupDropped) for item in items)
    assert [item.number for item in items if isinstance(item, Group)] == [1]


def test_nothing_is_told_apart_where_what_was_executed_is_not_known() -> None:
    known = received(None)
    items = list(known.items(grouper(), placed((*transaction(1), *transaction(1)))))
    assert [item.number for item in items if isinstance(item, Group)] == [1, 2]
    assert known.gtids is None
