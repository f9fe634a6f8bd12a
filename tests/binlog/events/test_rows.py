import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events import rows
from mtsd.binlog.events.rows import RowsHeader, parse_rows_header
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.recording import Recording


def test_real_ones_are_of_the_table_map_before_them(recording: Recording) -> None:
    tables = {}
    seen = set()
    for raw in recording.events:
        if raw[4] == EventType.TABLE_MAP_EVENT:
            table = parse_table_map(raw)
            tables[table.table_id] = table
        elif raw[4] in rows.ROW_EVENTS:
            seen.add(EventType(raw[4]))
            found = parse_rows_header(raw)
            assert found.width == len(tables[found.table_id].column_types)
            assert found.extra == b""
            bitmaps = found.rows_at - found.bitmaps_at
            assert bitmaps == (found.width + 7) // 8 * (2 if raw[4] in rows.UPDATES else 1)
            assert found.rows_at < len(raw)
    assert seen == rows.VERSION_2


def test_flags_of_a_session_without_checks(recording: Recording) -> None:
    flags = {parse_rows_header(raw).flags for raw in recording.of(*rows.ROW_EVENTS)}
    unchecked = rows.NO_FOREIGN_KEY_CHECKS | rows.RELAXED_UNIQUE_CHECKS
    assert any(found & unchecked == unchecked for found in flags)
    assert any(found & unchecked == 0 for found in flags)
    assert any(found & rows.STMT_END for found in flags)


def test_a_cascades_rows_have_flags_of_their_own(recording: Recording) -> None:
    deleted = [parse_rows_header(raw) for raw in recording.of(EventType.DELETE_ROWS_EVENT)]
    assert any(found.flags & rows.USE_SQL_FOREIGN_KEY for found in deleted)


def test_version_1_has_no_extra_data() -> None:
    raw = event(EventType.UPDATE_ROWS_EVENT_V1, bytes.fromhex("6a0000000001 0100 02 ff ff 00"))
    assert parse_rows_header(raw) == RowsHeader(0x01000000006A, 1, 2, b"", 28, 30)


def test_version_2_with_extra_data_and_many_columns() -> None:
    body = bytes.fromhex("6a0000000000 0100 0500 000102 fc2c01") + bytes(38)
    raw = event(EventType.WRITE_ROWS_EVENT, body)
    assert parse_rows_header(raw) == RowsHeader(106, 1, 300, b"\0\1\2", 35, 73)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (EventType.WRITE_ROWS_EVENT, "6a0000000000 0100 02", "cut off after"),
        (EventType.WRITE_ROWS_EVENT, "6a0000000000 0100 0200", "cut off after"),
        (EventType.WRITE_ROWS_EVENT, "6a0000000000 0100 0100 02ff", "extra data of 1 bytes"),
        (EventType.WRITE_ROWS_EVENT, "6a0000000000 0100 ff00 02ff", "cut off after"),
        (EventType.WRITE_ROWS_EVENT, "6a0000000000 0100 0200 09ff", "9 columns do not fit"),
        (EventType.UPDATE_ROWS_EVENT, "6a0000000000 0100 0200 02ff", "2 columns do not fit"),
        (EventType.DELETE_ROWS_EVENT, "6a0000000000 0100 0200 feffffffffffffffff", "do not fit"),
        (EventType.DELETE_ROWS_EVENT, "6a0000000000 0100 0200 ff", "does not start a length"),
        (EventType.PRE_GA_WRITE_ROWS_EVENT, "6a0000000000 0100 02ff", "is not a row event"),
    ],
)
def test_what_is_refused(kind: int, body: str, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_rows_header(event(kind, bytes.fromhex(body)))


def test_less_than_a_header() -> None:
    with pytest.raises(BinlogError, match="cut off after 3 bytes"):
        parse_rows_header(b"abc")
