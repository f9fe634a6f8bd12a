"""`mtsd check` finds columns of two real servers that do not fit, and no others."""

from pathlib import Path

import pytest

from tests.apply.tables.type_names import MANY
from tests.operations.checked import told
from tests.replica.daemon_process import Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


def test_columns_are_compared(tmp_path: Path) -> None:
    with Pair() as pair:
        settings: dict[str, Value] = {
            "source.unix_socket": str(pair.source.socket),
            "source.user": "root",
            "target.unix_socket": str(pair.target.socket),
            "target.user": "root",
        }
        alike = ", ".join(f"c{number} {kind}" for number, kind in enumerate(MANY))
        for server in (pair.source, pair.target):
            server.sql(f"CREATE DATABASE a; CREATE TABLE a.alike ({alike})")
        key = "SET sql_generate_invisible_primary_key = ON;"
        pair.target.sql(f"{key} CREATE TABLE a.keyed (i INT, t TEXT)")
        pair.source.sql("CREATE TABLE a.keyed (i INT, t TEXT)")
        found = told(tmp_path, settings)
        assert "2 tables on both" in found.lines["columns"]
        assert not [line for line in found.bad if line.startswith("columns")]

        pair.source.sql(
            "CREATE TABLE a.t (id INT PRIMARY KEY, name VARCHAR(40), kind ENUM('x', 'it''s'),"
            " `at` DATETIME, n INT, m INT, last INT)"
        )
        pair.target.sql(
            "CREATE TABLE a.t (id BIGINT PRIMARY KEY, name VARCHAR(20), kind ENUM('it''s', 'x'),"
            " `at` DATETIME(6), m INT, n INT)"
        )
        found = told(tmp_path, settings)
    assert (
        "a.t.id (int; there bigint), a.t.name (varchar(40); there varchar(20)), a.t.at (dat"
        in (found.bad["columns-refused"])
    )
    # The time cannot be converted at all.
    assert (
        "give it the source's type (ALTER TABLE on the target); unless"
        in (found.bad["columns-refused"])
    )
    assert "a.t.kind (enum('x','it''s') utf8mb4" in found.bad["columns-misread"]
    assert "a.t.n (n; there m), a.t.m (m; there n)" in found.bad["columns-moved"]
    assert "a.t;" in found.bad["columns-fewer"]
    assert "columns" not in found.lines
    assert found.status == 3


def test_tables_are_compared_by_the_names_that_the_target_gives_them(tmp_path: Path) -> None:
    """It has them in lower case."""
    installation = provide_mariadb("11.8")
    with Pair(
        {}, {"lower_case_table_names": 1},
        installation=installation, target_installation=installation,
    ) as pair:  # fmt: skip
        settings: dict[str, Value] = {
            "source.unix_socket": str(pair.source.socket),
            "source.user": "root",
            "source.start": "latest",
            "target.unix_socket": str(pair.target.socket),
            "target.user": "root",
            "target.schema": "Position",
            "filter.rewrite_db": [["Stock", "Shelf"]],
        }
        for server, stock in ((pair.source, "Stock"), (pair.target, "Shelf")):
            server.sql(
                f"CREATE DATABASE Shop; CREATE TABLE Shop.Orders (id INT PRIMARY KEY, v INT);"
                "CREATE TRIGGER Shop.Each BEFORE INSERT ON Shop.Orders FOR EACH ROW SET NEW.v = 1;"
                f"CREATE DATABASE {stock}; CREATE TABLE {stock}.Items (id INT PRIMARY KEY, v TEXT)"
            )
        found = told(tmp_path, settings)
        assert "2 tables on both" in found.lines["columns"]
        assert not {"missing-tables", "own-triggers"}.intersection(found.bad)
        pair.target.sql(
            "CREATE DATABASE Position; CREATE TABLE Position.own (id INT) ENGINE = MyISAM;"
            "ALTER TABLE Shop.Orders MODIFY v BINARY(3), ENGINE = MyISAM;"
            "ALTER TABLE Shelf.Items MODIFY v INT"
        )
        found = told(tmp_path, settings)
    assert "shop.orders.v (int(11); there binary(3))" in found.bad["columns-refused"]
    assert "shelf.items.v" in found.bad["columns-refused"]
    assert "shop.orders" in found.bad["target-engine"]
    assert "position.own" not in str(found.lines)
