"""By how much a position is set back or forward."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import NOWHERE, Position
from mtsd.operations.moved_by import Former, MovedBy, applied_before, moved_by
from mtsd.source.source_state import BinlogFile, SourceState
from tests.source.small_world import U, V, World, gtids, place

ordinary = settings(max_examples=100, deadline=None, derandomize=True)
numbers = st.integers(0, 7)


def former(number: int, *, known: bool = True, past: int = 0, uuid: str = U) -> Former:
    mark = LowWaterMark(number, place(number), gtids(1, number) if known else None)
    done = gtids(1, number).union(gtids(number + 2, number + 1 + past)) if known else None
    return Former(mark, done, uuid, past, place(number + 1 + past) if past else place(number))


def at(number: int, *, known: bool = True) -> LowWaterMark:
    return LowWaterMark(0, place(number), gtids(1, number) if known else None)


@ordinary
@given(numbers, numbers, st.integers(0, 2))
def test_by_gtid_it_is_exact(was: int, now: int, past: int) -> None:
    state = World(7, 1, gtid_mode=True, uuid=U).state
    by = moved_by(former(was, past=past), at(now), state, GtidSet())
    had = {*range(1, was + 1), *range(was + 2, was + 2 + past)} & set(range(1, 8))
    back, forward = had - set(range(1, now + 1)), set(range(1, now + 1)) - had
    assert by.back.startswith(f"{len(back)} transaction") if back else not by.back
    assert by.forward.startswith(f"{len(forward)} transaction") if forward else not by.forward
    refused = by.refused("there", back=False, forward=False)
    assert len(refused) == bool(back) + bool(forward)
    assert not by.refused("there", back=True, forward=True)
    # A target that has kept the GTIDs passes over what it has.
    assert not moved_by(former(was, past=past), at(now), state, gtids(1, 9)).back


@ordinary
@given(numbers, numbers)
def test_by_file_its_bytes_are_counted(was: int, now: int) -> None:
    state = World(7, 1, gtid_mode=False, uuid=U).state
    by = moved_by(former(was, known=False), at(now, known=False), state, GtidSet())
    said = by.back if now < was else by.forward
    assert bool(by.back) == (now < was)
    same = place(was).file == place(now).file
    assert bool(by.forward) == (now > was)
    if same and now != was:
        assert said == f"{100 * abs(now - was)} bytes of {place(now).file}"
    elif now != was:
        assert said.endswith("files")


def test_what_is_done_past_the_mark_is_applied_again() -> None:
    state = World(7, 1, gtid_mode=False, uuid=U).state
    for now, past in ((3, 2), (4, 2), (7, 0)):
        by = moved_by(former(3, known=False, past=2), at(now, known=False), state, GtidSet())
        assert by.back == (
            f"up to {past} transactions that are done past the low-water mark" if past else ""
        )


def test_a_mariadb_that_has_lost_its_last_transactions_sends_the_others_again() -> None:
    sets = {number: GtidSet.parse(f"0-1-{number}") for number in (50, 90, 100)}
    was = LowWaterMark(100, place(7), sets[100])
    state = SourceState(U, gtid_mode=True, executed=sets[90])
    now = LowWaterMark(0, NOWHERE, sets[50])
    by = moved_by(Former(was, sets[100], U, 0, place(7)), now, state, GtidSet())
    assert by.back == "at most 40 transactions (0-1-90)"


def test_another_source() -> None:
    state = World(7, 1, gtid_mode=True, uuid=V).state
    assert moved_by(former(5, uuid=U), at(3), state, GtidSet()).back.startswith("2 transactions")
    strange = GtidSet.parse(f"{V}:1-9")
    apart = Former(LowWaterMark(9, NOWHERE, strange), strange, U, 0, NOWHERE)
    assert moved_by(apart, at(3), state, GtidSet()) == MovedBy(
        unknown="it was a place of another source, with nothing in common"
    )
    assert moved_by(former(5, known=False), at(3), state, GtidSet()).unknown
    assert moved_by(None, at(3), state, GtidSet()) == MovedBy()


@pytest.mark.parametrize(
    ("executed", "was", "kept"),
    [
        # By hand it went on where mtsd had stopped, knew all of it, or was loaded anew since.
        (gtids(4, 6), former(3), gtids(1, 3)),
        (gtids(1, 6), former(3), GtidSet()),
        (gtids(1, 2), former(3), GtidSet()),
        (gtids(4, 6), former(3, known=False), GtidSet()),
        (gtids(4, 6), None, GtidSet()),
        # What the source has not executed is of another history.
        (gtids(6, 7), former(9), GtidSet()),
    ],
)
def test_what_mtsd_has_applied_before_the_own_replica(
    executed: GtidSet, was: Former | None, kept: GtidSet
) -> None:
    state = World(7, 1, gtid_mode=True, uuid=U).state
    assert applied_before(executed, was, state) == kept


def test_a_purged_file_is_counted_in_part() -> None:
    state = SourceState(U, gtid_mode=False, files=(BinlogFile("binlog.000002", 304),))
    by = moved_by(former(1, known=False), at(5, known=False), state, GtidSet())
    assert by.forward.startswith("more than 204 bytes")


def test_a_mariadb_may_have_holes() -> None:
    state = SourceState(
        "server_id 1", gtid_mode=True, executed=GtidSet.parse("0-1-9"), by_gtid=True
    )
    mark = LowWaterMark(0, Position("", 0), GtidSet.parse("0-1-4"))
    was = Former(mark, mark.gtids, "server_id 1", 0, NOWHERE)
    now = LowWaterMark(0, NOWHERE, GtidSet.parse("0-1-9"))
    assert moved_by(was, now, state, GtidSet()).forward == "at most 5 transactions (0-1-9)"
