"""System-versioned tables of MariaDB: their history arrives as it is, or the replica stops."""

from pathlib import Path

import pytest

from tests.fix_daemon import foretold, replicated, stopped
from tests.fix_families import families
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

TABLES = (
    "CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING;"
    "CREATE TABLE a.named (i INT, since TIMESTAMP(6) GENERATED ALWAYS AS ROW START, until"
    " TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (since, until))"
    " WITH SYSTEM VERSIONING; CREATE TABLE a.plain (i INT)"
)
NO_VERSIONS = "SET SESSION sql_log_bin = 0, system_versioning_alter_history = KEEP;"


def history(server: Server, table: str) -> list[tuple[object, ...]]:
    """Return all rows that are no longer current, and the current ones without their end."""
    start, end = ("since", "until") if table == "named" else ("row_start", "row_end")
    of = f"FROM a.{table} FOR SYSTEM_TIME ALL WHERE {end}"
    return [
        *server.sql(f"SELECT i, {start}, {end} {of} < NOW() + INTERVAL 1 DAY ORDER BY 1, 2"),
        *server.sql(f"SELECT i, {start} {of} > NOW() + INTERVAL 1 DAY ORDER BY 1, 2"),
        *server.sql(f"SELECT i FROM a.{table} ORDER BY 1"),
    ]


@pytest.mark.parametrize("change", ["t", "named", "t and a plain one", "XA"])
def test_current_rows_of_an_older_source_would_be_history(change: str, tmp_path: Path) -> None:
    with families("10.11", "11.8") as pair:
        pair.source.sql(TABLES)
        pair.source.sql("INSERT INTO a.plain VALUES (1)")
        pair.source.sql({
            "t": "INSERT INTO a.t VALUES (1, 1)",
            "named": "INSERT INTO a.named (i) VALUES (1)",
            "t and a plain one": (
                "BEGIN; INSERT INTO a.plain VALUES (2); INSERT INTO a.t VALUES (1, 1); COMMIT"
            ),
            "XA": "XA START 'x'; INSERT INTO a.t VALUES (1, 1); XA END 'x'; XA PREPARE 'x'",
        }[change])  # fmt: skip
        table = "a.named" if change == "named" else "a.t"
        assert "a.named, a.t" in foretold(pair, tmp_path)["versioned"]
        assert f"table {table} has system versioning on the target" in stopped(pair, tmp_path)
        assert pair.target.sql("SELECT * FROM a.plain") == [(1,)]
        assert pair.target.sql(f"SELECT * FROM {table} FOR SYSTEM_TIME ALL") == []


def test_rows_of_a_newer_source_stay_current(tmp_path: Path) -> None:
    with families("11.8", "10.11") as pair:
        pair.source.sql(TABLES)
        pair.source.sql(
            "INSERT INTO a.t VALUES (1, 1), (2, 2), (3, 3); DELETE FROM a.t WHERE i = 1"
        )
        pair.source.sql("UPDATE a.t SET v = 9 WHERE i = 2; UPDATE a.t SET v = 10 WHERE i = 2")
        pair.source.sql(
            "INSERT INTO a.named (i) VALUES (1), (2), (2); DELETE FROM a.named WHERE i = 1"
        )
        pair.source.sql("UPDATE a.named SET i = 5 WHERE i = 2 LIMIT 1")
        replicated(pair, tmp_path)
        for table in ("t", "named"):
            assert history(pair.target, table) == history(pair.source, table)
        assert not {"versioned", "not-generated"} & foretold(pair, tmp_path).keys()


@pytest.mark.parametrize("table", ["t", "named"])
@pytest.mark.parametrize(
    "altered",
    ["", "ALTER TABLE a.{0} ADD COLUMN more INT, ADD COLUMN most INT", "ALTER TABLE a.t DROP v"],
    ids=["", "more columns", "fewer columns"],
)
def test_sql_cannot_write_history(table: str, altered: str, tmp_path: Path) -> None:
    with families("11.8", "11.8") as pair:
        for server in (pair.source, pair.target):
            server.sql(f"{NO_VERSIONS} {TABLES}")
        if altered:
            pair.target.sql(f"{NO_VERSIONS} {altered.format(table)}")
        pair.source.sql(f"INSERT INTO a.{table} (i) VALUES (1); DELETE FROM a.{table}")
        said = stopped(pair, tmp_path, {"target.apply_mode": "sql"})
        assert "versioned-as-sql" in foretold(pair, tmp_path, {"target.apply_mode": "sql"})
        assert f"table a.{table} has system versioning on the target" in said
        assert pair.target.sql(f"SELECT * FROM a.{table} FOR SYSTEM_TIME ALL") == []


def test_a_table_that_is_versioned_on_the_target_only(tmp_path: Path) -> None:
    """What a MySQL changes has a history on the target, of the time when it was applied."""
    with families("9.7", "11.8") as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY)")
        replicated(pair, tmp_path)
        pair.target.sql("ALTER TABLE a.t ADD SYSTEM VERSIONING")
        pair.source.sql("INSERT INTO a.t VALUES (1), (2); DELETE FROM a.t WHERE i = 1")
        replicated(pair, tmp_path)
        assert pair.target.sql("SELECT * FROM a.t") == [(2,)]
        assert len(pair.target.sql("SELECT * FROM a.t FOR SYSTEM_TIME ALL")) == 2
