"""Where a channel begins: every start against every source of the small world."""

from collections.abc import Iterator
from itertools import product

from mtsd.config.start import Earliest, FilePosition, GtidStart, Latest, Start
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import Position
from mtsd.source.continuation import PURGED, ByFile, ByGtid, ChannelPlace, continuation
from mtsd.source.source_state import BinlogFile, SourceState
from mtsd.source.start import (
    FILES_PURGED,
    HISTORY_PURGED,
    MISSING,
    NO_PLACE,
    NOT_EXECUTED,
    UNSEEN,
    WITHOUT_FILES,
    WITHOUT_GTIDS,
    beginning,
)
from tests.source.small_world import TRANSACTIONS, U, World, gtids, place, worlds


def starts() -> Iterator[tuple[Start, int]]:
    """Yield every start that names a place, and the last transaction that it leaves out."""
    for number in TRANSACTIONS:
        yield FilePosition(place(number).file, place(number).offset), number
        if number:
            yield GtidStart(str(gtids(1, number))), number


def test_a_place_is_taken_where_it_is_there() -> None:
    reasons = set()
    for world, (start, number) in product(worlds(), starts()):
        found = beginning(start, world.state, allow_partial_history=False)
        if isinstance(found, Refused):
            reasons.add(found.reason)
            by_gtid = isinstance(start, GtidStart)
            gone = place(number).file < world.state.files[0].name if world.state.files else False
            assert (
                number > world.last
                or number < world.purged
                or gone
                or (by_gtid and not world.gtid_mode)
            )
        else:
            assert world.purged <= number <= world.last
            assert goes_on(found, world)
    assert reasons == {WITHOUT_GTIDS, NOT_EXECUTED, NO_PLACE, PURGED}


def goes_on(mark: LowWaterMark, world: World) -> bool:
    """Tell whether the daemon reads on from a mark that it has begun with."""
    channel = ChannelPlace(mark.position, mark.gtids, world.uuid, mark.gtids)
    return isinstance(continuation(channel, world.state), ByFile | ByGtid)


def test_earliest_is_the_whole_history_or_what_is_told() -> None:
    for world, told, allowed in product(worlds(), TRANSACTIONS, (True, False)):
        known = gtids(1, told)
        found = beginning(Earliest(), world.state, allow_partial_history=allowed, executed=known)
        if isinstance(found, Refused):
            assert not allowed
            assert world.purged
            assert found.reason is (HISTORY_PURGED if world.gtid_mode else FILES_PURGED)
            assert not world.gtid_mode or told < world.purged
            continue
        assert goes_on(found, world)
        if not world.gtid_mode:
            assert found.gtids is None
            continue
        executed = gtids(1, min(told, world.last))
        assert found.gtids == executed.union(gtids(1, world.purged))


def test_latest_is_the_end() -> None:
    for world in worlds():
        found = beginning(Latest(), world.state, allow_partial_history=False)
        assert found == world.state.end
        assert isinstance(found, LowWaterMark)
        assert goes_on(found, world)


def test_none_is_asked_for() -> None:
    for world in worlds():
        found = beginning(None, world.state, allow_partial_history=True)
        assert isinstance(found, Refused)
        assert found.reason is MISSING


def test_what_cannot_be_seen_is_said() -> None:
    for start in (Earliest(), Latest()):
        found = beginning(start, SourceState(U, gtid_mode=True), allow_partial_history=False)
        assert isinstance(found, Refused)
        assert found.reason is UNSEEN


def test_the_tenth_file_is_not_the_first() -> None:
    state = SourceState(U, gtid_mode=False, files=(BinlogFile("binlog.000010", 4),))
    found = beginning(Earliest(), state, allow_partial_history=False)
    assert isinstance(found, Refused)
    assert found.reason is FILES_PURGED


def test_what_gtid_purged_holds_is_said() -> None:
    """A target of a daemon that mirrors has purged nothing, and is a source all the same."""
    files = (BinlogFile("binlog.000001", 400),)
    state = SourceState(U, gtid_mode=True, executed=gtids(1, 3), purged=gtids(1, 3), files=files)
    found = beginning(Earliest(), state, allow_partial_history=False)
    assert f"contains {U}:1-3: transactions that are not in its binary log" in str(found)
    assert "a replica that mirrors GTIDs has added them" in str(found)
    had = beginning(Earliest(), state, allow_partial_history=False, executed=gtids(1, 3))
    assert isinstance(had, LowWaterMark)
    assert had.gtids == gtids(1, 3)
    assert GtidSet() != had.gtids


def test_a_mariadb_without_files() -> None:
    end = LowWaterMark(0, Position("", 0), GtidSet.parse("0-1-100,7-1-9"))
    state = SourceState(
        "server_id 1", True, GtidSet.parse("0-1-100,7-1-9"), end=end, by_gtid=True,
        without_files=True,
    )  # fmt: skip

    def begins(start: Start, told: str = "") -> LowWaterMark | Refused:
        known = GtidSet.parse(told)
        return beginning(start, state, allow_partial_history=False, executed=known)

    assert begins(Latest()) == end
    assert begins(Earliest()) == LowWaterMark(0, Position("", 0), GtidSet())
    assert begins(Earliest(), "0-1-7") == LowWaterMark(0, Position("", 0), GtidSet.parse("0-1-7"))
    # What a target has beyond a source is no reason to send it all it has.
    beyond = begins(Earliest(), "0-1-107")
    assert beyond == LowWaterMark(0, Position("", 0), GtidSet.parse("0-1-100"))
    after = begins(GtidStart("0-1-50"))
    assert after == LowWaterMark(0, Position("", 0), GtidSet.parse("0-1-50"))
    refused = begins(FilePosition("binlog-000000.ibb", 4))
    assert isinstance(refused, Refused)
    assert refused.reason is WITHOUT_FILES
