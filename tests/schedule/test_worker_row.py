"""A worker's row, and why recovery may trust what the rows say."""

from mtsd.model.gtid import GtidSet
from mtsd.schedule.executed_groups import recovered
from mtsd.schedule.group_assigned_queue import LowWaterMark
from mtsd.schedule.worker_row import blank_row
from tests.schedule.streams import SOURCE_UUID, START, START_MARK, group


def mark_at(number: int, gtids: GtidSet | None = None) -> LowWaterMark:
    return LowWaterMark(number, group(number).end if number else START, gtids)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(f"{SOURCE_UUID}:{text}")


def test_a_row_gathers_what_its_worker_commits() -> None:
    blank = blank_row(3, START_MARK)
    assert (blank.id, blank.last, blank.checkpoint) == (3, None, START)
    assert not blank.gtids
    row = blank.advanced([group(2, "a"), group(4, "a")], START_MARK)
    assert row.last == group(4).end
    assert row.checkpoint == START
    assert row.executed.bitmap() == bytes([0b1010])
    assert row.gtids == gtids("2:4")
    row = row.advanced([group(7, "a")], START_MARK)
    assert row.executed.bitmap() == bytes([0b0100_1010])
    assert row.gtids == gtids("2:4:7")


def test_a_row_forgets_what_the_stored_mark_proves() -> None:
    row = blank_row(1, mark_at(0, GtidSet())).advanced([group(2), group(5)], mark_at(0, GtidSet()))
    stored = mark_at(3, gtids("1-3"))
    row = row.advanced([group(6)], stored)
    assert row.checkpoint == stored.position
    assert row.executed.base == 4
    assert row.executed.bitmap() == bytes([0b110])
    assert row.gtids == gtids("5-6")


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
    assert row.gtids == gtids("1")
    assert len(row.executed) == 1


def test_a_row_never_changes_where_the_first_group_is_anonymous() -> None:
    stored = mark_at(0, GtidSet())
    row = blank_row(1, stored).advanced([group(1)], stored)
    row.advanced([group(2, anonymous=True), group(3)], stored)
    assert row.gtids == gtids("1")


def test_a_row_never_changes_where_the_mark_knows_no_gtids() -> None:
    row = blank_row(1, START_MARK).advanced([group(1)], START_MARK)
    row.advanced([group(2)], mark_at(1))
    assert row.gtids == gtids("1")


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
