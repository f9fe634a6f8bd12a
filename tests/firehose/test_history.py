"""Histories are equal however the same changes are combined, and show every other difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.firehose.history import History, read_history, unequal
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

ROWS = "INSERT INTO a.t VALUES (1, 'x'), (2, 'y')"
MORE = "UPDATE a.t SET v = 'z' WHERE i = 2"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v VARCHAR(10))")
        yield server


def history(server: Server, *statements: str) -> History:
    """Return that of the statements, on an empty table."""
    server.sql("SET sql_log_bin = 0; DELETE FROM a.t; DROP TABLE IF EXISTS a.u")
    server.sql("FLUSH BINARY LOGS")
    file, *_ = server.binlog_end()
    server.sql(";".join(("SET timestamp = 1000000000", *statements)))
    return read_history([Path(server.datadir / file)])


def test_combined(server: Server) -> None:
    one_by_one = history(server, ROWS, MORE)
    assert unequal(one_by_one, history(server, "BEGIN", ROWS, MORE, "COMMIT")) == []
    assert unequal(one_by_one, history(server, "INSERT INTO a.t VALUES (1, 'x')",
        "INSERT INTO a.t VALUES (2, 'y')", MORE)) == []  # fmt: skip


@pytest.mark.parametrize(
    "statements",
    [
        (ROWS,),
        (ROWS, "UPDATE a.t SET v = 'Z' WHERE i = 2"),
        ("INSERT INTO a.t VALUES (2, 'y'), (1, 'x')", MORE),
        (ROWS, MORE, "CREATE TABLE a.u (i INT)"),
        ("SET foreign_key_checks = 0", ROWS, MORE),
    ],
    ids=["fewer", "another value", "another order", "more", "another session"],
)
def test_different(server: Server, statements: tuple[str, ...]) -> None:
    (line,) = unequal(history(server, ROWS, MORE), history(server, *statements))
    assert line.startswith("history of 'a', step ")


def test_session_of_a_definition(server: Server) -> None:
    table = "CREATE TABLE a.u (i INT)"
    (line,) = unequal(history(server, table), history(server, "SET sql_mode = ''", table))
    assert "sql_mode=0" in line
