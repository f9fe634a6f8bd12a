"""Which expressions do not depend on the session, and that servers show them so."""

from collections.abc import Iterator

import pytest

from mtsd.apply.tables.independent_expressions import is_independent
from tests.servers.mysqld import Server

TYPES = {
    "v": "int", "u": "bigint", "s": "varchar", "doc": "json", "c": "char", "ts": "timestamp",
    "d": "date", "odd`name": "decimal",
}  # fmt: skip
INDEPENDENT = [
    "(`v` * 2)",
    "(`v` + `u`) / 3.5 % 2",
    "json_unquote(json_extract(`doc`,_utf8mb4\\'$.a.b\\'))",
    "json_valid(`doc`)",
    "concat(`s`,_utf8mb4' ',lower(`s`))",
    "(`v` > 0) and (`u` is not null)",
    "(`v` between 1 and 10) or (`s` in (_utf8mb4'a',_utf8mb4'b'))",
    "case when (`odd``name` <> 0) then 1 else 2 end",
    "",
]
DEPENDENT = [
    "`ts`",
    "(`v` - `u`)",
    "-(`v`)",
    "concat(`c`,`s`)",
    "date_format(`d`,_utf8mb4'%M')",
    "(`s` like _utf8mb4'a\\\\_b')",
    "cast(`s` as date)",
    "(`d` > _utf8mb4'2020-00-01')",
    "`unknown`",
    "(`v` || `u`)",
    "(`v` # 1)",
    "json_extract(`doc`,_utf8mb4'$.a",
]


@pytest.mark.parametrize("expression", INDEPENDENT)
def test_independent(expression: str) -> None:
    assert is_independent(expression, TYPES)


@pytest.mark.parametrize("expression", DEPENDENT)
def test_perhaps_dependent(expression: str) -> None:
    assert not is_independent(expression, TYPES)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.mark.servers
@pytest.mark.parametrize(
    ("column", "independent"),
    [
        ("INT AS (v * 2 + u)", True),
        ("VARCHAR(90) AS (doc->>'$.name')", True),
        ("VARCHAR(90) AS (CONCAT(s, ' ', UPPER(s)))", True),
        ("TINYINT AS (v > 5 AND s IN ('a', 'b'))", True),
        ("INT AS (v - u)", False),
        ("VARCHAR(90) AS (CONCAT(c, s))", False),
        ("DATETIME AS (ts)", False),
    ],
)
def test_as_a_server_shows_them(column: str, independent: bool, server: Server) -> None:
    server.sql(
        "DROP DATABASE IF EXISTS a; CREATE DATABASE a; CREATE TABLE a.t (v INT, u BIGINT,"
        f" s VARCHAR(40), doc JSON, c CHAR(4), ts TIMESTAMP NULL, g {column})"
    )
    ((text,),) = server.sql(
        "SELECT generation_expression FROM information_schema.columns"
        " WHERE table_schema = 'a' AND column_name = 'g'"
    )
    assert is_independent(str(text), TYPES) is independent
