"""What fits is what a real server applies, for every pair of types and every setting."""

import re
from collections.abc import Iterator
from contextlib import closing

import pybase64
import pymysql
import pytest

from mtsd.apply.tables.column_fit import Fit, fit, shapes_of_event
from mtsd.apply.tables.table_columns import read_columns
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.wire.connection import Connection
from tests.apply.sessions import endpoint
from tests.apply.tables.type_names import FEW, MANY
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

SETTINGS = ("", "ALL_NON_LOSSY", "ALL_LOSSY", "ALL_LOSSY,ALL_NON_LOSSY")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server({"binlog_checksum": "NONE"}) as server:
        yield server


@pytest.mark.parametrize(
    "types",
    [
        pytest.param(FEW, id="few"),
        pytest.param(MANY, marks=[pytest.mark.long, pytest.mark.timeout(1800)], id="many"),
    ],
)
async def test_fits_as_the_server_has_it(types: tuple[str, ...], server: Server) -> None:
    names = [f"d{number:03}" for number in range(len(types))]
    for database, target in zip(names, types, strict=True):
        tables = "".join(f"CREATE TABLE t{n} (c {target});" for n in range(len(types)))
        server.sql(f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}")
        server.sql(tables, database)
    server.sql("DROP DATABASE IF EXISTS src0; CREATE DATABASE src0")
    for number, source in enumerate(types):
        server.sql(f"CREATE TABLE src0.t{number} (c {source})")
    (file, offset, *_) = server.sql("SHOW BINARY LOG STATUS")[0]
    for number in range(len(types)):
        server.sql(f"INSERT INTO src0.t{number} VALUES (NULL)")
    dumped = server.tool("mysqlbinlog", f"--start-position={offset}", str(file)).decode()
    description, *rows = map(decoded, re.findall(r"BINLOG '\n(.*?)'", dumped, re.DOTALL))
    shapes = [shapes_of_event(parse_table_map(table_map(row)))[0] for row in rows]
    assert len(shapes) == len(types)
    connection = await Connection.open(endpoint(server))
    wrong: list[object] = []
    with closing(server.client()) as client, client.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"BINLOG '{pybase64.b64encode(description).decode()}'")
        cursor.execute("SET gtid_next = 'AUTOMATIC'")
        for settings in SETTINGS:
            cursor.execute(f"SET GLOBAL replica_type_conversions = '{settings}'")
            for database, target in zip(names, types, strict=True):
                (column,) = await read_columns(connection, database, "t0")
                assert column.shape is not None
                for source, shape, row in zip(types, shapes, rows, strict=True):
                    if is_misread(source, target):
                        continue
                    renamed = row.replace(b"\x04src0\0", b"\x04" + database.encode() + b"\0")
                    applied = does_apply(cursor, renamed)
                    found = fit(shape, column.shape)
                    if found.allowed(settings.split(",")) != applied:
                        wrong.append((settings, source, target, found, applied))
    connection.close()
    assert wrong == [], wrong


TIMES = {"time", "datetime", "timestamp"}


def is_misread(source: str, target: str) -> bool:
    """Tell whether the server accepts the table and then reads something else out of its rows."""
    kinds = [re.split(r"\W", each.lower())[0] for each in (source, target)]
    return kinds[0] == kinds[1] in TIMES and "(" in target and "(" not in source


def decoded(block: str) -> bytes:
    """Return the events of a block, each of which is encoded by itself."""
    parts = re.findall(r"[^=]+=*", block.replace("\n", ""))
    return b"".join(map(pybase64.b64decode, parts))


def table_map(row: bytes) -> bytes:
    """Return the first event of a block."""
    return row[: int.from_bytes(row[9:13], "little")]


def does_apply(cursor: pymysql.cursors.Cursor, events: bytes) -> bool:
    try:
        cursor.execute(f"BINLOG '{pybase64.b64encode(events).decode()}'")
    except pymysql.err.MySQLError as error:
        if error.args[0] != 1105:
            raise
        return False
    return True


def test_what_a_conversion_needs() -> None:
    assert Fit.EXACT.allowed(())
    assert not Fit.NON_LOSSY.allowed(["ALL_LOSSY"])
    assert not Fit.NEVER.allowed(["ALL_LOSSY", "ALL_NON_LOSSY"])
