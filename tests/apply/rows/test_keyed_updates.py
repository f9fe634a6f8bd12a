"""Which updates of one event become one statement, and which keep their order."""

from dataclasses import replace
from typing import Final

import pytest

from mtsd.apply.rows.row_sql import RowSql
from mtsd.apply.tables.table_layout import Comparison, LayoutColumn, TableLayout
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType

Row = tuple[int, int, int]
_NUMBER: Final = ColumnFormat(ColumnType.LONG, 0, 4, "a column")


def column(name: bytes) -> LayoutColumn:
    return LayoutColumn(
        name,
        lambda raw: b"%d" % int.from_bytes(raw, "little"),
        written=True,
        compares=Comparison(name + b"="),
        in_rows=True,
        in_cases=True,
    )


LAYOUT: Final = TableLayout(
    b"t", "t", (_NUMBER,) * 3, (column(b"k"), column(b"u"), column(b"v")), ((0,),), others=(1,)
)


def updates(*rows: Row) -> bytes:
    body = (5).to_bytes(6, "little") + bytes(2) + b"\x02\0\x03" + b"\x07\x07"
    body += b"".join(b"\0" + b"".join(value.to_bytes(4, "little") for value in row) for row in rows)
    head = bytes(4) + bytes((EventType.UPDATE_ROWS_EVENT,)) + bytes(8)
    return head + bytes(HEADER_SIZE - len(head)) + body


def statements(event: bytes, layout: TableLayout = LAYOUT, limit: int = 1 << 16) -> list[bytes]:
    making = RowSql(limit, joins=True)
    found = [*making.statements(event, layout), *making.rest()]
    return [each.sql for each in found]


FIRST: Final = ((1, 0, 0), (1, 0, 5)), ((2, 0, 0), (2, 0, 6))
JOINED: Final = b"UPDATE t SET v=CASE WHEN k=1 THEN 5 WHEN k=2 THEN 6 END WHERE (k) IN ((1),(2))"


def test_a_row_that_is_changed_again_has_a_later_statement() -> None:
    event = updates(*FIRST[0], *FIRST[1], (1, 0, 5), (1, 0, 7))
    assert statements(event) == [JOINED, b"UPDATE t SET v=7 WHERE k=1"]


@pytest.mark.parametrize(
    ("row", "alone"),
    [
        (((3, 0, 0), (3, 9, 0)), b"UPDATE t SET u=9 WHERE k=3"),
        (((3, 0, 0), (4, 0, 1)), b"UPDATE t SET k=4,v=1 WHERE k=3"),
        (((3, 0, 0), (3, 0, 0)), b"UPDATE t SET k=k WHERE k=3"),
    ],
)
def test_a_row_that_changes_a_key_comes_after_those_before_it(
    row: tuple[Row, Row], alone: bytes
) -> None:
    event = updates(*FIRST[0], *FIRST[1], *row, (5, 0, 0), (5, 0, 1))
    assert statements(event) == [JOINED, alone, b"UPDATE t SET v=1 WHERE k=5"]


def test_what_all_change_to_the_same_value_needs_no_case() -> None:
    event = updates((1, 0, 0), (1, 0, 5), (2, 0, 1), (2, 0, 5))
    assert statements(event) == [b"UPDATE t SET v=5 WHERE (k) IN ((1),(2))"]


def test_rows_with_keys_of_which_not_all_is_known_are_apart() -> None:
    event = updates(*FIRST[0], *FIRST[1])
    apart = [b"UPDATE t SET v=5 WHERE k=1", b"UPDATE t SET v=6 WHERE k=2"]
    generated = replace(LAYOUT.columns[1], written=False)
    for layout in (
        replace(LAYOUT, others=None),
        replace(LAYOUT, cascades=True),
        replace(LAYOUT, columns=(LAYOUT.columns[0], generated, LAYOUT.columns[2])),
    ):
        assert statements(event, layout) == apart
    assert statements(event, limit=1) == apart
    # Its columns depend on all of them, in a state of the session.
    assert statements(event, replace(LAYOUT, computed=True)) == [
        b"UPDATE t SET k=1,u=0,v=5 WHERE k=1",
        b"UPDATE t SET k=2,u=0,v=6 WHERE k=2",
    ]


def test_as_many_as_a_case_is_worth() -> None:
    rows = [row for key in range(250) for row in ((key, 0, 0), (key, 0, key + 1))]
    found = statements(updates(*rows))
    assert [each.count(b"WHEN") for each in found] == [100, 100, 50]
