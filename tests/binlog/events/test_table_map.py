import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.recording import Recording

BODY = bytes.fromhex("010000000002 0100 0164 00 0174 00 02 030f 02 7800 02 010100")


def test_real_ones(recording: Recording) -> None:
    maps = {(found.database, found.table): found for found in recording.decoded(TableMap)}
    assert {("d1", "types"), ("d1", "keyed"), ("d1", "wide"), ("d2", "child")} <= set(maps)
    assert len(maps["d1", "wide"].column_types) == 300
    assert len(maps["d1", "wide"].null_bitmap) == 38


def test_a_table_that_another_databases_foreign_key_refers_to(recording: Recording) -> None:
    referred = {
        (found.database, found.table)
        for found in recording.decoded(TableMap)
        if found.referred_by_foreign_key_of_other_database
    }
    # The child has the flag where a cascade of its parent changes it.
    assert referred == {("d1", "parent"), ("d2", "child")}


def test_fields() -> None:
    assert parse_table_map(event(EventType.TABLE_MAP_EVENT, BODY)) == TableMap(
        0x020000000001, 1, "d", "t", b"\x03\x0f", b"\x78\0", b"\x02", b"\1\1\0"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (BODY[:5], "table id of 6 bytes"),
        (BODY[:10], "database of 2 bytes"),
        (BODY[:10] + b"x" + BODY[11:], "database: NUL is missing after the name, or inside it"),
        (BODY[:9] + b"\0" + BODY[10:], "database: NUL is missing after the name, or inside it"),
        (BODY[:8] + b"\0" + BODY[10:], "the name of a database is empty"),
        (BODY[:9] + b"\xff" + BODY[10:], "is not UTF-8"),
        (BODY[:14] + b"\xfe" + b"\xff" * 8, "column types of 18446744073709551615 bytes"),
        (BODY[:17] + b"\xfd\xff\xff\xff", "metadata of 16777215 bytes"),
        (BODY[:20], "null bits of 1 bytes"),
    ],
)
def test_what_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_table_map(event(EventType.TABLE_MAP_EVENT, body))
