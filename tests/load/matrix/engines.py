"""Tables without transactions, beside those with, and LOAD DATA into both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.load.matrix.place import Part, Place, Step
from tests.load.matrix.statements import DUPLICATE

_UPDATE: Final = "UPDATE t SET n = n + 1"
_INSERT: Final = "INSERT INTO m (v) VALUES ('m')"
_TABLE: Final = "(id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), n INT)"


def mixed_engines(_place: Place) -> Iterator[str | Step]:
    """Change InnoDB and MyISAM in one transaction, committed or rolled back."""
    yield f"CREATE TABLE t {_TABLE} ENGINE = InnoDB"
    yield f"CREATE TABLE m {_TABLE} ENGINE = MyISAM"
    yield "CREATE TABLE keyless (a INT, b VARCHAR(20)) ENGINE = MyISAM"
    yield (
        "CREATE FUNCTION f(x INT) RETURNS INT BEGIN INSERT INTO m VALUES (x, 'f', 0); RETURN x; END"
    )
    yield "INSERT INTO t (v, n) VALUES ('a', 1), ('b', 2), ('c', 3)"
    yield from ("BEGIN", _UPDATE, _INSERT, _UPDATE, "ROLLBACK")
    yield from ("BEGIN", _UPDATE, _INSERT, "COMMIT")
    yield from ("BEGIN", _INSERT, _UPDATE, "COMMIT")
    yield from ("BEGIN", _INSERT, _UPDATE, "ROLLBACK")
    yield "UPDATE t, m SET t.n = 5, m.v = CONCAT(m.v, 'x') WHERE t.id = 1"
    yield from (
        "BEGIN",
        "UPDATE t, m SET t.n = 6, m.v = CONCAT(m.v, 'y') WHERE t.id = 2",
        "ROLLBACK",
    )
    yield from ("BEGIN", _UPDATE)
    yield Step("INSERT INTO m VALUES (1100, 'p', 1), (1101, 'p', 1), (1100, 'p', 2)", 0, DUPLICATE)
    yield from (_UPDATE, "COMMIT")
    yield from ("BEGIN", _UPDATE, "SAVEPOINT a", _UPDATE, _INSERT, "ROLLBACK TO a", _UPDATE)
    yield "COMMIT"
    yield from ("BEGIN", _UPDATE, "SAVEPOINT a", _INSERT, "ROLLBACK TO a", "ROLLBACK")
    yield from ("BEGIN", "UPDATE t SET n = f(id + 2000) WHERE id < 3", "ROLLBACK")
    yield "INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, NULL)"
    yield "UPDATE keyless SET b = 'y' WHERE a = 1"
    yield "DELETE FROM keyless WHERE a = 2"
    yield from (
        "BEGIN",
        "INSERT INTO keyless VALUES (3, '')",
        "DELETE FROM m WHERE id = 2",
        "COMMIT",
    )
    yield "INSERT INTO m (v, n) VALUES (RAND(3), LAST_INSERT_ID())"
    yield "ALTER TABLE keyless ENGINE = InnoDB"
    yield "INSERT INTO keyless VALUES (4, 'InnoDB')"
    yield "TRUNCATE TABLE m"
    yield _INSERT


def load_data(place: Place) -> Iterator[str | Step]:
    """Load files, into tables of both engines, in each form."""
    here, there = place.here, place.there
    plain = place.file("plain", "1\tone\t1\n2\tzwö\t\\N\n3\t\\t\\\\\t3\n")
    more = place.file("more", '"4";"a ""b""";5\r\n"2";"other";7\r\n')
    short = place.file("short", "hello\nworld\n")
    yield f"CREATE TABLE t {_TABLE}"
    yield f"CREATE TABLE m {_TABLE} ENGINE = MyISAM"
    yield f"LOAD DATA INFILE '{plain}' INTO TABLE t CHARACTER SET utf8mb4"
    yield f"LOAD DATA LOCAL INFILE '{plain}' IGNORE INTO TABLE m CHARACTER SET utf8mb4"
    fields = "FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'"
    yield f"LOAD DATA CONCURRENT INFILE '{more}' REPLACE INTO TABLE t CHARACTER SET latin1 {fields}"
    yield f"LOAD DATA INFILE '{more}' IGNORE INTO TABLE t {fields} IGNORE 1 LINES"
    yield "SET @prefix = 'é', @n = 3"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE t (@word) SET v = CONCAT(@prefix, @word), n = @n"
    yield f"LOAD DATA LOCAL INFILE '{short}' INTO TABLE t (v) SET n = RAND() * 1000"
    yield from ("BEGIN", "INSERT INTO t VALUES (100, 'in a transaction', 1)")
    yield f"LOAD DATA INFILE '{short}' INTO TABLE t (v)"
    yield "UPDATE t SET n = LAST_INSERT_ID() WHERE id = 100"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE m (v)"
    yield "ROLLBACK"
    yield "BEGIN"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE {here}.t (v)"
    yield from ("SAVEPOINT a", _UPDATE, _INSERT, "ROLLBACK TO a", "COMMIT")
    yield f"USE {there}"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE {here}.t (v)"
    yield f"LOAD DATA INFILE '{short}' INTO TABLE {here}.m (v)"


PARTS: Final[tuple[Part, ...]] = (mixed_engines, load_data)
