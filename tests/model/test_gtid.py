"""Sets of GTIDs against plain sets of tuples, and against those of mysql-replication."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymysqlreplication.gtid import Gtid as OtherGtid
from pymysqlreplication.gtid import GtidSet as OtherGtidSet

from mtsd.model.gtid import Gtid, GtidSet

A = "00000000-0000-0000-0000-00000000000a"
B = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"

ordinary = settings(max_examples=200, deadline=None, derandomize=True)

Plain = frozenset[tuple[str, str, int]]
tags = st.sampled_from(["", "", "blue", "z_9"])
members = st.tuples(st.sampled_from([A, B]), tags, st.integers(1, 25))
plain_sets = st.frozensets(members, max_size=40)
untagged_sets = st.frozensets(
    st.tuples(st.sampled_from([A, B]), st.just(""), st.integers(1, 25)), max_size=40
)
intervals = st.tuples(
    st.sampled_from([A, B]), tags, st.integers(1, 30), st.integers(0, 12)
).map(lambda drawn: (drawn[0], drawn[1], drawn[2], drawn[2] + drawn[3] + 1))  # fmt: skip


def gtid_set(plain: Plain) -> GtidSet:
    result = GtidSet()
    for uuid, tag, number in plain:
        result.add(Gtid(uuid, number, tag))
    return result


def plain_set(gtids: GtidSet) -> Plain:
    return frozenset(
        (uuid, tag, number)
        for uuid, tag, start, end in gtids.intervals()
        for number in range(start, end)
    )


def check_form(gtids: GtidSet) -> None:
    """Check that intervals are sorted, not empty, disjoint, and that neighbours never touch."""
    found = list(gtids.intervals())
    assert found == sorted(found)
    for _, _, start, end in found:
        assert start < end
    for (uuid, tag, _, end), (next_uuid, next_tag, start, _) in pairwise(found):
        assert (uuid, tag) != (next_uuid, next_tag) or end < start


@ordinary
@given(st.lists(members, max_size=60))
def test_adding_one_by_one_in_any_order(drawn: list[tuple[str, str, int]]) -> None:
    gtids = GtidSet()
    for uuid, tag, number in drawn:
        gtids.add(Gtid(uuid, number, tag))
        check_form(gtids)
    assert plain_set(gtids) == frozenset(drawn)
    assert len(gtids) == len(frozenset(drawn))
    assert bool(gtids) == bool(drawn)


@ordinary
@given(st.lists(st.tuples(st.one_of(members, intervals), st.booleans()), max_size=40))
def test_printed_between_changes(
    drawn: list[tuple[tuple[str, str, int] | tuple[str, str, int, int], bool]],
) -> None:
    gtids = GtidSet()
    unprinted = GtidSet()
    for change, copied in drawn:
        for each in (gtids, unprinted):
            if len(change) == 3:
                each.add(Gtid(change[0], change[2], change[1]))
            else:
                each.add_interval(*change)
        text = str(gtids)
        assert text == str(unprinted.minus(GtidSet()))
        before = gtids
        if copied:
            gtids = gtids.copy()
            gtids.add(Gtid(A, 100))
            assert str(before) == text
            gtids = before.copy()


@ordinary
@given(st.lists(intervals, max_size=20))
def test_adding_intervals(drawn: list[tuple[str, str, int, int]]) -> None:
    gtids = GtidSet()
    expected: set[tuple[str, str, int]] = set()
    for uuid, tag, start, end in drawn:
        gtids.add_interval(uuid, tag, start, end)
        expected |= {(uuid, tag, number) for number in range(start, end)}
        check_form(gtids)
    assert plain_set(gtids) == expected


@ordinary
@given(plain_sets, plain_sets)
def test_set_operations(first: Plain, second: Plain) -> None:
    one, other = gtid_set(first), gtid_set(second)
    difference = one.minus(other)
    check_form(difference)
    assert plain_set(difference) == first - second
    assert one.issubset(other) == (first <= second)
    assert (one == other) == (first == second)
    common = one.intersection(other)
    check_form(common)
    assert plain_set(common) == first & second
    union = one.copy()
    union.update(other)
    check_form(union)
    assert plain_set(union) == first | second
    assert plain_set(one) == first
    assert plain_set(other) == second
    for uuid, tag, number in first | second:
        assert (Gtid(uuid, number, tag) in one) == ((uuid, tag, number) in first)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("0-1-300,2-2-72", "0-1-160", "0-1-160"),
        ("0-1-90,1-1-7", "0-1-160,1-1-5", "0-1-90,1-1-5"),
        ("0-1-90", "1-1-5", ""),
        (f"{A}:1-9", f"{A}:5-20", f"{A}:5-9"),
    ],
)
def test_what_two_sets_share(one: str, other: str, both: str) -> None:
    first, second = GtidSet.parse(one), GtidSet.parse(other)
    assert str(first.shared(second)) == str(second.shared(first)) == both


def test_sets_of_many_intervals() -> None:
    """What takes the square of their number takes minutes here."""
    many = 100_000
    begun = process_time()
    one = GtidSet.parse(f"{A}:" + ":".join(f"{n}-{n + 1}" for n in range(1, 4 * many, 4)))
    other = GtidSet.parse(f"{A}:" + ":".join(str(n) for n in range(2, 4 * many, 4)))
    assert len(one.minus(other)) == len(one.intersection(other)) == many
    assert other.issubset(one)
    assert one.union(other) == one
    assert not one.listed_beyond(one)
    for number in range(3, 4 * many, 4000):
        one.add(Gtid(A, number))
        assert Gtid(A, number) in one.copy()
    assert process_time() - begun < 5


@ordinary
@given(plain_sets)
def test_text_there_and_back(plain: Plain) -> None:
    gtids = gtid_set(plain)
    assert GtidSet.parse(str(gtids)) == gtids
    assert GtidSet.parse(str(gtids).upper().replace(":", " :\n ")) == gtids


@ordinary
@given(untagged_sets, untagged_sets)
def test_as_mysql_replication_has_it(first: Plain, second: Plain) -> None:
    one, other = gtid_set(first), gtid_set(second)
    theirs, their_other = OtherGtidSet(str(one)), OtherGtidSet(str(other))
    assert GtidSet.parse(str(theirs)) == one
    assert (theirs == their_other) == (one == other)
    for uuid, _, number in sorted(first | second):
        gtid = Gtid(uuid, number)
        assert (OtherGtid(str(gtid)) in theirs) == (gtid in one)
    union = one.copy()
    union.update(other)
    # Theirs refuses to add what overlaps.
    added = theirs + OtherGtidSet(str(other.minus(one)))
    assert str(GtidSet.parse(str(added))) == str(union)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (" \n", ""),
        (f"{A}:1", f"{A}:1"),
        (f"{A}:1-3:5,\n{B}:2", f"{A}:1-3:5,{B}:2"),
        (f"{B}:2,{A}:1", f"{A}:1,{B}:2"),
        (f"{A}:1-3:4-6:6-7", f"{A}:1-7"),
        (f"{A}:5:1-2,{A}:3", f"{A}:1-3:5"),
        (f"{A.upper()}:1", f"{A}:1"),
        (f"{A.replace('-', '')}:1", f"{A}:1"),
        (f"{A}:1-2:blue:1-4:7:red_2:9", f"{A}:1-2:blue:1-4:7:red_2:9"),
        (f"{A}:blue:1:7,{A}:3,{A}:BLUE:2", f"{A}:3:blue:1-2:7"),
        (f"{A}:9223372036854775806", f"{A}:9223372036854775806"),
    ],
)
def test_forms_of_the_text(text: str, canonical: str) -> None:
    assert str(GtidSet.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        A,
        f"{A[:-1]}:1",
        f"{A}:0",
        f"{A}:0-4",
        f"{A}:5-4",
        f"{A}:-4",
        f"{A}:4-",
        f"{A}:1;2",
        f"{A}:1:",
        f"{A}:9blue:1",
        f"{A}:{'b' * 33}:1",
        f"{A}-1:1",
    ],
)
def test_what_is_no_set(text: str) -> None:
    with pytest.raises(ValueError, match="GTID set"):
        GtidSet.parse(text)


def test_text_of_a_gtid() -> None:
    assert str(Gtid(A, 7)) == f"{A}:7"
    assert str(Gtid(A, 7, "blue")) == f"{A}:blue:7"


def test_a_tag_is_another_sequence_of_numbers() -> None:
    gtids = GtidSet.parse(f"{A}:1-5:blue:3")
    assert Gtid(A, 3, "blue") in gtids
    assert Gtid(A, 4, "blue") not in gtids
    assert Gtid(A, 4) in gtids
    assert Gtid(B, 4) not in gtids
    assert len(gtids) == 6


def test_a_copy_is_independent_and_no_set_is_a_key() -> None:
    gtids = GtidSet.parse(f"{A}:1")
    copy = gtids.copy()
    copy.add(Gtid(A, 2))
    assert str(gtids) == f"{A}:1"
    with pytest.raises(TypeError, match="unhashable"):
        hash(gtids)
    assert repr(gtids) == f"GtidSet('{A}:1')"


def test_a_mariadb_gtid_is_domain_server_and_number() -> None:
    assert Gtid.parse("0-1-100") == Gtid("0-1", 100)
    assert str(Gtid("0-1", 100)) == "0-1-100"
    assert Gtid.parse("0-1--5") == Gtid("0-1", -5)
    assert Gtid.parse(f"{A}:-5") == Gtid(A, -5)
    assert Gtid.parse(f"{A}:blue:7") == Gtid(A, 7, "blue")
    for wrong in ("", "1-2", "0-1-x", f"{A}", "4294967296-1-1"):
        with pytest.raises(ValueError, match="not a"):
            Gtid.parse(wrong)


@pytest.mark.parametrize("text", ["0-1-100", "0-1-100,1-2-5", "0-1-100,0-2:103:105-107", "0-2:1"])
def test_a_mariadb_set_is_read_as_it_is_written(text: str) -> None:
    assert str(GtidSet.parse(text)) == text
    assert str(GtidSet.parse(text).copy()) == text


@pytest.mark.parametrize("text", ["0-1-0", "0-1-18446744073709551616", "0-4294967296-1", "0-1-"])
def test_what_is_no_mariadb_position(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        GtidSet.parse(text)


def test_a_mariadb_position_has_everything_of_its_domain_before_it() -> None:
    gtids = GtidSet.parse("0-2-105,7-1-3")
    assert Gtid("0-2", 105) in gtids
    assert Gtid("0-1", 99) in gtids
    assert Gtid("0-2", 106) not in gtids
    assert Gtid("1-2", 1) not in gtids
    assert GtidSet.parse("0-1-100").issubset(gtids)
    assert not GtidSet.parse("0-1-106").issubset(gtids)
    assert str(GtidSet.parse("0-1:100:105-107,7-1-4").minus(gtids)) == "7-1-4,0-1:106-107"


def test_what_a_server_has_lost_is_missed_although_others_went_on() -> None:
    """A former primary's last transaction never reached the one that followed it."""
    state = GtidSet.parse("0-1-100,0-2-105")
    assert not GtidSet.parse("0-1-101").issubset(state)
    assert GtidSet.parse("0-1-100").issubset(state)
    assert GtidSet.parse("0-3-105").issubset(state)


def test_a_mariadb_position_advances_over_holes_and_other_servers() -> None:
    gtids = GtidSet.parse("0-1-100,1-1-5")
    for text in ("0-1-101", "0-1-109", "0-2-110", "1-7-6"):
        assert gtids.advance(Gtid.parse(text))
    assert str(gtids) == "0-2-110,1-7-6"
    assert [str(each) for each in gtids.places()] == ["0-2-110", "1-7-6"]


def test_the_domains_of_a_mariadb_set() -> None:
    gtids = GtidSet.parse("0-1-100,7-2-5,7-3-9,12-1:4:6-8,3e11fa47-71ca-11e1-9e33-c80aa9429562:1")
    assert gtids.domains() == {0, 7, 12}


def test_what_was_executed_ahead_is_met_once_and_then_passed() -> None:
    gtids = GtidSet.parse("0-1-100,0-2:103")
    assert [gtids.advance(Gtid("0-2", number)) for number in (101, 102, 103, 104)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert str(gtids) == "0-2-104"


def test_numbers_that_do_not_grow_keep_the_order_of_the_log() -> None:
    gtids = GtidSet.parse("0-1-100")
    gtids.advance(Gtid("0-2", 50))
    assert str(gtids) == "0-1-100,0-2-50"
    assert [str(each) for each in GtidSet.parse(str(gtids)).places()] == ["0-2-50"]
    gtids.advance(Gtid("0-1", 101))
    assert str(gtids) == "0-1-101"


def test_another_server_of_the_same_number_is_kept() -> None:
    """Two primaries of one domain: what the first has written is not passed by that."""
    gtids = GtidSet.parse("0-1-100")
    gtids.advance(Gtid("0-2", 100))
    assert str(gtids) == "0-1-100,0-2-100"
    assert gtids.has_reached(Gtid("0-1", 100))


def test_a_union_goes_as_far_as_either() -> None:
    gtids = GtidSet.parse("0-1-100,1-1-5")
    gtids.update(GtidSet.parse("0-2-90,1-1-9,2-1-1,0-1:101"))
    assert [str(each) for each in gtids.places()] == ["0-1-100", "1-1-9", "2-1-1"]
    assert Gtid("0-1", 101) in gtids


places = st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 30))


@ordinary
@given(st.lists(places), st.lists(places), st.frozensets(places, max_size=12))
def test_mariadb_sets_against_plain_ones(
    mine: list[tuple[int, int, int]],
    others: list[tuple[int, int, int]],
    listed: frozenset[tuple[int, int, int]],
) -> None:
    """Of logs whose numbers grow: a place contains everything of its domain up to it."""
    one, other = (_gone_through(sorted(log, key=lambda each: each[2])) for log in (mine, others))
    for domain, server, number in listed:
        one.add(Gtid(f"{domain}-{server}", number))
    every = [Gtid(f"{d}-{s}", n) for d in range(3) for s in (1, 2, 3) for n in range(1, 31)]
    for gtid in every:
        domain = int(gtid.uuid.partition("-")[0])
        reached = max((number for d, _, number in mine if d == domain), default=0)
        inside = gtid.number <= reached or (domain, int(gtid.uuid[2:]), gtid.number) in listed
        assert (gtid in one) == inside
        assert (gtid in one.union(other)) == (inside or gtid in other)
    assert GtidSet.parse(str(one)) == one
    assert one.minus(other).issubset(one)
    assert not one.minus(one)
    assert one.issubset(one.union(other))


def _gone_through(log: list[tuple[int, int, int]]) -> GtidSet:
    gtids = GtidSet()
    for domain, server, number in log:
        gtids.advance(Gtid(f"{domain}-{server}", number))
    return gtids
