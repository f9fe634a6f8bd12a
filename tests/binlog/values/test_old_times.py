"""TIME, DATETIME and TIMESTAMP in the format of MariaDB 5.3, whose sizes are not in the log."""

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.values.column_format import column_formats
from mtsd.binlog.values.row_image import RowDecoder
from mtsd.catalog.definition import loaded_definition
from mtsd.model.errors import NotSupportedError
from tests.binlog.building import event

INT, TIMESTAMP, TIME, DATETIME = 3, 7, 11, 12
# id INT, a TIME, d DATETIME, g TIMESTAMP NULL, z INT, of a MariaDB 10.11 with
# mysql56_temporal_format = OFF.
ROW = bytes.fromhex("0007000000db270045ece7335f120000a55d0d5e09000000")
COLUMNS = ("id", "int(11)"), ("a", "time"), ("d", "datetime"), ("g", "timestamp"), ("z", "int(11)")


def table_map(types: tuple[int, ...], *, mariadb: bool = True) -> TableMap:
    head = bytes.fromhex("1200000000000100016400017400") + bytes((len(types),))
    body = head + bytes(types) + b"\0" + b"\xff"
    return parse_table_map(event(EventType.TABLE_MAP_EVENT, body), mariadb=mariadb)


@pytest.mark.parametrize(
    ("kind", "name"), [(TIME, "TIME"), (DATETIME, "DATETIME"), (TIMESTAMP, "TIMESTAMP")]
)
def test_rows_are_not_guessed(kind: int, name: str) -> None:
    with pytest.raises(NotSupportedError, match=f"column 2 of `d`.`t` is a {name} in the format"):
        RowDecoder(table_map((INT, kind)))
    declared = loaded_definition("d", "t", [("id", "int", None), ("b", f"{name}(1)", None)])
    with pytest.raises(NotSupportedError, match=f"column `b` of `d`.`t` is a {name} in the format"):
        RowDecoder(table_map((INT, kind)), declared.declared(table_map((INT, kind))))
    assert len(column_formats(table_map((INT, kind)), for_rows=False)) == 2


@pytest.mark.parametrize("mariadb", [True, False])
def test_without_a_fraction(mariadb: bool) -> None:
    """A definition tells that there is none; on MySQL this format has never had one."""
    table = table_map((INT, TIME, DATETIME, TIMESTAMP, INT), mariadb=mariadb)
    definition = loaded_definition("d", "t", [(*column, None) for column in COLUMNS])
    head = bytes.fromhex("120000000000010005ff")
    (change,) = RowDecoder(table, definition.declared(table)).changes(
        event(EventType.WRITE_ROWS_EVENT_V1, head + ROW)
    )
    assert change.after is not None
    assert change.after.values == (
        7, "01:02:03", "2020-01-02 03:04:05", "2020-01-02 03:04:05", 9,
    )  # fmt: skip
