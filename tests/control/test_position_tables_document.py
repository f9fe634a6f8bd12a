"""The SQL of docs/position-tables.md, run on the example that it shows the answers for."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtsd.apply.position.position_schema import TABLES
from mtsd.apply.position.position_tables import PositionTables
from tests.control.killed_daemon import leave_behind
from tests.servers.mysqld import Server

DOCUMENT = Path(__file__).parents[2] / "docs" / "position-tables.md"

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def target() -> Iterator[Server]:
    with Server() as server:
        leave_behind(server, "")
        yield server


def test_the_queries_answer_what_the_document_shows(target: Server) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    mark, temporary, done, goes_on, in_doubt, sessions = queries
    shown = [
        [tuple(re.split(r"\s{2,}", line)) for line in table.splitlines()[1:]]
        for table in re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    ]
    assert [_text(row[:-1]) for row in target.sql(mark)] == shown[0]
    assert [_text(row) for row in target.sql(temporary)] == shown[1]
    assert [_text(row) for row in target.sql(done)] == shown[2]
    assert [_text(row) for row in target.sql(in_doubt)] == shown[3]
    ((command,),) = target.sql(goes_on)
    assert command.endswith("SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS=700")
    # No daemon runs.
    assert target.sql(sessions) == []


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_documented(target: Server, table: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {table}:.*?(?=^## )", text, re.DOTALL | re.MULTILINE)
    documented = {
        name for line in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in
        re.findall(r"`(\w+)`", line)
    }  # fmt: skip
    columns = target.sql(
        "SELECT column_name FROM information_schema.columns"
        f" WHERE table_schema = 'mtsd' AND table_name = '{table}'"
    )
    assert documented == {name for (name,) in columns}


def test_the_tables_are_those_of_the_code(target: Server) -> None:
    tables = target.sql("SHOW TABLES FROM mtsd")
    assert len(PositionTables("mtsd", "").definitions()) - 1 == len(tables)


def _text(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(value) for value in row)
