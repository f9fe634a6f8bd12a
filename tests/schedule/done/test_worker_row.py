"""A worker's row, and why recovery may trust what the rows say."""

from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.model.group import Group
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.schedule.done.executed_groups import recovered
from mtsd.schedule.done.worker_row import blank_row
from tests.schedule.worlds.streams import SOURCE_UUID, START, START_MARK, group


def mark_at(number: int, gtids: GtidSet | None = None) -> LowWaterMark:
    return LowWaterMark(number, group(number).end if number else START, gtids)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(f"{SOURCE_UUID}:{text}")


def test_a_row_gathers_what_its_worker_commits() -> None:
    blank = blank_row(3, START_MARK)
    assert (blank.id, blank.last, blank.checkpoint) == (3, None, START)
    assert not blank.executed_gtids
    row = blank.advanced([group(2, "a"), group(4, "a")], START_MARK)
    assert row.last == group(4).end
    assert row.checkpoint == START
    assert row.executed.bitmap() == bytes([0b1010])
    assert row.executed_gtids == gtids("2:4")
    row = row.advanced([group(7, "a")], START_MARK)
    assert row.executed.bitmap() == bytes([0b0100_1010])
    assert row.executed_gtids == gtids("2:4:7")


def test_a_row_forgets_what_the_stored_mark_proves() -> None:
    row = blank_row(1, mark_at(0, GtidSet())).advanced([group(2), group(5)], mark_at(0, GtidSet()))
    stored = mark_at(3, gtids("1-3"))
    row = row.advanced([group(6)], stored)
    assert row.checkpoint == stored.position
    assert row.executed.base == 4
    assert row.executed.bitmap() == bytes([0b110])
    assert row.executed_gtids == gtids("5-6")


def test_a_row_moves_on_over_a_mark_without_groups() -> None:
    row = blank_row(1, START_MARK).advanced([group(1)], START_MARK)
    stored = mark_at(1)
    moved = row.advanced([], stored)
    assert moved.last == row.last
    assert moved.checkpoint == stored.position
    assert not moved.executed.bits


# A transaction may be rolled back, so the row that it would have written leaves no trace.


def test_a_row_never_changes() -> None:
    stored = mark_at(0, GtidSet())
    row = blank_row(1, stored).advanced([group(1)], stored)
    row.advanced([group(2), group(3)], stored)
    assert row.executed_gtids == gtids("1")
    assert len(row.executed) == 1


def test_a_row_never_changes_where_the_first_group_is_anonymous() -> None:
    stored = mark_at(0, GtidSet())
    row = blank_row(1, stored).advanced([group(1)], stored)
    row.advanced([group(2, anonymous=True), group(3)], stored)
    assert row.executed_gtids == gtids("1")


def test_a_row_never_changes_where_the_mark_knows_no_gtids() -> None:
    row = blank_row(1, START_MARK).advanced([group(1)], START_MARK)
    row.advanced([group(2)], mark_at(1))
    assert row.executed_gtids == gtids("1")


# Which GTIDs are listed, and which are told by the bitmap.

OTHER_UUID = SOURCE_UUID.translate(str.maketrans("0123456789", "9876543210"))


def with_gtid(number: int, gtid: Gtid | None) -> Group:
    return replace(group(number), gtid=gtid)


def test_gtids_that_run_along_with_the_numbers_are_not_listed() -> None:
    row = blank_row(1, mark_at(10))
    for number in (11, 14, 15):
        row = row.advanced([with_gtid(number, Gtid(SOURCE_UUID, number + 700))], mark_at(10))
    row = row.advanced([with_gtid(19, Gtid(SOURCE_UUID, 719))], mark_at(14))
    assert row.aligned == Gtid(SOURCE_UUID, 700)
    assert not row.gtids
    assert row.executed_gtids == gtids("715:719")


@pytest.mark.parametrize(
    "gtid",
    [Gtid(SOURCE_UUID, 4), Gtid(OTHER_UUID, 3), Gtid(SOURCE_UUID, 3, "tag"), None],
    ids=["jump", "another server", "tag", "anonymous"],
)
def test_one_that_does_not_lists_all(gtid: Gtid | None) -> None:
    row = blank_row(1, START_MARK).advanced([group(1), group(2)], START_MARK)
    row = row.advanced([with_gtid(3, gtid)], START_MARK)
    assert row.aligned is None
    expected = gtids("1-2")
    if gtid is not None:
        expected.add(gtid)
    assert row.gtids == row.executed_gtids == expected
    # Until the mark has passed them all.
    row = row.advanced([group(5)], mark_at(2, gtids("1-2")))
    assert row.aligned is None
    stored = mark_at(5, expected.union(gtids("4-5")))
    row = row.advanced([group(7)], stored)
    assert row.aligned == Gtid(SOURCE_UUID, 0)
    assert not row.gtids


def test_a_row_does_not_grow_where_the_mark_knows_no_gtids() -> None:
    row = blank_row(1, START_MARK)
    for number in range(1, 100):
        uuid = OTHER_UUID if number % 2 else SOURCE_UUID
        row = row.advanced([with_gtid(number, Gtid(uuid, number))], mark_at(max(number - 3, 0)))
    assert len(row.gtids) == 3


def test_a_lower_number_of_another_server_of_the_domain_is_not_passed() -> None:
    """On MariaDB, two servers that write to one domain at once count independently."""
    stored = mark_at(1, GtidSet.parse("0-1-100"))
    row = blank_row(1, START_MARK).advanced([with_gtid(3, Gtid("0-2", 50))], START_MARK)
    row = row.advanced([with_gtid(4, Gtid("0-1", 102))], stored)
    for listed in (row, row.advanced([], mark_at(2, GtidSet.parse("0-1-101")))):
        assert listed.executed_gtids == GtidSet.parse("0-2:50,0-1:102")


class Commit(NamedTuple):
    """One group of the source, and what becomes of it."""

    kind: str
    mine: bool
    behind: int
    """The target has stored the mark of so many groups before this one, or a later one."""


COMMITS = st.lists(
    st.builds(
        Commit,
        st.sampled_from(["next"] * 12 + ["jump", "other", "tag", "anonymous"]),
        st.booleans(),
        st.integers(0, 12),
    ),
    max_size=30,
)


@given(COMMITS)
def test_a_row_tells_the_gtids_of_its_groups(commits: list[Commit]) -> None:
    marks = [LowWaterMark(0, START, GtidSet())]
    last = {SOURCE_UUID: 4, OTHER_UUID: 0}
    row = blank_row(1, marks[0])
    stored = marks[0]
    mine: list[Group] = []
    for number, commit in enumerate(commits, 1):
        uuid = OTHER_UUID if commit.kind == "other" else SOURCE_UUID
        last[uuid] += 2 if commit.kind == "jump" else 1
        gtid = Gtid(uuid, last[uuid], "tag" if commit.kind == "tag" else "")
        one = with_gtid(number, None if commit.kind == "anonymous" else gtid)
        stored = marks[max(stored.number, number - 1 - commit.behind)]
        told = str(row.executed_gtids)
        advanced = row.advanced([one] if commit.mine else [], stored)
        assert str(row.executed_gtids) == told
        row = advanced
        mine += [one] * commit.mine
        expected = GtidSet()
        for group_ in mine:
            if group_.gtid is not None and group_.number > stored.number:
                expected.add(group_.gtid)
        assert row.executed_gtids == expected
        known = (marks[-1].gtids or GtidSet()).copy()
        if one.gtid is not None:
            known.add(one.gtid)
        marks.append(LowWaterMark(number, one.end, known))


# Why the base may only follow a mark that the target holds, and why recovery writes its own row.


def test_a_base_ahead_of_the_stored_mark_would_lose_groups() -> None:
    first = blank_row(1, START_MARK).advanced([group(1)], START_MARK)
    second = blank_row(2, START_MARK).advanced([group(2)], START_MARK)
    # The low-water mark is 2 in memory; the target still holds 0.
    sound = first.advanced([group(3)], START_MARK)
    unsound = first.advanced([group(3)], mark_at(2))
    assert recovered(0, [sound.executed, second.executed]).bitmap() == bytes([0b111])
    assert 1 not in recovered(0, [unsound.executed, second.executed])


def test_a_mark_that_is_stored_late_would_lose_groups() -> None:
    # A checkpoint of a former run arrives after a newer one, when rows follow the newer one.
    row = blank_row(1, START_MARK).advanced([group(1), group(2)], START_MARK)
    row = row.advanced([group(3)], mark_at(2))
    assert recovered(2, [row.executed]).bitmap() == bytes([1])
    assert 2 not in recovered(1, [row.executed])


def test_without_recoverys_row_the_first_commit_would_lose_groups() -> None:
    # The former run left group 2 of worker 1 behind the gap of group 1.
    former = blank_row(1, START_MARK).advanced([group(2)], START_MARK)
    union = recovered(0, [former.executed])
    first_commit = blank_row(1, START_MARK).advanced([group(3)], START_MARK)
    assert 2 not in recovered(0, [first_commit.executed])
    assert 2 in recovered(0, [union, first_commit.executed])
