"""The keys that a target says it has, of both families; what of them tells which rows conflict."""

import asyncio
from collections.abc import Collection, Iterator

import pytest

from mtsd.apply.tables.key_definitions import ForeignKey, KeyDefinitions, read_key_definitions
from mtsd.apply.tables.table_keys import letters_only, why_whole
from mtsd.model.server import Flavour
from tests.apply.sessions import open_session
from tests.fix_families import installed
from tests.servers.mysqld import NO_GTIDS, Options, Server

pytestmark = pytest.mark.servers

DEFINITIONS = """
    CREATE DATABASE a; CREATE DATABASE b; USE a;
    CREATE TABLE Parent (Id INT PRIMARY KEY, v INT, w INT NOT NULL, UNIQUE w (w, v));
    CREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT one FOREIGN KEY (p)
        REFERENCES Parent (ID) ON DELETE CASCADE);
    CREATE TABLE b.other (x INT NOT NULL UNIQUE, y INT, CONSTRAINT two FOREIGN KEY (x, y)
        REFERENCES a.Parent (w, v) ON UPDATE CASCADE ON DELETE RESTRICT);
    CREATE TABLE prefix (id VARCHAR(20) COLLATE utf8mb4_bin, PRIMARY KEY (id(5)));
    CREATE TABLE computed (id INT PRIMARY KEY, g INT AS (id + 1) STORED UNIQUE);
    CREATE TABLE swedish (
        id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_swedish_ci PRIMARY KEY);
    CREATE TABLE nothing (id INT UNIQUE);
    CREATE TABLE in_memory (id INT PRIMARY KEY) ENGINE = MEMORY;
    CREATE TABLE fit (id CHAR(9) CHARACTER SET latin1 PRIMARY KEY, d DECIMAL(5,2) UNIQUE);
    CREATE TABLE documents (FTS_DOC_ID BIGINT UNSIGNED NOT NULL PRIMARY KEY, v TEXT, FULLTEXT (v));
    CREATE VIEW seen AS SELECT * FROM nothing
"""
OF_MARIADB = """
    USE a; CREATE TABLE booked (id INT, s DATE, e DATE, PERIOD FOR p (s, e),
        PRIMARY KEY (id, p WITHOUT OVERLAPS));
    CREATE TABLE times (id INT PRIMARY KEY, s DATETIME, e DATETIME, UNIQUE (s, e));
    CREATE TABLE versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING;
    CREATE SEQUENCE counted;
    CREATE TRIGGER fires BEFORE INSERT ON fit FOR EACH ROW SET NEW.d = 1
"""
SERIES = ("9.7", "10.11", "11.8")


@pytest.fixture(scope="module", params=SERIES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    options: Options = NO_GTIDS if request.param == "9.7" else {}
    with Server(options, installation=installed(request.param)) as server:
        server.sql(DEFINITIONS.replace("ID)", "Id)"))
        if request.param != "9.7":
            server.sql(OF_MARIADB)
        yield server


def is_mariadb(server: Server) -> bool:
    return "MariaDB" in str(server.sql("SELECT VERSION()")[0][0])


def read(
    server: Server, databases: Collection[str] | None = None, *, fold_case: bool = False
) -> KeyDefinitions:
    flavour = Flavour.MARIADB if is_mariadb(server) else Flavour.MYSQL

    async def reading() -> KeyDefinitions:
        session = await open_session(server)
        try:
            return await read_key_definitions(
                session.connection, flavour, databases, fold_case=fold_case
            )
        finally:
            session.connection.close()

    return asyncio.run(reading())


def test_what_is_read(server: Server) -> None:
    known = read(server)
    assert known.databases == {"a", "b"}
    assert set(known.foreign_keys) == {
        ForeignKey(("a", "child"), ("p",), ("a", "Parent"), ("Id",), cascades_deletes=True),
        ForeignKey(
            ("b", "other"), ("x", "y"), ("a", "Parent"), ("w", "v"), cascades_updates=True
        ),
    }  # fmt: skip
    assert ("a", "seen") not in known.tables
    assert ("a", "counted") not in known.tables
    parent = known.tables["a", "Parent"]
    assert [each.column.name for each in parent.columns] == ["Id", "v", "w"]
    assert [each.nullable for each in parent.columns] == [False, True, False]
    assert [[part.column for part in key] for key in parent.unique] == [["Id"], ["w", "v"]]
    assert [part.characters for part in known.tables["a", "prefix"].unique[0]] == [5]
    expressions = {
        each.column.name: each.expression for each in known.tables["a", "computed"].columns
    }
    assert "id" in expressions["g"]
    assert not expressions["id"]
    # What the server says to be a primary key is one, or a unique key that can be one.
    keyed = server.sql(
        "SELECT DISTINCT table_schema, table_name FROM information_schema.columns"
        " WHERE column_key = 'PRI' AND table_schema IN ('a', 'b')"
    )
    assert {name for name, table in known.tables.items() if table.identifies_rows} == set(keyed)


def test_why_tables_are_changed_as_a_whole(server: Server) -> None:
    known = read(server)
    found = {name: why for (_, name), table in known.tables.items() if (why := why_whole(table))}
    expected = {
        "computed": "its unique key (g)",
        "swedish": "its unique key (id)",
        "nothing": "neither a primary key",
        "in_memory": "its storage engine is memory",
        "documents": "document ids",
    }
    if is_mariadb(server):
        expected |= {"booked": "periods that overlap", "versioned": "system versioning"}
        assert known.tables["a", "fit"].triggers
        assert not known.tables["a", "times"].overlaps
    assert found.keys() == expected.keys()
    assert all(expected[name] in why for name, why in found.items())


def test_some_databases_and_names_in_lower_case(server: Server) -> None:
    known = read(server, ["b"], fold_case=True)
    assert known.databases == {"b"}
    assert set(known.tables) == {("b", "other")}
    assert len(known.foreign_keys) == 2
    assert ("a", "parent") in {each.parent for each in known.foreign_keys}
    assert read(server, []).databases == frozenset()
    assert read(server, ["c"]).tables == {}


PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]


def test_collations_in_which_ascii_differs_in_case_only(server: Server) -> None:
    """No characters are equal but for their case, alone or behind others, and none is nothing."""
    found = server.sql("SELECT collation_name FROM information_schema.collations")
    names = [str(name) for (name,) in found]
    chosen = [name for name in names if letters_only(name)]
    assert len(chosen) > 10
    values = ", ".join(f"(X'{each.encode().hex()}')" for each in PRINTABLE)
    for name in chosen:
        charset = name.partition("_")[0]
        table = f"CREATE TEMPORARY TABLE a.c (c VARCHAR(3) CHARACTER SET {charset} COLLATE {name})"
        rows = server.sql(
            f"{table}; INSERT INTO a.c VALUES {values};"
            "CREATE TEMPORARY TABLE a.d LIKE a.c; INSERT INTO a.d SELECT * FROM a.c;"
            "SELECT HEX(x.c), HEX(y.c) FROM a.c x JOIN a.d y"
            " ON x.c = y.c OR CONCAT(x.c, '!') = '!' OR CONCAT(x.c, y.c, 'x') = CONCAT(y.c, 'x')"
            " OR CONCAT(x.c, x.c, y.c) = CONCAT(x.c, y.c, x.c, y.c)"
            " OR (CONCAT(x.c, y.c) = CONCAT(y.c, x.c) AND x.c <> y.c)"
        )
        for one, other in rows:
            left, right = (bytes.fromhex(str(each)).decode() for each in (one, other))
            assert left.lower() == right.lower(), name
