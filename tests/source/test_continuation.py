"""How a channel goes on: what is decided loses nothing, doubles nothing, and refuses no more."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import Position
from mtsd.source.continuation import (
    AHEAD,
    GTIDS_OFF,
    NOT_KNOWN_BY_GTID,
    OTHER_SOURCE,
    PAST_END,
    PURGED,
    PURGED_APPLIED,
    PURGED_FILE,
    RENAMED,
    REWRITTEN,
    Adopt,
    ByFile,
    ByGtid,
    ChannelPlace,
    Way,
    adoption,
    continuation,
)
from mtsd.source.replaced_file import REPLACED
from mtsd.source.source_state import BinlogFile, SourceState, mariadb_state
from tests.source.small_world import A_FILE, TRANSACTIONS, U, World, gtids, place, worlds


def channels() -> Iterator[tuple[ChannelPlace, int, int]]:
    """Yield every channel of U, with its mark and the last transaction that is executed."""
    for mark, past, by_file, known, is_complete in product(
        TRANSACTIONS, (0, 2), (True, False), (True, False), (True, False)
    ):
        if not by_file and not known:
            continue
        position = place(mark) if by_file else Position("", 0)
        upto = gtids(1, mark) if known else None
        # Past the mark there is a gap.
        executed = upto.union(gtids(mark + past, mark + past)) if upto and past else upto
        last = mark + past if upto and past else mark
        yield ChannelPlace(position, upto, U, executed, is_complete=is_complete), mark, last


def decisions() -> Iterator[tuple[ChannelPlace, int, int, World, Way]]:
    for world in worlds():
        state = world.state
        for channel, mark, last in channels():
            yield channel, mark, last, world, continuation(channel, state)


def test_the_worlds_have_every_way() -> None:
    found = set()
    for *_, way in decisions():
        found.add(way.reason if isinstance(way, Refused) else type(way))
    assert found == {
        ByFile, ByGtid, Adopt, AHEAD, GTIDS_OFF, NOT_KNOWN_BY_GTID, OTHER_SOURCE, PAST_END, PURGED,
        PURGED_APPLIED, PURGED_FILE,
    }  # fmt: skip


def test_what_is_read_begins_where_the_channel_is_and_is_there() -> None:
    for channel, mark, last, world, way in decisions():
        if isinstance(way, ByFile):
            assert world.uuid == U
            assert way.position == channel.position
            assert world.purged <= mark <= world.last
        elif isinstance(way, ByGtid):
            assert world.uuid == U
            assert world.gtid_mode
            assert not channel.position.file
            assert way.gtids == gtids(1, mark)
            assert world.purged <= mark
            assert last <= world.last
        elif isinstance(way, Adopt):
            assert world.uuid != U
            assert world.gtid_mode
            assert channel.is_complete
            assert way.executed == channel.executed
            assert last <= world.last
            # What is purged is executed, the gap past the mark too.
            assert gtids(1, world.purged).issubset(way.executed)


def test_nothing_is_refused_that_could_go_on() -> None:
    for channel, mark, last, world, way in decisions():
        if not isinstance(way, Refused):
            continue
        lost = world.gtid_mode and channel.gtids is not None and last > world.last
        gone = mark < world.purged or place(mark).file < place(world.purged + 1).file
        if way.reason is AHEAD:
            assert lost
        elif way.reason is PAST_END:
            assert mark > world.last
            assert channel.position.file
        elif way.reason in {PURGED_FILE, PURGED_APPLIED}:
            assert gone
            applied = way.reason is PURGED_APPLIED
            whole = channel.gtids is not None and channel.gtids == channel.executed
            assert applied == (world.gtid_mode and whole and world.purged <= mark)
        elif way.reason is PURGED:
            assert world.gtid_mode
            assert mark < world.purged
        elif way.reason is OTHER_SOURCE:
            assert world.uuid != U
            assert not world.gtid_mode
        elif way.reason is NOT_KNOWN_BY_GTID:
            assert world.uuid != U
            assert not channel.is_complete or channel.gtids is None
        else:
            assert way.reason is GTIDS_OFF
            assert not world.gtid_mode
            assert not channel.position.file


def test_every_refusal_is_one_line_that_says_what_to_do() -> None:
    for *_, way in decisions():
        if isinstance(way, Refused):
            said = str(way)
            assert ". " in said
            assert "{" not in said
            assert "\n" not in said


def test_a_log_that_was_begun_anew_is_not_taken_for_the_former_one() -> None:
    for channel, _, _, world, way in decisions():
        if not isinstance(way, ByFile) or not world.gtid_mode or channel.gtids is None:
            continue
        before = gtids(1, (int(way.position.file.rpartition(".")[2]) - 1) * A_FILE)
        state = replace(world.state, before_file=before)
        assert continuation(channel, state) == way
        other = before.union(GtidSet.parse(f"{U}:99"))
        anew = continuation(channel, replace(state, before_file=other))
        assert isinstance(anew, Refused)
        assert anew.reason is REWRITTEN
        injected = replace(state, before_file=other, purged=GtidSet.parse(f"{U}:99"))
        assert continuation(channel, injected) == way


def test_files_that_may_not_be_listed_are_left_to_the_source() -> None:
    for world in worlds():
        state = world.state
        unseen = type(state)(state.uuid, state.gtid_mode, state.executed, state.purged)
        way = continuation(ChannelPlace(place(1), None, U, None), unseen)
        assert isinstance(way, ByFile) == (world.uuid == U)


def test_adoption_is_as_it_was_decided_before_the_run_ended() -> None:
    for channel, _, _, world, way in decisions():
        if isinstance(way, Adopt):
            assert adoption(channel, world.uuid) == way
    assert len(TRANSACTIONS) > A_FILE


MARIADB = SourceState(
    "server_id 1",
    True,
    GtidSet.parse("0-1-100,0-2-105,7-1-9"),
    GtidSet.parse("0-1-50,7-1-3"),
    (BinlogFile("binlog.000004", 900), BinlogFile("binlog.000005", 500)),
    by_gtid=True,
)


def mariadb_channel(mark: str | None, past: str = "", uuid: str = "server_id 1") -> ChannelPlace:
    gtids = None if mark is None else GtidSet.parse(mark)
    executed = None if gtids is None else gtids.union(GtidSet.parse(past))
    return ChannelPlace(Position("binlog.000004", 300), gtids, uuid, executed)


def test_a_mariadb_is_read_by_gtid_as_soon_as_that_is_known() -> None:
    assert continuation(mariadb_channel(None), MARIADB) == ByFile(Position("binlog.000004", 300))
    known = mariadb_channel("0-1-80,7-1-5", "0-1:82")
    assert continuation(known, MARIADB) == ByGtid(GtidSet.parse("0-1-80,7-1-5"))
    without_file = replace(known, position=Position("", 0))
    assert continuation(without_file, MARIADB) == continuation(known, MARIADB)
    without_files = replace(MARIADB, files=None)
    assert continuation(known, without_files) == continuation(known, MARIADB)


def test_a_mariadb_is_asked_for_the_file_that_its_dump_may_pass_over() -> None:
    known = replace(mariadb_channel("0-1-80,7-1-5"), begun=100)
    assert isinstance(continuation(known, replace(MARIADB, file_begun=100)), ByGtid)
    for refused, reason in (
        (continuation(known, replace(MARIADB, file_begun=101)), REPLACED),
        (continuation(replace(known, position=Position("binlog.000004", 901)), MARIADB), PAST_END),
        (continuation(replace(known, position=Position("binlog.000006", 4)), MARIADB), PAST_END),
    ):
        assert isinstance(refused, Refused)
        assert refused.reason is reason


def test_a_mariadb_without_files_is_read_by_gtid_alone() -> None:
    inside = replace(MARIADB, files=None, purged=GtidSet(), without_files=True)
    known = mariadb_channel("0-1-80,7-1-5")
    assert continuation(known, inside) == ByGtid(GtidSet.parse("0-1-80,7-1-5"))
    way = continuation(mariadb_channel(None), inside)
    assert isinstance(way, Refused)
    assert "binlog.000004:300, but the source's binary log is inside a storage engine" in str(way)


def test_what_a_mariadb_has_lost_or_purged() -> None:
    for mark, past, missing in (
        ("0-1-101", "", "0-1-101"),
        ("0-3-106,7-1-9", "", "0-3-106"),
        ("0-1-100,7-1-9", "7-1:11", "7-1:11"),
        ("0-1-100,8-1-1", "", "8-1-1"),
    ):
        way = continuation(mariadb_channel(mark, past), MARIADB)
        assert isinstance(way, Refused)
        assert way.reason is AHEAD
        assert way.facts["missing"] == missing
    for mark, missing in (("0-1-49,7-1-9", "0-1-50"), ("0-1-60", "7-1-3"), ("", "0-1-50,7-1-3")):
        way = continuation(mariadb_channel(mark), MARIADB)
        assert isinstance(way, Refused)
        assert way.reason is PURGED
        assert way.facts["missing"] == missing


def test_another_mariadb_continues_where_the_former_one_was() -> None:
    executed = "0-1-90,7-1-9"
    way = continuation(mariadb_channel(executed, "0-1:92", "server_id 9"), MARIADB)
    assert way == Adopt(GtidSet.parse(f"{executed},0-1:92"), "server_id 9")
    unknown = continuation(mariadb_channel(None, uuid="server_id 9"), MARIADB)
    assert isinstance(unknown, Refused)
    assert unknown.reason is NOT_KNOWN_BY_GTID


def test_a_mariadb_that_does_not_log_what_it_applies() -> None:
    state = mariadb_state("0-1-100,0-2-103", "0-3-110,7-1-4")
    assert str(state) == "0-1-100,0-2-103,0-3-110,7-1-4"
    assert mariadb_state("0-1-100,0-2-103", "0-1-50") == GtidSet.parse("0-1-100,0-2-103")


def test_files_of_another_name_are_read_by_gtid() -> None:
    """The source was restarted with another log_bin: its new files begin to count at 1 again."""
    reasons = set()
    for channel, mark, last in channels():
        for world in worlds():
            if world.uuid != U or not channel.position.file:
                continue
            purged = gtids(1, world.last) if world.gtid_mode else GtidSet()
            files = (BinlogFile("renamed.000001", 157),)
            way = continuation(channel, replace(world.state, purged=purged, files=files))
            if isinstance(way, Refused):
                reasons.add(way.reason)
                known = world.gtid_mode and channel.gtids is not None
                assert way.reason is (
                    RENAMED if not known else PURGED if last <= world.last else AHEAD
                )
            else:
                assert isinstance(way, ByGtid)
                assert way.gtids == gtids(1, mark)
                assert mark == world.last
    assert reasons == {RENAMED, PURGED, AHEAD}
