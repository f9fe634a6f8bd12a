"""The tables that the mixed load works on: each database has the same, and some one has more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.load.columns import WIDE, Column
from tests.load.contents import quoted
from tests.load.journal import DEFINITION as JOURNAL

ODD: Final = "odd `db` \"ü\" 'ж' 日本 %s"
"""A database whose name needs quoting wherever it is written."""
ODD_TABLE: Final = "t `1` 'ä\" ☃;--"
ODD_COLUMN: Final = 'c `2` "日" \'ö%'

SMALL_DATABASES: Final = 20
"""Databases e0, e1, … that hold a journal only: more than a Query event can name."""


PLAIN: Final = (
    """CREATE TABLE accounts (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        name VARCHAR(60) NOT NULL,
        balance DECIMAL(14,2) NOT NULL DEFAULT 0,
        kind SMALLINT UNSIGNED NOT NULL DEFAULT 7 COMMENT 'it''s a kind',
        note TEXT,
        updated TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
            ON UPDATE CURRENT_TIMESTAMP(6),
        KEY (name), KEY by_kind (kind, balance DESC)
    ) COMMENT = 'what "most" transactions change'""",
    """CREATE TABLE parent (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        code BIGINT NOT NULL UNIQUE,
        name VARCHAR(40)
    )""",
    """CREATE TABLE child (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        parent_code BIGINT,
        number INT,
        KEY (parent_code),
        CONSTRAINT child_of FOREIGN KEY (parent_code) REFERENCES parent (code)
            ON DELETE CASCADE ON UPDATE CASCADE
    )""",
    """CREATE TABLE grandchild (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        child_id BIGINT NOT NULL,
        parent_code BIGINT,
        KEY (child_id),
        FOREIGN KEY (child_id) REFERENCES child (id) ON DELETE CASCADE ON UPDATE CASCADE,
        FOREIGN KEY (parent_code) REFERENCES parent (code) ON DELETE SET NULL ON UPDATE SET NULL
    )""",
    """CREATE TABLE nokey (
        a INT, b VARCHAR(30), c DOUBLE, d TIMESTAMP(3) NULL, e BLOB, f FLOAT, g BIT(9), h JSON
    )""",
    JOURNAL,
    """CREATE TABLE nullable (
        a INT, b VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, c BINARY(4), d INT NOT NULL DEFAULT -1,
        UNIQUE KEY by_a_b (a, b), UNIQUE KEY (c)
    )""",
    """CREATE TABLE worded (
        word VARCHAR(40) COLLATE utf8mb4_0900_ai_ci NOT NULL,
        number INT NOT NULL,
        v VARCHAR(20),
        PRIMARY KEY (word, number), KEY prefix (word(3), v DESC)
    )""",
    """CREATE TABLE modern (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        a INT NOT NULL DEFAULT (1 + 2),
        b VARCHAR(50) DEFAULT (CONCAT('b', UPPER('c'))),
        hidden INT INVISIBLE DEFAULT 5,
        js JSON,
        early INT GENERATED ALWAYS AS (a + 1) STORED,
        late VARCHAR(60) GENERATED ALWAYS AS (CONCAT(b, '/', a)) VIRTUAL,
        made BINARY(16) DEFAULT (UUID_TO_BIN(UUID())),
        KEY (late), KEY functional ((a * 2), (LOWER(b))), KEY unseen (b) INVISIBLE,
        KEY many ((CAST(js -> '$.tags' AS UNSIGNED ARRAY))),
        CONSTRAINT a_is_small CHECK (a < 1000000), CHECK (hidden <> 6) NOT ENFORCED
    )""",
    """CREATE TABLE bulk (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b CHAR(40) NOT NULL, KEY (a)
    ) TABLESPACE = innodb_file_per_table ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8""",
    """CREATE TABLE partitioned (
        id BIGINT NOT NULL AUTO_INCREMENT, made DATE NOT NULL, v VARCHAR(30), PRIMARY KEY (id, made)
    ) PARTITION BY RANGE (YEAR(made)) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (
        PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN (2020),
        PARTITION p2 VALUES LESS THAN MAXVALUE
    )""",
)

LOADED: Final = """CREATE TABLE loaded (
        worker INT, number BIGINT, id INT, v VARCHAR(200), r DOUBLE,
        PRIMARY KEY (worker, number, id)
    )"""
"""What each database has besides if files are loaded."""

# Each in one database only: they take long to make.
SPECIAL: Final = (
    """CREATE TABLE searched (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, words TEXT, shape GEOMETRY NOT NULL SRID 0,
        FULLTEXT KEY (words), SPATIAL KEY (shape)
    )""",
)


def database(name: str, *, character_set: str = "utf8mb4") -> list[str]:
    """Return the statements that make one of the databases d0, d1, … with its tables."""
    return [
        f"CREATE DATABASE {quoted(name)} CHARACTER SET {character_set}",
        f"USE {quoted(name)}",
        *PLAIN,
        *(_wide(table, columns) for table, columns in WIDE.items()),
    ]


def special(name: str, neighbour: str) -> list[str]:
    """Return the statements that make, in `name`, the tables that only one database has.

    One of them is referred to by a foreign key from the database `neighbour`.
    """
    return [
        f"USE {quoted(name)}",
        *SPECIAL,
        "CREATE TABLE home (id BIGINT NOT NULL PRIMARY KEY, v INT)",
        f"""CREATE TABLE {quoted(neighbour)}.abroad (
            id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, home_id BIGINT, v INT,
            FOREIGN KEY (home_id) REFERENCES {quoted(name)}.home (id)
                ON DELETE CASCADE ON UPDATE CASCADE
        )""",
    ]


def odd() -> list[str]:
    """Return the statements that make the database with odd names."""
    column = quoted(ODD_COLUMN)
    return [
        f"CREATE DATABASE {quoted(ODD)} CHARACTER SET gbk",
        f"USE {quoted(ODD)}",
        JOURNAL,
        f"""CREATE TABLE {quoted(ODD_TABLE)} (
            {column} INT NOT NULL, `select` VARCHAR(40) CHARACTER SET utf16, ` lead` CHAR(5),
            PRIMARY KEY {quoted(ODD_COLUMN)} ({column}), KEY {quoted(ODD_TABLE)} (`select`)
        ) COMMENT = 'a \\\\ comment with '' and `'""",
    ]


def small() -> list[str]:
    """Return the statements that make the small databases."""
    return [
        statement
        for number in range(SMALL_DATABASES)
        for statement in (f"CREATE DATABASE e{number}", f"USE e{number}", JOURNAL)
    ]


def _wide(table: str, columns: Sequence[Column]) -> str:
    listed = ", ".join(f"{column.name} {column.declaration}" for column in columns)
    return f"CREATE TABLE {table} (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, {listed})"
