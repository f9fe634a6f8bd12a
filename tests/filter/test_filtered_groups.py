"""What is left of a group whose rows or statements are not all replicated."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.groups.rewrite import statements_of, with_database
from mtsd.filter.filter import Filter
from mtsd.filter.rules import Rules
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupKind, StreamItem
from mtsd.model.step import Statement
from tests.binlog.building import event, query
from tests.binlog.transactions import begin, grouper, gtid, in_stream, placed, rows, table_map, xid

STMT_END = 1
ONLY_A = Filter(Rules(do_db=("a",)), position_schema="mtsd")


def grouped(replicated: Filter, *events: bytes) -> list[StreamItem]:
    return list(grouper(replicated=replicated).groups(placed(events)))


def group(replicated: Filter, *events: bytes) -> Group:
    (found,) = grouped(replicated, gtid(1), *events)
    assert isinstance(found, Group)
    return found


def test_rows_of_other_databases_are_left_out() -> None:
    a, b = table_map(1, "a"), table_map(2, "b")
    found = group(ONLY_A, begin(), a, b, rows(1, flags=0), rows(2), b, rows(2), xid())
    assert found.kind is GroupKind.ROWS
    assert found.databases == ("a",)
    # The event that ended the statement is gone, so the last one that is left ends it.
    assert [each[4] for each in found.rows] == [19, 30]
    assert found.rows[1][25] == STMT_END


def test_each_statement_that_is_left_keeps_its_own_flags() -> None:
    a, b = table_map(1, "a"), table_map(2, "b")
    found = group(
        ONLY_A, begin(), a, b, rows(1, flags=0), rows(2, flags=1), a, rows(1, flags=3), xid()
    )
    assert found.row_flags is None
    assert len(list(statements_of(found.rows, 10_000, merge=False))) == 2


def test_a_group_of_which_nothing_is_left_is_empty_and_keeps_its_number_and_gtid() -> None:
    first, second = grouped(
        ONLY_A, gtid(1), begin(), table_map(2, "b"), rows(2), xid(),
        gtid(2), begin(), table_map(1, "a"), rows(1), xid(),
    )  # fmt: skip
    assert isinstance(first, Group)
    assert isinstance(second, Group)
    assert (first.kind, first.number, first.databases, first.steps) == (GroupKind.EMPTY, 1, (), ())
    assert str(first.gtid).endswith(":1")
    assert (second.kind, second.number) == (GroupKind.ROWS, 2)


def test_a_table_without_rows_is_nothing() -> None:
    found = group(ONLY_A, begin(), table_map(1, "a"), table_map(2, "b"), rows(2), xid())
    assert found.kind is GroupKind.EMPTY


def test_a_table_id_may_be_used_again() -> None:
    found = group(ONLY_A, begin(), table_map(1, "b"), rows(1), table_map(1, "a"), rows(1), xid())
    assert [each[4] for each in found.rows] == [19, 30]


def test_rows_have_the_targets_name() -> None:
    replicated = Filter(Rules(rewrite_db=(("a", "other"), ("b", "x")), do_table=("other.t",)))
    found = group(
        replicated, begin(), table_map(1, "a"), rows(1), table_map(2, "b"), rows(2), xid()
    )
    assert found.databases == ("other",)
    assert [each[4] for each in found.rows] == [19, 30]
    assert parse_table_map(found.rows[0]).database == "other"


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_a_table_map_with_another_database(name: str, other: str) -> None:
    if "\0" in name + other:
        return
    try:
        before = table_map(7, name, "tbl", flags=3)
        changed = with_database(before, other)
    except (BinlogError, UnicodeEncodeError):
        return
    former, found = parse_table_map(before), parse_table_map(changed)
    assert found.database == other
    assert with_database(changed, name) == before
    assert (found.table, found.flags, found.table_id) == (former.table, former.flags, 7)
    size = int.from_bytes(changed[9:13], "little") - int.from_bytes(before[9:13], "little")
    assert size == len(changed) - len(before)


def test_a_name_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BinlogError, match="does not fit"):
        with_database(table_map(1, "a"), "x" * 256)


def test_the_default_database_decides_about_statements() -> None:
    create = query(b"CREATE TABLE b.t (i INT)", database=b"a")
    assert group(ONLY_A, create).kind is GroupKind.DDL
    create = query(b"CREATE TABLE a.t (i INT)", database=b"b")
    assert group(ONLY_A, create).kind is GroupKind.EMPTY


def test_a_statement_runs_in_the_targets_database() -> None:
    replicated = Filter(Rules(rewrite_db=(("a", "x"),)))
    found = group(
        replicated, query(b"CREATE TABLE t (i INT)", database=b"a", status=b"\x0c\x01a\0")
    )
    (step,) = found.steps
    assert isinstance(step, Statement)
    assert step.query.database == "x"
    # What it names may be either.
    assert set(found.databases) == {"a", "x"}


def test_a_statement_in_a_transaction_is_left_out_by_its_table() -> None:
    replicated = Filter(Rules(ignore_table=("a.t",)))
    found = group(
        replicated,
        begin(),
        query(b"INSERT INTO t VALUES (1)", database=b"a"),
        query(b"INSERT INTO u VALUES (1)", database=b"a"),
        xid(),
    )
    assert found.kind is GroupKind.STATEMENTS
    (step,) = found.steps
    assert isinstance(step, Statement)
    assert b" u " in step.query.statement
    found = group(replicated, begin(), query(b"INSERT INTO t VALUES (1)", database=b"a"), xid())
    assert found.kind is GroupKind.EMPTY


def test_what_the_text_does_not_tell_stops_the_replica() -> None:
    replicated = Filter(Rules(ignore_table=("a.t",)))
    found = group(replicated, query(b"DROP TRIGGER g", database=b"a"))
    assert "its text does not tell" in found.unsupported
    assert "DROP TRIGGER g" in found.unsupported
    assert not group(replicated, query(b"DROP TRIGGER g", database=b"b")).unsupported


def test_a_created_table_that_is_left_out_takes_its_rows_along() -> None:
    events = (
        begin(),
        query(b"CREATE TABLE `t` (`i` int) START TRANSACTION", database=b"b"),
        table_map(2, "b"),
        rows(2),
        xid(),
    )
    assert group(ONLY_A, *events).kind is GroupKind.EMPTY


XA = (
    query(b"XA START X'61',X'',1"),
    table_map(1, "a"),
    rows(1),
    query(b"XA END X'61',X'',1"),
    event(EventType.XA_PREPARE_LOG_EVENT, b"\0\1\0\0\0\1\0\0\0\0\0\0\0a"),
)


def test_rows_of_the_servers_own_tables_are_refused_each_time() -> None:
    refusing = Filter(Rules(ignore_table=("mysql.func",)), refuse_system_rows=True)
    user, proc = table_map(1, "mysql", "global_priv"), table_map(2, "MySQL", "proc")
    left_out = table_map(3, "mysql", "func")
    mixed = begin(), table_map(4, "a"), proc, rows(4, flags=0), rows(2), xid()
    groups = grouped(
        refusing,
        *(each for number in (1, 2) for each in (gtid(number), begin(), user, rows(1), xid())),
        *(gtid(3), *mixed),
        *(each for number in (4, 5) for each in (gtid(number), begin(), left_out, rows(3), xid())),
    )
    told = [found.unsupported.partition(",")[0] for found in groups if isinstance(found, Group)]
    assert told == ["rows of mysql.global_priv"] * 2 + ["rows of MySQL.proc", "", ""]
    assert group(Filter(), begin(), user, rows(1), xid()).unsupported == ""


def test_xa_is_refused_where_there_are_rules() -> None:
    assert "3898" in group(ONLY_A, *XA).unsupported
    assert "3898" in group(ONLY_A, query(b"XA COMMIT X'61',X'',1")).unsupported
    assert "3898" not in group(Filter(position_schema="mtsd"), *XA).unsupported


TWO = Filter(Rules(do_db=("a",)), others={"two": Filter(Rules(do_db=("b",)))})


def test_a_group_of_two_channels_is_refused() -> None:
    a, b, c = table_map(1, "a"), table_map(2, "b"), table_map(3, "c")
    for events in (
        (begin(), a, rows(1), b, rows(2), xid()),
        (begin(), b, rows(2), a, rows(1), xid()),
        (begin(), query(b"INSERT INTO b.t VALUES (1)", database=b"b"), a, rows(1), xid()),
        (begin(), a, rows(1), query(b"INSERT INTO b.t VALUES (1)", database=b"b"), xid()),
    ):
        assert "channel 'two'" in group(TWO, *events).unsupported
    for events in (
        (begin(), a, rows(1), c, rows(3), xid()),
        (begin(), b, rows(2), c, rows(3), xid()),
        (begin(), b, rows(2), query(b"INSERT INTO b.t VALUES (1)", database=b"b"), xid()),
    ):
        assert not group(TWO, *events).unsupported


def test_a_statement_that_changes_another_channels_database_is_refused() -> None:
    both = b"\x0c\x02a\0b\0"
    of_two = query(b"UPDATE a.t, b.t SET a.t.i = 1, b.t.i = 1", database=b"a", status=both)
    assert "channel 'two'" in group(TWO, begin(), of_two, xid()).unsupported
    assert (
        "channel 'two'"
        in group(TWO, query(b"DROP TABLE t, b.t", database=b"a", status=both)).unsupported
    )


def test_what_a_statement_names_counts_if_the_source_does_not_list_its_databases() -> None:
    """As in MariaDB, and where there are too many."""
    for status in (b"", b"\x0c\xfe"):
        other = query(b"UPDATE b.t SET i = 1", database=b"a", status=status)
        assert "channel 'two'" in group(TWO, begin(), other, xid()).unsupported
        own = query(b"UPDATE a.t, c.t SET a.t.i = 1", database=b"a", status=status)
        assert not group(TWO, begin(), own, xid()).unsupported


def test_a_statement_that_both_channels_would_apply_is_refused() -> None:
    rules = Rules(wild_do_table=("a.%",))
    found = Filter(rules, others={"two": Filter(Rules(wild_do_table=("b.%",)))})
    function = query(b"CREATE FUNCTION c.f () RETURNS INT RETURN 1", database=b"c")
    assert "channel 'two'" in group(found, function).unsupported


tables = st.builds(
    table_map,
    st.integers(1, 4),
    st.sampled_from(["a", "b", "c", "mtsd"]),
    st.just("t"),
    st.sampled_from([1, 1, 1, 3]),
)
row_events = st.builds(
    rows, st.integers(1, 4), st.binary(max_size=30), st.sampled_from([0, 1, 1, 1, 3])
)
transactions = st.builds(
    lambda number, found: [gtid(number, sequence_number=number + 1), begin(), *found, xid()],
    st.integers(1, 5),
    st.lists(st.one_of(tables, row_events, row_events), max_size=6),
)


MERGED = Filter(Rules(rewrite_db=(("a", "b"),), do_db=("b",)))

REFUSING = Filter(Rules(rewrite_db=(("c", "mysql"),)), refuse_system_rows=True)


@pytest.mark.parametrize(
    "replicated", [TWO, MERGED, REFUSING], ids=["two channels", "merged", "refusing"]
)
@given(stream=st.lists(transactions, min_size=1, max_size=6), pieces=st.integers(2, 9))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_the_fast_path_agrees(
    replicated: Filter, stream: Sequence[Sequence[bytes]], pieces: int
) -> None:
    known = [table_map(number, name) for number in range(1, 5) for name in ("a", "b", "c")]
    first = [gtid(9), begin(), *known, rows(1), xid()]
    events = in_stream([*first, *(found for part in stream for found in part)])

    def read(size: int) -> list[StreamItem]:
        reader = grouper(checksums=True, replicated=replicated)
        items: list[StreamItem] = []
        for at in range(0, len(events), size):
            items += reader.groups(events[at : at + size])
        return items

    singly = read(1)
    assert read(len(events)) == singly
    assert read(pieces) == singly
