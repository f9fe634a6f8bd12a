"""Where changes of several databases of the source go to one, its order of them counts for nothing.

That is so for transactions of rows, read on the fast path and on the general one, for statements,
and over several connections.
"""

import struct
from collections.abc import Iterable
from itertools import combinations, product

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.dialect import MARIADB
from mtsd.binlog.events.mariadb_gtid_event import parse_mariadb_gtid
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.open_group import OpenGroup
from mtsd.filter.filter import Filter
from mtsd.filter.rules import Rules
from mtsd.model.group import Group, GroupKind, StreamItem
from mtsd.model.position import Position
from mtsd.model.temporary_tables import NOT_KNOWN
from mtsd.schedule.batches.side_by_side import are_independent
from tests.binlog.building import event, query
from tests.binlog.transactions import (
    UNBOUNDED,
    begin,
    grouper,
    gtid,
    in_stream,
    placed,
    rows,
    table_map,
    xid,
)

INTO_X = Filter(Rules(rewrite_db=(("a", "x"), ("b", "x"))))
START = Position("f.000001", 4)


def transactions(*databases: str) -> list[bytes]:
    """Return transactions of rows, one after another, that are independent on the source."""
    events: list[bytes] = []
    for number, name in enumerate(databases, 2):
        head = gtid(number, last_committed=1, sequence_number=number)
        events += [head, begin(), table_map(ord(name), name), rows(ord(name)), xid()]
    return events


def parents(items: Iterable[StreamItem]) -> list[int]:
    return [item.last_committed for item in items if isinstance(item, Group)]


@pytest.mark.parametrize("checksums", [False, True])
def test_rows(checksums: bool) -> None:
    events = transactions("a", "c", "a", "b", "c", "a", "x", "b")
    reader = grouper(replicated=INTO_X, checksums=checksums)
    found = reader.groups(in_stream(events) if checksums else placed(events))
    # Until there is a second one, all comes from one database of the source.
    assert parents(found) == [1, 1, 1, 4, 1, 6, 7, 8]


def test_rows_of_two_of_them_are_never_applied_side_by_side() -> None:
    for databases in product("abcx", repeat=4):
        reader = grouper(replicated=INTO_X, checksums=True)
        found = [*reader.groups(in_stream(transactions(*databases)))]
        groups = tuple(each for each in found if isinstance(each, Group))
        for first, middle, end in combinations(range(5), 3):
            into_x = {*databases[first:middle]} - {"c"}, {*databases[middle:end]} - {"c"}
            if are_independent(groups[first:middle], groups[middle:end]):
                assert len(into_x[0] | into_x[1]) < 2 or not all(into_x)


@pytest.mark.parametrize(("fold_case", "found"), [(False, [1, 1, 1, 4]), (True, [1, 2, 3, 4])])
def test_names_that_the_target_does_not_tell_apart(fold_case: bool, found: list[int]) -> None:
    rules = Rules(rewrite_db=(("a", "x"), ("b", "X")))
    replicated = Filter(rules, fold_case=fold_case)
    reader = grouper(replicated=replicated, checksums=True)
    assert parents(reader.groups(in_stream(transactions("a", "b", "a", "x")))) == found


def test_a_database_that_is_only_renamed_keeps_its_clock() -> None:
    reader = grouper(replicated=INTO_X, checksums=True)
    assert parents(reader.groups(in_stream(transactions("a", "a", "c", "a")))) == [1] * 4


def test_another_connection_goes_on_with_what_is_known() -> None:
    merged = MergedDatabases()
    first = grouper(replicated=INTO_X, merged=merged)
    second = grouper(replicated=INTO_X, merged=merged)
    assert parents(first.groups(placed(transactions("a")))) == [1]
    assert parents(second.groups(placed(transactions("c", "b")))) == [1, 2]


def test_statements() -> None:
    events: list[bytes] = []
    for number, name in enumerate((b"a", b"c", b"b", b"a"), 2):
        head = gtid(number, last_committed=1, sequence_number=number)
        change = query(b"UPDATE t SET i = 1", database=name, status=b"\x0c\x01" + name + b"\0")
        events += [head, begin(), change, xid()]
    assert parents(grouper(replicated=INTO_X).groups(placed(events))) == [1, 1, 3, 4]


@pytest.mark.parametrize(("database", "commit_id"), [("x", 0), ("c", 55)])
def test_group_commits_of_mariadb(database: str, commit_id: int) -> None:
    merged = MergedDatabases()
    for name in ("a", "b"):
        merged.learn(name, "x", "x")
    body = struct.pack("<QIBQ", 100, 7, 0x0E, 55)
    head = event(EventType.MARIADB_GTID_EVENT, body)
    group = OpenGroup(
        head,
        1,
        begin=START,
        hold_bytes=UNBOUNDED,
        chunk_bytes=UNBOUNDED,
        replicated=INTO_X,
        description=b"",
        temporary=NOT_KNOWN,
        fold_case=False,
        dialect=MARIADB,
        merged=merged,
        referred_in=None,
    )
    group.head(parse_mariadb_gtid(head))
    group.table_map(table_map(1, database), parse_table_map(table_map(1, database)))
    group.rows(rows(1))
    (found,) = group.end(GroupKind.ROWS, xid(), START)
    assert isinstance(found, Group)
    assert found.commit_id == commit_id
