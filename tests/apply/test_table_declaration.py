"""Statements and rows that come from a table's declaration."""

from datetime import UTC, datetime

import pytest

from mtsd.apply.position.table_declaration import (
    CHANNEL,
    SOURCE_POSITION,
    ChannelTable,
    Table,
    in_hex,
    moment,
    shown_text,
    text_or_null,
    whole,
)
from mtsd.model.position import Position

NUMBER = whole("N")
NAME = text_or_null("Name", "TEXT")
PART = in_hex("Part", "VARBINARY(64) NOT NULL")
WHY = shown_text("Why", "TEXT NOT NULL", 3)
WRITTEN = moment("Written_at", is_read=False)
READ = moment("Read_at")
TABLE = Table(
    "t",
    (CHANNEL, NUMBER, SOURCE_POSITION.file, SOURCE_POSITION.offset, NAME, PART, WHY, WRITTEN, READ),
)


def test_what_is_read_is_found_by_its_column() -> None:
    assert ChannelTable(TABLE, "s", "c").select() == (
        b"SELECT `N`,`Master_log_name`,`Master_log_pos`,`Name`,HEX(`Part`),`Why`,"
        b"CAST(FLOOR(UNIX_TIMESTAMP(`Read_at`)) AS SIGNED) FROM `s`.`t`"
        b" WHERE `Channel_name`=X'63'"
    )
    found = TABLE.read((7, "b.1", 99, None, "FF00", "abc", 1000))
    assert (found[NUMBER], SOURCE_POSITION.read(found)) == (7, Position("b.1", 99))
    assert (found[NAME], found[PART], found[WHY]) == (None, b"\xff\0", "abc")
    assert found[READ] == datetime.fromtimestamp(1000, UTC)


def test_a_row_with_other_columns_is_not_read() -> None:
    with pytest.raises(ValueError, match="zip"):
        TABLE.read((7, "b.1", 99))


def test_a_text_by_people_fits_into_its_column() -> None:
    assert WHY.of("né\udcff and more") == (b"`Why`", b"X'6ec3a93f'")
