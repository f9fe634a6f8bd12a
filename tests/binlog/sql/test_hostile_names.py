"""Names that are no plain words: through the parsers, messages, listings and SQL of mtsd."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtsd.apply.sql import literals
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.binlog.events.xa_prepare import parse_xa_prepare
from mtsd.binlog.sql.qualifiers import MOST, qualifiers
from mtsd.cli import binlog
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group
from mtsd.model.statement_text import StatementText
from tests.binlog.building import event, query
from tests.binlog.recording import Recording
from tests.binlog.transactions import begin, gtid, in_stream, rows, table_map, xid
from tests.binlog.transactions import grouped as grouped_events
from tests.servers.mysqld import Server

NAMES = [
    "it's",
    'say "so"',
    "back`tick``s",
    "line\nend\r\n",
    "\x1b[2Jgone",
    "semi;colon -- /* */ #",
    "back\\slash\\",
    "ä" * 64,
    "😀" * 63,
    "\u2028\u0085",
]


def definition(statement: bytes, *databases: str) -> bytes:
    names = b"".join(name.encode() + b"\0" for name in databases)
    return query(statement, status=b"\x0c%c" % len(databases) + names)


@pytest.mark.parametrize("name", NAMES)
def test_a_database_keeps_its_name(name: str) -> None:
    changed, defined = grouped_events(
        *(gtid(1), begin(), table_map(1, name, name), rows(1), xid()),
        definition(b"CREATE TABLE `x`.y (a INT)", name),
    )
    assert isinstance(changed, Group)
    assert isinstance(defined, Group)
    assert changed.databases == (name,)
    assert name in defined.databases


@pytest.mark.parametrize("raw", [b"a\0b", b"\0", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80"])
def test_what_can_be_no_name_is_refused(raw: bytes) -> None:
    body = bytes((1, 0, 0, 0, 0, 0, 1, 0, len(raw))) + raw + b"\0\1t\0\1\3\0\1"
    damaged = [
        (begin(), event(EventType.TABLE_MAP_EVENT, body)),
        (query(b"CREATE DATABASE x", database=raw),),
    ]
    if b"\0" not in raw:
        status = b"\x0c\1" + raw + b"\0"
        damaged.append((query(b"CREATE DATABASE x", status=status),))
    for events in damaged:
        with pytest.raises(BinlogError, match=r"NUL|UTF-8") as raised:
            grouped_events(*events)
        assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "name", [*map(str.encode, NAMES), "😀".encode() * 64, b"\xff\xfe", b"\x81`"]
)
def test_a_name_in_a_statement(name: bytes) -> None:
    quoted = b"`" + name.replace(b"`", b"``") + b"`"
    found = qualifiers(StatementText(b"CREATE VIEW v AS SELECT * FROM " + quoted + b".t"))
    assert {one.encode("utf-8", "surrogateescape") for one in found} == {name}


def test_only_so_many_names_are_looked_for() -> None:
    names = b",".join(b"n%d.t" % number for number in range(MOST * 3))
    assert len(qualifiers(StatementText(b"CREATE VIEW v AS SELECT * FROM " + names))) == MOST
    (group,) = grouped_events(query(b"CREATE VIEW v AS SELECT * FROM " + names))
    assert isinstance(group, Group)
    assert group.alone


@pytest.fixture
def hostile_file(recording: Recording, tmp_path: Path) -> Iterator[Path]:
    groups: list[bytes] = []
    for name in NAMES:
        groups += (gtid(1), begin(), table_map(1, name, name), rows(1), xid())
        groups += (gtid(2), definition(b"CREATE TABLE `\xff\xfe`.y (a INT)", name))
    description = recording.files[0].read_bytes()[4:][: len(recording.raw[0])]
    events = in_stream(groups, 4 + len(description))
    path = tmp_path / "hostile.000001"
    path.write_bytes(b"".join((MAGIC, description, *events)))
    return iter([path])


@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_listing_has_a_line_each(
    hostile_file: Iterator[Path], capsys: pytest.CaptureFixture[str], events: bool, as_json: bool
) -> None:
    (path,) = hostile_file
    parser = argparse.ArgumentParser()
    binlog.register(parser.add_subparsers())
    options = ["--events"] * events + ["--json"] * as_json
    args = parser.parse_args(["binlog", *options, str(path)])
    assert args.run(args) == 0
    out = capsys.readouterr().out
    lines = out.encode().decode().split("\n")
    assert len(lines) - 1 == (1 + 7 * len(NAMES) if events else 2 * len(NAMES)) + (not as_json)
    if as_json:
        assert "back`tick``s" in str([json.loads(line) for line in lines[:-1]])
    else:
        assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("gtrid", [b"'", b'"`\\', b"\0" * 64, b"\xff" * 64, b"", b"\n;DROP"])
def test_the_name_of_an_xa_transaction_is_bytes(gtrid: bytes) -> None:
    sizes = len(gtrid).to_bytes(4, "little") * 2
    raw = event(EventType.XA_PREPARE_LOG_EVENT, b"\0\xff\xff\xff\xff" + sizes + gtrid + gtrid)
    found = parse_xa_prepare(raw)
    assert (found.format_id, found.gtrid, found.bqual) == (-1, gtrid, gtrid)


def test_literals_come_back_as_they_were(recording: Recording) -> None:
    server: Server = recording.server
    for mode in ("''", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"):
        for name in [*NAMES, "a\0b", "\udcff\udc80", ""]:
            raw = name.encode("utf-8", "surrogateescape")
            for literal in (literals.text(name), literals.blob(raw)):
                sql = f"SET sql_mode = {mode}; SELECT HEX({literal.decode()})"
                assert server.sql(sql) == [(raw.hex().upper(),)]


@pytest.mark.parametrize("name", [*NAMES, "", "a\0b", "x" * 65, "a.b", "a b"])
def test_an_identifier_of_mtsds_own_is_plain(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain identifier"):
        literals.name(name)
