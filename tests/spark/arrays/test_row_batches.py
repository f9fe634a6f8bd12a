"""Both decoders return the same values; the row-by-row one is tested against a SELECT."""

import datetime as dt
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.character_sets import character_set, single_byte_table, text_decoder
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.packed_decimal import packed_size
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.json_number import double_text
from mtsd.binlog.values.table_metadata import OptionalMetadata
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.spark.arrays import lockstep, row_batches
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.arrays.json_arrays import _Documents, _Values
from mtsd.spark.arrays.json_numbers import double_texts
from mtsd.spark.arrays.lockstep import Places
from mtsd.spark.arrays.row_batches import DamagedEventError, RowBatches, UnsupportedEventError
from tests.binlog.row_values import (
    KINDS,
    LENIENT,
    create,
    json_value,
    logged,
    names,
    quoted,
    row,
    row_events_of,
)
from tests.binlog.values.row_images import (
    SIGNED,
    TOLD,
    TYPES,
    damaged,
    images,
    pack_decimal,
    plain_table,
    rows_event,
)
from tests.servers.mysqld import Server
from tests.spark.faces import as_columns, assert_same, one_by_one, type_names


@pytest.fixture(scope="module")
def every(server: Server) -> tuple[TableMap, list[bytes]]:
    """Return row events of all kinds, for a table with a column of every type."""
    server.sql("CREATE DATABASE r")
    server.sql(create("r.every"))
    rng = random.Random(11)
    statements = [LENIENT]
    for first in range(0, 90, 3):
        values = ", ".join(f"({number}, {row(rng)})" for number in range(first, first + 3))
        statements.append(f"INSERT INTO every (id, {names(KINDS)}) VALUES {values}")
    some = [name for name, kind in KINDS.items() if "JSON" not in kind.definition]
    statements += [
        f"UPDATE every SET `{name}` = {KINDS[name].literal(rng)} WHERE id % 7 = {number % 7}"
        for number, name in enumerate(rng.sample(some, 20))
    ]
    statements += [
        "SET binlog_row_image = MINIMAL",
        "UPDATE every SET int_signed = 5, varchar_63 = NULL WHERE id < 20",
        "DELETE FROM every WHERE id < 10",
        "SET binlog_row_image = FULL",
        "SET binlog_row_value_options = PARTIAL_JSON",
        """UPDATE every SET json = '{"a": {"b": [1, 2, "three"]}, "c": "some text"}'""",
        "UPDATE every SET json = JSON_SET(json, '$.a.b[1]', 'x'), bit_9 = 3 WHERE id < 50",
        "UPDATE every SET json = JSON_REMOVE(json, '$.c') WHERE id > 40",
        "DELETE FROM every",
    ]
    events = logged(server, statements, "r")
    definitions = {}
    rows: list[bytes] = []
    for table, found in row_events_of(events, "every"):
        definitions[table.column_types + table.optional] = table
        rows += found
    server.sql("DROP DATABASE r")
    (table,) = definitions.values()
    return table, rows


def test_every_type_in_every_kind_of_event(every: tuple[TableMap, list[bytes]]) -> None:
    table, events = every
    assert {event[4] for event in events} >= {
        EventType.WRITE_ROWS_EVENT, EventType.UPDATE_ROWS_EVENT, EventType.DELETE_ROWS_EVENT,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
    }  # fmt: skip
    assert assert_same(table, events) > 500


def test_an_empty_member_of_a_set(server: Server) -> None:
    server.sql("CREATE DATABASE members; CREATE TABLE members.t (s SET('', 'a', 'b') PRIMARY KEY)")
    values = ", ".join(f"({number})" for number in range(8))
    events = logged(server, [f"INSERT INTO t VALUES {values}"], "members")
    ((table, rows),) = row_events_of(events, "t")
    assert assert_same(table, rows) == 8
    found = [image.values for image in one_by_one(table, rows).values()]
    assert found == server.sql("SELECT CONCAT(s) FROM members.t ORDER BY s")
    server.sql("DROP DATABASE members")


def test_types_for_spark(every: tuple[TableMap, list[bytes]]) -> None:
    table, _ = every
    found = type_names(RowBatches(table))
    assert found["bigint_unsigned"] == pa.decimal128(20, 0)
    assert found["int_unsigned"] == pa.int64()
    assert found["decimal_38_10"] == pa.decimal128(38, 10)
    assert found["decimal_65_30"] == pa.string()
    assert found["timestamp_3"] == pa.timestamp("us", "UTC")
    assert found["datetime_0"] == pa.timestamp("us")
    assert found["time_6"] == pa.duration("us")
    assert found["vector"] == pa.list_(pa.float32())
    assert found["enum_few"] == found["set_64"] == found["json"] == pa.string()


def test_typed_dates_are_those_of_the_text(every: tuple[TableMap, list[bytes]]) -> None:
    table, events = every
    with pytest.raises(NotSupportedError, match="not in the calendar; read it as NULL or as text"):
        as_columns_of_dates(table, events, Dates.STRICT)
    typed = as_columns_of_dates(table, events, Dates.NULLS)
    texts = as_columns_of_dates(table, events, Dates.TEXT)
    compared = 0
    for name, values in texts.items():
        for text, value in zip(values, typed[name], strict=True):
            if text is None:
                assert value is None
                continue
            assert isinstance(text, str)
            compared += value is not None
            assert value == from_text(name, text), (name, text)
    assert compared > 2000


def as_columns_of_dates(
    table: TableMap, events: list[bytes], dates: Dates
) -> dict[str, list[object]]:
    names = [column.name for column in RowBatches(table).formats]
    wanted = [
        n
        for n, name in enumerate(names)
        if name.startswith(("date", "time")) and "json" not in name
    ]
    batches = RowBatches(table, wanted=wanted, dates=dates)
    found: dict[str, list[object]] = {}
    for batch in batches.batches(events):
        for image in (batch.before, batch.after):
            if image is not None:
                for index, array in zip(image.columns, image.arrays, strict=True):
                    found.setdefault(names[index], []).extend(array.to_pylist())
    return found


def from_text(name: str, text: str) -> object:
    """Return the Python value of a date or time; None if there is none."""
    if name.startswith("time_"):
        sign = -1 if text.startswith("-") else 1
        hours, minutes, seconds = text.lstrip("-").split(":")
        micro = int(Decimal(seconds) * 10**6) + (int(hours) * 60 + int(minutes)) * 60_000_000
        return sign * dt.timedelta(microseconds=micro)
    try:
        if name == "date":
            return dt.date.fromisoformat(text)
        zone = dt.UTC if name.startswith("timestamp") else None
        whole, _, fraction = text.partition(".")
        moment = dt.datetime.fromisoformat(whole).replace(tzinfo=zone)
        return moment.replace(microsecond=int(fraction.ljust(6, "0")))
    except ValueError:
        return None


def documents(rng: random.Random, count: int) -> Iterator[str]:
    """Yield documents with few shapes and many values."""

    def text(most: int) -> str:
        return "".join(rng.choice('aé€😀"\\\n\x01/ ') for _ in range(rng.randrange(most)))

    def number() -> object:
        return rng.choice((
            rng.randrange(-9, 9), rng.randrange(1 << 40), round(rng.random() * 1000, 2), 1e300,
            -0.0, 0.1 + 0.2, rng.random(), float(rng.randrange(10**6)), 1e15, 123456.789,
        ))  # fmt: skip

    plain = "".join
    for _ in range(count):
        match rng.randrange(6):
            case 0 | 1:
                value: object = {
                    "id": rng.randrange(30000), "b": rng.random() < 0.5, "né": text(10),
                    "price": round(rng.random() * 100, rng.randrange(5)), "none": None,
                    "in": {"x": rng.randrange(1 << 20), "tags": [text(5), text(200), "c"]},
                }  # fmt: skip
            case 2:
                value = [number(), number(), text(20)]
            case 3:
                value = {"k": text(3), "deep": {"deeper": {"deepest": [rng.random() * 10**9]}}}
            case 4:
                value = rng.choice(({}, [], text(4), 7, None, {"only": plain(["x"] * 20000)}))
            case _:
                value = json_value(rng, 3)
        yield json.dumps(value)


def test_documents_of_one_shape(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE d.docs (id INT, doc JSON)")
    rng = random.Random(12)
    inserts = []
    for first in range(0, 3000, 250):
        rows = ", ".join(
            f"({first + place}, {quoted(text)})" for place, text in enumerate(documents(rng, 250))
        )
        inserts.append(f"INSERT INTO docs VALUES {rows}, (0, NULL)")
    events = logged(server, inserts, "d")
    server.sql("DROP DATABASE d")
    alone = 0
    decode = _Documents._alone

    def counted(self: _Documents, values: _Values, members: Places) -> pa.Array:
        nonlocal alone
        alone += len(members)
        return decode(self, values, members)

    monkeypatch.setattr(_Documents, "_alone", counted)
    tables = list(row_events_of(events, "docs"))
    rows_of_all = [event for _, found in tables for event in found]
    assert assert_same(tables[0][0], rows_of_all) == 3012
    # Only documents of unique shapes, and few others, are decoded one by one.
    assert 0 < alone < 1500


def test_many_rows_in_few_events() -> None:
    table = plain_table(bytes((ColumnType.TINY, ColumnType.VARCHAR)), b"\x0a\0")
    declared = OptionalMetadata({0: False}, {1: 255})
    rng = random.Random(13)

    def image() -> bytes:
        text = b"x" * rng.randrange(5)
        nulls = rng.choice((0, 0, 1, 2, 3))
        return (
            bytes((nulls,))
            + (b"" if nulls & 1 else rng.randbytes(1))
            + (b"" if nulls & 2 else bytes((len(text),)) + text)
        )

    counts = (1, 500, lockstep._MANY_ROWS, 300, 0, lockstep._MANY_ROWS + 1)
    inserts = [
        rows_event(EventType.WRITE_ROWS_EVENT, 2, 3, b"".join(image() for _ in range(count)))
        for count in counts
    ]
    updates = [
        rows_event(EventType.UPDATE_ROWS_EVENT, 2, 3, b"".join(image() for _ in range(2 * n)), 3)
        for n in counts
    ]
    assert assert_same(table, [*inserts, *updates], declared) == 3 * sum(counts)
    cut = updates[1][:-1]
    with pytest.raises(BinlogError):
        as_columns(table, [cut], declared)


def test_every_bitmap_and_null_of_ten_columns() -> None:
    kinds = bytes([ColumnType.TINY, ColumnType.VARCHAR] * 5)
    table = plain_table(kinds, b"\x0a\0" * 5)
    declared = OptionalMetadata(dict.fromkeys(range(10), False), dict.fromkeys(range(10), 255))
    rng = random.Random(14)
    # An insert of which nothing is logged is a row.
    events = [rows_event(EventType.WRITE_ROWS_EVENT, 10, 0, b"")] * 2
    for present in range(1, 1 << 10, 3):
        columns = [index for index in range(10) if present >> index & 1]
        raw = b""
        for _ in range(rng.randrange(1, 5)):
            nulls = rng.randrange(1 << len(columns))
            raw += nulls.to_bytes((len(columns) + 7) // 8, "little")
            for place, index in enumerate(columns):
                if not nulls >> place & 1:
                    raw += b"\x02ab" if index & 1 else rng.randbytes(1)
        events.append(rows_event(EventType.WRITE_ROWS_EVENT, 10, present, raw))
    assert assert_same(table, events, declared) > 300


def test_more_than_64_columns() -> None:
    table = plain_table(bytes([ColumnType.SHORT] * 70))
    events = []
    for nulls in (1 << 69 | 1, 0, (1 << 70) - 1, 1 << 64, 0xAAAAAAAAAAAAAAAAA):
        count = 70 - nulls.bit_count()
        image = nulls.to_bytes(9, "little") + bytes(range(2 * count))
        events.append(rows_event(EventType.WRITE_ROWS_EVENT, 70, (1 << 70) - 1, image))
    assert assert_same(table, events, SIGNED) == 5


def test_every_shape_of_a_decimal() -> None:
    rng = random.Random(15)
    for digits in range(1, 66):
        for scale in range(min(digits, 38) + 1):
            table = plain_table(bytes((ColumnType.NEWDECIMAL,)), bytes((digits, scale)))
            size = packed_size(digits, scale)
            made = []
            for _ in range(6):
                raw = decimal_bytes(rng, digits, scale)
                assert len(raw) == size
                made.append(b"\0" + raw)
            assert_same(table, [rows_event(EventType.WRITE_ROWS_EVENT, 1, 1, b"".join(made))])


def decimal_bytes(rng: random.Random, digits: int, scale: int) -> bytes:
    number = rng.choice((10**digits - 1, rng.randrange(10**digits), 0, 1))
    text = f"{rng.choice(('', '-'))}{number}E-{scale}"
    return pack_decimal(Decimal(text), digits, scale)


@pytest.mark.parametrize("collation", [8, 3, 10, 32, 7, 255, 33, 13, 28, 54, 35, 1])
def test_text_in_character_sets(collation: int) -> None:
    name = character_set(collation)
    decode = text_decoder(collation)
    table = single_byte_table(name) or "aé漢"
    raws: list[bytes] = []
    rng = random.Random(16)
    for _ in range(40):
        raw = rng.randbytes(rng.randrange(20)) if single_byte_table(name) else b""
        if not single_byte_table(name):
            codec = {"sjis": "shift_jis", "ucs2": "utf-16-be", "utf16": "utf-16-be",
                     "utf8mb4": "utf-8", "utf8mb3": "utf-8"}.get(name, name)  # fmt: skip
            text = "".join(rng.choice("ab漢字") for _ in range(rng.randrange(9)))
            raw = text.encode(codec)
        raws.append(raw)
    assert table
    made = b"".join(b"\0" + bytes((len(raw),)) + raw for raw in raws)
    definition = plain_table(bytes((ColumnType.VARCHAR,)), b"\xff\0")
    declared = OptionalMetadata(collations={0: collation})
    event = rows_event(EventType.WRITE_ROWS_EVENT, 1, 1, made)
    found = as_columns(definition, [event], declared)
    assert [image.values[0] for image in found.values()] == [decode(raw) for raw in raws]


def test_enum_and_set_without_names_are_numbers() -> None:
    for size in (1, 2, 3, 4, 8):
        kinds = bytes((ColumnType.ENUM, 1 + (size > 1), ColumnType.SET, size))
        table = plain_table(b"\xfe\xfe", kinds)
        image = b"\0" + b"\xff" * (1 + (size > 1)) + b"\xfe" * size
        event = rows_event(EventType.WRITE_ROWS_EVENT, 2, 3, image + b"\x03" + image)
        assert assert_same(table, [event]) == 3


def test_dates_and_times_of_the_formats_before_5_6_4() -> None:
    kinds = bytes((
        ColumnType.TIME, ColumnType.DATETIME, ColumnType.TIMESTAMP, ColumnType.NEWDATE,
        ColumnType.YEAR,
    ))  # fmt: skip
    rng = random.Random(19)
    made = [bytes(1 + 3 + 8 + 4 + 3 + 1)]
    for _ in range(200):
        clock = rng.randrange(24) * 10000 + rng.randrange(60) * 100 + rng.randrange(60)
        hours = rng.choice((-1, 1)) * (rng.randrange(839) * 10000 + clock % 10000)
        date = (rng.randrange(10000) * 100 + rng.randrange(13)) * 100 + rng.randrange(32)
        made.append(
            b"\0"
            + hours.to_bytes(3, "little", signed=True)
            + (date * 10**6 + clock).to_bytes(8, "little")
            + rng.randbytes(4)
            + (rng.randrange(10000) << 9 | rng.randrange(13) << 5 | rng.randrange(32)).to_bytes(
                3, "little"
            )
            + rng.randbytes(1)
        )
    event = rows_event(EventType.WRITE_ROWS_EVENT, 5, 31, b"".join(made))
    assert assert_same(plain_table(kinds), [event]) == 201
    typed = as_columns_of_kinds(kinds, event)
    assert typed["duration[us]"] == typed["timestamp[us]"] == typed["date32[day]"] == 201
    # 60 seconds, and 24 hours.
    for kind, wrong in (
        (kinds[:1], (60).to_bytes(3, "little")),
        (kinds[1:2], (240000).to_bytes(8, "little")),
    ):
        broken = rows_event(EventType.WRITE_ROWS_EVENT, 1, 1, b"\0" + wrong)
        with pytest.raises(BinlogError):
            one_by_one(plain_table(kind), [broken])
        with pytest.raises(BinlogError):
            as_columns(plain_table(kind), [broken])


def as_columns_of_kinds(kinds: bytes, event: bytes) -> dict[str, int]:
    (batch,) = RowBatches(plain_table(kinds), dates=Dates.NULLS).batches([event])
    assert batch.after is not None
    return {str(array.type): len(array) for array in batch.after.arrays}


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_doubles_of_json(numbers: list[float]) -> None:
    check_doubles(numbers)


def check_doubles(numbers: list[float]) -> None:
    found = double_texts(np.array(numbers, np.float64)).to_pylist()
    assert found == [double_text(number) for number in numbers]


@given(st.lists(st.integers(-(10**16), 10**16), max_size=20), st.integers(0, 7))
def test_doubles_of_few_digits(numbers: list[int], scale: int) -> None:
    check_doubles([number / 10**scale for number in numbers])


def test_damage_is_an_error_or_the_same_rows() -> None:
    rng = random.Random(17)
    table = plain_table(bytes(TYPES), b"".join(TYPES.values()))
    width = len(TYPES)
    made = images(rng)
    every = (1 << width) - 1
    sound = [
        rows_event(EventType.WRITE_ROWS_EVENT, width, every, next(made) + next(made))
        for _ in range(20)
    ]
    assert assert_same(table, sound, TOLD) == 40
    errors = same = 0
    for _ in range(700):
        events = list(sound)
        place = rng.randrange(len(events))
        events[place] = events[place][:19] + damaged(rng, events[place][19:])
        try:
            wanted = one_by_one(table, events, TOLD)
        except (BinlogError, NotSupportedError):
            errors += 1
            with suppress(BinlogError, NotSupportedError):
                # It may not have read everything before the error.
                as_columns(table, events, TOLD)
            continue
        found = as_columns(table, events, TOLD)
        assert {place: repr(image) for place, image in found.items()} == {
            place: repr(image) for place, image in wanted.items()
        }
        same += 1
    assert errors > 50
    assert same > 50


def test_cut_off_at_every_byte() -> None:
    rng = random.Random(18)
    table = plain_table(bytes(TYPES), b"".join(TYPES.values()))
    width = len(TYPES)
    raw = rows_event(EventType.WRITE_ROWS_EVENT, width, (1 << width) - 1, next(images(rng)))
    for size in range(19, len(raw)):
        if size == 32:
            # Valid, but without rows.
            assert as_columns(table, [raw[:size]], TOLD) == {}
            continue
        with pytest.raises(BinlogError):
            as_columns(table, [raw[:size]], TOLD)


def test_an_error_names_the_event() -> None:
    table = plain_table(bytes((ColumnType.VARCHAR,)), b"\x0a\0")
    declared = OptionalMetadata(collations={0: 255})
    sound = rows_event(EventType.WRITE_ROWS_EVENT, 1, 1, b"\0\1a")
    other = rows_event(EventType.DELETE_ROWS_EVENT, 1, 1, b"\0\1a")
    for place in range(9):
        for wrong in (b"\0\1\xff", b"\0\5a"):
            events = [sound, other] * 6
            events[place] = rows_event(EventType(events[place][4]), 1, 1, wrong)
            with pytest.raises(DamagedEventError, match="column 1 of `d`") as failed:
                list(RowBatches(table, declared).batches(events))
            assert failed.value.event == place
    events = [sound] * 5 + [rows_event(EventType.WRITE_ROWS_EVENT, 2, 1, b"\0\1a")]
    with pytest.raises(DamagedEventError, match="2 columns, and 1 in the table map") as failed:
        list(RowBatches(table, declared).batches(events))
    assert failed.value.event == 5
    dates = plain_table(bytes((ColumnType.DATE,)))
    days = [
        rows_event(EventType.WRITE_ROWS_EVENT, 1, 1, b"\0" + raw)
        for raw in (b"\x21\xd0\x0f", b"\x22\xd0\x0f", bytes(3))
    ]
    with pytest.raises(UnsupportedEventError, match="not in the calendar") as unsupported:
        list(RowBatches(dates).batches(days))
    assert unsupported.value.event == 2


def test_partitioned_tables_and_other_row_metadata(server: Server) -> None:
    server.sql("CREATE DATABASE p")
    server.sql(
        "CREATE TABLE p.t (a INT, b VARCHAR(9)) PARTITION BY RANGE (a)"
        " (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE)"
    )
    events = logged(
        server,
        [
            "INSERT INTO t VALUES (1, 'one'), (11, NULL), (2, 'two')",
            "UPDATE t SET a = a + 9, b = 'moved'",
            "DELETE FROM t",
        ],
        "p",
    )
    server.sql("DROP DATABASE p")
    images_found = 0
    for table, rows in row_events_of(events, "t"):
        # The partitions are extra data in the event's header.
        assert all(event[27:29] != b"\x02\0" for event in rows)
        images_found += assert_same(table, rows)
    assert images_found == 3 + 6 + 3


def test_no_events_and_no_rows(every: tuple[TableMap, list[bytes]]) -> None:
    table, _ = every
    batches = RowBatches(table)
    assert list(batches.batches([])) == []
    dummy = rows_event(EventType.WRITE_ROWS_EVENT, 0, 0, b"")
    dummy = dummy[:19] + b"\xff\xff\xff\0\0\0" + dummy[25:]
    assert list(batches.batches([dummy])) == []


def test_large_batches_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_batches, "_LARGEST", 100)
    table = plain_table(bytes((ColumnType.TINY,)))
    events = [rows_event(EventType.WRITE_ROWS_EVENT, 1, 1, b"\0\5" * n) for n in range(12)]
    found = list(RowBatches(table, SIGNED).batches(events))
    assert len(found) > 4
    joined = np.concatenate([batch.events for batch in found])
    assert joined.tolist() == [number for number in range(12) for _ in range(number)]
