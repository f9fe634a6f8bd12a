"""What another source is not asked for again: all that has committed, past the mark too."""

from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.replica.recovery.recovery import row_of_recovery
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.source.continuation import Adopt, ChannelPlace, adoption
from tests.schedule.worlds.streams import START


def test_what_another_server_of_the_domain_has_numbered_lower_is_not_sent_again() -> None:
    mark = LowWaterMark(5, START, GtidSet.parse("0-1-100"))
    worker = WorkerRow(
        1, None, START, ExecutedGroups(6, 0b10), GtidSet(), aligned=Gtid("0-2", 50 - 7)
    )
    row = row_of_recovery(mark, [worker], [])
    assert set(row.executed) == {7}
    assert mark.gtids is not None
    channel = ChannelPlace(START, mark.gtids, "server_id 1", mark.gtids.union(row.gtids))
    way = adoption(channel, "server_id 2")
    assert isinstance(way, Adopt)
    # As the new source sends them.
    sent = [Gtid("0-1", 101), Gtid("0-2", 50), Gtid("0-1", 102)]
    assert [way.executed.advance(each) for each in sent] == [True, False, True]
