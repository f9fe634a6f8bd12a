"""Definitions moved on by the stream's own DDL beside what the server's information_schema says."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.query import parse_query
from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.values.row_image import RowDecoder
from mtsd.catalog.catalog import Catalog
from mtsd.catalog.definition import TableDefinition, definition_of, loaded_definition
from mtsd.model.errors import NotSupportedError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from tests.binlog.recording import OPTIONS, events_of
from tests.catalog.queries import query
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

STATEMENTS = [
    "CREATE DATABASE a CHARACTER SET latin1",
    "CREATE DATABASE b",
    "USE a",
    """CREATE TABLE t (
        id INT UNSIGNED NOT NULL AUTO_INCREMENT, `na``me` VARCHAR(20) NOT NULL DEFAULT 'a,b)',
        e ENUM('x', 'it''s', 'com,ma', '\\\\', 'trail ') CHARACTER SET utf8mb4 DEFAULT 'x',
        s SET('p', 'q') COMMENT 'UNSIGNED, PRIMARY KEY', d DECIMAL(10, 2) UNSIGNED,
        g INT GENERATED ALWAYS AS (1 + LENGTH("a,b)")) VIRTUAL, bin CHAR(3) CHARACTER SET binary,
        PRIMARY KEY (id), UNIQUE KEY (`na``me`(10), e), KEY plain (d), CHECK (d > 0)
    ) ENGINE = InnoDB DEFAULT CHARSET = utf8mb3 COLLATE utf8mb3_bin COMMENT = 'CHARSET latin1'""",
    "CREATE TABLE inherits (a TEXT, b NCHAR(3), c DOUBLE PRECISION, k BIGINT UNSIGNED UNIQUE)",
    "CREATE TABLE IF NOT EXISTS b.`t x` (a INT PRIMARY KEY, b LONG VARCHAR, c BOOL, d SERIAL)",
    "CREATE TABLE parens (`key` INT, `primary` INT, UNIQUE `named` (`key` DESC, `primary`))",
    """ALTER TABLE t ADD COLUMN first_one TINYINT FIRST, ADD after_id YEAR AFTER id,
        ADD (m INT, n MEDIUMINT UNSIGNED), DROP COLUMN d""",
    """ALTER TABLE t CHANGE s sets SET('p', 'r'),
        MODIFY e ENUM('x', 'y') CHARACTER SET latin1 AFTER sets""",
    "ALTER TABLE t RENAME COLUMN `na``me` TO `größe`, ADD UNIQUE (m, n)",
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, first_one)",
    "ALTER TABLE t ADD INDEX i (m), RENAME KEY m TO mn, ENGINE = InnoDB, COMMENT 'no, change'",
    "ALTER TABLE t ALTER COLUMN m SET DEFAULT 5, ALTER INDEX i INVISIBLE, ALGORITHM = INPLACE",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "ALTER TABLE t DEFAULT CHARACTER SET latin1, ADD late VARCHAR(5)",
    "ALTER TABLE t DROP INDEX mn, DROP n",
    "RENAME TABLE t TO b.moved, inherits TO `renamed`",
    "ALTER TABLE b.moved RENAME TO a.`back`",
    "CREATE TABLE b.alike LIKE a.`back`",
    "CREATE TABLE alike2 (LIKE b.`t x`)",
    "DROP TABLE b.`t x`, alike2",
    "ALTER TABLE `back` ADD CONSTRAINT u UNIQUE (late)",
    "ALTER TABLE `back` DROP CONSTRAINT u",
    "ALTER TABLE `back` ADD x INT, ADD y INT FIRST",
    "TRUNCATE TABLE `back`",
    "CREATE TABLE parted (a INT, b INT UNSIGNED) PARTITION BY HASH (a) PARTITIONS 4",
    "ALTER TABLE parted ADD PARTITION PARTITIONS 2",
    "CREATE UNIQUE INDEX ux USING BTREE ON parted (b, a) COMMENT 'ON x (y)' ALGORITHM = INPLACE",
    "CREATE UNIQUE INDEX `on` ON b.alike (late(2), `größe` DESC)",
    "CREATE UNIQUE INDEX functional ON parted ((a + 1), b, a)",
    "CREATE UNIQUE INDEX functional_too ON parted (b, a, (a + 1))",
    "CREATE INDEX plain_one ON parted (b)",
    "CREATE FULLTEXT INDEX words ON renamed (a)",
    "DROP INDEX ux ON parted ALGORITHM = INPLACE LOCK = NONE",
    "DROP INDEX plain_one ON parted",
    "ALTER TABLE b.alike MODIFY id INT NOT NULL",
    "DROP INDEX `PRIMARY` ON b.alike",
    "RENAME TABLE parted TO other, renamed TO parted, other TO renamed",
    "RENAME TABLE renamed TO b.renamed, b.alike TO renamed, parens TO b.`par ens`",
    "ALTER TABLE b.renamed RENAME moved_here",
    "CREATE TABLE IF NOT EXISTS renamed (wrong INT)",
    "CREATE TABLE IF NOT EXISTS parted LIKE renamed",
    "CREATE TABLE copied (UNIQUE (x)) SELECT 1 AS x, 'b' AS y",
    "ALTER TABLE moved_here SECONDARY_ENGINE = NULL",
    "DROP TABLES IF EXISTS nobody, b.`par ens`",
    "SET sql_generate_invisible_primary_key = ON",
    "CREATE TABLE without_key (a INT)",
    "SET NAMES latin1",
    b"ALTER TABLE parted ADD `\xe4\xf6` INT",
    "DROP DATABASE b",
]


def loaded(server: Server) -> dict[tuple[str, str], TableDefinition]:
    """Return the tables as the server's information_schema has them."""
    columns: dict[tuple[str, str], list[tuple[str, str, str | None]]] = {}
    for database, table, *column in server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, CONVERT(COLUMN_TYPE USING utf8mb4),"
        " CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ('a', 'b')"
        " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
    ):
        columns.setdefault((database, table), []).append((column[0], column[1], column[2]))
    keys: dict[tuple[str, str], dict[str, list[str | None]]] = {}
    for database, table, key, column in server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema"
        ".STATISTICS WHERE NOT NON_UNIQUE AND TABLE_SCHEMA IN ('a', 'b')"
        " ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    ):
        keys.setdefault((database, table), {}).setdefault(key, []).append(column)
    return {
        name: loaded_definition(
            *name,
            found,
            # A key over an expression identifies no row by its columns.
            [
                (key, [one for one in named if one is not None])
                for key, named in keys.get(name, {}).items()
                if None not in named
            ],
        )
        for name, found in columns.items()
    }


def said(definition: TableDefinition) -> dict[str, object]:
    """Return what a definition says, so that two of them can be compared."""
    return {
        "columns": [
            (column.name, column.unsigned, column.members, column.character_set)
            for column in definition.columns
        ],
        "keys": {key.name.lower(): key.columns for key in definition.keys},
    }


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(OPTIONS) as server:
        yield server


def test_every_statement_moves_definitions_on(server: Server) -> None:
    server.sql("FLUSH BINARY LOGS")
    (name, *_), *_ = server.sql("SHOW BINARY LOG STATUS")
    wanted = []
    with closing(server.client()) as client, client.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement)
            if statement[:3] not in {"USE", "SET"}:
                wanted.append(loaded(server))
    server.sql("FLUSH BINARY LOGS")
    catalog = Catalog()
    at = 0
    for event in events_of(Path(server.datadir / str(name))):
        if event[4] == EventType.QUERY_EVENT:
            query = parse_query(event)
            catalog.move_on(query)
            text = query.statement.decode(errors="replace")
            if text in {"BEGIN", "COMMIT"}:
                # Around the rows of CREATE TABLE … SELECT.
                continue
            found = {(one.database, one.table): said(one) for one in catalog}
            assert found == {key: said(one) for key, one in wanted[at].items()}, text
            at += 1
    assert at == len(wanted)


def test_names_in_swe7() -> None:
    """Its letters look like marks, and the quote of names is still one there."""
    text = StatementText(b"CREATE TABLE `[` ({ INT)", SessionContext(character_set_client=10))
    catalog = Catalog()
    catalog.move_on(query("")._replace(text=text))
    table = catalog.find("a", "Ä")
    assert table is not None
    assert [column.name for column in table.columns] == ["ä"]


def declared(*statements: str, folded: bool = False) -> Catalog:
    catalog = Catalog(folded=folded)
    for statement in statements:
        catalog.move_on(query(statement))
    return catalog


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE without columns"),
        ("CREATE TABLE t (a INT) SELECT 1 AS b", "CREATE TABLE … SELECT"),
        ("ALTER TABLE t FROBNICATE a", "ALTER TABLE … FROBNICATE"),
        ("ALTER TABLE t DROP COLUMN missing", "there is no column `missing`"),
        ("CREATE UNIQUE INDEX u ON t", "a key without columns"),
        ("CREATE TABLE t LIKE nobody", "`a`.`nobody` is unknown"),
        ("CREATE TABLE t (a INT, b", "a column without a type"),
    ],
)
def test_what_cannot_be_told_is_unknown_with_the_reason(statement: str, reason: str) -> None:
    catalog = declared("CREATE TABLE t (a INT)", statement)
    assert catalog.find("a", "t") is None
    with pytest.raises(NotSupportedError) as failed:
        catalog.get("a", "t")
    assert str(failed.value) == f"the definition of `a`.`t` is unknown: {reason}, in: {statement}"
    catalog.define(loaded_definition("a", "t", [("x", "int", None)]))
    assert catalog.get("a", "t").columns[0].name == "x"


def test_nothing_told() -> None:
    with pytest.raises(NotSupportedError, match="is unknown: nothing has told it so far"):
        Catalog().get("a", "t")


@pytest.mark.parametrize("folded", [True, False])
def test_the_case_of_names(folded: bool) -> None:
    catalog = declared("CREATE TABLE T (a INT)", folded=folded)
    assert (catalog.find("A", "t") is not None) is folded
    assert catalog.find("a", "T")


def test_other_statements_change_nothing() -> None:
    catalog = declared(
        "CREATE TABLE t (a INT)", "BEGIN", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON t (a)", "ALTER VIEW v AS SELECT 2", "DROP VIEW v",
        "RENAME USER u TO v", "ALTER DATABASE a CHARACTER SET latin1", "CREATE TRIGGER x BEFORE",
    )  # fmt: skip
    assert [column.name for column in catalog.get("a", "t").columns] == ["a"]


def without_names(table: TableMap) -> TableMap:
    """Return a table map as it is without any optional metadata."""
    return TableMap(
        table.table_id, table.flags, table.database, table.table, table.column_types,
        table.metadata, table.null_bitmap, b"",
    )  # fmt: skip


def test_rows_without_metadata_are_read_by_a_definition(server: Server) -> None:
    server.sql("CREATE DATABASE c; FLUSH BINARY LOGS")
    (name, *_), *_ = server.sql("SHOW BINARY LOG STATUS")
    server.sql(
        "CREATE TABLE c.t (id INT UNSIGNED PRIMARY KEY, e ENUM('ü', 'v'), s SET('a', 'b'),"
        " n VARCHAR(9) CHARACTER SET latin1, raw VARBINARY(9), y YEAR, j JSON, b BINARY(3));"
        """INSERT INTO c.t VALUES (4000000000, 'ü', 'a,b', 'é', x'ff', 2024, '{"a": 1}', 'x')"""
    )
    server.sql("FLUSH BINARY LOGS")
    catalog = Catalog()
    table: TableMap | None = None
    values = []
    for event in events_of(Path(server.datadir / str(name))):
        if event[4] == EventType.QUERY_EVENT:
            catalog.move_on(parse_query(event))
        elif event[4] == EventType.TABLE_MAP_EVENT:
            table = parse_table_map(event)
        elif event[4] in ROW_EVENTS and table is not None:
            bare = without_names(table)
            decoder = RowDecoder(bare, catalog.get("c", "t").declared(bare))
            for change in decoder.changes(event):
                assert change.after is not None
                names = [decoder.formats[index].name for index in change.after.columns]
                values.append(dict(zip(names, change.after.values, strict=True)))
    assert values == [
        {
            "id": 4000000000, "e": "ü", "s": "a,b", "n": "é", "raw": b"\xff", "y": 2024,
            "j": '{"a": 1}', "b": b"x\0\0",
        }
    ]  # fmt: skip
    assert table is not None
    found = definition_of(table)
    assert found is not None
    assert found.primary_key == ("id",)
    assert [column.name for column in found.columns] == list(values[0])
    assert definition_of(without_names(table)) is None


def test_a_definition_that_does_not_fit() -> None:
    table = TableMap(1, 0, "a", "t", b"\x03\x0f", b"\x0a\0", b"\0", b"")
    definition = loaded_definition("a", "t", [("x", "int", None)])
    with pytest.raises(NotSupportedError, match=r"`a`\.`t` has 1 columns, and its rows .* have 2"):
        definition.declared(table)
    definition = loaded_definition("a", "t", [("x", "int", None), ("y", "date", None)])
    with pytest.raises(NotSupportedError, match=r"column `y` of `a`\.`t` is date, .* type VARCHAR"):
        definition.declared(table)
