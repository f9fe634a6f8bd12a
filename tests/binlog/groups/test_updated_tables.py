"""Which tables a group updates, from its Table_map events."""

from dataclasses import replace

import pytest

from mtsd.binlog.groups.updated_tables import UpdatedTables
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import LoadFile, Rows
from tests.binlog.transactions import rows, table_map
from tests.schedule.worlds.streams import group

ROWS = Rows((table_map(1, "d", "T"), rows(1), table_map(2, "e", "u"), rows(2), rows(1)))


def of_rows(*steps: Rows | LoadFile, kind: GroupKind = GroupKind.ROWS) -> Group:
    return replace(group(1, "d", "e", kind=kind), steps=steps)


def test_each_table_once_in_order() -> None:
    fill = UpdatedTables(fold_case=False)
    for _ in range(2):
        assert fill(of_rows(ROWS, ROWS)).tables == ("d.T", "e.u")
    other = Rows((table_map(1, "d", "T2"), rows(1)))
    assert fill(of_rows(other)).tables == ("d.T2",)


def test_names_that_are_not_case_sensitive() -> None:
    assert UpdatedTables(fold_case=True)(of_rows(ROWS)).tables == ("d.t", "e.u")


@pytest.mark.parametrize("kind", [GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL])
def test_what_is_not_only_rows_does_not_tell(kind: GroupKind) -> None:
    mixed = of_rows(ROWS, LoadFile(b""), kind=kind)
    assert UpdatedTables(fold_case=False)(mixed) is mixed
    empty = of_rows(kind=GroupKind.XA_COMPLETE)
    assert UpdatedTables(fold_case=False)(empty) is empty


def test_more_tables_than_are_remembered() -> None:
    fill = UpdatedTables(fold_case=False)
    for number in range(5000):
        assert fill(of_rows(Rows((table_map(1, "d", f"t{number}"),)))).tables == (f"d.t{number}",)
    assert fill(of_rows(ROWS)).tables == ("d.T", "e.u")


def test_a_damaged_event() -> None:
    with pytest.raises(BinlogError, match="Table_map event"):
        UpdatedTables(fold_case=False)(of_rows(Rows((table_map(1)[:30],))))
