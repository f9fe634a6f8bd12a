"""`mtsd binlog --rows`: the rows in the binlogs of real servers are what SELECT says."""

import json
import random
import struct
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.column_values import Value
from mtsd.cli.listing.event_listing import event_lines
from mtsd.cli.listing.row_listing import RowListing
from mtsd.cli.listing.shown_values import (
    Document,
    DocumentChange,
    DocumentChanges,
    Unsure,
    as_json,
    as_text,
    show_of,
    value_of_variable,
)
from mtsd.model.step import UserVar, UserVarType
from tests.binlog.binlog_command import mtsd_binlog
from tests.binlog.building import event
from tests.binlog.row_values import KINDS, LENIENT, Kind, binary, create, row, shown, text
from tests.binlog.transactions import rows as row_event
from tests.binlog.transactions import table_map
from tests.servers.mariadb import SUITES, provide_mariadb
from tests.servers.mysqld import Server
from tests.servers.provision import Options

COMPRESSED: Options = {"log_bin_compress": "ON", "log_bin_compress_min_len": 10}
NOT_ON_MARIADB = ("json", "json_second", "vector")
MARIADB_KINDS = {
    **{name: kind for name, kind in KINDS.items() if name not in NOT_ON_MARIADB},
    **{
        f"varchar_compressed_{size}": Kind(
            f"VARCHAR({size}) COMPRESSED CHARACTER SET latin1", text("aZ\xe9", size)
        )
        for size in (9, 254, 255, 300)
    },
    "varbinary_compressed": Kind("VARBINARY(500) COMPRESSED", binary(500), "HEX({})", "hex"),
    "text_compressed": Kind("TEXT COMPRESSED", text("aé€ ", 80)),
    "blob_compressed": Kind("MEDIUMBLOB COMPRESSED", binary(500), "HEX({})", "hex"),
}


def recorded(server: Server, *statements: str) -> Path:
    """Run the statements on one connection and return the file that they are logged in."""
    server.sql("FLUSH BINARY LOGS")
    name, *_ = server.binlog_end()
    with closing(server.client()) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    server.sql("FLUSH BINARY LOGS")
    return server.datadir / name


def objects(capsys: pytest.CaptureFixture[str], path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, as `--json` has them."""
    assert mtsd_binlog("--rows", "--json", path) == 0
    lines = capsys.readouterr().out.split("\n")
    found = [json.loads(line, parse_float=Decimal) for line in lines if line]
    return [each for each in found if each["type"] == "row"]


def below(capsys: pytest.CaptureFixture[str], path: Path, status: int = 0) -> list[str]:
    """Return the lines of rows, for people."""
    assert mtsd_binlog("--rows", path) == status
    lines = capsys.readouterr().out.splitlines()
    return [line.strip() for line in lines if line.startswith("    ")]


def contents(server: Server, kinds: Mapping[str, Kind], count: int) -> Path:
    rng = random.Random(7)
    inserts = (f"INSERT INTO d.t VALUES ({number}, {row(rng, kinds)})" for number in range(count))
    return recorded(server, LENIENT, "CREATE DATABASE d", create("d.t", kinds), *inserts)


def comparable(kind: Kind, value: Value) -> object:
    """Return what SELECT says as `--json` has it."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if kind.definition == "JSON" and isinstance(value, str):
        return json.loads(value, parse_float=Decimal)
    if kind.definition == "FLOAT" and isinstance(value, float):
        return struct.pack("<f", value)
    return Decimal(repr(value)) if isinstance(value, float) else value


def listed(kind: Kind, value: object) -> object:
    if kind.definition == "FLOAT" and isinstance(value, int | Decimal):
        return struct.pack("<f", float(value))
    return value


def check_all(
    found: Sequence[dict[str, Any]],
    selected: Mapping[int, Mapping[str, Value]],
    kinds: Mapping[str, Kind] = KINDS,
) -> None:
    assert [each["after"]["id"] for each in found] == list(selected)
    for each in found:
        assert (each["op"], each["schema"], each["table"], each["before"]) == (
            "insert", "d", "t", None,
        )  # fmt: skip
        wanted = selected[each["after"].pop("id")]
        assert list(each["after"]) == list(wanted)
        for name, value in wanted.items():
            kind = kinds[name]
            assert listed(kind, each["after"][name]) == comparable(kind, value), name


@pytest.mark.servers
def test_every_type_of_mysql(capsys: pytest.CaptureFixture[str]) -> None:
    with Server({"binlog_row_metadata": "FULL"}) as server:
        path = contents(server, KINDS, 40)
        check_all(objects(capsys, path), shown(server, "d.t"))
        for line in below(capsys, path):
            assert line.startswith("insert d.t (id = ")
            assert line.isprintable()


@pytest.mark.servers
@pytest.mark.parametrize("series", SUITES)
def test_every_type_of_mariadb(series: str, capsys: pytest.CaptureFixture[str]) -> None:
    options: Options = {
        "binlog_row_metadata": "FULL",
        "binlog_format": "ROW",
        "column_compression_threshold": 20,
        "column_compression_zlib_wrap": "ON" if series == "11.8" else "OFF",
        **COMPRESSED,
    }
    with Server(options, installation=provide_mariadb(series)) as server:
        path = contents(server, MARIADB_KINDS, 40)
        selected = shown(server, "d.t", MARIADB_KINDS)
        check_all(objects(capsys, path), selected, MARIADB_KINDS)
        assert mtsd_binlog("--rows", path) == 0
        listing = capsys.readouterr().out
        assert "MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1" in listing
        assert "MARIADB_QUERY_COMPRESSED_EVENT" in listing


@pytest.mark.servers
def test_what_the_log_of_mariadb_does_not_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """Without metadata, neither names, signs, character sets nor members are there."""
    with Server({"binlog_format": "ROW"}, installation=provide_mariadb("11.8")) as server:
        path = recorded(
            server,
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, u TINYINT UNSIGNED, v VARCHAR(9), b BLOB,"
            " e ENUM('x', 'y'), s SET('x', 'y'))",
            "INSERT INTO d.t VALUES (-1, 5, 'zä''', x'ff00', 'y', 'x,y')",
            "INSERT IGNORE INTO d.t VALUES (2, 255, NULL, '', '', '')",
        )
        old = recorded(
            server,
            "SET GLOBAL mysql56_temporal_format = OFF",
            "CREATE TABLE d.old (id INT PRIMARY KEY, t TIME(3))",
            "INSERT INTO d.old VALUES (7, '01:02:03.456')",
        )
        assert mtsd_binlog("--rows", old) == 3
        said = capsys.readouterr()
        assert "insert d.old" not in said.out
        assert "column 2 of `d`.`old` is a TIME in the format of MariaDB 5.3" in said.err
        unknown = "the log does not tell"
        first, second = below(capsys, path)
        assert first == (
            f"insert d.t (@1 = x'ffffffff' (-1, or 4294967295 if UNSIGNED: {unknown}), @2 = 5,"
            f" @3 = x'7ac3a427' (as UTF-8: 'zä\\''), @4 = x'ff00' ({unknown} the character set),"
            " @5 = 2, @6 = 3)"
        )
        assert second == (
            f"insert d.t (@1 = 2, @2 = x'ff' (-1, or 255 if UNSIGNED: {unknown}), @3 = NULL,"
            " @4 = x'' (as UTF-8: ''), @5 = 0, @6 = 0)"
        )
        found, _ = objects(capsys, path)
        assert found["after"]["@3"] == {
            "hex": "7ac3a427", "note": "the log does not tell the character set", "utf8": "zä'",
        }  # fmt: skip


DOCUMENT = '{"n": [1], "x": "long enough a text"}'
CHANGES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, v VARCHAR(900), doc JSON)",
    "CREATE TABLE d.`t``1` (`a b` INT PRIMARY KEY, e ENUM('x', 'y'))",
    f"INSERT INTO d.t VALUES (1, NULL, 'a\\\\b\\'\\n', '{DOCUMENT}')",
    "UPDATE d.t SET n = 2",
    "SET binlog_row_value_options = PARTIAL_JSON",
    "UPDATE d.t SET doc = JSON_REMOVE(JSON_SET(doc, '$.n[0]', 7), '$.x')",
    "SET binlog_row_value_options = '', binlog_row_image = MINIMAL",
    "UPDATE d.t SET v = NULL, n = 3",
    "DELETE FROM d.t",
    "SET binlog_row_image = FULL, binlog_transaction_compression = ON",
    "BEGIN",
    "INSERT INTO d.t VALUES (5, 0, REPEAT('z', 900), NULL)",
    "INSERT INTO d.`t``1` VALUES (1, 'y'), (2, 'x')",
    "COMMIT",
    "SET binlog_transaction_compression = OFF",
    "XA START 'x'",
    "UPDATE d.`t``1`, d.t SET e = 'x', n = 1 WHERE `a b` = 1",
    "XA END 'x'",
    "XA PREPARE 'x'",
    "XA ROLLBACK 'x'",
)
Z = f"'{'z' * 900}'"
V = "v = 'a\\\\b\\'\\x0a'"
LISTED = [
    f"insert d.t (id = 1, n = NULL, {V}, doc = {DOCUMENT})",
    f"update d.t (id = 1, n = NULL, {V}, doc = {DOCUMENT})",
    f"to (id = 1, n = 2, {V}, doc = {DOCUMENT})",
    f"update d.t (id = 1, n = 2, {V}, doc = {DOCUMENT})",
    f"to (id = 1, n = 2, {V}, doc = partial update (replace $.n[0] 7, remove $.x))",
    "update d.t (id = 1)",
    "to (n = 3, v = NULL)",
    "delete d.t (id = 1)",
    f"insert d.t (id = 5, n = 0, v = {Z}, doc = NULL)",
    "insert d.`t``1` (`a b` = 1, e = 'y')",
    "insert d.`t``1` (`a b` = 2, e = 'x')",
    "update d.`t``1` (`a b` = 1, e = 'y')",
    "to (`a b` = 1, e = 'x')",
    f"update d.t (id = 5, n = 0, v = {Z}, doc = NULL)",
    f"to (id = 5, n = 1, v = {Z}, doc = NULL)",
]


@pytest.mark.servers
def test_every_operation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Server({"binlog_row_metadata": "FULL", "gtid_mode": "OFF"}) as server:
        path = recorded(server, *CHANGES)
        assert below(capsys, path) == LISTED
        assert mtsd_binlog("--rows", path) == 0
        listing = capsys.readouterr().out
        for text in ("XA START X'78',X'',1", "X'78',X'',1 prepared", "XA ROLLBACK X'78',X'',1"):
            assert text in listing
        found = objects(capsys, path)
        assert len({(each["pos"], each["row"]) for each in found}) == len(found) == 10
        assert [each["row"] for each in found if each["op"] == "insert"] == [0, 0, 1, 2]
        assert found[2]["after"]["doc"] == {
            "changes": [
                {"operation": "replace", "path": "$.n[0]", "value": 7},
                {"operation": "remove", "path": "$.x"},
            ]
        }
        assert found[3] | {"pos": 0} == {
            "file": path.name, "pos": 0, "type": "row", "row": 0, "gtid": None, "op": "update",
            "schema": "d", "table": "t", "before": {"id": 1}, "after": {"n": 3, "v": None},
        }  # fmt: skip

        # A file that is cut off is listed as far as it goes.
        short = tmp_path / path.name
        data = path.read_bytes()
        short.write_bytes(data[: data.rindex(b"zzz")])
        assert mtsd_binlog("--rows", short) == 3
        said = capsys.readouterr()
        assert [
            line.strip() for line in said.out.splitlines() if line.startswith("    ")
        ] == LISTED[:-2]
        assert "ends inside an event" in said.err
        assert said.err.count("\n") == 1
        changed = bytearray(data)
        changed[data.rindex(b"z")] ^= 1
        short.write_bytes(changed)
        assert mtsd_binlog("--rows", "--json", short) == 3
        assert capsys.readouterr().err.startswith("mtsd: error: checksum mismatch")


@pytest.mark.servers
def test_columns_without_names(capsys: pytest.CaptureFixture[str]) -> None:
    """MySQL logs signs and character sets whatever binlog_row_metadata is."""
    with Server() as server:
        path = recorded(
            server,
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT, u TINYINT UNSIGNED, v VARCHAR(9), b VARBINARY(9),"
            " e ENUM('x', 'y'), s SET('x', 'y'))",
            "INSERT INTO d.t VALUES (-1, 255, 'zä', x'ff00', 'y', 'x,y')",
        )
        assert below(capsys, path) == [
            "insert d.t (@1 = -1, @2 = 255, @3 = 'zä', @4 = x'ff00', @5 = 2, @6 = 3)"
        ]


@pytest.mark.servers
@pytest.mark.parametrize("series", ["MySQL", "10.11", "11.8"])
def test_statements_and_what_they_need(series: str, capsys: pytest.CaptureFixture[str]) -> None:
    installation = provide_mariadb(series) if series in SUITES else None
    with Server({"binlog_format": "STATEMENT"}, installation=installation) as server:
        load = server.datadir / "load.txt"
        load.write_text("1\n2\n")
        path = recorded(
            server,
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))",
            "SET @n = NULL, @i = -5, @u = CAST(18446744073709551615 AS UNSIGNED), @r = 1.5e0,"
            " @d = 1.250, @s = CONVERT('ä''' USING latin1), @b = x'ff00'",
            "INSERT INTO d.t (v) VALUES (CONCAT_WS(',', @n, @i, @u, @r, @d, HEX(@s), HEX(@b))),"
            f" ('{'long ' * 30}')",
            "INSERT INTO d.t (v) VALUES (RAND())",
            f"LOAD DATA INFILE '{load}' INTO TABLE d.t (v)",
        )
        assert mtsd_binlog("--rows", path) == 0
        listing = capsys.readouterr().out
        for text in (
            "@n = NULL\n", "@i = -5 (INT)", "@u = 18446744073709551615 (INT UNSIGNED)",
            "@r = 1.5 (REAL)", "@d = 1.250 (DECIMAL)", "@s = 'ä\\'' (STRING, collation 8)",
            "@b = x'ff00' (STRING, collation 63)", "INSERT_ID=1", "file 1, 4 bytes",
            f"('{'long ' * 30}')\n",
        ):  # fmt: skip
            assert text in listing, text
        (statement,) = (line for line in listing.splitlines() if "EXECUTE_LOAD_QUERY" in line)
        assert f"file 1 [] LOAD DATA INFILE '{load}' INTO TABLE `d`.`t`" in statement
        assert mtsd_binlog("--rows", "--json", path) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        variables = [each["fields"] for each in found if each["type"] == "USER_VAR_EVENT"]
        assert {each["name"]: each["value"] for each in variables}["u"] == "18446744073709551615"


@pytest.mark.servers
def test_damaged_rows_do_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without checksums nothing says that a row is damaged before its bytes are read."""
    with Server({"binlog_row_metadata": "FULL", "binlog_checksum": "NONE"}) as server:
        data = recorded(
            server,
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20), day DATE)",
            "INSERT INTO d.t VALUES (1, 'first', '2024-05-06'), (2, 'second', '2024-05-06'),"
            " (3, 'third', '2024-05-06')",
            "INSERT INTO d.t VALUES (4, 'later', NULL)",
        ).read_bytes()
    at = data.index(b"\x06second") + 7
    damaged = tmp_path / "binlog.000009"
    damaged.write_bytes(data[:at] + b"\xff\xff\xff" + data[at + 3 :])
    first, second, third, later = below(capsys, damaged)
    assert first.endswith("day = '2024-05-06')")
    assert second.startswith("insert d.t (id = 2, v = 'second', day = x'ffffff' (")
    assert "there is no date of year" in second
    assert (third[:18], later[:18]) == ("insert d.t (id = 3", "insert d.t (id = 4")
    damaged.write_bytes(data[: at - 7] + b"\xfe" + data[at - 6 :])
    first, second, later = below(capsys, damaged, 3)
    assert second.startswith("insert, rows not decoded: x'0002000000fe7365636f6e64")
    assert later.startswith("insert d.t (id = 4")
    assert mtsd_binlog("--rows", "--json", damaged) == 3
    said = capsys.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines() if '"type": "row"' in line]
    assert rows[1]["hex"].startswith("0002000000fe73")
    assert "column `v` of `d`.`t`: a value at byte" in rows[1]["note"]
    assert said.err.startswith("mtsd: error: 1 row events could not be decoded, the first one ends")
    assert said.err.count("\n") == 1


def test_rows_without_their_table() -> None:
    """A table map is valid up to the end of its statement."""
    events = [described(), table_map(1), row_event(1, b"\0\1\0\0\0"), row_event(1, b"\0\2\0\0\0")]
    listing = RowListing()
    lines = [
        text
        for line in event_lines("binlog.000001", events)
        for each in listing.below(line)
        for text in each.text()
    ]
    why = "there is no table map of table id 1 before them"
    assert lines == [
        "    insert d.t (@1 = 1)",
        f"    insert, rows not decoded: x'0002000000' ({why})",
    ]


def described() -> bytes:
    lengths = bytes((56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8, 0, 0, 0, 8, 8,
                     8, 2, 0, 0, 0, 10, 10, 10, 42, 42, 0, 18, 52, 0, 10, 40, 0))  # fmt: skip
    body = struct.pack("<H50sIB", 4, b"8.0.36", 0, 19) + lengths + b"\0" + bytes(4)
    return event(EventType.FORMAT_DESCRIPTION_EVENT, body)


def test_memory_does_not_grow_with_the_file() -> None:
    def events() -> Iterator[bytes]:
        yield described()
        for number in range(2000):
            yield table_map(number % 7)
            yield row_event(number % 7, b"\0\1\0\0\0" * 50)

    tracemalloc.start()
    try:
        listing = RowListing()
        count = sum(1 for line in event_lines("f", events()) for _ in listing.below(line))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 100_000
    assert peak < 1 << 20


def column(kind: ColumnType, size: int = 4) -> ColumnFormat:
    return ColumnFormat(kind, 0, size, "column 1 of `d`.`t`")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_is_short_and_exact(number: float) -> None:
    raw = struct.pack("<f", number)
    found = show_of(column(ColumnType.FLOAT))(raw)
    assert isinstance(found, float)
    assert struct.pack("<f", found) == raw
    assert len(repr(found).partition("e")[0].lstrip("-0.").replace(".", "").rstrip("0")) <= 9


def test_the_shortest_single() -> None:
    assert as_text(show_of(column(ColumnType.FLOAT))(struct.pack("<f", 0.1))) == "0.1"
    assert as_text(show_of(column(ColumnType.FLOAT))(b"\0\0\x80\x7f")) == (
        "x'0000807f' (not a number of SQL)"
    )


def test_long_values_are_cut_off_for_people_only() -> None:
    text = "ä" * 1001
    assert as_text(text) == f"'{text[:1000]}'… (1001 characters)"
    assert as_json(text) == f'"{text}"'
    assert as_text(text[:1000]) == f"'{text[:1000]}'"
    raw = bytes(501)
    assert as_text(raw) == f"x'{'00' * 500}'… (501 bytes)"
    assert as_json(raw) == f'{{"hex": "{"00" * 501}"}}'


def test_what_is_escaped_is_not_cut_off_for_its_length() -> None:
    document = '"' + "a\u200b" * 450 + '"'
    assert as_text(Document(document)) == document.replace("\u200b", "\\u200b")
    change = DocumentChanges((DocumentChange("replace", "$.a", document),))
    assert as_text(change).endswith('a\\u200b")')


def test_a_variable_that_is_not_what_it_says() -> None:
    def of(kind: UserVarType, collation: int, raw: bytes) -> object:
        return value_of_variable(UserVar(b"v", kind, collation, raw, unsigned=False))

    assert isinstance(of(UserVarType.DECIMAL, 0, b"\5\2"), Unsure)
    assert isinstance(of(UserVarType.DECIMAL, 0, b"\xff\2\0"), Unsure)
    assert isinstance(of(UserVarType.STRING, 45, b"\xff"), Unsure)
    assert isinstance(of(UserVarType.STRING, 12345, b"a"), Unsure)
