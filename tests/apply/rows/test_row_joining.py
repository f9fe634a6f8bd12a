"""Row events of several groups, reordered and joined: the effect is that of the groups in order."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from mtsd.apply.rows.row_joining import joined
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import STMT_END, parse_rows_header
from mtsd.model.group import Group
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.step import Rows
from tests.schedule.worlds.streams import group

WRITE: Final = EventType.WRITE_ROWS_EVENT
UPDATE: Final = EventType.UPDATE_ROWS_EVENT
DELETE: Final = EventType.DELETE_ROWS_EVENT
MAP: Final = EventType.TABLE_MAP_EVENT
Change = tuple[EventType, int, int, int]
"""Kind, table, key, and the value that the row gets."""


def event(kind: EventType, body: bytes, *, time: int = 7) -> bytes:
    head = time.to_bytes(4, "little") + bytes((kind,)) + (1).to_bytes(4, "little")
    return head + (HEADER_SIZE + len(body)).to_bytes(4, "little") + b"\0" * 6 + body


def table_map(table: int) -> bytes:
    name = b"t%d" % table
    columns = b"\x02\x03\x03\0\0"
    body = table.to_bytes(6, "little") + b"\x01\0\x01d\0" + bytes((len(name),)) + name + b"\0"
    return event(MAP, body + columns)


def changed(change: Change, *, time: int = 7) -> bytes:
    """Return a row event: two columns of four bytes; every image has its null bits first."""
    kind, table, key, value = change
    row = b"\0" + key.to_bytes(4, "little") + value.to_bytes(4, "little")
    bitmaps = b"\xff\xff" if kind is UPDATE else b"\xff"
    flags = STMT_END.to_bytes(2, "little")
    body = table.to_bytes(6, "little") + flags + b"\x02\0" + b"\x02" + bitmaps
    return event(kind, body + (row + row if kind is UPDATE else row), time=time)


def of(number: int, changes: Iterable[Change], *, time: int = 7) -> Group:
    changes = list(changes)
    events = [each for one in changes for each in (table_map(one[1]), changed(one, time=time))]
    keys = tuple({table * 1000 + key for _, table, key, _ in changes})
    return replace(
        group(number, "d"), steps=(Rows(tuple(events)),), keys=GroupKeys(keys, parts=(1,))
    )


def applied(events: Iterable[bytes], rows: dict[tuple[int, int], int]) -> int:
    """Apply events as a server does, in strict mode; return how many of them contain rows."""
    maps: dict[bytes, bytes] = {}
    count = 0
    for each in events:
        if each[4] == MAP:
            maps[each[19:25]] = each
            continue
        count += 1
        header = parse_rows_header(each)
        assert each[19:25] in maps
        at = header.rows_at
        while at < len(each):
            row = header.table_id, int.from_bytes(each[at + 1 : at + 5], "little")
            value = int.from_bytes(each[at + 5 : at + 9], "little")
            at += 9
            if each[4] == WRITE:
                assert row not in rows
                rows[row] = value
            elif each[4] == DELETE:
                del rows[row]
            else:
                assert row in rows
                rows[row] = int.from_bytes(each[at + 5 : at + 9], "little")
                at += 9
    return count


def changes_of(chance: Random, rows: dict[tuple[int, int], int]) -> Iterator[Change]:
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        table, key, value = chance.randrange(1, 4), chance.randrange(30), chance.randrange(10**6)
        row = table, key
        if row not in rows:
            rows[row] = value
            yield WRITE, table, key, value
        elif chance.random() < 0.5:
            rows[row] = value
            yield UPDATE, table, key, value
        else:
            del rows[row]
            yield DELETE, table, key, 0


@pytest.mark.parametrize("seed", range(80))
def test_the_effect_is_that_of_the_groups_in_order(seed: int) -> None:
    chance = Random(seed)
    largest = chance.choice((1, 100, 1 << 16))
    before: dict[tuple[int, int], int] = {}
    list(changes_of(chance, before))
    rows = dict(before)
    groups = []
    for number in range(1, chance.choice((2, 5, 60))):
        one = of(number, changes_of(chance, rows), time=chance.choice((7, 7, 7, 8)))
        if chance.random() < 0.1:
            # What it may conflict with besides is not known row by row.
            keys = chance.choice((
                NO_KEYS, GroupKeys(wholes=(1,)), GroupKeys(one.keys.rows, wholes=(1,)),
                GroupKeys(one.keys.rows, references=(5,)),
            ))  # fmt: skip
            one = replace(one, keys=keys)
        groups.append(one)
    in_order = dict(before)
    count = applied((each for one in groups for each in one.rows), in_order)
    assert in_order == rows
    assert applied(joined(groups, largest), before) <= count
    assert before == rows


@pytest.mark.parametrize("seed", range(80))
def test_by_the_clock_the_effect_is_that_of_the_groups_in_order(seed: int) -> None:
    """The clock says the newest group before that changes one of the same rows, or a newer one."""
    chance = Random(seed)
    largest = chance.choice((1, 100, 1 << 16))
    before: dict[tuple[int, int], int] = {}
    list(changes_of(chance, before))
    rows = dict(before)
    newest: dict[Hashable, int] = {}
    groups: list[Group] = []
    number = chance.randrange(1, 90)
    offset = number - chance.randrange(1, 9)
    for _ in range(chance.choice((2, 5, 60))):
        number += chance.choice((1, 1, 1, 2))
        if chance.random() < 0.05:
            # The first one of another file.
            offset = number - 1
            newest = {}
        sequence_number = number - offset
        one = of(number, changes_of(chance, rows), time=chance.choice((7, 7, 7, 8)))
        conflict = max((newest.get(key, 0) for key in one.keys.rows), default=0)
        committed = chance.choice((conflict, conflict, chance.randint(conflict, sequence_number)))
        for key in one.keys.rows:
            newest[key] = sequence_number
        groups.append(replace(one, sequence_number=sequence_number, last_committed=committed))
    in_order = dict(before)
    count = applied((each for one in groups for each in one.rows), in_order)
    assert in_order == rows
    assert applied(joined(groups, largest, by_clock=True), before) <= count
    assert before == rows


def clocked(number: int, last_committed: int, changes: Iterable[Change]) -> Group:
    one = of(number, changes)
    return replace(one, sequence_number=number - 100, last_committed=last_committed)


def test_by_the_clock_is_one_event_what_commits_after_the_same_group() -> None:
    groups = [clocked(n, 1, [(WRITE, 1, n, 0), (WRITE, 2, n, 0)]) for n in range(110, 200)]
    assert applied(joined(groups, by_clock=True), {}) == 2
    groups.append(clocked(200, 99, [(WRITE, 1, 200, 0)]))
    assert applied(joined(groups, by_clock=True), {}) == 3
    # It depends on none of them, but its numbers are of another file.
    after = replace(clocked(201, 1, [(WRITE, 1, 201, 0)]), sequence_number=2)
    assert applied(joined([*groups, after], by_clock=True), {}) == 4


@pytest.mark.parametrize(("sequence_number", "last_committed"), [(0, 0), (4, 4), (3, 9), (14, 0)])
def test_what_has_no_place_in_the_clock_keeps_its_own(
    sequence_number: int, last_committed: int
) -> None:
    groups = [clocked(n, 1, [(WRITE, 1, n, 0)]) for n in range(110, 120)]
    groups[4] = replace(groups[4], sequence_number=sequence_number, last_committed=last_committed)
    events = joined(groups, by_clock=True)
    assert applied(events, {}) == 3
    assert changed((WRITE, 1, 114, 0)) in events


def test_a_clock_that_goes_back_begins_anew() -> None:
    """What comes after waits for it, by the policy: its numbers tell nothing."""
    groups = [clocked(n, 1, [(WRITE, 1, n, 0)]) for n in (150, 151)]
    after = clocked(153, 1, [(WRITE, 1, 153, 0)])
    assert applied(joined([*groups, after], by_clock=True), {}) == 1
    other = of(152, [(WRITE, 1, 152, 0)])
    back = replace(other, sequence_number=51, last_committed=1)
    assert applied(joined([*groups, back, after], by_clock=True), {}) == 3


def test_what_does_not_conflict_is_one_event_for_each_table_and_operation() -> None:
    groups = [
        of(n, [(WRITE, 1, 2 * n, 0), (WRITE, 2, n, 0), (UPDATE, 1, 2 * n, 1), (DELETE, 2, n, 0)])
        for n in range(1, 500)
    ]
    assert applied(joined(groups), {}) == 4
    rows: dict[tuple[int, int], int] = {}
    assert applied(joined([*groups, of(500, [(UPDATE, 1, 4, 2)])]), rows) == 5
    assert rows[1, 4] == 2


def test_a_chain_stays_as_it_is() -> None:
    groups = [of(1, [(WRITE, 1, 1, 0)]), *(of(n, [(UPDATE, 1, 1, n)]) for n in range(2, 9))]
    rows: dict[tuple[int, int], int] = {}
    assert applied(joined(groups), rows) == 8
    assert rows == {(1, 1): 8}


def test_updates_of_one_group_are_events_of_their_own() -> None:
    """HASH_SCAN finds all rows of an event in one pass: not one that the event itself changes."""
    rows = {(1, 1): 0, (1, 2): 0}
    groups = [
        of(1, [(UPDATE, 1, 1, 1), (UPDATE, 1, 1, 2)]),
        of(2, [(UPDATE, 1, 2, 1), (UPDATE, 1, 2, 3)]),
    ]
    assert applied(joined(groups), rows) == 2
    assert rows == {(1, 1): 2, (1, 2): 3}


def test_events_of_another_second_are_not_joined() -> None:
    groups = [of(1, [(WRITE, 1, 1, 0)], time=7), of(2, [(WRITE, 1, 2, 0)], time=8)]
    assert applied(joined(groups), {}) == 2


def test_rows_of_no_bytes_are_not_joined() -> None:
    """With binlog_row_image = MINIMAL a row of defaults is an event without rows, which is one."""
    empty = changed((WRITE, 1, 1, 0)).partition(b"\xff")[0] + b"\0"
    alike = [clocked(n, 1, [(WRITE, 1, n, 0)]) for n in (110, 111)]
    groups = [
        *alike,
        *(replace(each, steps=(Rows((table_map(1), empty)),)) for each in alike),
    ]
    assert joined(groups, by_clock=True).count(empty) == 2


def test_joined_events_do_not_become_too_large() -> None:
    largest = 3 * len(changed((WRITE, 1, 1, 0)))
    groups = [of(n, [(WRITE, 1, n, 0)]) for n in range(9)]
    events = joined(groups, largest)
    assert applied(events, {}) == 3
    assert max(map(len, events)) <= largest
    assert applied(joined(groups, 1), {}) == 9


def test_one_group_is_left_alone() -> None:
    (one,) = (of(1, [(WRITE, 1, 1, 0), (WRITE, 1, 2, 0)]),)
    assert joined([one]) == list(one.rows)
    assert joined([]) == []
