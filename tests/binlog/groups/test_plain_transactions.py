"""The short way gives what the long way gives, or nothing."""

import struct
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import MTS_ISOLATE, EventType
from mtsd.binlog.events.dialect import MARIADB
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.plain_transactions import PlainTransactions
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, StreamItem
from mtsd.model.position import Position
from mtsd.model.session import NO_UNSIGNED_SUBTRACTION, RowState
from mtsd.model.step import Rows
from tests.binlog.building import event, query
from tests.binlog.event_trials import described, mariadb_gtid
from tests.binlog.transactions import (
    begin,
    grouper,
    gtid,
    in_stream,
    rows,
    sealed,
    table_map,
    xid,
)

FILE = "f.000001"
ROW_KINDS = (
    EventType.WRITE_ROWS_EVENT,
    EventType.UPDATE_ROWS_EVENT,
    EventType.DELETE_ROWS_EVENT,
    EventType.PARTIAL_UPDATE_ROWS_EVENT,
)


def read(events: Sequence[bytes], pieces: int) -> tuple[list[StreamItem], str]:
    """Return what a grouper gives for the events, `pieces` at a time, and its error."""
    reader = grouper(checksums=True, hold_bytes=500, chunk_bytes=200)
    items: list[StreamItem] = []
    try:
        for at in range(0, len(events), pieces):
            items += reader.groups(events[at : at + pieces])
    except BinlogError as error:
        return items, str(error)
    return [*items, *reader.abandon()], f"{reader.position} {reader.next_number}"


def plain(number: int, *changes: bytes) -> list[bytes]:
    return [gtid(number), begin(), *changes, xid()]


def test_a_plain_transaction_takes_the_short_way() -> None:
    table = table_map(1, "a")
    short = PlainTransactions(1000, MergedDatabases())
    short.learn_table(table[19:], parse_table_map(table), table)
    events = in_stream([*plain(1, table, rows(1)), *plain(2, table, rows(1), rows(1))])
    first = short.read(events, 0, FILE, 4, 7, b"format")
    assert first is not None
    group, following = first
    assert following == 5
    assert group.number == 7
    assert group.databases == ("a",)
    assert group.format_description == b"format"
    assert group.end == Position(FILE, 4 + sum(map(len, events[:5])))
    second = short.read(events, following, FILE, group.end.offset, 8, b"format")
    assert second is not None
    assert second[1] == len(events)
    assert [found[4] for found in second[0].rows] == [19, 30, 30]


def test_the_state_of_rows_is_made_once_whatever_the_microseconds() -> None:
    table = table_map(1, "a")
    short = PlainTransactions(1000, MergedDatabases())
    short.learn_table(table[19:], parse_table_map(table), table)
    said = b"\1\x40" + bytes(7) + b"\5\6+05:00\7\4\0"
    changes = (table, rows(1), xid())
    events: list[bytes] = []
    for number, micro in enumerate((b"", b"\x0d\1\2\3", b"\x0d\4\5\6"), 1):
        events += gtid(number), query(b"BEGIN", database=b"a", status=said + micro), *changes
    events = in_stream(events)
    states = []
    at, offset = 0, 4
    while at < len(events):
        found = short.read(events, at, FILE, offset, 1, b"")
        assert found is not None
        group, at = found
        offset = group.end.offset
        (step,) = group.steps
        assert isinstance(step, Rows)
        states.append(step.state)
    assert states[0] == RowState(NO_UNSIGNED_SUBTRACTION, b"+05:00", 4)
    assert states[1] == states[0]
    assert states[2] is states[1]


def test_what_is_not_whole_or_not_where_it_should_be_takes_the_long_way() -> None:
    table = table_map(1, "a")
    short = PlainTransactions(1000, MergedDatabases())
    events = in_stream(plain(1, table, rows(1)))
    assert short.read(events, 0, FILE, 4, 1, b"") is None
    short.learn_table(table[19:], parse_table_map(table), table)
    assert short.read(events, 0, FILE, 4, 1, b"") is not None
    assert short.read(events, 0, FILE, 5, 1, b"") is None
    for count in range(len(events)):
        assert short.read(events[:count], 0, FILE, 4, 1, b"") is None
        assert short.read(events, count + 1, FILE, 4, 1, b"") is None
    assert PlainTransactions(10, MergedDatabases()).read(events, 0, FILE, 4, 1, b"") is None


tables = st.builds(
    table_map,
    st.integers(1, 3),
    st.sampled_from(["a", "b", "mtsd"]),
    st.just("t"),
    st.sampled_from([1, 1, 1, 3]),
)
row_events = st.builds(
    rows,
    st.integers(1, 3),
    st.binary(max_size=60),
    st.sampled_from([0, 1, 1, 1, 3, 17]),
    st.sampled_from(ROW_KINDS),
)
others = st.sampled_from([
    query(b"CREATE TABLE x (y INT)", database=b"a"),
    query(b"BEGIN", database=b"a", status=b"\x0d\1\2\3"),
    query(b"COMMIT"),
    query(b"SAVEPOINT s"),
    query(b"XBEGIN"),
    event(EventType.ROWS_QUERY_LOG_EVENT, b"\x03abc"),
    event(EventType.XID_EVENT, bytes(8), flags=MTS_ISOLATE),
    event(EventType.XID_EVENT, bytes(3)),
    event(EventType.STOP_EVENT, b""),
    event(99, b"unknown"),
])  # fmt: skip
annotation = event(EventType.MARIADB_ANNOTATE_ROWS_EVENT, b"INSERT INTO t VALUES (1)")
annotations = st.just(annotation)
changes = st.lists(st.one_of(tables, tables, *[row_events] * 5, annotations), max_size=6)
transactions = st.builds(
    lambda number, found, length: [gtid(number, length=length), begin(), *found, xid()],
    st.integers(0, 5),
    changes,
    st.sampled_from([0, 100, 10_000]),
)
streams = st.lists(
    st.one_of(transactions, transactions, transactions, st.lists(others, max_size=2)), max_size=8
)


@given(streams, st.data())
@settings(deadline=None, max_examples=150, derandomize=True)
def test_both_ways_agree(stream: list[list[bytes]], data: st.DataObject) -> None:
    # Every table is known from the start, so that the short way is taken where it can be.
    known = [table_map(number, name) for number in (1, 2, 3) for name in ("a", "b")]
    events = in_stream([*plain(9, *known, rows(1)), *(found for part in stream for found in part)])
    agree(events, data)


def agree(events: list[bytes], data: st.DataObject) -> None:
    """Check that damaged events give the same, however many of them come at once."""
    damage = data.draw(st.sampled_from(["none", "none", "bit", "sealed bit", "lost", "twice"]))
    at = data.draw(st.integers(0, len(events) - 1))
    if damage == "lost":
        del events[at]
    elif damage == "twice":
        events.insert(at, events[at])
    elif damage != "none":
        damaged = bytearray(events[at])
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        events[at] = sealed(bytes(damaged[:-4])) if damage == "sealed bit" else bytes(damaged)
    singly = read(events, 1)
    assert read(events, len(events)) == singly
    assert read(events, data.draw(st.integers(2, 9))) == singly


mariadb_heads = st.sampled_from([
    mariadb_gtid(0x0C),
    mariadb_gtid(0x0C),
    mariadb_gtid(0x0E, struct.pack("<Q", 55)),
    mariadb_gtid(0x0C, b"\x10" + bytes(4)),
    mariadb_gtid(0x0C, b"\x20"),
    mariadb_gtid(0x28),
    mariadb_gtid(0x29),
    mariadb_gtid(0x4C, struct.pack("<IBB", 1, 1, 0) + b"x"),
])  # fmt: skip
mariadb_row_events = st.builds(
    rows,
    st.integers(1, 3),
    st.binary(max_size=60),
    st.sampled_from([0, 1, 1, 1, 3]),
    st.sampled_from([*ROW_KINDS, EventType.WRITE_ROWS_EVENT_V1, EventType.DELETE_ROWS_EVENT_V1]),
)
mariadb_changes = st.lists(
    st.one_of(tables, annotations, mariadb_row_events, mariadb_row_events), max_size=6
)
mariadb_transactions = st.builds(
    lambda head, found: [head, *found, xid()], mariadb_heads, mariadb_changes
)
mariadb_streams = st.lists(
    st.one_of(
        mariadb_transactions,
        mariadb_transactions,
        st.lists(st.one_of(others, annotations), max_size=2),
    ),
    max_size=8,
)


def without_place(found: bytes) -> bytes:
    """Return an event as MariaDB 11.8 writes those inside a group."""
    if found[4] in {*MARIADB.heads, EventType.XID_EVENT, EventType.FORMAT_DESCRIPTION_EVENT}:
        return found
    return sealed(found[:13] + bytes(4) + found[17:-4])


@given(mariadb_streams, st.booleans(), st.data())
@settings(deadline=None, max_examples=150, derandomize=True)
def test_both_ways_agree_on_a_mariadb(
    stream: list[list[bytes]], placed: bool, data: st.DataObject
) -> None:
    known = [table_map(number, name) for number in (1, 2, 3) for name in ("a", "b")]
    first = [described("MariaDB", checksums=True), mariadb_gtid(0x0C), *known, rows(1), xid()]
    events = in_stream([*first, *(found for part in stream for found in part)])
    if not placed:
        events = [without_place(found) for found in events]
    agree(events, data)


def test_a_transaction_of_a_mariadb_takes_the_short_way() -> None:
    table = table_map(1, "a")
    short = PlainTransactions(1000, MergedDatabases())
    short.speak(MARIADB)
    short.learn_table(table[19:], parse_table_map(table), table)
    head = mariadb_gtid(0x0E, struct.pack("<Q", 55))
    change = [annotation, table, rows(1, kind=EventType.WRITE_ROWS_EVENT_V1)]
    events = in_stream([head, *change, *change, xid()])
    for each in (events, [without_place(found) for found in events]):
        found = short.read(each, 0, FILE, 4, 7, b"format")
        assert found is not None
        group, following = found
        assert following == len(events)
        assert isinstance(group, Group)
        assert (str(group.gtid), group.commit_id, group.databases) == ("0-1-5", 55, ("a",))
        assert [one[4] for one in group.rows] == [19, 23, 19, 23]
        assert short.read(each, 0, FILE, 5, 7, b"format") is None
