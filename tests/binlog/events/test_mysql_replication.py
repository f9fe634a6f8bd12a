"""Decoded rows beside mysql-replication's, the reference; where it is wrong, a SELECT says so.

`DIFFERENCES` are those that are known, each with the reason why ours is right; a test beside this
one holds our values to a SELECT. It has other Python types for some: `as_theirs` converts ours.
"""

import datetime as dt
import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import MysqlPacket
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.values.column_values import Value
from mtsd.binlog.values.row_image import RowDecoder
from tests.binlog.recording import Recording
from tests.binlog.row_values import KINDS, LENIENT, create, named

ROWS = 25


class Control:
    """What mysql-replication asks its connection for."""

    charset = "utf8mb4"

    def _get_dbms(self) -> str:
        return "mysql"


def their_rows(raws: list[bytes]) -> Iterator[dict[str, Any]]:
    """Yield mysql-replication's rows of these events, which have checksums."""
    tables: dict[int, Any] = {}
    kinds = [TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent]
    for raw in raws:
        packet = MysqlPacket(b"\0" + raw, "utf8mb4")
        event = BinLogPacketWrapper(
            packet, tables, Control(), (9, 7, 4), True, kinds, None, None, None, None,
            False, False, False, True, False,
        ).event  # fmt: skip
        if isinstance(event, TableMapEvent):
            tables[event.table_id] = event.get_table()
        elif isinstance(event, RowsEvent):
            yield from event.rows


def our_rows(raws: list[bytes]) -> Iterator[tuple[dict[str, Value], dict[str, Value]]]:
    decoder: RowDecoder | None = None
    for raw in raws:
        if raw[4] == EventType.TABLE_MAP_EVENT:
            decoder = RowDecoder(parse_table_map(raw[:-4]))
        elif decoder is not None:
            for change in decoder.changes(raw[:-4]):
                yield named(decoder, change.before), named(decoder, change.after)


@pytest.fixture(scope="module")
def by_column(recording: Recording) -> dict[str, list[bytes]]:
    """Return the row events of a table for each kind of column, and the table maps before them."""
    server = recording.server
    server.sql("CREATE DATABASE m; FLUSH BINARY LOGS")
    (name, *_), *_ = server.sql("SHOW BINARY LOG STATUS")
    rng = random.Random(21)
    with closing(server.client("m")) as client, client.cursor() as cursor:
        cursor.execute(LENIENT)
        for column, kind in KINDS.items():
            cursor.execute(create(f"`{column}`", {column: kind}))
            values = ", ".join(f"({number}, {kind.literal(rng)})" for number in range(ROWS))
            cursor.execute(f"INSERT INTO `{column}` VALUES {values}, ({ROWS}, NULL)")
            cursor.execute(f"UPDATE `{column}` SET id = id + 100")
            cursor.execute(f"DELETE FROM `{column}`")
    server.sql("FLUSH BINARY LOGS; DROP DATABASE m")
    framer = FileFramer()
    found: dict[str, list[bytes]] = {}
    current = ""
    for raw in framer.feed(Path(server.datadir / str(name)).read_bytes()):
        if raw[4] == EventType.TABLE_MAP_EVENT:
            current = parse_table_map(raw[:-4]).table
        if raw[4] in ROW_EVENTS or raw[4] == EventType.TABLE_MAP_EVENT:
            found.setdefault(current, []).append(raw)
    return found


def as_theirs(column: str, value: Value) -> object:
    """Return our value as mysql-replication has it."""
    if value is None:
        return None
    match column.split("_"):
        case ["bit", size]:
            return f"{int(str(value)):0{size}b}"
        case ["set", *_]:
            # It has no value for the empty set.
            return set(str(value).split(",")) if value else None
        case ["date"]:
            return dt.date.fromisoformat(str(value))
        case ["time", _]:
            sign = -1 if str(value).startswith("-") else 1
            hours, minutes, seconds = str(value).lstrip("-").split(":")
            clock = dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
            return sign * clock
        case ["datetime" | "timestamp", _]:
            whole, _, fraction = str(value).partition(".")
            moment = dt.datetime.fromisoformat(whole)
            return moment.replace(microsecond=int(fraction.ljust(6, "0")))
        case ["json", *_]:
            return json.loads(str(value))
    return value


def in_text(value: object) -> object:
    """Return a document of mysql-replication with text for its bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [in_text(element) for element in value]
    if isinstance(value, dict):
        return {in_text(key): in_text(element) for key, element in value.items()}
    return value


Known = Callable[[Any, Any], bool]


def no_calendar(ours: str, theirs: object) -> bool:
    return theirs is None and ("-00" in ours or ours.startswith("0000"))


def no_second(ours: str, theirs: object) -> bool:
    return ours.startswith("0000-00-00") and theirs == dt.datetime(1970, 1, 1)  # noqa: DTZ001


def no_zeros(ours: bytes, theirs: str | bytes) -> bool:
    return ours.rstrip(b"\0") == (theirs.encode() if isinstance(theirs, str) else theirs)


def empty_text(ours: bytes, theirs: object) -> bool:
    return ours == b"" and theirs == ""


def fraction_left(ours: str, theirs: object) -> bool:
    whole, _, fraction = ours.partition(".")
    micro = dt.timedelta(microseconds=int(fraction.ljust(6, "0")))
    wrong = as_theirs("time_0", whole)
    return (
        ours[0] == "-"
        and isinstance(wrong, dt.timedelta)
        and bool(micro)
        and theirs == wrong + micro - dt.timedelta(seconds=1)
    )


DIFFERENCES: dict[str, tuple[str, Known]] = {
    "year": ("it has 1900 for the year 0", lambda ours, theirs: (ours, theirs) == (0, 1900)),
    "date": ("it has None for a date that is in no calendar", no_calendar),
    **{
        f"datetime_{digits}": ("it has None for a date that is in no calendar", no_calendar)
        for digits in range(7)
    },
    **{f"timestamp_{digits}": ("it has 1970 for the zero date", no_second) for digits in range(7)},
    **{
        f"time_{digits}": (
            "it takes the fraction of a negative time for what is left to the second",
            fraction_left,
        )
        for digits in range(1, 7)
    },
    "binary_5": ("it leaves out the zeros at the end, which belong to a BINARY", no_zeros),
    "binary_255": ("it leaves out the zeros at the end, which belong to a BINARY", no_zeros),
    **dict.fromkeys(
        ("varbinary_20", "varbinary_300", "tinyblob", "blob", "mediumblob", "longblob"),
        ("it has text for no bytes", empty_text),
    ),
    "varchar_utf16": (
        "it reads MySQL's big-endian utf16 as little-endian",
        lambda ours, theirs: ours.encode("utf-16-be") == theirs.encode("utf-16-le"),
    ),
    "enum_latin1": (
        "it leaves out what is not UTF-8 in the members of an ENUM",
        lambda ours, theirs: (ours, theirs) == ("ü", ""),
    ),
}
"""Why a value of a column may differ, and which ones may."""

FAILURES = {
    "char_latin1": (UnicodeDecodeError, "it knows no character for 0x81, which latin1 has"),
    "text_latin1": (UnicodeDecodeError, "it knows no character for 0x81, which latin1 has"),
    "json": (ValueError, "it has no times of more than a day in JSON, and other opaque values"),
    "vector": (ValueError, "it does not know the optional metadata of vectors"),
}


@pytest.mark.parametrize("column", [column for column in KINDS if column not in FAILURES])
def test_every_value_of(by_column: dict[str, list[bytes]], column: str) -> None:
    raws = by_column[column]
    ours = list(our_rows(raws))
    theirs = list(their_rows(raws))
    assert len(ours) == len(theirs) == 3 * (ROWS + 1)
    _, known = DIFFERENCES.get(column, ("", lambda _ours, _theirs: False))
    differing = 0
    for (before, after), row in zip(ours, theirs, strict=True):
        pairs = (
            ((before, row["before_values"]), (after, row["after_values"]))
            if "after_values" in row
            else ((after or before, row["values"]),)
        )
        for mine, their in pairs:
            assert mine["id"] == their["id"]
            value, other = mine[column], their[column]
            if value is not None and known(value, other):
                differing += 1
            elif column.startswith("json"):
                assert as_theirs(column, value) == in_text(other)
            else:
                assert as_theirs(column, value) == other
    assert bool(differing) is (column in DIFFERENCES), "a difference that is no more"


@pytest.mark.parametrize("column", list(FAILURES))
def test_what_it_cannot_decode(by_column: dict[str, list[bytes]], column: str) -> None:
    kind, _ = FAILURES[column]
    assert len(list(our_rows(by_column[column]))) == 3 * (ROWS + 1)
    with pytest.raises(kind):
        list(their_rows(by_column[column]))
