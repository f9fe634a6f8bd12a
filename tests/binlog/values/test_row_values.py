"""Small worlds of values, whole; formats that servers no longer write; damage of every kind."""

import random
import struct
from contextlib import suppress
from decimal import Decimal, localcontext
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.packed_decimal import packed_size, unpack_decimal
from mtsd.binlog.values.column_format import column_formats
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import converter
from mtsd.binlog.values.json_binary import json_text
from mtsd.binlog.values.json_diff import JsonDiff, JsonOperation, changed_json, parse_json_diffs
from mtsd.binlog.values.json_number import double_text
from mtsd.binlog.values.row_image import RowChange, RowDecoder, RowImage
from mtsd.binlog.values.temporal import (
    datetime2_text,
    datetime_text,
    packed_time_text,
    time2_text,
    time_text,
    timestamp_text,
    year_value,
)
from mtsd.model.errors import BinlogError, NotSupportedError
from tests.binlog.values.row_images import (
    DOCUMENT,
    SIGNED,
    TOLD,
    TYPES,
    damaged,
    images,
    pack_decimal,
    plain_table,
    rows_event,
)

SHAPES = [(digits, scale) for digits in range(1, 66) for scale in range(min(digits, 38) + 1)]


def test_every_shape_of_a_decimal() -> None:
    rng = random.Random(3)
    with localcontext(prec=100):
        for digits, scale in SHAPES:
            most = Decimal(10**digits - 1).scaleb(-scale)
            some = Decimal(rng.randrange(10**digits)).scaleb(-scale)
            for number in (most, -most, some, -some, Decimal(0).scaleb(-scale)):
                raw = pack_decimal(number, digits, scale)
                assert len(raw) == packed_size(digits, scale)
                assert str(unpack_decimal(raw, digits, scale)) == str(number)


def test_what_is_no_decimal() -> None:
    with pytest.raises(BinlogError, match=r"there is no DECIMAL\(66,0\)"):
        packed_size(66, 0)
    with pytest.raises(BinlogError, match=r"there is no DECIMAL\(5,6\)"):
        packed_size(5, 6)
    with pytest.raises(BinlogError, match=r"ffffffff is no DECIMAL\(9,0\)"):
        unpack_decimal(b"\xff\xff\xff\xff", 9, 0)


def test_every_fraction_of_a_second() -> None:
    for digits in range(7):
        size = (digits + 1) // 2
        for number in {0, 10**digits // 10, 10**digits // 2, 10**digits - 1}:
            stored = number * (10 if digits % 2 else 1)
            moment = (1 << 39 | 5).to_bytes(5, "big") + stored.to_bytes(size, "big")
            text = f".{number:0{digits}d}" if digits else ""
            assert datetime2_text(moment, digits) == f"0000-00-00 00:00:05{text}"
            for sign in (1, -1):
                whole = (1 << 23 + 8 * size) + sign * (5 << 8 * size | stored)
                found = time2_text(whole.to_bytes(3 + size, "big"), digits)
                assert found == f"{'-' if sign < 0 else ''}00:00:05{text}"


def test_formats_before_5_6_4() -> None:
    assert datetime_text((20240229235958).to_bytes(8, "little")) == "2024-02-29 23:59:58"
    assert datetime_text(bytes(8)) == "0000-00-00 00:00:00"
    assert time_text((8385959).to_bytes(3, "little")) == "838:59:59"
    assert time_text((-8385959).to_bytes(3, "little", signed=True)) == "-838:59:59"
    assert timestamp_text((1).to_bytes(4, "little")) == "1970-01-01 00:00:01"
    assert timestamp_text(bytes(4)) == "0000-00-00 00:00:00"
    assert timestamp_text(b"\xff" * 4) == "2106-02-07 06:28:15"
    assert (year_value(b"\0"), year_value(b"\1"), year_value(b"\xff")) == (0, 1901, 2155)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_keeps_its_value(number: float) -> None:
    text = double_text(number)
    assert struct.pack("<d", float(text)) == struct.pack("<d", number)
    assert "." in text or "e" in text


def test_every_bitmap_of_four_columns() -> None:
    table = plain_table(bytes([ColumnType.TINY] * 4))
    for wanted in range(16):
        decoder = RowDecoder(table, SIGNED, [index for index in range(4) if wanted >> index & 1])
        for present, nulls in product(range(1, 16), range(16)):
            count = present.bit_count()
            if nulls >> count:
                continue
            columns = [index for index in range(4) if present >> index & 1]
            values = {
                index: None if nulls >> place & 1 else -index - 1
                for place, index in enumerate(columns)
            }
            image = bytes((nulls | 0xF0 & ~((1 << count) - 1),)) + bytes(
                0xFF - index for index in columns if values[index] is not None
            )
            raw = rows_event(EventType.WRITE_ROWS_EVENT, 4, present, image * 2)
            changes = list(decoder.changes(raw))
            assert len(changes) == 2
            for change in changes:
                assert change.before is None
                assert change.after is not None
                found = dict(zip(change.after.columns, change.after.values, strict=True))
                assert found == {
                    index: value for index, value in values.items() if wanted >> index & 1
                }


def test_more_than_64_columns() -> None:
    table = plain_table(bytes([ColumnType.TINY] * 70))
    decoder = RowDecoder(table, SIGNED)
    nulls = 1 << 69 | 1
    image = nulls.to_bytes(9, "little") + bytes(range(1, 69))
    (change,) = decoder.changes(rows_event(EventType.WRITE_ROWS_EVENT, 70, (1 << 70) - 1, image))
    assert change.after is not None
    assert change.after.values == (None, *range(1, 69), None)


@pytest.mark.parametrize(
    ("types", "metadata", "message"),
    [
        (bytes((ColumnType.LONG,)), b"", "column 1 of `d`.`t`: .* whether it is UNSIGNED"),
        (bytes((ColumnType.VARCHAR,)), b"\x0a\0", "column 1 of `d`.`t`: .* its character set"),
        (bytes((ColumnType.NULL,)), b"", "values of type NULL are not decoded"),
        (bytes((ColumnType.DECIMAL,)), b"", "type DECIMAL are of servers before 5.6"),
        (bytes((ColumnType.TYPED_ARRAY,)), b"\x03", "the array of a multi-valued index"),
    ],
)
def test_what_nobody_has_told(types: bytes, metadata: bytes, message: str) -> None:
    with pytest.raises(NotSupportedError, match=message):
        converter(column_formats(plain_table(types, metadata))[0])


def test_what_is_not_asked_for_need_not_be_told() -> None:
    table = plain_table(bytes((ColumnType.LONG, ColumnType.YEAR)))
    decoder = RowDecoder(table, wanted=[1])
    raw = rows_event(EventType.WRITE_ROWS_EVENT, 2, 3, b"\0\1\0\0\0\x7c")
    assert [change.after and change.after.values for change in decoder.changes(raw)] == [(2024,)]


def test_enum_and_set_without_names_are_numbers() -> None:
    table = plain_table(b"\xfe\xfe", bytes((ColumnType.ENUM, 2, ColumnType.SET, 3)))
    raw = rows_event(EventType.WRITE_ROWS_EVENT, 2, 3, b"\0\x01\x01\x05\0\x80")
    (change,) = RowDecoder(table).changes(raw)
    assert change.after is not None
    assert change.after.values == (257, 0x800005)


def test_rows_of_another_table() -> None:
    decoder = RowDecoder(plain_table(b"\x01\x01"), SIGNED)
    with pytest.raises(BinlogError, match=r"3 columns, and 2 in the table map of `d`\.`t`"):
        list(decoder.changes(rows_event(EventType.WRITE_ROWS_EVENT, 3, 7, b"\0\1\2\3")))


def test_rows_of_no_column() -> None:
    """Of an insert that logs nothing (MINIMAL) there is one row, as for the servers."""
    decoder = RowDecoder(plain_table(b"\x01"), SIGNED)
    of_defaults = rows_event(EventType.WRITE_ROWS_EVENT, 1, 0, b"")
    assert list(decoder.changes(of_defaults)) == [RowChange(None, RowImage((), ()))]
    assert decoder.ends(of_defaults) == [len(of_defaults)]
    with pytest.raises(BinlogError, match="3 bytes of rows without a column"):
        list(decoder.changes(rows_event(EventType.WRITE_ROWS_EVENT, 1, 0, b"\0\1\2")))


@pytest.mark.parametrize(
    ("size", "written"),
    [(127, b"\x7f"), (128, b"\x80\x01"), (16_383, b"\xff\x7f"), (16_384, b"\x80\x80\x01")],
)
def test_the_length_of_a_json_string_takes_one_byte_up_to_127(size: int, written: bytes) -> None:
    assert json_text(b"\x0c" + written + b"x" * size) == f'"{"x" * size}"'


def test_json_that_is_cut_off_or_shares_its_bytes() -> None:
    assert json_text(DOCUMENT) == '{"k": "a long enough one"}'
    for size in range(1, len(DOCUMENT) - 1):
        with pytest.raises(BinlogError, match="JSON: "):
            json_text(DOCUMENT[:size])
    # Five levels of ten arrays that are all the same one.
    levels = b"".join(
        bytes((10, 0, 255, 127)) + (b"\x02" + (34).to_bytes(2, "little")) * 10 for _ in range(5)
    )
    with pytest.raises(BinlogError, match="JSON: the values take more than"):
        json_text(b"\x02" + levels + b"\0\0\4\0" + bytes(40000))


def test_damaged_documents_and_diffs() -> None:
    rng = random.Random(4)
    diffs = bytes.fromhex(
        "00 03 242e6b 07 0c 05 7846554c4c 02 06 242e6c5b335d 01 03 242e61 02 04 00"
    )
    assert [diff.operation for diff in parse_json_diffs(diffs)] == [0, 2, 1]
    texts = 0
    for _ in range(4000):
        with suppress(BinlogError):
            json_text(damaged(rng, DOCUMENT))
            texts += 1
        with suppress(BinlogError):
            changed_json(DOCUMENT, parse_json_diffs(damaged(rng, diffs)))
    assert texts


def test_a_diff_that_does_not_fit() -> None:
    for operation, path in product(JsonOperation, ("$.x.y", "$[0]", "$.k.z")):
        with pytest.raises(BinlogError, match="the document before it has no such place"):
            changed_json(DOCUMENT, (JsonDiff(operation, path, b"\x04\1"),))
    with pytest.raises(BinlogError, match="is no path"):
        changed_json(DOCUMENT, (JsonDiff(JsonOperation.REMOVE, "k", b""),))
    replaced = changed_json(DOCUMENT, (JsonDiff(JsonOperation.REPLACE, "$", b"\x04\1"),))
    assert replaced == "true"


def test_a_time_of_json_before_zero() -> None:
    assert packed_time_text(-(1 << 36)) == "-01:00:00.000000"


def test_images_cut_off_or_damaged() -> None:
    rng = random.Random(6)
    table = plain_table(bytes(TYPES), b"".join(TYPES.values()))
    decoder = RowDecoder(table, TOLD)
    made = images(rng)
    width = len(TYPES)
    every = (1 << width) - 1
    raw = rows_event(EventType.WRITE_ROWS_EVENT, width, every, next(made) + next(made))
    assert len(list(decoder.changes(raw))) == 2
    whole = {len(raw), len(raw) - (len(raw) - 32) // 2}
    for size in range(19, len(raw)):
        if size in whole or size <= 32:
            continue
        with pytest.raises(BinlogError):
            list(decoder.changes(raw[:size]))
    errors = 0
    for _ in range(5000):
        with suppress(BinlogError):
            list(decoder.changes(raw[:19] + damaged(rng, raw[19:])))
            errors -= 1
        errors += 1
    assert errors > 1000
