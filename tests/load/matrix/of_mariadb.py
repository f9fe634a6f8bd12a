"""What only MariaDB has: sequences, system versioning, and its own statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.load.matrix.place import MARIADBS, ROWS_WHERE_NEEDED, SAME_PERIODS, Part, Place, Step


def sequences(place: Place) -> Iterator[str | Step]:
    """Create, use, alter and drop sequences."""
    if not place.has(MARIADBS, "sequences"):
        return
    yield "CREATE SEQUENCE s START WITH 100 INCREMENT BY 10 CACHE 3"
    yield "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)"
    if place.has(ROWS_WHERE_NEEDED, "numbers of a sequence"):
        yield "SELECT NEXTVAL(s), NEXT VALUE FOR s"
        yield "CREATE TABLE numbered (id BIGINT PRIMARY KEY DEFAULT NEXTVAL(s), v INT)"
        yield "INSERT INTO numbered (v) VALUES (1), (2), (3)"
        yield from ("BEGIN", "INSERT INTO numbered (v) VALUES (4), (5)", "ROLLBACK")
        yield from ("BEGIN", "INSERT INTO numbered (v) VALUES (6)", "SELECT NEXTVAL(s)", "COMMIT")
        yield "INSERT INTO t VALUES (NEXTVAL(s), 1)"
        yield "SELECT SETVAL(s, 5000)"
        yield "INSERT INTO t VALUES (NEXTVAL(s), 2)"
    yield "ALTER SEQUENCE s INCREMENT BY -1 MAXVALUE 100000 RESTART 900"
    if place.has(ROWS_WHERE_NEEDED, "numbers of a sequence"):
        yield "INSERT INTO t VALUES (NEXTVAL(s), 3)"
    yield "CREATE OR REPLACE SEQUENCE gone"
    yield "RENAME TABLE gone TO gone2"
    yield "DROP SEQUENCE gone2"
    yield "CREATE TEMPORARY SEQUENCE hidden"
    yield "DROP TEMPORARY SEQUENCE hidden"


def versioned(place: Place) -> Iterator[str | Step]:
    """Change versioned tables, with periods that are named and that are not."""
    if not place.has(SAME_PERIODS, "system versioning"):
        return
    yield "CREATE TABLE implicit (id INT PRIMARY KEY, v VARCHAR(20)) WITH SYSTEM VERSIONING"
    yield (
        "CREATE TABLE named (id INT, v INT, since TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " until TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (since, until))"
        " WITH SYSTEM VERSIONING"
    )
    yield (
        "CREATE TABLE partly (id INT PRIMARY KEY, a INT, b INT WITHOUT SYSTEM VERSIONING)"
        " WITH SYSTEM VERSIONING"
    )
    for table, columns in (("implicit", "id, v"), ("named", "id, v"), ("partly", "id, a")):
        column = columns.split(", ")[1]
        yield f"INSERT INTO {table} ({columns}) VALUES (1, 1), (2, 2), (3, 3)"
        yield f"UPDATE {table} SET {column} = 10 WHERE id < 3"
        yield from ("BEGIN", f"UPDATE {table} SET {column} = 20 WHERE id = 1")
        yield f"DELETE FROM {table} WHERE id = 2"
        yield f"INSERT INTO {table} ({columns}) VALUES (4, 4)"
        yield "COMMIT"
        yield f"DELETE FROM {table} WHERE id = 3"
    yield "UPDATE partly SET b = 7"
    yield "SET SESSION system_versioning_insert_history = 1"
    yield (
        "INSERT INTO implicit (id, v, row_start, row_end) VALUES"
        " (9, 9, '2001-01-01 00:00:00.000001', '2002-01-01')"
    )
    yield "SET SESSION system_versioning_insert_history = 0"
    yield "SET SESSION system_versioning_alter_history = KEEP"
    yield "ALTER TABLE implicit ADD COLUMN late INT DEFAULT 4"
    yield "UPDATE implicit SET late = 5 WHERE id = 1"
    yield "CREATE TABLE plain (id INT PRIMARY KEY)"
    yield "INSERT INTO plain VALUES (1), (2)"
    yield "ALTER TABLE plain ADD SYSTEM VERSIONING"
    yield "DELETE FROM plain WHERE id = 1"
    yield "CREATE TABLE dropped LIKE implicit"
    yield "ALTER TABLE dropped DROP SYSTEM VERSIONING"
    yield ("CREATE TABLE portions (id INT, v INT, d1 DATE, d2 DATE, PERIOD FOR valid (d1, d2))")
    yield "INSERT INTO portions VALUES (1, 1, '2020-01-01', '2021-01-01')"
    yield "DELETE FROM portions FOR PORTION OF valid FROM '2020-03-01' TO '2020-04-01'"
    yield "UPDATE portions FOR PORTION OF valid FROM '2020-06-01' TO '2020-07-01' SET v = 9"


def own_statements(place: Place) -> Iterator[str | Step]:
    """Run statements that only MariaDB has."""
    if not place.has(MARIADBS, "OR REPLACE, RETURNING, SET STATEMENT, two-phase ALTER"):
        return
    yield "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, v INT)"
    yield "INSERT INTO t VALUES (1, 1), (2, 2) RETURNING id"
    yield "DELETE FROM t WHERE id = 1 RETURNING v"
    yield "REPLACE INTO t VALUES (2, 3), (4, 4) RETURNING id, v"
    yield "SET STATEMENT max_statement_time = 1000 FOR INSERT INTO t VALUES (5, 5)"
    yield (
        "SET STATEMENT lock_wait_timeout = 9 FOR"
        " CREATE EVENT e ON SCHEDULE EVERY 9 HOUR DO SELECT 1"
    )
    yield "SET SESSION binlog_alter_two_phase = 1"
    yield "ALTER TABLE t ADD COLUMN late INT DEFAULT 3, ADD INDEX (late)"
    yield "SET SESSION binlog_alter_two_phase = 0"
    yield "ALTER TABLE IF EXISTS t ADD COLUMN IF NOT EXISTS late INT, DROP COLUMN IF EXISTS never"
    yield "CREATE OR REPLACE VIEW v AS SELECT id FROM t"
    yield "SET SESSION sql_mode = 'ORACLE'"
    yield "CREATE PROCEDURE p (a INT) AS BEGIN INSERT INTO t (id, v) VALUES (a, a); END;"
    yield "CALL p(77)"
    yield "SET SESSION sql_mode = DEFAULT"
    yield "SET SESSION sql_if_exists = 1"
    yield "DROP TABLE never_there"
    yield "SET SESSION sql_if_exists = 0"
    yield "CREATE TABLE checked (a INT CHECK (a > 0), b INT)"
    yield "SET SESSION check_constraint_checks = 0"
    yield "INSERT INTO checked VALUES (-1, 1)"
    yield "UPDATE checked SET b = 2"
    yield "SET SESSION check_constraint_checks = 1"
    yield "INSERT INTO checked VALUES (1, 1)"
    yield "CREATE TABLE aria (a INT, b VARCHAR(10)) ENGINE = Aria TRANSACTIONAL = 0"
    yield "INSERT INTO aria VALUES (1, 'x'), (2, 'y')"
    yield "UPDATE aria SET b = 'z' WHERE a = 1"
    yield (
        "BEGIN NOT ATOMIC INSERT INTO t (id) VALUES (88); UPDATE t SET v = 88 WHERE id = 88; END"
    )
    yield (
        "INSERT INTO t (id) WITH RECURSIVE r AS"
        " (SELECT 200 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 205) SELECT n FROM r"
    )


PARTS: Final[tuple[Part, ...]] = (sequences, versioned, own_statements)
