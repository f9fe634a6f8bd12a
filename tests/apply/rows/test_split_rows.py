"""Row events split into branches: every row once, in order, and connected ones together."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.apply.rows.split_rows import RowSplitter
from mtsd.apply.tables.key_definitions import KeyDefinitions
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import NO_FOREIGN_KEY_CHECKS, STMT_END
from mtsd.binlog.groups.rewrite import statements_of
from mtsd.schedule.batches.row_branches import NotSplitError
from tests.apply.tables.known_keys import CHILD, KEYED, PARENT, REFERS, UNKEYED, T, U, known, row
from tests.binlog.transactions import rows, table_map

NAMES = {1: T, 2: U, 3: PARENT, 4: CHILD}
MAPS = {number: table_map(number, *name) for number, name in NAMES.items()}
FOUND = known(REFERS)
APART = 1 << 17
"""Numbers so far apart need not stay together."""
NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, 9).map(lambda number: number * APART))
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(sorted(NAMES)),
        st.lists(NUMBERS, min_size=1, max_size=5),
        st.booleans(),
    ),
    max_size=12,
)
Row = tuple[int, int]
"""The table's id, and the value of its key."""


def changing(table: int, *numbers: int, flags: int = STMT_END) -> bytes:
    event = rows(table, b"".join(map(row, numbers)))
    return event[:25] + bytes((flags,)) + event[26:]


def updating(table: int, before: int, after: int) -> bytes:
    event = rows(table, row(before) + row(after), kind=EventType.UPDATE_ROWS_EVENT)
    images = len(row(0)) * 2
    return event[:-images] + b"\xff" + event[-images:]


def read(events: Sequence[bytes]) -> list[Row]:
    """Return the rows of events, which are complete statements, as an applier sends them."""
    found = []
    for statement in statements_of(events, 1 << 20, merge=False):
        at = 0
        ended = False
        while at < len(statement):
            length = int.from_bytes(statement[at + 9 : at + 13], "little")
            event = statement[at : at + length]
            at += length
            assert not ended
            if event[4] == EventType.TABLE_MAP_EVENT:
                continue
            ended = bool(event[25] & STMT_END)
            width = len(row(0))
            begin = len(changing(1))
            assert not (length - begin) % width
            for place in range(begin, length, width):
                value = event[place : place + width]
                found.append((event[19], int.from_bytes(value[1:], "little")))
        assert ended
    return found


def connected(one: Row, other: Row) -> bool:
    family = {3, 4}
    return one[1] == other[1] and (one[0] == other[0] or {one[0], other[0]} == family)


@given(changes=CHANGES, count=st.integers(1, 4), pieces=st.integers(1, 4), whole=st.booleans())
def test_at_random(
    changes: list[tuple[int, list[int], bool]], count: int, pieces: int, whole: bool
) -> None:
    events = []
    expected: list[Row] = []
    for table, numbers, checks in changes:
        flags = STMT_END if checks else STMT_END | NO_FOREIGN_KEY_CHECKS
        events.append((MAPS[table], changing(table, *numbers, flags=flags)))
        expected += [(table, number) for number in numbers]
    splitter = RowSplitter(FOUND, count)
    if whole:
        splitter.look_through([event for both in events for event in both])
    branches: list[list[Row]] = [[] for _ in range(count)]
    for at in range(0, len(events), pieces):
        piece = [event for both in events[at : at + pieces] for event in both]
        for number, part in enumerate(splitter.split(piece)):
            branches[number] += read(part)
    assert sorted(each for branch in branches for each in branch) == sorted(expected)
    for branch in branches:
        left = iter(expected)
        assert all(each in left for each in branch)
        others = [each for other in branches if other is not branch for each in other]
        assert not any(connected(one, other) for one in branch for other in others)


def test_a_table_without_a_key_is_in_one_branch() -> None:
    unkeyed = KeyDefinitions(frozenset("d"), {T: UNKEYED, U: KEYED}, ())
    splitter = RowSplitter(unkeyed, 2)
    keys = range(0, 40 * APART, APART)
    events = [MAPS[1], changing(1, *keys), MAPS[2], changing(2, *keys)]
    found = [set(read(part)) for part in splitter.split(events)]
    assert {(1, each) for each in keys} in [{e for e in part if e[0] == 1} for part in found]
    assert all(any(each[0] == 2 for each in part) for part in found)


def test_rows_of_several_events_become_one() -> None:
    splitter = RowSplitter(FOUND, 2)
    events = [MAPS[1], *(changing(1, number * APART, flags=0) for number in range(100))]
    parts = splitter.split([*events, changing(1, 100 * APART)])
    assert [len(part) for part in parts] == [2, 2]


def shares(keys: Sequence[int], count: int) -> list[list[int]]:
    """Return the keys of each branch, of one table."""
    found = RowSplitter(FOUND, count).split([MAPS[1], changing(1, *keys)])
    return [[number for _, number in read(part)] for part in found]


def test_consecutive_numbers_stay_together() -> None:
    parts = shares(range(0, 40 * APART, 64), 4)
    assert all(abs(len(part) - 20_480) < 1_500 for part in parts)
    changes = [later - earlier > 64 for part in parts for earlier, later in pairwise(part)]
    assert sum(changes) < 100


@pytest.mark.parametrize("step", [1 << bits for bits in range(17, 24)])
def test_numbers_that_differ_only_in_some_digits_are_spread(step: int) -> None:
    parts = shares(range(0, 64 * step, step), 4)
    assert min(map(len, parts)) >= 8


def test_an_update_of_a_number_connects_its_ranges() -> None:
    update = updating(1, 5, 3 * APART)
    splitter = RowSplitter(FOUND, 4)
    events = [MAPS[1], changing(1, 5, 3 * APART), update]
    with pytest.raises(NotSplitError, match="connects its rows"):
        splitter.split(events)
    splitter = RowSplitter(FOUND, 4)
    splitter.look_through(events)
    assert sorted(map(bool, splitter.split(events))) == [False, False, False, True]
    near = RowSplitter(FOUND, 4).split([MAPS[1], updating(1, 5, 6)])
    assert sorted(map(bool, near)) == [False, False, False, True]


def test_what_cannot_be_split() -> None:
    def refused(events: Sequence[bytes], found: KeyDefinitions = FOUND) -> str:
        with pytest.raises(NotSplitError) as raised:
            RowSplitter(found, 2).split(events)
        return str(raised.value)

    event = changing(1, 1)
    assert "not on the target" in refused([table_map(1, "d", "other"), event])
    for found in (replace(KEYED, engine="myisam"), replace(KEYED, triggers=True)):
        shown = refused([MAPS[1], event], KeyDefinitions(frozenset("d"), {T: found}, ()))
        assert "storage engine" in shown or "triggers" in shown
    cascade = [changing(1, 1, flags=16), changing(1, 2, flags=18 | STMT_END)]
    assert "as a cascade" in refused([MAPS[1], *cascade])
    assert "no table map" in refused([event])


def test_keys_of_more_databases() -> None:
    splitter = RowSplitter(known(databases="d"), 2)
    events = [MAPS[1], changing(1, 1), MAPS[3], changing(3, 1)]
    assert splitter.lacks(events) == {"p"}
    splitter.learn(FOUND)
    assert not splitter.lacks(events)
    splitter.split(events)
    assert not splitter.lacks([table_map(1, *T)])


def test_by_table() -> None:
    engines = {T: replace(KEYED, engine="myisam"), U: KEYED, PARENT: KEYED, CHILD: KEYED}
    found = KeyDefinitions(frozenset("dpc"), engines, (REFERS,))
    events = [event for number in NAMES for event in (MAPS[number], changing(number, 1, 2, 3))]
    with pytest.raises(NotSplitError, match="without transactions"):
        RowSplitter(found, 3, by_table=True).split(events)
    splitter = RowSplitter(found, 3, by_table=True)
    transactional, others = splitter.by_engine(events)
    assert others == events[:2]
    parts = [{table for table, _ in read(part)} for part in splitter.split(transactional)]
    assert sorted(map(sorted, parts)) == [[], [2], [3, 4]]
    assert sorted(map(len, map(read, splitter.split(others)))) == [0, 0, 3]
