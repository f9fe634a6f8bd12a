"""Filters together with what a statement has besides its text: files, savepoints, sessions."""

import struct

from mtsd.binlog.bytes.event_type import THREAD_SPECIFIC, EventType
from mtsd.filter.filter import Filter
from mtsd.filter.rules import Rules
from mtsd.model.group import Group, GroupClosed, GroupKind
from mtsd.model.step import LoadFile, Rows, Statement
from mtsd.model.temporary_tables import NONE_OPEN, TemporaryTables
from tests.binlog.building import event, query
from tests.binlog.transactions import begin, grouper, gtid, placed, rows, table_map, xid

ONLY_A = Filter(Rules(do_db=("a",)), position_schema="mtsd")
TWO = Filter(Rules(do_db=("a",)), others={"two": Filter(Rules(do_db=("b",)))})
RENAMED = Filter(Rules(rewrite_db=(("a", "x"),)))
THREAD = (1, 7)
LOAD = b"LOAD DATA INFILE 'f' INTO TABLE t"


def group(replicated: Filter, *events: bytes) -> Group:
    reader = grouper(replicated=replicated, temporary=NONE_OPEN)
    (found,) = reader.groups(placed([gtid(1), *events]))
    assert isinstance(found, Group)
    return found


def load(database: bytes, file: int = 3) -> list[bytes]:
    """Return the events of a LOAD DATA into table t of a database."""
    number = struct.pack("<I", file)
    fixed = struct.pack("<IIBHH", 7, 0, len(database), 0, 0)
    added = number + struct.pack("<IIB", 10, 20, 0)
    return [
        event(EventType.BEGIN_LOAD_QUERY_EVENT, number + b"1\n"),
        event(EventType.APPEND_BLOCK_EVENT, number + b"2\n"),
        event(EventType.EXECUTE_LOAD_QUERY_EVENT, fixed + added + database + b"\0" + LOAD),
    ]


def in_database(statement: bytes, database: bytes) -> bytes:
    return query(statement, database=database)


def of_session(statement: bytes, database: bytes) -> bytes:
    return query(statement, database=database, flags=THREAD_SPECIFIC)


def test_the_file_of_a_load_that_is_left_out_is_left_out() -> None:
    found = group(ONLY_A, begin(), *load(b"b"), xid())
    assert (found.kind, found.steps) == (GroupKind.EMPTY, ())
    found = group(ONLY_A, begin(), *load(b"b", 3), *load(b"a", 4), xid())
    assert found.kind is GroupKind.STATEMENTS
    assert [type(step) for step in found.steps] == [LoadFile, LoadFile, Statement]


def test_without_its_load_a_transaction_is_one_of_rows() -> None:
    """Anything else could not keep its GTID, and would be in doubt after a crash."""
    a = table_map(1, "a")
    for events in ((a, rows(1), *load(b"b")), (*load(b"b"), a, rows(1))):
        found = group(ONLY_A, begin(), *events, xid())
        assert found.kind is GroupKind.ROWS
        assert [type(step) for step in found.steps] == [Rows]
        assert found.row_flags == 0


def test_a_file_without_its_statement_is_nothing() -> None:
    removed = event(EventType.DELETE_FILE_EVENT, struct.pack("<I", 3))
    found = group(ONLY_A, begin(), *load(b"a")[:2], removed, xid())
    assert (found.kind, found.steps) == (GroupKind.EMPTY, ())
    found = group(
        ONLY_A, begin(), *load(b"a")[:2], removed, table_map(1, "a"), rows(1), xid()
    )  # fmt: skip
    assert found.kind is GroupKind.ROWS


SAVEPOINTS = (in_database(b"SAVEPOINT s", b"b"), in_database(b"ROLLBACK TO s", b"b"))


def test_a_database_that_is_replaced_is_judged_by_its_name() -> None:
    """MariaDB drops it, with all its tables."""
    for statement in (b"CREATE OR REPLACE DATABASE b", b"CREATE OR /* x */ REPLACE SCHEMA b"):
        for rules in (Rules(do_db=("a",)), Rules(ignore_db=("b",))):
            found = group(Filter(rules), in_database(statement, b"a"))
            assert (found.kind, found.steps) == (GroupKind.EMPTY, ())
    found = group(ONLY_A, in_database(b"CREATE OR REPLACE DATABASE a", b"a"))
    assert found.kind is GroupKind.DDL


def test_what_is_left_out_may_name_the_position_schema() -> None:
    for statement in (b"INSERT INTO b.t VALUES (1)", b"DROP TABLE mtsd.t, b.t"):
        database = b"mtsd" if statement.startswith(b"INSERT") else b"b"
        found = group(ONLY_A, in_database(statement, database))
        assert (found.kind, found.unsupported) == (GroupKind.EMPTY, "")


def test_savepoints_of_what_is_left_out_are_nothing() -> None:
    set_, undone = SAVEPOINTS
    change = in_database(b"INSERT INTO t VALUES (1)", b"b")
    for replicated in (ONLY_A, TWO):
        found = group(replicated, begin(), change, set_, change, undone, xid())
        assert (found.kind, found.steps, found.unsupported) == (GroupKind.EMPTY, (), "")
    maps = table_map(1, "a"), table_map(2, "b"), rows(2)
    for replicated in (ONLY_A, TWO):
        found = group(replicated, begin(), set_, *maps, undone, xid())
        assert (found.kind, found.steps, found.unsupported) == (GroupKind.EMPTY, (), "")
    kept = in_database(b"INSERT INTO t VALUES (1)", b"a")
    found = group(ONLY_A, begin(), kept, set_, change, undone, xid())
    assert len(found.steps) == 3
    assert "channel 'two'" in group(TWO, begin(), kept, set_, change, undone, xid()).unsupported


def test_a_large_file_of_another_channel_is_no_change() -> None:
    reader = grouper(replicated=TWO, hold_bytes=30, chunk_bytes=20)
    *_, closed = reader.groups(placed([gtid(1), begin(), *load(b"b"), *SAVEPOINTS, xid()]))
    assert isinstance(closed, GroupClosed)
    assert not closed.group.unsupported
    reader = grouper(replicated=TWO, hold_bytes=30, chunk_bytes=20)
    *_, closed = reader.groups(
        placed([gtid(1), begin(), *load(b"a"), *load(b"b"), *SAVEPOINTS, xid()])
    )
    assert isinstance(closed, GroupClosed)
    assert "channel 'two'" in closed.group.unsupported


def test_a_rollback_of_what_was_passed_on_is_passed_on() -> None:
    change = in_database(b"INSERT INTO t VALUES (1)", b"a")
    reader = grouper(hold_bytes=200, chunk_bytes=20)
    items = list(
        reader.groups(placed([gtid(1), begin(), change, change, change, *SAVEPOINTS, xid()]))
    )
    steps = [step for item in items[1:-1] for step in item.steps]  # type: ignore[union-attr]
    assert len(steps) == 5


def test_what_a_statement_needs_goes_with_it() -> None:
    intvar = event(EventType.INTVAR_EVENT, b"\2" + bytes(8))
    found = group(
        ONLY_A,
        begin(),
        intvar,
        in_database(b"INSERT INTO t VALUES (NULL)", b"b"),
        in_database(b"INSERT INTO t VALUES (NULL)", b"a"),
        xid(),
    )
    (step,) = found.steps
    assert isinstance(step, Statement)
    assert step.satellites == ()


def test_temporary_tables_are_known_by_their_names_on_the_target() -> None:
    """That is where they are dropped before a group is tried again."""
    reader = grouper(replicated=RENAMED, temporary=NONE_OPEN)
    created, dropped = reader.groups(
        placed([
            gtid(1), of_session(b"CREATE TEMPORARY TABLE t (i INT)", b"a"),
            gtid(2), of_session(b"DROP TEMPORARY TABLE t", b"a"),
        ])
    )  # fmt: skip
    assert isinstance(created, Group)
    assert isinstance(dropped, Group)
    assert created.uses_temporary is not None
    assert created.uses_temporary.left == {("x", "t")}
    assert dropped.uses_temporary is not None
    assert dropped.uses_temporary.before == {("x", "t")}
    assert not dropped.uses_temporary.left


def sessions(replicated: Filter, *events: bytes) -> list[Group]:
    """Return the groups of events that are each a group."""
    reader = grouper(replicated=replicated, temporary=NONE_OPEN)
    items = reader.groups(placed([each for one in events for each in (gtid(1), one)]))
    return [item for item in items if isinstance(item, Group)]


def test_a_temporary_table_that_is_left_out_is_not_there() -> None:
    """A server's own replica fails, or finds a base table of that name instead."""
    created, harmless, using, other, dropped, again = sessions(
        ONLY_A,
        of_session(b"CREATE TEMPORARY TABLE a.w (i INT)", b"b"),
        of_session(b"DELETE x FROM t x JOIN t y ON x.i = y.i", b"a"),
        of_session(b"INSERT INTO t SELECT * FROM w", b"a"),
        of_session(b"CREATE TEMPORARY TABLE v (i INT)", b"a"),
        of_session(b"DROP TEMPORARY TABLE a.w", b"b"),
        of_session(b"INSERT INTO t SELECT * FROM w", b"a"),
    )
    assert (created.kind, created.uses_temporary) == (GroupKind.EMPTY, None)
    assert created.temporary is not None
    assert TemporaryTables.parse(created.temporary.text()) == created.temporary
    assert created.temporary.tables == set()
    assert not harmless.unsupported
    assert harmless.uses_temporary is None
    assert "the filter leaves out the creation of a.w" in using.unsupported
    assert other.uses_temporary is not None
    assert other.uses_temporary.left == {("a", "v")}
    # Nothing is there to be dropped.
    assert dropped.kind is GroupKind.EMPTY
    assert again.uses_temporary is not None
    assert not again.unsupported


def test_a_temporary_table_that_is_left_out_may_be_renamed() -> None:
    *_, using = sessions(
        Filter(Rules(ignore_table=("a.w",))),
        of_session(b"CREATE TEMPORARY TABLE w (i INT)", b"a"),
        of_session(b"ALTER TABLE w RENAME v", b"a"),
        of_session(b"INSERT INTO t SELECT * FROM v", b"a"),
    )
    assert "leaves out the creation of a.v" in using.unsupported
