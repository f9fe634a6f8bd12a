"""Generated columns from a newer MariaDB to an older one: refused, rather than stale in silence."""

from pathlib import Path

import pytest

from tests.fix_daemon import foretold, replicated, stopped
from tests.fix_families import families

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

STORED = "i INT PRIMARY KEY, v INT, g INT AS (v * 2) STORED"
CHANGES = (
    "INSERT INTO a.t (i, v) VALUES (1, 2), (3, 4), (5, 6);"
    " UPDATE a.t SET v = v + 10 WHERE i = 3; DELETE FROM a.t WHERE i = 1"
)
ROWS = "SELECT i, v, g FROM a.t ORDER BY i"


@pytest.mark.parametrize(
    "columns",
    [
        STORED,
        "i INT, v INT, g INT AS (v * 2) STORED",
        "i INT, v INT, g INT AS (v * 2) VIRTUAL",
        "i INT, v INT, g INT AS (v * 2) VIRTUAL, UNIQUE (g)",
    ],
)
def test_an_older_target_would_not_generate_them(columns: str, tmp_path: Path) -> None:
    with families("11.8", "10.11") as pair:
        pair.source.sql(f"CREATE DATABASE a; CREATE TABLE a.t ({columns})")
        pair.source.sql(CHANGES)
        assert "not-generated" in foretold(pair, tmp_path)
        assert "table a.t has generated columns" in stopped(pair, tmp_path)
        assert pair.target.sql(ROWS) == []
        assert "not-generated" in foretold(pair, tmp_path)
        # What the message says helps.
        replicated(pair, tmp_path, {"target.apply_mode": "sql"})
        assert pair.target.sql(ROWS) == pair.source.sql(ROWS) == [(3, 14, 28), (5, 6, 12)]


def test_what_is_found_and_generated_anyway_is_not_refused(tmp_path: Path) -> None:
    with families("11.8", "10.11") as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t"
            " (i INT PRIMARY KEY, v INT, g INT AS (v * 2) VIRTUAL, KEY (g))"
        )
        pair.source.sql(CHANGES)
        replicated(pair, tmp_path)
        assert pair.target.sql(ROWS) == pair.source.sql(ROWS)


@pytest.mark.parametrize(("source", "target"), [("10.11", "11.8"), ("11.8", "11.8")])
def test_other_pairs(source: str, target: str, tmp_path: Path) -> None:
    with families(source, target) as pair:
        pair.source.sql(f"CREATE DATABASE a; CREATE TABLE a.t ({STORED})")
        pair.source.sql(CHANGES)
        replicated(pair, tmp_path)
        assert pair.target.sql(ROWS) == pair.source.sql(ROWS)
