"""Decoded rows beside what a SELECT on the server says, which settles it."""

import random
from collections.abc import Iterator

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.values.row_image import RowDecoder
from tests.binlog.recording import Recording
from tests.binlog.row_values import (
    KINDS,
    LENIENT,
    changes_of,
    create,
    logged,
    named,
    names,
    row,
    row_events_of,
    shown,
)
from tests.servers.mysqld import Server

ROWS = 60


@pytest.fixture(scope="module")
def server(recording: Recording) -> Iterator[Server]:
    server = recording.server
    server.sql("CREATE DATABASE r")
    server.sql(create("r.every"))
    yield server
    server.sql("DROP DATABASE r")


def insert(rng: random.Random, first: int, count: int) -> str:
    values = ", ".join(f"({number}, {row(rng)})" for number in range(first, first + count))
    return f"INSERT INTO every (id, {names(KINDS)}) VALUES {values}"


@pytest.fixture(scope="module")
def inserted(server: Server) -> list[bytes]:
    rng = random.Random(1)
    return logged(server, [LENIENT, insert(rng, 0, ROWS - 2), insert(rng, ROWS - 2, 2)], "r")


def test_every_type_at_random(server: Server, inserted: list[bytes]) -> None:
    wanted = shown(server, "r.every")
    assert len(wanted) == ROWS
    changes = changes_of(inserted, "every")
    found = {}
    for decoder, change in changes:
        assert change.before is None
        values = named(decoder, change.after)
        found[values.pop("id")] = values
    assert found.keys() == wanted.keys()
    for number, values in wanted.items():
        for name, value in values.items():
            assert found[number][name] == value, (number, name)
            assert type(found[number][name]) is type(value), (number, name)
            assert repr(found[number][name]) == repr(value), (number, name)


def test_updates_of_whole_rows_and_deletes(server: Server, inserted: list[bytes]) -> None:
    del inserted
    before = shown(server, "r.every")
    rng = random.Random(2)
    assignments = [
        f"UPDATE every SET {', '.join(f'`{name}` = {kind.literal(rng)}' for name, kind in some)}"
        f" WHERE id = {number}"
        for number in range(20)
        for some in [rng.sample(list(KINDS.items()), rng.choice((1, 5, len(KINDS))))]
    ]
    events = logged(server, [LENIENT, *assignments], "r")
    after = shown(server, "r.every")
    updates = changes_of(events, "every")
    assert len(updates) > 15
    for decoder, change in updates:
        old, new = named(decoder, change.before), named(decoder, change.after)
        assert old.pop("id") == (number := new.pop("id"))
        assert isinstance(number, int)
        assert old == before[number]
        assert new == after[number]
    events = logged(server, ["DELETE FROM every WHERE id < 10"], "r")
    deletes = changes_of(events, "every")
    assert len(deletes) == 10
    for decoder, change in deletes:
        old = named(decoder, change.before)
        assert change.after is None
        number = old.pop("id")
        assert isinstance(number, int)
        assert old == after[number]


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_what_is_not_logged_is_absent(server: Server, image: str) -> None:
    server.sql("CREATE TABLE r.few (id INT PRIMARY KEY, a INT, b TEXT, c JSON, d INT DEFAULT 4)")
    events = logged(
        server,
        [
            f"SET binlog_row_image = {image}",
            "INSERT INTO few (id, a, b, c) VALUES (1, 2, 'three', '[]'), (2, NULL, NULL, NULL)",
            "UPDATE few SET a = 5 WHERE id = 1",
            "UPDATE few SET b = NULL, c = '{}' WHERE id = 1",
            "DELETE FROM few WHERE id = 2",
        ],
        "r",
    )
    server.sql("DROP TABLE r.few")
    found = [
        (named(decoder, change.before), named(decoder, change.after))
        for decoder, change in changes_of(events, "few")
    ]
    first = {"id": 1, "a": 2, "b": "three", "c": "[]"}
    second = {"id": 2, "a": None, "b": None, "c": None}
    if image == "MINIMAL":
        assert found == [
            ({}, first),
            ({}, second),
            ({"id": 1}, {"a": 5}),
            ({"id": 1}, {"b": None, "c": "{}"}),
            ({"id": 2}, {}),
        ]
    else:
        assert found == [
            ({}, {**first, "d": 4}),
            ({}, {**second, "d": 4}),
            # JSON is no BLOB here.
            ({"id": 1, "a": 2, "c": "[]", "d": 4}, {"id": 1, "a": 5, "c": "[]", "d": 4}),
            (
                {"id": 1, "a": 5, "c": "[]", "d": 4},
                {"id": 1, "a": 5, "b": None, "c": "{}", "d": 4},
            ),
            ({"id": 2, "a": None, "c": None, "d": 4}, {}),
        ]


def test_key_columns_alone(server: Server, inserted: list[bytes]) -> None:
    wanted = shown(server, "r.every")
    *_, (table, events) = row_events_of(inserted, "every")
    decoder = RowDecoder(table, wanted=[0, 1])
    changes = [change for event in events for change in decoder.changes(event)]
    assert [change.after and change.after.columns for change in changes] == [(0, 1)] * 2
    first = next(iter(KINDS))
    for change in changes:
        values = named(decoder, change.after)
        assert values == {"id": values["id"], first: wanted[int(str(values["id"]))][first]}


def test_version_1(inserted: list[bytes]) -> None:
    for table, events in row_events_of(inserted, "every"):
        for event in events:
            former = event[:4] + bytes((EventType.WRITE_ROWS_EVENT_V1,)) + event[5:27] + event[29:]
            assert event[27:29] == b"\x02\0"
            decoder = RowDecoder(table)
            assert list(decoder.changes(former)) == list(decoder.changes(event))


def json_updates(rng: random.Random, count: int) -> Iterator[str]:
    """Yield assignments that change parts of a document, in ways that are logged in part."""
    paths = [
        "$.a",
        "$.b",
        "$[0]",
        "$.list[1]",
        "$.list[0].x",
        '$."key with . and \\"quote\\""',
        "$.é",
    ]
    for _ in range(count):
        document = "doc"
        for _ in range(rng.randint(1, 3)):
            path = rng.choice(paths).replace("\\", "\\\\")
            value = rng.choice(("1", "NULL", "'text'", "1.25", "CAST('{\"n\": [1]}' AS JSON)"))
            match rng.randrange(4):
                case 0:
                    document = f"JSON_REMOVE({document}, '{path}')"
                case 1:
                    document = f"JSON_REPLACE({document}, '{path}', {value})"
                case _:
                    document = f"JSON_SET({document}, '{path}', {value})"
        yield document


@pytest.mark.parametrize("image", ["FULL", "NOBLOB", "MINIMAL"])
def test_partial_updates_of_json(server: Server, image: str) -> None:
    server.sql("CREATE TABLE r.docs (id INT PRIMARY KEY, other JSON, doc JSON, n INT)")
    rng = random.Random(5)
    document = (
        '{"a": "some text that is long", "b": [1, 2, 3], "list": [{"x": 1, "y": "z"}, 2, "three"],'
        ' "key with . and \\\\"quote\\\\"": 12345678, "é": null, "pad": "' + "p" * 300 + '"}'
    )
    statements = [
        f"SET binlog_row_image = {image}, binlog_row_value_options = PARTIAL_JSON, sql_mode = ''",
        f"INSERT INTO docs VALUES (1, '{{}}', '{document}', 0)",
    ]
    for assignment in json_updates(rng, 40):
        statements += [
            f"UPDATE docs SET n = n + 1, doc = {assignment}",
            "SELECT n, CAST(other AS CHAR), CAST(doc AS CHAR) FROM docs",
        ]
    wanted: list[tuple[object, ...]] = []
    events = logged(server, statements, "r", wanted)
    server.sql("DROP TABLE r.docs")
    partial = [event for event in events if event[4] == EventType.PARTIAL_UPDATE_ROWS_EVENT]
    assert len(partial) > 20
    updates = [
        (named(decoder, change.before), named(decoder, change.after))
        for decoder, change in changes_of(events, "docs")
        if change.before is not None
    ]
    assert len(updates) == 40
    diffs = 0
    for (before, after), (number, other, doc) in zip(updates, wanted, strict=True):
        assert after["n"] == number
        if isinstance(after.get("doc"), tuple):
            assert "doc" not in before
            diffs += 1
        elif "doc" in after:
            assert after["doc"] == doc
        if image == "FULL":
            assert (before["other"], after["other"]) == (other, other)
    assert not diffs if image == "FULL" else diffs > 20 or image == "NOBLOB"


def test_what_the_default_metadata_do_not_tell(server: Server) -> None:
    server.sql("CREATE TABLE r.bare (id INT UNSIGNED, e ENUM('x', 'y'), s SET('p', 'q', 'r'),"
               " t VARCHAR(5) CHARACTER SET latin1, b VARBINARY(5))")  # fmt: skip
    server.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        insert_one = (
            "INSERT INTO bare VALUES (4294967295, 'y', 'p,r', 'é', x'e9'), (1, NULL, '', '', '')"
        )
        events = logged(server, [insert_one], "r")
    finally:
        server.sql("SET GLOBAL binlog_row_metadata = FULL; DROP TABLE r.bare")
    changes = changes_of(events, "bare")
    assert [column.name for column in changes[0][0].formats] == [""] * 5
    assert [change.after and change.after.values for _, change in changes] == [
        (4294967295, 2, 5, "é", b"\xe9"),
        (1, None, 0, "", b""),
    ]
