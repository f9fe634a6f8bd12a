"""A file of the source's log that has the name of another one, which was read."""

import pytest

from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import Group
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import BEGUN_UNKNOWN, LogFile, LogFiles, Position
from mtsd.source.received import Received
from mtsd.source.replaced_file import replaced
from tests.binlog.transactions import begin, grouper, gtid, placed, rows, table_map, xid

PLACE = Position("b.000002", 500)


@pytest.mark.parametrize(
    ("begun", "now", "refused"),
    [
        (100, 100, False),
        (100, 101, True),
        # The clock was set back before the source was restored.
        (100, 99, True),
        # The position was set, or is older than what is known of files.
        (BEGUN_UNKNOWN, 100, False),
        # The source does not tell.
        (100, BEGUN_UNKNOWN, False),
    ],
)
def test_only_another_beginning_is_another_file(begun: int, now: int, *, refused: bool) -> None:
    found = replaced(PLACE, begun, LogFile("b.000002", now))
    assert (found is not None) == refused
    if found is not None:
        assert "b.000002:500 is: that one was begun at 1970-01-01 00:01:40 UTC" in str(found)


def test_files_are_known_from_that_of_the_position_on() -> None:
    files = LogFiles("b.000002", 100)
    files.add(LogFile("b.000003", 200), PLACE)
    # A dump by GTID may begin with an earlier one.
    files.add(LogFile("b.000001", 50), PLACE)
    assert [files.begun(f"b.00000{n}") for n in (1, 2, 3, 4)] == [50, 100, 200, BEGUN_UNKNOWN]
    files.add(LogFile("b.000004", 300), Position("b.000003", 4))
    assert [files.begun(f"b.00000{n}") for n in (1, 2, 3, 4)] == [
        BEGUN_UNKNOWN,
        BEGUN_UNKNOWN,
        200,
        300,
    ]
    files.add(LogFile("", 400), Position("", 4))
    assert files.begun("") == BEGUN_UNKNOWN


def test_nothing_of_a_file_that_has_replaced_another_is_passed_on() -> None:
    mark = LowWaterMark(7, PLACE, GtidSet(), begun=100)
    group = list(grouper().groups(placed((gtid(1), begin(), table_map(1), rows(1, b""), xid()))))
    assert isinstance(group[0], Group)
    for file, goes_on in (
        (LogFile("b.000002", 100), True),
        (LogFile("b.000003", 200), True),
        (LogFile("b.000002", 200), False),
    ):
        received = Received(mark)
        items = received.noted(grouper(), [file, *group])
        if goes_on:
            assert list(items) == [file, *group]
            assert received.begun == BEGUN_UNKNOWN
        else:
            with pytest.raises(NeedsPersonError, match=r"compare|Compare"):
                next(items)
            assert received.position == PLACE
