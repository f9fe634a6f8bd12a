from dataclasses import replace

import pytest

from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType, LoggedColumn, parse_columns
from mtsd.binlog.values.table_metadata import OptionalMetadata, parse_optional_metadata
from mtsd.model.errors import BinlogError
from tests.binlog.recording import Recording


def find(recording: Recording, table: str) -> TableMap:
    return next(found for found in recording.decoded(TableMap) if found.table == table)


def test_columns_of_every_type(recording: Recording) -> None:
    table = find(recording, "types")
    names = parse_optional_metadata(table).names
    types = dict(zip(names, parse_columns(table), strict=True))
    # The columns that the server itself keeps for indexes on expressions are not told.
    assert {name: column.type.name for name, column in types.items()} == {
        "id": "LONG", "tiny": "TINY", "small": "SHORT", "medium": "INT24", "big": "LONGLONG",
        "exact": "NEWDECIMAL", "single": "FLOAT", "wide": "DOUBLE", "bits": "BIT", "born": "YEAR",
        "day": "DATE", "hour": "TIME2", "moment": "DATETIME2", "instant": "TIMESTAMP2",
        "fixed": "STRING", "worded": "VARCHAR", "raw": "VARCHAR", "padded": "STRING",
        "note": "BLOB", "body": "BLOB", "blobbed": "BLOB", "choice": "ENUM", "picks": "SET",
        "place": "GEOMETRY", "shape": "GEOMETRY", "doc": "JSON", "embedding": "VECTOR",
        "derived": "LONG", "hidden": "LONG",
    }  # fmt: skip
    assert types["exact"].metadata == bytes((20, 5))


def test_metadata_of_every_column(recording: Recording) -> None:
    server = recording.server
    table = find(recording, "types")
    found = parse_optional_metadata(table)
    columns = parse_columns(table)
    place = {name: index for index, name in enumerate(found.names)}
    declared = server.sql(
        "SELECT COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME, EXTRA"
        " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'd1' AND TABLE_NAME = 'types'"
    )
    ids = dict(server.sql("SELECT COLLATION_NAME, ID FROM information_schema.COLLATIONS"))
    assert {name for name, *_ in declared} == set(found.names)
    for name, kind, collation, extra in declared:
        index = place[name]
        if index in found.unsigned:
            assert found.unsigned[index] is ("unsigned" in kind or kind == "year"), name
        if collation is not None:
            assert found.collations[index] == ids[collation], name
        elif columns[index].type in {ColumnType.STRING, ColumnType.VARCHAR, ColumnType.BLOB}:
            assert found.collations[index] == ids["binary"], name
        assert found.visible[index] is ("INVISIBLE" not in extra), name
    assert found.enum_values == {place["choice"]: (b"a", "ü".encode("latin1"), b"")}
    assert found.set_values == {place["picks"]: (b"x", b"y")}
    assert found.primary_key == ((place["id"], 0), (place["worded"], 10))
    assert found.vector_dimensions == {place["embedding"]: 3}
    # Point, and any shape.
    assert found.geometry_types == {place["place"]: 1, place["shape"]: 0}


def test_a_simple_primary_key_and_none(recording: Recording) -> None:
    assert parse_optional_metadata(find(recording, "keyed")).primary_key == ((0, 0),)
    assert parse_optional_metadata(find(recording, "wide")).primary_key is None


def table(types: bytes, metadata: bytes = b"", optional: bytes = b"") -> TableMap:
    return TableMap(1, 0, "d", "t", types, metadata, bytes((len(types) + 7) // 8), optional)


def test_nothing_told() -> None:
    assert parse_optional_metadata(table(b"\x03")) == OptionalMetadata()


def test_default_character_sets_have_exceptions() -> None:
    # Three strings, the second of another collation, and an ENUM between them that does not count.
    found = parse_optional_metadata(
        table(
            b"\x0f\xfe\x0f\x0f",
            b"\x0a\0" + b"\xf7\x01" + b"\x0a\0" * 2,
            b"\x02\x05\xfc\xff\x00\x01\x3f" + b"\x0a\x01\x08",
        )
    )
    assert found.collations == {0: 255, 2: 63, 3: 255, 1: 8}


def test_mariadb_counts_geometry_too() -> None:
    # A shape, bytes and a text: by the default and its exceptions, or one by one.
    described = table(b"\xff\x0f\x0f", b"\4\x0a\0\x0a\0", b"\x02\x03\x3f\x02\x08")
    assert parse_optional_metadata(replace(described, mariadb=True)).collations == {
        0: 63, 1: 63, 2: 8,
    }  # fmt: skip
    for mariadb in (True, False):
        described = table(b"\xff\x0f\x0f", b"\4\x0a\0\x0a\0", b"\x03\x03\x3f\x3f\x08")
        found = parse_optional_metadata(replace(described, mariadb=mariadb))
        assert found.collations == {0: 63, 1: 63, 2: 8}
    with pytest.raises(BinlogError, match="1 collations of 2 columns"):
        parse_optional_metadata(table(b"\xff\x0f\x0f", b"\4\x0a\0\x0a\0", b"\x03\x01\x3f"))


def test_an_array_tells_its_elements_type() -> None:
    assert parse_columns(table(b"\x14\x03", b"\xf6\x0a\x02")) == (
        LoggedColumn(ColumnType.NEWDECIMAL, b"\x0a\x02", array=True),
        LoggedColumn(ColumnType.LONG, b""),
    )


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (table(b"\x15"), "unknown column type 21"),
        (table(b"\x0f", b"\1"), "column metadata of 2 bytes"),
        (table(b"\x03", b"\1"), "1 unexpected bytes at its end"),
        (table(b"\x14", b"\x14\x03"), "an array of arrays"),
        (table(b"\x03", optional=b"\x0e\x01\x00"), "unknown field 14"),
        (table(b"\x03", optional=b"\x00\x00"), "unknown field 0"),
        (table(b"\x03", optional=b"\x01\x02\x00"), "cut off at byte 3"),
        (table(b"\x03", optional=b"\x01\x02\x00\x00"), "1 unexpected bytes"),
        (table(b"\x03", optional=b"\x04\x02\x05a"), "column name of 5 bytes"),
        (table(b"\x03", optional=b"\x08\x01\x01"), "key column 1 of 1"),
        (table(b"\x03", optional=b"\x02\x03\x08\x00\x08"), "column 0 of 0 with a character set"),
        (table(b"\xfe", b"\xf7\x01", b"\x06\x02\xfa\x00"), "250 values in 1 bytes"),
    ],
)
def test_what_is_refused(damaged: TableMap, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_optional_metadata(damaged)
