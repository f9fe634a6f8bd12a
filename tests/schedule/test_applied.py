from bisect import bisect_left

from mtsd.schedule.applied import BOUNDS_S, Applied
from mtsd.schedule.by_database import PendingOfDatabase, pending_by_database
from tests.schedule.worlds.streams import group

SECOND = 1_000_000


def test_groups_are_counted_by_age_and_by_database() -> None:
    applied = Applied()
    # Their commit times are 1, 2 and 3 s; the third is from a source whose clock is ahead.
    applied.note((group(1, "a"), group(2, "a", "b")), 3 * SECOND)
    applied.note((group(3, "b"),), 2 * SECOND)
    ages = [0] * (len(BOUNDS_S) + 1)
    for age in (2.0, 1.0, 0.0):
        ages[bisect_left(BOUNDS_S, age)] += 1
    assert applied.ages == ages
    assert ages[BOUNDS_S.index(1.0)] == 1
    assert applied.age_us == 3 * SECOND
    assert applied.by_database() == {"a": 2, "b": 2}
    applied.note((group(4),), 10**9 * SECOND)
    assert applied.ages[-1] == 1


def test_what_is_pending_of_each_database() -> None:
    unfinished = [group(3, "a"), group(2, "b", "a"), group(4, "b")]
    assert pending_by_database(unfinished) == {
        "a": PendingOfDatabase(2, 2 * SECOND),
        "b": PendingOfDatabase(2, 2 * SECOND),
    }
