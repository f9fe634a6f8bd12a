"""Rows: transactions over several tables, row images, metadata, compression, generated columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.load.matrix.place import (
    FROM_MARIADB,
    FROM_MYSQL,
    GENERATED_LOGGED,
    MYSQLS,
    ROWS_WHERE_NEEDED,
    Part,
    Place,
    Step,
)

_WIDE: Final = (
    "a INT, b VARCHAR(200), c BLOB, d TIMESTAMP(3) NULL, e ENUM('x', 'y'), f TEXT,"
    " j DECIMAL(20,5) NOT NULL DEFAULT 1.5"
)
_KEYS: Final = {
    "keyed": "id INT PRIMARY KEY",
    "uniquely": "id INT NOT NULL UNIQUE",
    "nullable": "id INT UNIQUE",
    "keyless": "id INT",
}


def transactions(place: Place) -> Iterator[str | Step]:
    """Change several tables of two databases in one transaction, with savepoints, rolled back."""
    there = place.there
    yield "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(30), n INT)"
    yield (
        "CREATE TABLE child (id INT PRIMARY KEY AUTO_INCREMENT, parent_id INT, v VARCHAR(30),"
        " FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    yield f"CREATE TABLE {there}.log (what VARCHAR(30), n INT)"
    for number in range(1, 6):
        yield from ("BEGIN", f"INSERT INTO parent (v, n) VALUES ('p{number}', {number})")
        yield "INSERT INTO child (parent_id, v) VALUES (LAST_INSERT_ID(), 'c')"
        yield f"INSERT INTO {there}.log VALUES ('made', {number}), ('made', {number})"
        yield f"UPDATE parent SET n = n + 10 WHERE v = 'p{number}'"
        yield "SAVEPOINT one"
        yield f"DELETE FROM {there}.log WHERE n = {number - 1}"
        yield f"SAVEPOINT `two {number}`"
        yield "UPDATE child SET v = 'undone'"
        yield f"ROLLBACK TO `two {number}`"
        yield f"RELEASE SAVEPOINT `two {number}`"
        yield "ROLLBACK" if number == 3 else "COMMIT"
    yield "UPDATE parent SET id = id + 100 WHERE n > 13"
    yield "DELETE FROM parent WHERE id = 1"
    yield from ("BEGIN", "INSERT INTO parent (v) VALUES ('left')", Step("", 0))
    yield f"INSERT INTO {there}.log SELECT v, id FROM {place.here}.parent ORDER BY id"
    yield "REPLACE INTO parent (id, v, n) VALUES (200, 'replaced', 1), (200, 'again', 2)"
    yield "INSERT INTO parent (id, n) VALUES (200, 5) ON DUPLICATE KEY UPDATE n = n + VALUES(n)"
    yield "INSERT IGNORE INTO parent (id, n) VALUES (200, 6), (300, 7)"


def every_format_in_one(place: Place) -> Iterator[str | Step]:
    """Log rows and statements in one transaction, and switch the format from one to the next."""
    yield "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(60), n INT)"
    yield "CREATE TABLE copied LIKE t"
    for number, name in enumerate(("STATEMENT", "MIXED", "ROW", "MIXED", "STATEMENT")):
        yield f"SET SESSION binlog_format = {name}"
        yield from ("BEGIN", f"INSERT INTO t (v, n) VALUES ('{name}', {number})")
        if name == "MIXED":
            # It cannot be a statement: this transaction holds both.
            yield "INSERT INTO t (v, n) VALUES (UUID(), 1)"
            yield "UPDATE t SET v = CONCAT(n, UUID_SHORT()) WHERE n = 1 LIMIT 1"
        yield "UPDATE t SET n = n + 1 WHERE v = 'STATEMENT'"
        yield "INSERT INTO copied (v, n) SELECT v, n FROM t ORDER BY id"
        yield "DELETE FROM copied WHERE n = 3"
        yield "COMMIT"
    yield f"SET SESSION binlog_format = {place.between.binlog_format}"


def _changes(table: str, generation: int) -> Iterator[str]:
    ids = [generation * 10 + number for number in range(4)]
    yield (
        f"INSERT INTO {table} (id, a, b, c, e, f) VALUES"
        f" ({ids[0]}, 1, 'é', REPEAT(x'ff00', 300), 'x', REPEAT('a', 400)),"
        f" ({ids[1]}, NULL, NULL, NULL, NULL, NULL), ({ids[2]}, 3, '', x'', 'y', '')"
    )
    yield f"INSERT INTO {table} (id) VALUES ({ids[3]})"
    yield f"UPDATE {table} SET a = a + 1, d = '2020-02-02 02:02:02.125' WHERE id = {ids[0]}"
    yield f"UPDATE {table} SET f = 'changed', c = NULL WHERE id IN ({ids[0]}, {ids[2]})"
    yield f"UPDATE {table} SET b = CONCAT('x', id), a = NULL WHERE id = {ids[2]}"
    yield f"UPDATE {table} SET id = id + 1000 WHERE id = {ids[3]}"
    yield f"DELETE FROM {table} WHERE id = {ids[1]}"


def images(place: Place) -> Iterator[str | Step]:
    """Change rows under each row image, with each kind of metadata, compressed and not."""
    for table, key in _KEYS.items():
        yield f"CREATE TABLE {table} ({key}, {_WIDE})"
    metadata = ["MINIMAL", "FULL"]
    if place.has(FROM_MARIADB, "binlog_row_metadata = NO_LOG"):
        metadata.append("NO_LOG")
    if place.has(FROM_MYSQL, "binlog_transaction_compression"):
        compression = ["SET SESSION binlog_transaction_compression = {}"]
    else:
        compression = [
            "SET GLOBAL log_bin_compress_min_len = 10",
            "SET GLOBAL log_bin_compress = {}",
        ]
    formats = {place.between.binlog_format, "ROW"}
    generation = 0
    for kind in metadata:
        yield f"SET GLOBAL binlog_row_metadata = {kind}"
        for image in ("FULL", "MINIMAL", "NOBLOB"):
            yield f"SET SESSION binlog_row_image = {image}"
            generation += 1
            for setting in compression:
                yield setting.format("ON" if generation % 2 else "OFF")
            for name in sorted(formats):
                generation += 1
                yield f"SET SESSION binlog_format = {name}"
                for table in _KEYS:
                    yield "BEGIN"
                    yield from _changes(table, generation)
                    yield "COMMIT"
    for setting in compression:
        yield setting.format("OFF")
    yield "SET GLOBAL binlog_row_metadata = DEFAULT"


def generated(place: Place) -> Iterator[str | Step]:
    """Change tables with generated and invisible columns, keys on them, and CHECK constraints."""
    if place.has(GENERATED_LOGGED, "tables with generated columns"):
        yield from _generated_columns()
    yield (
        "CREATE TABLE parts (id INT NOT NULL, made DATE NOT NULL, PRIMARY KEY (id, made))"
        " PARTITION BY RANGE (YEAR(made)) (PARTITION p0 VALUES LESS THAN (2000),"
        " PARTITION p1 VALUES LESS THAN (2020), PARTITION p2 VALUES LESS THAN MAXVALUE)"
    )
    yield "INSERT INTO parts VALUES (1, '1999-01-01'), (2, '2010-01-01'), (3, '2030-01-01')"
    yield "UPDATE parts SET made = '2011-11-11' WHERE id IN (1, 3)"
    yield "ALTER TABLE parts TRUNCATE PARTITION p2"
    # It returns rows.
    yield "ALTER TABLE parts ANALYZE PARTITION p0"
    yield "ALTER TABLE parts DROP PARTITION p0"
    yield "DELETE FROM parts WHERE id = 2"
    if place.has(MYSQLS, "generated primary keys, functional and multi-valued indexes"):
        yield "SET SESSION sql_generate_invisible_primary_key = ON"
        yield "CREATE TABLE own_key (a INT, j JSON)"
        yield "SET SESSION sql_generate_invisible_primary_key = OFF"
        yield (
            "CREATE TABLE indexed (a INT, j JSON, KEY ((a + 1)), KEY ((CAST(j AS UNSIGNED ARRAY))))"
        )
        for table in ("own_key", "indexed"):
            yield f"INSERT INTO {table} VALUES (1, '[1, 2]'), (1, '[3]'), (2, NULL), (4, '[]')"
            yield f"UPDATE {table} SET a = 3 WHERE a = 2"
            yield f"DELETE FROM {table} WHERE a = 4"
        yield "DELETE FROM own_key WHERE a = 1 ORDER BY my_row_id LIMIT 1"
    if place.has(ROWS_WHERE_NEEDED, "defaults that are different at each call"):
        yield "CREATE TABLE made (id INT PRIMARY KEY, u VARCHAR(36) DEFAULT (UUID()))"
        yield "INSERT INTO made (id) VALUES (1), (2)"


def _generated_columns() -> Iterator[str]:
    yield (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, v VARCHAR(20),"
        " kept INT GENERATED ALWAYS AS (a * 2) STORED,"
        " seen VARCHAR(40) GENERATED ALWAYS AS (CONCAT(v, '/', a)) VIRTUAL,"
        " hidden INT INVISIBLE DEFAULT 5, KEY (kept), KEY (seen),"
        " CONSTRAINT small CHECK (a < 1000))"
    )
    yield "INSERT INTO t (id, a, v) VALUES (1, 1, 'a'), (2, 2, NULL), (3, 3, 'ü')"
    yield "INSERT INTO t (id, a, v, hidden) VALUES (4, 4, 'd', NULL), (5, 5, '', 55)"
    yield "INSERT INTO t VALUES (6, 6, 'six', DEFAULT, DEFAULT)"
    yield "UPDATE t SET a = a + 10, hidden = hidden + 1 WHERE id IN (1, 3, 5)"
    yield "DELETE FROM t WHERE kept = 8"
    yield (
        "CREATE TABLE without_key (a INT, g INT AS (a + 1) VIRTUAL, s INT AS (a - 1) STORED,"
        " h VARCHAR(10) INVISIBLE)"
    )
    yield "INSERT INTO without_key (a, h) VALUES (1, 'x'), (2, 'y'), (2, 'y'), (NULL, NULL)"
    yield "UPDATE without_key SET a = 7 WHERE g = 3"
    yield "DELETE FROM without_key WHERE a IS NULL"
    yield "ALTER TABLE t ADD COLUMN late INT AS (id + a) STORED AFTER a, ADD x INT INVISIBLE FIRST"
    yield "UPDATE t SET a = a + 1, x = id"


PARTS: Final[tuple[Part, ...]] = (transactions, every_format_in_one, images, generated)
