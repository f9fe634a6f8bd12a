"""Sets of GTIDs against plain sets of tuples, and against those of mysql-replication."""

from itertools import pairwise

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
    union = one.copy()
    union.update(other)
    check_form(union)
    assert plain_set(union) == first | second
    assert plain_set(one) == first
    assert plain_set(other) == second
    for uuid, tag, number in first | second:
        assert (Gtid(uuid, number, tag) in one) == ((uuid, tag, number) in first)


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
        "0-1-2",
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
