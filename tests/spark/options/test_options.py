"""Errors in options are reported by name, and all at once."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mtsd.model.errors import NeedsPersonError
from mtsd.model.position import Position
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.options.live_options import LiveOptions
from mtsd.spark.options.options import OptionError, Options, parse_options

CHANGES = {"path": "/x", "shape": "changes"}


def test_all_options() -> None:
    assert parse_options({"PATH": "/x"}) == Options("/x")
    assert parse_options(
        {
            "path": "/x",
            "shape": "TABLE",
            "table": "`d`.t",
            "columns": "a, `b c`",
            "start": "binlog.000002:444",
            "end": "binlog.000007:9",
            "max_partition_bytes": "8m",
            "dates": "nulls",
            "ddl": "CREATE TABLE d.t (a INT)",
        }
    ) == Options(
        "/x",
        "table",
        ("d", "t"),
        ("a", "b c"),
        Position("binlog.000002", 444),
        Position("binlog.000007", 9),
        8 << 20,
        "CREATE TABLE d.t (a INT)",
        Dates.NULLS,
    )
    assert parse_options({"path": "/x", "start": "b.000001"}).start == Position("b.000001", 4)


def test_what_spark_gives_to_every_source_is_not_read() -> None:
    given = {
        "paths": '["/a","/b"]', "location": "/x", "owner": "o", "provider": "mtsd_binlog",
        "external": "true", "option.shape": "changes", "serialization.format": "1",
    }  # fmt: skip
    assert parse_options(given).paths == ("/a", "/b")


def test_names_of_sparks_own_sources() -> None:
    given = {"path": "/x", "startingOffsets": "latest", "maxBytesPerTrigger": "1k"}
    found = parse_options({**given, "endingOffsets": "b.000001:4"})
    assert (found.latest, found.max_bytes) == (True, 1024)
    assert found.end == Position("b.000001", 4)
    assert parse_options({"path": "/x", "endingOffsets": "Latest"}).end is None


def test_names_in_backticks_may_have_any_signs() -> None:
    found = parse_options({**CHANGES, "tables": "`a`.`t*`,a.`(b)`", "schemas": "a"})
    assert found.tables == (("a", "t*"), ("a", "(b)"))
    assert parse_options({**CHANGES, "schemas": "`a.b`,c"}).schemas == ("a.b", "c")


def test_addresses_of_hosts() -> None:
    for host in ("::1", "fe80::1%eth0", "db-1.example.org"):
        live = parse_options({"host": host}).live
        assert live is not None
        assert live.host == host


def test_filters_and_the_beginning() -> None:
    found = parse_options(
        {
            "path": "/x",
            "shape": "changes",
            "start": "Latest",
            "max_bytes": "1k",
            "schemas": "a, b",
            "tables": "a.x, `b`.y",
            "ops": "insert,delete",
            "since": "2026-01-02",
            "until": "2026-01-02 03:04:05+01:00",
        }
    )
    assert (found.start, found.latest, found.max_bytes) == (None, True, 1024)
    assert (found.schemas, found.ops) == (("a", "b"), ("insert", "delete"))
    assert found.tables == (("a", "x"), ("b", "y"))
    assert found.since == datetime(2026, 1, 2, tzinfo=UTC)
    assert found.until == datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert not parse_options({"path": "/x", "start": "earliest"}).latest


def test_a_live_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"host": "h", "port": "3307", "server_ids": "7, 4001-4003", "password": " a b"}
    live = parse_options(given).live
    assert live == LiveOptions(
        host="h", port=3307, server_ids=(7, 4001, 4002, 4003), password=" a b"
    )
    assert " a b" not in repr(live)
    assert live.endpoint().password == " a b"
    file = tmp_path / "password"
    file.write_text("from a file \n")
    monkeypatch.setenv("SOME_PASSWORD", "from there")
    for name, value, password in (
        ("password_file", str(file), "from a file "),
        ("password_env", "SOME_PASSWORD", "from there"),
    ):
        live = parse_options({"unix_socket": "/s", name: value}).live
        assert live is not None
        assert live.endpoint().password == password
        assert password not in repr(live)


def test_a_password_file_without_an_end() -> None:
    live = parse_options({"unix_socket": "/s", "password_file": "/dev/zero"}).live
    assert live is not None
    with pytest.raises(NeedsPersonError, match="it is larger than 1 MiB"):
        live.endpoint()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "/x", "nonsense": "1"}, "option 'nonsense' is unknown: docs/spark.md has"),
        ({"path": "/x", "startOffsets": "1"}, "'startOffsets' is unknown: did you mean 'start'"),
        ({"path": "/x", "colums": "1"}, r"^option 'colums' is unknown: did you mean 'columns'\?$"),
        ({"path": "/x", "start": "a", "startingOffsets": "a"}, "are the same: give one of them"),
        ({"paths": "/x"}, r'a JSON list of paths, as load\(\["a", "b"\]\) makes it'),
        ({"path": "/x", "unseen_changes": "skip"}, "belongs to shape 'changes' or 'table'"),
        ({"path": "/x", "shape": "changes", "unseen_changes": "no"}, "is one of error, skip"),
        ({}, "as all others are: .* use CREATE TEMPORARY VIEW"),
        ({"shape": "changes"}, "option 'path' is missing"),
        ({"path": "/x", "shape": "rows"}, "'shape' is 'rows': it is one of events, groups,"),
        ({"path": "/x", "shape": "table"}, "shape 'table' needs the option 'table'"),
        ({"path": "/x", "table": "a.b"}, "option 'table' belongs to shape 'table'"),
        ({"path": "/x", "shape": "table", "table": "t"}, 'it is "database.table"'),
        ({"path": "/x", "columns": "a,,b"}, "a list of names"),
        ({"path": "/x", "columns": "a,a"}, "a name is there twice"),
        ({"path": "/x", "max_partition_bytes": "0"}, "it is a number of bytes"),
        ({"path": "/x", "max_partition_bytes": "many"}, "it is a number of bytes"),
        (
            {"path": "/x", "start": "f:x"},
            "it is earliest, latest, FILE, FILE:POS",
        ),
        ({"path": "/x", "end": "f"}, "it is latest or FILE:POSITION"),
        ({"path": "/x", "end": "a:b:4"}, "it is latest or FILE:POSITION"),
        ({"path": "/x", "end": "2026-05-31 12:00:00"}, "the option 'until' takes a time"),
        ({"path": "/x", "start": "b.000002:4", "end": "b.000001:9"}, "'start' and 'end' leave not"),
        (
            CHANGES | {"since": "2026-01-02", "until": "2026-01-02"},
            "'since' and 'until' leave noth",
        ),
        (
            CHANGES | {"start": "2026-01-02", "until": "2026-01-01"},
            "'start' and 'until' leave noth",
        ),
        (CHANGES | {"since": "2999-01-01"}, "'since' is 2999-01-01 .* which has not come yet"),
        (CHANGES | {"start": "2999-01-01"}, "'start' is 2999-01-01 .* which has not come yet"),
        (
            CHANGES | {"tables": "a.t,b.t", "schemas": "A"},
            r"names b\.t, which 'schemas' leaves out",
        ),
        (CHANGES | {"tables": "a.*"}, "names are exact, and no pattern: .* use 'schemas'"),
        (CHANGES | {"tables": "['a.t']"}, "with commas between them, without other signs"),
        (CHANGES | {"schemas": "a.t"}, "without tables: use 'tables'"),
        (CHANGES | {"schemas": "a%"}, "names are exact, and no pattern: leave the option out"),
        ({"path": "/x", "shape": "table", "table": "a.*"}, "names are exact, .* shape 'changes'"),
        ({"path": "/x", "dates": "lenient"}, "it is one of strict, nulls, text"),
        ({"nonsense": "1"}, "'nonsense' is unknown.*; option 'path' is missing"),
        ({"path": "/x", "shape": "changes", "dates": "text"}, "'dates' belongs to shape 'table'"),
        ({"path": "/x", "ddl": "CREATE TABLE t"}, "'ddl' belongs to shape 'changes' or 'table'"),
        ({"path": "/x", "max_bytes": "no"}, "it is a number of bytes"),
        ({"path": "/x", "shape": "changes", "tables": "t"}, 'it is "database.table"'),
        ({"path": "/x", "shape": "groups", "tables": "d.t"}, "'tables' belongs to shape 'changes'"),
        ({"path": "/x", "since": "2026-01-01"}, "'groups' or 'changes' or 'table'"),
        ({"path": "/x", "shape": "groups", "until": "today"}, "it is a time such as"),
        ({"path": "/x", "shape": "changes", "ops": "update_preimage"}, "no 'update_preimage' in"),
        ({"path": "/x", "host": "h"}, "both 'path' and options of a live source"),
        ({"user": "u"}, "a live source needs the option 'host' or 'unix_socket'"),
        ({"host": "h", "unix_socket": "/s"}, "both 'host' and 'unix_socket'"),
        ({"host": "h", "port": "0"}, "it is a port"),
        ({"host": "h:3307"}, "'port' is an option of its own"),
        ({"host": "mysql://h"}, "it is a name or an address"),
        ({"host": "h", "tls_ca": "/c"}, "'tls_ca' has no effect while 'tls' is 'preferred'"),
        (
            {"host": "h", "tls": "disabled", "tls_cert": "/c", "tls_key": "/k"},
            "has no effect while",
        ),
        ({"unix_socket": "/s", "port": "3307"}, "'port' has no effect on a 'unix_socket'"),
        ({"unix_socket": "/s", "tls": "verify_ca"}, "'tls' has no effect on a 'unix_socket'"),
        (
            {"host": "h", "get_public_key": "true", "server_public_key": "/k"},
            "'get_public_key' has no effect beside 'server_public_key'",
        ),
        ({"host": "h", "tls": "yes"}, "it is one of disabled, preferred, required, verify_ca"),
        ({"host": "h", "tls_cert": "/c"}, "'tls_cert' and 'tls_key' belong together"),
        ({"host": "h", "password": "a", "password_env": "b"}, "password is given more than once"),
        ({"host": "h", "server_ids": "5-4"}, "5-4 is no range of server ids"),
        ({"host": "h", "server_ids": "a"}, "a list of ids and ranges, such as 4001-4010"),
        ({"host": "h", "retry_seconds": "-1"}, "it is a number of seconds"),
    ],
)
def test_what_is_wrong(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(given)
