"""What the rows of a transaction come to: the effect, and the errors, of them in their order."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import pytest

from mtsd.apply.rows.net_rows import net_events
from mtsd.apply.rows.net_table import LaidOut
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows import NO_FOREIGN_KEY_CHECKS, STMT_END, parse_rows_header
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType

INSERT: Final = EventType.WRITE_ROWS_EVENT
UPDATE: Final = EventType.UPDATE_ROWS_EVENT
DELETE: Final = EventType.DELETE_ROWS_EVENT
PARTIAL: Final = EventType.PARTIAL_UPDATE_ROWS_EVENT
Row = tuple[int, int, int]
"""The key, a value of another unique key, and one that nothing is known of."""
Tables = dict[tuple[bytes, int], Row]
NUMBER: Final = ColumnFormat(ColumnType.LONG, 0, 4, "a column")


class FailedError(Exception):
    """A change has met another row than it needs."""


def layout(
    name: str, *, others: tuple[int, ...] | None = (), cascades: bool = False
) -> TableLayout:
    return TableLayout(
        name.encode(), name, (NUMBER,) * 3, (), ((0,),), others=others, cascades=cascades
    )


def image(row: Row) -> bytes:
    return b"\0" + b"".join(value.to_bytes(4, "little") for value in row)


def event(kind: EventType, rows: Sequence[Row], *, flags: int = 0, time: int = 7) -> bytes:
    """Return a row event; an update has each row before and after."""
    bitmaps = b"\x07\x07" if kind in {UPDATE, PARTIAL} else b"\x07"
    body = (5).to_bytes(6, "little") + (flags | STMT_END).to_bytes(2, "little") + b"\x02\0\x03"
    body += bitmaps + b"".join(map(image, rows))
    head = time.to_bytes(4, "little") + bytes((kind,)) + bytes(8)
    return head + bytes(HEADER_SIZE - len(head)) + body


def rows_of(each: bytes) -> list[Row]:
    at = parse_rows_header(each).rows_at
    found = []
    while at < len(each):
        a, b, c = (int.from_bytes(each[at + n : at + n + 4], "little") for n in (1, 5, 9))
        found.append((a, b, c))
        at += 13
    return found


def applied(events: Sequence[LaidOut], before: Tables) -> Tables:
    """Return what a target has after events, in strict mode. Raises FailedError."""
    tables = dict(before)
    for each, of in events:
        rows = rows_of(each)
        for first, last in (
            zip(rows[::2], rows[1::2], strict=True)
            if each[4] == UPDATE
            else ((row, row) for row in rows)
        ):
            if each[4] != INSERT and tables.pop((of.name, first[0]), None) is None:
                raise FailedError
            if each[4] == DELETE:
                continue
            taken = {row[1] for (name, _), row in tables.items() if name == of.name}
            if (of.name, last[0]) in tables or (of.others and last[1] in taken):
                raise FailedError
            tables[of.name, last[0]] = last
    return tables


def changes(chance: Random, tables: Tables, layouts: Sequence[TableLayout]) -> Iterator[LaidOut]:
    """Yield changes of a source that has these rows, and make them there."""
    for _ in range(chance.choice((3, 10, 60))):
        of = chance.choice(layouts)
        kind = chance.choice((INSERT, UPDATE, UPDATE, DELETE))
        found = [row for (name, _), row in tables.items() if name == of.name]
        before = chance.choice(found) if found else (0, 0, 0)
        key, unique = chance.randrange(12), chance.randrange(1 << 16)
        if chance.random() < 0.8:
            # Most updates leave the keys as they are.
            unique = before[1]
            key = before[0] if kind is UPDATE else key
        after = key, unique, chance.randrange(1 << 16)
        rows = {INSERT: [after], UPDATE: [before, after], DELETE: [before]}[kind]
        one = event(kind, rows, flags=chance.choice((0, 0, 0, 0, NO_FOREIGN_KEY_CHECKS))), of
        try:
            now = applied([one], tables)
        except FailedError:
            continue
        tables.clear()
        tables |= now
        yield one


@pytest.mark.parametrize("seed", range(150))
def test_rows_and_errors_are_those_in_order(seed: int) -> None:
    chance = Random(seed)
    layouts = [layout("a"), layout("b"), layout("c", others=(1,)), layout("d", others=None)]
    source: Tables = {}
    list(changes(chance, source, layouts))
    target = dict(source)
    events = list(changes(chance, source, layouts))
    if chance.random() < 0.5:
        # A row is missing on the target, or there already.
        of = chance.choice(layouts)
        key = chance.randrange(12)
        if target.pop((of.name, key), None) is None:
            target[of.name, key] = (key, 1 << 20, 1)
    net = net_events(events)
    assert sum(len(rows_of(each)) for each, _ in net) <= sum(
        len(rows_of(each)) for each, _ in events
    ) + sum(each[4] == DELETE for each, _ in events)
    try:
        wanted = applied(events, target)
    except FailedError:
        with pytest.raises(FailedError):
            applied(net, target)
        return
    try:
        found = applied(net, target)
    except FailedError:
        # They are applied in order then; without another unique key that is not needed.
        assert any(of.others for _, of in events)
        return
    assert found == wanted


def test_each_table_is_one_event_of_each_operation() -> None:
    a, b = layout("a"), layout("b")
    net = net_events([
        (event(INSERT, [(1, 0, 0)]), a), (event(UPDATE, [(1, 0, 0), (1, 0, 7)]), a),
        (event(INSERT, [(9, 0, 0)]), b), (event(INSERT, [(2, 0, 0), (5, 0, 0)]), a),
        (event(UPDATE, [(3, 0, 0), (3, 0, 1)]), a), (event(UPDATE, [(3, 0, 1), (3, 0, 2)]), a),
        (event(DELETE, [(4, 0, 0)]), a), (event(DELETE, [(5, 0, 0)]), a),
        (event(DELETE, [(6, 0, 0)]), a), (event(INSERT, [(6, 0, 1)]), a),
    ])  # fmt: skip
    assert [(each[4], rows_of(each), of.label) for each, of in net] == [
        (DELETE, [(4, 0, 0), (6, 0, 0)], "a"),
        (INSERT, [(1, 0, 7), (2, 0, 0), (5, 0, 0), (6, 0, 1)], "a"),
        (INSERT, [(9, 0, 0)], "b"),
        (UPDATE, [(3, 0, 0), (3, 0, 2)], "a"),
        (DELETE, [(5, 0, 0)], "a"),
    ]


def test_children_come_after_their_parents_and_go_before_them() -> None:
    parent = layout("p", cascades=True)
    child = TableLayout(b"c", "c", (NUMBER,) * 3, (), ((0,),), others=(), parents=(b"p", b"c"))
    free = NO_FOREIGN_KEY_CHECKS
    net = net_events([
        (event(INSERT, [(1, 0, 0)]), child), (event(INSERT, [(2, 0, 0)]), parent),
        (event(INSERT, [(3, 0, 0)]), child),
    ])  # fmt: skip
    assert [of.label for _, of in net] == ["p", "c"]
    net = net_events([
        (event(DELETE, [(1, 0, 0)], flags=free), parent), (event(DELETE, [(2, 0, 0)]), child),
    ])  # fmt: skip
    assert [of.label for _, of in net] == ["c", "p"]


@pytest.mark.parametrize(
    ("apart", "of"),
    [
        pytest.param(event(DELETE, [(2, 0, 0)]), layout("b", cascades=True), id="cascades"),
        pytest.param(event(PARTIAL, [(1, 0, 0), (1, 0, 1)]), layout("a"), id="parts of documents"),
        pytest.param(event(UPDATE, [(1, 0, 0), (2, 0, 0)]), layout("a"), id="another key"),
        pytest.param(
            event(UPDATE, [(1, 0, 0), (1, 1, 0)]), layout("a", others=(1,)), id="another value"
        ),
    ],
)
def test_some_rows_stay_where_they_are(apart: bytes, of: TableLayout) -> None:
    a = of if of.label == "a" else layout("a")
    first, last = (event(INSERT, [(number, 0, 0)]) for number in (1, 5))
    assert net_events([(first, a), (apart, of), (last, a)]) == [(first, a), (apart, of), (last, a)]


@pytest.mark.parametrize("seed", range(60))
def test_rows_without_an_index_are_known_by_their_bytes(seed: int) -> None:
    chance = Random(seed)
    of = TableLayout(b"h", "h", (NUMBER,) * 3, (), (), heap=True)

    def run(events: Sequence[LaidOut], before: Counter[Row]) -> Counter[Row]:
        there = before.copy()
        for each, _ in events:
            rows = rows_of(each)
            if each[4] != INSERT:
                there.subtract(rows[::2] if each[4] == UPDATE else rows)
                if min(there.values()) < 0:
                    raise FailedError
            if each[4] != DELETE:
                there.update(rows[1::2] if each[4] == UPDATE else rows)
        return +there

    before = Counter((chance.randrange(4), 0, 0) for _ in range(8))
    there = before.copy()
    events: list[LaidOut] = []
    for _ in range(chance.choice((3, 40))):
        kind = chance.choice((INSERT, UPDATE, UPDATE, DELETE))
        after = chance.randrange(4), 0, 0
        first = chance.choice([*there.elements()] or [after])
        rows = {INSERT: [after], UPDATE: [first, after], DELETE: [first]}[kind]
        try:
            there = run([(event(kind, rows), of)], there)
        except FailedError:
            continue
        events.append((event(kind, rows), of))
    net = net_events(events)
    assert len(net) <= 3
    assert run(net, before) == there
    # A row that is missing on the target is missing in both.
    lacks = before - Counter([chance.choice([*before])])
    try:
        wanted = run(events, lacks)
    except FailedError:
        with pytest.raises(FailedError):
            run(net, lacks)
    else:
        assert run(net, lacks) == wanted


def test_rows_of_other_flags_or_times_stay_apart() -> None:
    a = layout("a")
    first, last = event(INSERT, [(1, 0, 0)]), event(INSERT, [(2, 0, 0)], flags=4)
    assert net_events([(first, a), (last, a)]) == [(first, a), (last, a)]
    times = TableLayout(b"t", "t", (NUMBER,) * 3, (), ((0,),), others=(), takes_time=True)
    last = event(INSERT, [(2, 0, 0)], time=8)
    assert net_events([(first, times), (last, times)]) == [(first, times), (last, times)]
    # Otherwise the time of neither counts.
    assert len(net_events([(first, a), (last, a)])) == 1
