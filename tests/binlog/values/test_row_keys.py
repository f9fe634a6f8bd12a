"""Keys of rows as numbers: beside decoded values, for each row image, and what cannot be told."""

import random
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.values.column_format import ColumnFormat, column_formats
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_image import RowChange, RowDecoder, RowImage
from mtsd.binlog.values.row_keys import Equality, KeyPart, KeyReader, RowKey
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.recording import Recording
from tests.binlog.row_values import KINDS, LENIENT, create, logged, names, row, row_events_of
from tests.servers.mysqld import Server

BYTES, PADDED = Equality.BYTES, Equality.PADDED
LETTERS, NUMBERS = Equality.LETTERS, Equality.NUMBERS
INSERT, UPDATE, DELETE = (
    EventType.WRITE_ROWS_EVENT, EventType.UPDATE_ROWS_EVENT, EventType.DELETE_ROWS_EVENT,
)  # fmt: skip
INT = ColumnFormat(ColumnType.LONG, 0, 4, "column")
TEXT = ColumnFormat(ColumnType.VARCHAR, 1, 255, "column")
DOUBLE = ColumnFormat(ColumnType.DOUBLE, 0, 8, "column")
Raw = Sequence[bytes | None]
"""The bytes of a row's columns."""


def bits(marked: Sequence[bool]) -> bytes:
    number = sum(1 << place for place, each in enumerate(marked) if each)
    return number.to_bytes((len(marked) + 7) // 8, "little")


def image(formats: Sequence[ColumnFormat], row: Raw, present: Sequence[int]) -> bytes:
    values = [row[column] for column in present]
    return bits([value is None for value in values]) + b"".join(
        (len(value).to_bytes(prefix, "little") if (prefix := formats[column].prefix) else b"")
        + value
        for column, value in zip(present, values, strict=True)
        if value is not None
    )


def of_rows(
    kind: EventType,
    formats: Sequence[ColumnFormat],
    *images: Raw,
    first: Sequence[int] | None = None,
    second: Sequence[int] | None = None,
) -> bytes:
    """Return a row event; `first` and `second` are the columns before and after."""
    width = range(len(formats))
    shown = [tuple(width) if each is None else tuple(sorted(each)) for each in (first, second)]
    is_update = kind in {EventType.UPDATE_ROWS_EVENT, EventType.UPDATE_ROWS_EVENT_V1}
    version_1 = kind.name.endswith("_V1")
    body = (7).to_bytes(6, "little") + b"\1\0" + (b"" if version_1 else b"\2\0")
    body += bytes((len(formats),))
    body += b"".join(bits([at in each for at in width]) for each in shown[: 1 + is_update])
    for place, raw in enumerate(images):
        body += image(formats, raw, shown[place % 2 if is_update else 0])
    return event(kind, body)


def collected(
    formats: Sequence[ColumnFormat], keys: Sequence[RowKey], *events: bytes
) -> tuple[set[int], set[int]] | None:
    """Return the keys of rows, and those referred to; None if they are not all."""
    rows: list[int] = []
    references: list[int] = []
    reader = KeyReader(formats, keys)
    complete = [reader.collect(each, rows, references) for each in events]
    return (set(rows), set(references)) if all(complete) else None


def rows_of(
    formats: Sequence[ColumnFormat], keys: Sequence[RowKey], *events: bytes
) -> set[int] | None:
    found = collected(formats, keys, *events)
    assert found is None or not found[1]
    return found and found[0]


def key(
    number: int, *columns: int, equality: Equality = BYTES, nullable: bool = True, **how: bool
) -> RowKey:
    return RowKey(number, tuple(KeyPart(each, equality, nullable) for each in columns), **how)


def one(number: int) -> bytes:
    return number.to_bytes(4, "little")


FORMATS = [INT, TEXT, INT]
IDENTITY = key(1, 0, nullable=False, always=True)
UNIQUE = key(2, 2)
REFERS = key(3, 2, refers=True)


def test_what_is_inserted_and_deleted_has_all_its_keys() -> None:
    found = set()
    for kind in (INSERT, DELETE, EventType.WRITE_ROWS_EVENT_V1, EventType.DELETE_ROWS_EVENT_V1):
        made = of_rows(kind, FORMATS, [one(5), b"x", one(6)], [one(7), None, None])
        numbers = rows_of(FORMATS, [IDENTITY, UNIQUE], made)
        assert numbers is not None
        assert len(numbers) == 3
        found.add(frozenset(numbers))
    assert len(found) == 1


@pytest.mark.parametrize("kind", [UPDATE, EventType.UPDATE_ROWS_EVENT_V1])
def test_a_key_that_remains_as_it_is_does_not_count(kind: EventType) -> None:
    def of(*images: Raw) -> set[int]:
        found = rows_of(FORMATS, [IDENTITY, UNIQUE], of_rows(kind, FORMATS, *images))
        assert found is not None
        return found

    same = of([one(5), b"x", one(6)], [one(5), b"y", one(6)])
    assert len(same) == 1
    assert of([one(5), b"x", None], [one(5), b"y", None]) == same
    other = of([one(5), b"x", one(6)], [one(5), b"x", one(8)])
    assert len(other) == 3
    assert of([one(5), b"x", one(6)], [one(5), b"x", None]) < other
    assert of([one(5), b"x", None], [one(5), b"x", one(8)]) < other
    moved = of([one(5), b"x", one(6)], [one(9), b"x", one(6)])
    assert len(moved) == 2
    assert same < moved
    both = of([one(5), b"", None], [one(9), b"", None], [one(1), b"", None], [one(2), b"", None])
    assert len(both) == 4
    assert both > moved


def test_foreign_keys_are_apart() -> None:
    parent = rows_of([INT], [key(3, 0)], of_rows(INSERT, [INT], [one(6)]))
    found = collected(FORMATS, [IDENTITY, REFERS], of_rows(INSERT, FORMATS, [one(5), b"x", one(6)]))
    assert found is not None
    assert len(found[0]) == 1
    assert found[1] == parent


def test_a_row_that_changes_with_its_parent_always_refers_to_it() -> None:
    update = of_rows(UPDATE, FORMATS, [one(5), b"x", one(6)], [one(5), b"y", one(6)])
    assert collected(FORMATS, [IDENTITY, REFERS], update) == (
        rows_of(FORMATS, [IDENTITY], update), set(),
    )  # fmt: skip
    found = collected(FORMATS, [IDENTITY, REFERS._replace(always=True)], update)
    assert found is not None
    assert len(found[1]) == 1


@pytest.mark.parametrize("parts", [(2,), (2, 1)])
def test_what_cascades(parts: tuple[int, ...]) -> None:
    quiet = of_rows(UPDATE, FORMATS, [one(5), b"x", one(6)], [one(8), b"x", one(6)])
    change = of_rows(UPDATE, FORMATS, [one(5), b"x", one(6)], [one(5), b"x", one(8)])
    delete = of_rows(DELETE, FORMATS, [one(5), b"x", one(6)])
    insert = of_rows(INSERT, FORMATS, [one(5), b"x", one(6)])
    for cascading, is_known in (
        (key(3, *parts), (True, True, True, True)),
        (key(3, *parts, cascades_deletes=True), (True, True, False, True)),
        (key(3, *parts, cascades_updates=True), (True, False, True, True)),
    ):
        keys = [IDENTITY, cascading]
        for made, known in zip((quiet, change, delete, insert), is_known, strict=True):
            assert (rows_of(FORMATS, keys, made) is not None) == known


def test_images_that_hide_values() -> None:
    """binlog_row_image = MINIMAL logs the primary key before, and after it what has changed."""
    keys = [IDENTITY, UNIQUE]
    old, new = [one(5), b"x", one(6)], [one(5), b"y", one(8)]

    def update(
        first: Sequence[int], second: Sequence[int], key: RowKey = UNIQUE
    ) -> set[int] | None:
        made = of_rows(UPDATE, FORMATS, old, new, first=first, second=second)
        return rows_of(FORMATS, [IDENTITY, key], made)

    identity = rows_of(FORMATS, [IDENTITY], of_rows(INSERT, FORMATS, old))
    assert update((0,), (1,)) == identity
    assert update((0,), (1, 2)) is None
    assert update((0,), (2,)) is None
    assert update((0, 2), (2,)) == update((0, 1, 2), (0, 1, 2))
    assert update((1,), (1,)) is None
    assert update((0,), (1,), UNIQUE._replace(always=True)) is None
    assert update((0, 2), (1,), UNIQUE._replace(always=True)) is not None
    # Of a key of two columns, one has changed: the other is as before.
    half = key(2, 1, 2)
    assert update((0, 1, 2), (2,), half) == update((0, 2, 1), (2,), half)
    found = update((0, 1, 2), (2,), half)
    assert found is not None
    assert len(found) == 3
    assert update((0, 2), (2,), half) is None
    for kind, shown, known in (
        (DELETE, (0,), False), (DELETE, (0, 2), True), (INSERT, (0, 2), True),
        (INSERT, (0, 1), False),
    ):  # fmt: skip
        made = of_rows(kind, FORMATS, old, first=shown)
        assert (rows_of(FORMATS, keys, made) is not None) == known


@pytest.mark.parametrize("columns", [(2,), (2, 1)])
def test_null_where_the_target_holds_none(columns: tuple[int, ...]) -> None:
    made = of_rows(INSERT, FORMATS, [one(5), b"x", None])
    found = rows_of(FORMATS, [IDENTITY, key(2, *columns)], made)
    assert found is not None
    assert len(found) == 1
    assert rows_of(FORMATS, [IDENTITY, key(2, *columns, nullable=False)], made) is None


def number_of(value: bytes, part: KeyPart, form: ColumnFormat = TEXT) -> int | None:
    found = rows_of([form], [RowKey(1, (part,))], of_rows(INSERT, [form], [value]))
    if found is None:
        return None
    (number,) = found
    return number


def test_values_that_are_equal_in_other_bytes() -> None:
    zero, minus = bytes(8), bytes(7) + b"\x80"
    numbers = KeyPart(0, NUMBERS)
    assert number_of(zero, numbers, DOUBLE) == number_of(minus, numbers, DOUBLE)
    assert number_of(bytes(7) + b"\x40", numbers, DOUBLE) != number_of(zero, numbers, DOUBLE)
    padded = KeyPart(0, PADDED)
    assert number_of(b"a", padded) == number_of(b"a  ", padded) == number_of(b"a\0", padded)
    assert number_of(b"a", padded) != number_of(b"A", padded) != number_of(b" a", padded)
    letters = KeyPart(0, LETTERS)
    assert number_of(b"a-Z", letters) == number_of(b"A-z ", letters)
    assert number_of(b"aZ", letters) != number_of(b"a-Z", letters)
    for unknown in ("é", "a\t", "a\0", "ß", "\x7f"):
        assert number_of(unknown.encode(), letters) is None
    assert number_of(b"a", KeyPart(0, BYTES)) != number_of(b"a ", KeyPart(0, BYTES))


def test_keys_of_a_prefix() -> None:
    for equality in (BYTES, PADDED, LETTERS):
        prefix = KeyPart(0, equality, characters=2)
        assert number_of(b"abc", prefix) == number_of(b"abd", prefix) == number_of(b"ab", prefix)
        assert number_of(b"abc", prefix) != number_of(b"acc", prefix)
    # Two characters of two bytes: their first two bytes.
    prefix = KeyPart(0, PADDED, characters=2)
    assert number_of("éé".encode(), prefix) == number_of("éèx".encode(), prefix)
    letters = KeyPart(0, LETTERS, characters=2)
    assert number_of("abé".encode(), letters) == number_of(b"AB", letters)
    assert number_of("aé".encode(), letters) is None


@given(
    values=st.lists(st.binary(max_size=3), min_size=2, max_size=4),
    equality=st.sampled_from([BYTES, PADDED]),
    characters=st.sampled_from([0, 1, 2]),
)
def test_what_may_be_equal_has_the_same_number(
    values: list[bytes], equality: Equality, characters: int
) -> None:
    part = KeyPart(0, equality, characters=characters)
    for first, second in combinations(values, 2):
        a, b = (each[: characters or None] for each in (first, second))
        if a == b or (equality is PADDED and a.rstrip(b" ") == b.rstrip(b" ")):
            assert number_of(first, part) == number_of(second, part)


def test_more_keys_than_are_wanted() -> None:
    made = of_rows(INSERT, FORMATS, *([one(number), b"x", None] for number in range(10)))
    for most, complete in ((9, False), (10, True)):
        rows: list[int] = []
        assert KeyReader(FORMATS, [IDENTITY]).collect(made, rows, [], most) == complete


def test_damage() -> None:
    made = of_rows(UPDATE, FORMATS, [one(5), b"xyz", one(6)], [one(5), None, one(7)])
    reader = KeyReader(FORMATS, [IDENTITY, UNIQUE])
    assert reader.collect(made, [], [])
    # At the end of the head there are no rows.
    for size in {*range(19, len(made))} - {32}:
        with pytest.raises(BinlogError, match="row event"):
            reader.collect(made[:size], [], [])
    with pytest.raises(BinlogError, match="3 columns, and 1 in the table map"):
        KeyReader([INT], [key(1, 0)]).collect(made, [], [])
    nothing = event(INSERT, b"\xff\xff\xff\0\0\0\1\0\2\0\0")
    assert reader.collect(nothing, [], [])


def test_wide_tables() -> None:
    formats = [INT] * 300
    body = (7).to_bytes(6, "little") + b"\1\0\2\0" + b"\xfc\x2c\x01" + b"\xff" * 38
    made = event(INSERT, body + bytes(38) + bytes(4 * 299) + one(9))
    found = rows_of(formats, [key(1, 299)], made)
    assert found == rows_of([INT], [key(1, 0)], of_rows(INSERT, [INT], [one(9)]))


def test_memory_for_any_set_of_columns() -> None:
    """A client that writes what has changed, and binlog_row_image = MINIMAL, make very many."""
    formats = [INT] * 14
    images: Raw = [one(1)] * len(formats)
    reader = KeyReader(formats, [key(1, 0, always=True)])
    tracemalloc.start()
    for size in range(1, 7):
        for second in combinations(range(1, len(formats)), size):
            made = of_rows(UPDATE, formats, images, images, first=[0], second=second)
            assert reader.collect(made, [], [])
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 2 << 20


@pytest.fixture(scope="module")
def server(recording: Recording) -> Iterator[Server]:
    server = recording.server
    server.sql("CREATE DATABASE k")
    server.sql(create("k.every"))
    yield server
    server.sql("DROP DATABASE k")


NO_KEYS = ("json", "geometry", "point", "vector")
TWO_WITH_ONE_NAME = "enum_few"
"""Its empty member, and what is no member."""
FREE = [name for name in KINDS if not name.startswith((*NO_KEYS, TWO_WITH_ONE_NAME))]
COLUMNS = {name: 1 + place for place, name in enumerate(KINDS)}


def changed(rng: random.Random) -> Iterator[str]:
    yield LENIENT
    for number in range(40):
        yield f"INSERT INTO every (id, {names(KINDS)}) VALUES ({number}, {row(rng)})"
    for number in range(0, 40, 2):
        some = ", ".join(f"`{name}` = {KINDS[name].literal(rng)}" for name in rng.sample(FREE, 5))
        yield (
            f"UPDATE every SET {some}, json = JSON_SET(json, '$.a', {number})"
            f" WHERE id IN ({number}, {number + 1})"
        )
    yield "DELETE FROM every"


def values_of(change: RowChange, column: int) -> list[object]:
    """Return the values of a column in a change, as far as its images have it; no NULL."""
    images = [each for each in (change.before, change.after) if each is not None]
    found = [value_of(each, column) for each in images]
    if len(found) == 2 and found[0] == found[1]:
        return []
    return [value for value in found if value is not None]


def value_of(image: RowImage, column: int) -> object:
    if column not in image.columns:
        return None
    return image.values[image.columns.index(column)]


@pytest.mark.parametrize("options", ["", "PARTIAL_JSON"])
def test_every_type_beside_its_decoded_values(server: Server, options: str) -> None:
    """Over many rows: the same number for the same value, another one for another."""
    rng = random.Random(5)
    before = [f"SET binlog_row_value_options = '{options}'"]
    events = logged(server, [*before, *changed(rng), "SET binlog_row_value_options = ''"], "k")
    numbers: dict[int, dict[object, int]] = {}
    seen = 0
    for table, found in row_events_of(events, "every"):
        decoder = RowDecoder(table)
        formats = column_formats(table)
        for name in rng.sample(FREE, 12):
            column = COLUMNS[name]
            for each in found:
                changes = list(decoder.changes(each))
                values = {value for change in changes for value in values_of(change, column)}
                got = rows_of(formats, [key(column, column)], each)
                assert got is not None
                assert len(got) == len(values), name
                known = numbers.setdefault(column, {})
                if len(values) == 1:
                    ((value,), (number,)) = values, got
                    assert known.setdefault(value, number) == number
                    seen += 1
                assert {known[value] for value in values if value in known} <= got, (name, values)
    assert seen > 300
    for known in numbers.values():
        assert len(set(known.values())) == len(known)
