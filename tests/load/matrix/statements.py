"""Statements: what they need of their session, definitions, accounts, and those that fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.load.matrix.place import (
    ACCOUNTS,
    FROM_MARIADB,
    ONE_FAMILY,
    TRIGGERS_ON_TARGET,
    Part,
    Place,
    Step,
)

NO_SUCH_TABLE: Final = 1051
DUPLICATE: Final = 1062
LOCAL: Final = ("m_reader@localhost", "m_writer@localhost")
"""Accounts that are not in the log of a MySQL if a MariaDB reads it."""


def satellites(_place: Place) -> Iterator[str | Step]:
    """Read user variables of every type, RAND, LAST_INSERT_ID and INSERT_ID."""
    yield (
        "SET @i = -5, @d = 123.450, @r = 1E0 / 3, @one = 1E0, @s = 'é', @l = _latin1 X'E9',"
        " @n = NULL, @u = 18446744073709551615, @b = X'00FF', @low = -9223372036854775808"
    )
    yield (
        "CREATE TABLE vars (id INT PRIMARY KEY AUTO_INCREMENT, i BIGINT, d DECIMAL(30,10),"
        " r DOUBLE, one DOUBLE, s VARCHAR(30), l VARCHAR(30) CHARACTER SET latin1,"
        " u BIGINT UNSIGNED, b VARBINARY(10), low BIGINT)"
    )
    names = "i, d, r, one, s, l, u, b, low"
    values = ", ".join(f"@{name}" for name in names.split(", "))
    yield f"INSERT INTO vars ({names}) VALUES ({values})"
    yield f"INSERT INTO vars ({names}) VALUES ({', '.join(['@n'] * 9)})"
    yield "UPDATE vars SET s = CONCAT(@s, @l, @i), d = @d * @i WHERE l = @l"
    yield "CREATE TABLE typed SELECT CAST(@i AS SIGNED) i, CAST(@d AS DECIMAL(30,10)) d, @r r"
    yield "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(60), r DOUBLE, n BIGINT)"
    yield "CREATE TABLE other LIKE t"
    yield "INSERT INTO t (v, n) VALUES ('a', 1), ('b', 2), ('c', 3)"
    yield "INSERT INTO t (v, n) VALUES ('read', LAST_INSERT_ID())"
    yield "INSERT INTO other (v, n) VALUES ('both', LAST_INSERT_ID()), ('twice', LAST_INSERT_ID())"
    yield "UPDATE t SET n = LAST_INSERT_ID() WHERE id = LAST_INSERT_ID() - 1"
    yield "SET INSERT_ID = 50"
    yield "INSERT INTO t (v) VALUES ('fifty'), ('fifty-one')"
    yield "SET SESSION auto_increment_increment = 7, auto_increment_offset = 3"
    yield "INSERT INTO t (v) VALUES ('by seven'), ('by seven')"
    yield "SET SESSION auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT"
    yield "INSERT INTO t (v, r) VALUES ('r', RAND()), ('r', RAND()), ('s', RAND(3))"
    yield "INSERT INTO other (v, r, n) SELECT v, RAND(), LAST_INSERT_ID() FROM t ORDER BY id"
    yield "UPDATE t SET r = RAND(5) WHERE id = 2"
    yield "SET SESSION timestamp = 1600000000.123456, time_zone = '+05:30', lc_time_names = 'de_DE'"
    yield "CREATE TABLE times (a TIMESTAMP(6) NULL, b DATETIME(6), c VARCHAR(60), d TIME)"
    yield (
        "INSERT INTO times VALUES (NOW(6), NOW(6), DATE_FORMAT(NOW(), '%W %M'), CURTIME()),"
        " ('2020-01-01 00:00:00', '2020-01-01', UNIX_TIMESTAMP(), '1:00:00')"
    )
    yield "SET SESSION timestamp = DEFAULT, time_zone = '+00:00', lc_time_names = DEFAULT"
    yield "SET SESSION sql_mode = ''"
    yield "INSERT INTO times (b, c) VALUES ('0000-00-00', CONCAT('too', ' long'))"
    yield "INSERT INTO t (v, n) VALUES ('cut', '12abc')"
    yield "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'"
    yield "INSERT INTO \"t\" (\"v\") VALUES ('back\\' || 'slash')"
    yield "SET SESSION sql_mode = DEFAULT"
    for name in ("latin1", "utf8mb3", "utf8mb4 COLLATE utf8mb4_bin"):
        yield f"SET NAMES {name}"
        yield "INSERT INTO t (v, n) VALUES (CONCAT('a', 'a' = 'A'), 9)"
    yield "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
    yield "SET SESSION foreign_key_checks = 0, unique_checks = 0"
    yield "CREATE TABLE orphan (id INT PRIMARY KEY, to_ INT, FOREIGN KEY (to_) REFERENCES t (id))"
    yield "INSERT INTO orphan VALUES (1, 12345)"
    yield "SET SESSION foreign_key_checks = 1, unique_checks = 1"


def definitions(place: Place) -> Iterator[str | Step]:
    """Create, alter, rename, copy, truncate and drop tables, indexes, views and databases."""
    there = place.there
    yield (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 7, b VARCHAR(20) DEFAULT 'it''s' COMMENT"
        " 'é', KEY named (a, b(5))) COMMENT = 'a \"table\"'"
    )
    yield "INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'), (3, NULL, NULL)"
    for alteration in (
        "ADD COLUMN c DECIMAL(9,2) NOT NULL DEFAULT 1.5 AFTER a",
        "ADD COLUMN `weird ``c` TIMESTAMP(3) NULL DEFAULT '2020-02-02 02:02:02.125' FIRST",
        "MODIFY b VARCHAR(100) CHARACTER SET latin1 COLLATE latin1_bin",
        "CHANGE a a2 BIGINT UNSIGNED",
        "RENAME COLUMN c TO c2",
        "ADD INDEX (a2)", "ADD UNIQUE KEY once (b(10), id)", "DROP INDEX named",
        "RENAME INDEX once TO one",
        "ALTER COLUMN b SET DEFAULT 'z'",
        "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "COMMENT = 'altered', ROW_FORMAT = DYNAMIC",
        "ORDER BY id",
    ):  # fmt: skip
        yield f"ALTER TABLE t {alteration}"
        yield "UPDATE t SET b = CONCAT(b, '.') WHERE id > 1"
    yield f"CREATE TABLE {there}.copy LIKE t"
    yield f"INSERT INTO {there}.copy SELECT * FROM t"
    yield "CREATE INDEX later ON t (b)"
    yield "DROP INDEX later ON t"
    yield f"CREATE TABLE {there}.selected AS SELECT id, b, CONCAT(b, '2') AS more FROM t"
    yield (
        f"CREATE TABLE {there}.keyed (k INT AUTO_INCREMENT PRIMARY KEY) CHARACTER SET utf8mb4"
        " COLLATE utf8mb4_bin SELECT id FROM t ORDER BY id"
    )
    yield f"CREATE TABLE IF NOT EXISTS {there}.selected SELECT 99 id"
    yield f"RENAME TABLE t TO {there}.moved, {there}.copy TO t"
    for number in range(6):
        yield f"CREATE TABLE gone{number} (i INT)"
    yield f"CREATE TABLE {there}.gone (i INT)"
    yield f"DROP TABLE gone0, gone1, {there}.gone"
    yield "DROP TABLE IF EXISTS gone2, never, gone3"
    yield f"CREATE VIEW v AS SELECT id, b FROM {there}.moved WHERE id < 3"
    yield f"CREATE SQL SECURITY INVOKER VIEW {there}.w (n, s) AS SELECT id, 'é\\'' FROM t"
    yield "UPDATE v SET b = 'through' WHERE id = 2"
    yield "ALTER ALGORITHM = MERGE VIEW v AS SELECT id, b FROM t"
    yield "CREATE OR REPLACE VIEW v AS SELECT id FROM t WHERE id > 1 WITH CHECK OPTION"
    yield "CREATE VIEW gone_v AS SELECT 1 AS one"
    yield "DROP VIEW gone_v"
    yield f"TRUNCATE TABLE {there}.selected"
    yield "CREATE DATABASE `m odd ``é`` 'db'` CHARACTER SET latin1 COLLATE latin1_german1_ci"
    yield "CREATE TABLE `m odd ``é`` 'db'`.`t \"1\"` (`c %s` INT PRIMARY KEY, `select` CHAR(5))"
    yield "INSERT INTO `m odd ``é`` 'db'`.`t \"1\"` VALUES (1, 'é')"
    yield "ALTER DATABASE `m odd ``é`` 'db'` COLLATE latin1_bin"
    yield "CREATE DATABASE m_gone"
    yield "CREATE TABLE m_gone.t SELECT 1 AS one"
    yield "DROP DATABASE m_gone"
    yield "ANALYZE TABLE t"
    yield "OPTIMIZE TABLE t"
    yield "FLUSH TABLES"
    for setting in (0, 1):
        yield f"SET SESSION explicit_defaults_for_timestamp = {setting}"
        yield f"CREATE TABLE stamps{setting} (id INT PRIMARY KEY, a TIMESTAMP, b TIMESTAMP(3) NULL)"
        yield f"ALTER TABLE stamps{setting} ADD c TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:00'"
        yield f"INSERT INTO stamps{setting} (id, a) VALUES (1, '2020-02-02 02:02:02')"
        yield f"UPDATE stamps{setting} SET id = 2"
    yield "SET SESSION explicit_defaults_for_timestamp = DEFAULT"


def over_many(_place: Place) -> Iterator[str | Step]:
    """Update several tables and databases with one statement, more than a MySQL logs names of."""
    names = [f"m_many{number:02}" for number in range(18)]
    for name in names:
        yield f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        yield f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT, v VARCHAR(20))"
        yield f"INSERT INTO {name}.t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')"
    for some in (names[:2], names[:16], names):
        tables = ", ".join(f"{name}.t AS {name}" for name in some)
        assignments = ", ".join(f"{name}.n = {name}.n + 1" for name in some)
        joined = " AND ".join(f"{name}.id = {some[0]}.id" for name in some)
        yield f"UPDATE {tables} SET {assignments} WHERE {joined} AND {some[0]}.id < 3"
        deleted = ", ".join(some)
        yield f"DELETE {deleted} FROM {tables} WHERE {joined} AND {some[0]}.n > 100"
    yield f"DELETE a, b FROM {names[0]}.t a JOIN {names[1]}.t b USING (id) WHERE a.id = 3"
    yield f"DELETE FROM {names[2]}.t WHERE id IN (SELECT id FROM {names[3]}.t WHERE v = 'c')"
    yield f"INSERT INTO {names[4]}.t SELECT id + 10, n, v FROM {names[5]}.t"
    yield from ("BEGIN", *(f"UPDATE {name}.t SET v = 'all' WHERE id = 1" for name in names))
    yield "COMMIT"
    yield f"DROP TABLE {names[6]}.t, {names[7]}.t, {names[8]}.t"
    yield f"DROP DATABASE {names[9]}"


def routines(place: Place) -> Iterator[str | Step]:
    """Create, call and alter procedures and functions, triggers and events."""
    here, there = place.here, place.there
    yield "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), n INT)"
    yield f"CREATE TABLE {there}.log (what VARCHAR(40), n INT)"
    yield (
        "CREATE PROCEDURE p(IN word VARCHAR(20), IN many INT, OUT done INT) COMMENT 'it''s'"
        f" BEGIN DECLARE i INT DEFAULT 0; WHILE i < many DO"
        f" INSERT INTO {here}.t (v, n) VALUES (CONCAT(word, 'é;', i), i); SET i = i + 1;"
        f" END WHILE; UPDATE {there}.log SET n = n + many; SET done = i; END"
    )
    yield (
        f"CREATE FUNCTION f(x INT) RETURNS INT BEGIN INSERT INTO {there}.log VALUES ('f', x);"
        " RETURN x + 1; END"
    )
    yield (
        "CREATE FUNCTION pure_(s VARCHAR(20)) RETURNS VARCHAR(40) CHARACTER SET utf8mb4 COLLATE"
        " utf8mb4_general_ci DETERMINISTIC NO SQL RETURN CONCAT('<', s, '>')"
    )
    yield "CALL p('called', 3, @done)"
    yield "INSERT INTO t (v, n) VALUES (pure_('é'), @done)"
    yield "SELECT f(7)"
    yield from ("BEGIN", "INSERT INTO t (v, n) VALUES ('in', f(8))", "CALL p('in', 2, @done)")
    yield "COMMIT"
    yield from ("BEGIN", "SELECT f(9)", "CALL p('undone', 2, @done)", "ROLLBACK")
    yield "UPDATE t SET n = f(id) WHERE id = 2"
    yield "ALTER PROCEDURE p SQL SECURITY INVOKER COMMENT 'altered'"
    yield from ("CREATE PROCEDURE gone() SELECT 1", "DROP PROCEDURE gone")
    yield from ("CREATE FUNCTION gone() RETURNS INT RETURN 1", "DROP FUNCTION IF EXISTS gone")
    yield from _triggers(place)
    body = f"DO BEGIN INSERT INTO {here}.t (v) VALUES ('event'); END"
    yield "SET @hours = 3"
    yield f"CREATE EVENT e ON SCHEDULE EVERY @hours HOUR {body}"
    yield f"CREATE EVENT once ON SCHEDULE AT '2037-05-05 05:05:05' COMMENT 'é' {body}"
    yield f"CREATE EVENT disabled ON SCHEDULE EVERY 1 DAY DISABLE {body}"
    yield "ALTER EVENT e ON SCHEDULE EVERY 2 DAY STARTS '2037-01-01 00:00:00' COMMENT 'later'"
    yield "ALTER EVENT disabled ENABLE"
    yield f"ALTER EVENT once RENAME TO {there}.once"
    yield from (f"CREATE EVENT gone ON SCHEDULE EVERY 9 DAY {body}", "DROP EVENT gone")


def _triggers(place: Place) -> Iterator[str]:
    here, there = place.here, place.there
    yield "CREATE TABLE watched (id INT PRIMARY KEY, v VARCHAR(40))"
    logged = place.has(TRIGGERS_ON_TARGET, "triggers on the target")
    if not logged:
        yield "SET SESSION sql_log_bin = 0"
    yield (
        f"CREATE TRIGGER after_insert AFTER INSERT ON watched FOR EACH ROW"
        f" INSERT INTO {there}.log VALUES (NEW.v, NEW.id)"
    )
    yield (
        "CREATE TRIGGER before_update BEFORE UPDATE ON watched FOR EACH ROW"
        " SET NEW.v = CONCAT(NEW.v, '!', OLD.id)"
    )
    yield (
        f"CREATE TRIGGER {here}.after_delete AFTER DELETE ON {here}.watched FOR EACH ROW BEGIN"
        f" UPDATE {there}.log SET n = n + 1; END"
    )
    if not logged:
        yield "SET SESSION sql_log_bin = 1"
    yield "INSERT INTO watched VALUES (1, 'one'), (2, 'zwölf'), (3, 'three')"
    yield "UPDATE watched SET v = 'changed' WHERE id > 1"
    yield "DELETE FROM watched WHERE id = 3"
    if logged:
        yield "DROP TRIGGER after_delete"


def accounts(place: Place) -> Iterator[str | Step]:
    """Create and change users, grant and revoke."""
    here, there = place.here, place.there
    yield "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
    yield "CREATE PROCEDURE p() SELECT 1"
    logged = place.has(ACCOUNTS, "CREATE USER")
    if not logged:
        yield "SET SESSION sql_log_bin = 0"
    yield f"CREATE USER {', '.join(LOCAL)}"
    if not logged:
        yield "SET SESSION sql_log_bin = 1"
    yield f"GRANT SELECT, INSERT ON {here}.* TO m_reader@localhost"
    yield "GRANT SELECT (id), UPDATE (v) ON t TO m_reader@localhost"
    yield f"GRANT EXECUTE ON PROCEDURE {here}.p TO m_writer@localhost"
    yield (
        f"GRANT SELECT, UPDATE, DROP, CREATE VIEW, EVENT, TRIGGER, INDEX ON {there}.*"
        " TO m_writer@localhost WITH GRANT OPTION"
    )
    yield "GRANT PROCESS ON *.* TO m_writer@localhost"
    yield f"REVOKE INSERT ON {here}.* FROM m_reader@localhost"
    yield f"REVOKE DROP ON {there}.* FROM m_writer@localhost"
    if logged:
        yield "CREATE USER m_gone@localhost IDENTIFIED BY 'Geheim-1'"
        yield "GRANT SELECT ON t TO m_gone@localhost"
        yield "DROP USER m_gone@localhost"
        yield "RENAME USER m_writer@localhost TO m_author@localhost"
    if place.has(ONE_FAMILY, "passwords and roles"):
        yield "ALTER USER m_reader@localhost IDENTIFIED BY 'Geheim-2'"
        yield from ("CREATE ROLE m_role", f"GRANT UPDATE ON {here}.* TO m_role")
        yield "GRANT m_role TO m_reader@localhost"
        yield "SET PASSWORD FOR m_author@localhost = " + (
            "PASSWORD('Geheim-3')" if place.has(FROM_MARIADB, "PASSWORD()") else "'Geheim-3'"
        )


def failures(_place: Place) -> Iterator[str | Step]:
    """Fail half-way, with what the statement has done until then in the binary log."""
    yield "CREATE TABLE m (id INT PRIMARY KEY, v INT) ENGINE = MyISAM"
    yield "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
    yield "INSERT INTO t VALUES (1, 1), (2, 2)"
    yield Step("INSERT INTO m VALUES (1, 1), (2, 2), (1, 3), (4, 4)", error=DUPLICATE)
    yield Step("INSERT INTO t VALUES (5, 5), (1, 1)", error=DUPLICATE)
    yield "BEGIN"
    yield "UPDATE t SET v = v + 1"
    yield Step("INSERT INTO t VALUES (6, 6), (1, 1)", error=DUPLICATE)
    yield Step("INSERT INTO m VALUES (10, 1), (11, 2), (10, 3)", error=DUPLICATE)
    yield "INSERT INTO t VALUES (7, 7)"
    yield "COMMIT"
    yield "CREATE TABLE dropped (i INT)"
    yield Step("DROP TABLE dropped, missing", error=NO_SUCH_TABLE)
    yield "DROP TABLE IF EXISTS dropped"
    yield Step("UPDATE m SET id = 2 WHERE id = 1", error=DUPLICATE)
    yield "INSERT IGNORE INTO m VALUES (1, 9), (20, 20)"
    yield (
        "CREATE FUNCTION fails(x INT) RETURNS INT BEGIN INSERT INTO m VALUES (x, x);"
        " INSERT INTO t VALUES (1, 1); RETURN x; END"
    )
    yield Step("SELECT fails(30)", error=DUPLICATE)
    yield "CREATE TABLE third (id INT PRIMARY KEY, v INT)"
    yield "INSERT INTO third VALUES (1, 1), (2, 2)"
    yield Step("UPDATE third SET v = fails(id + 40)", error=DUPLICATE)


PARTS: Final[tuple[Part, ...]] = (
    satellites,
    definitions,
    over_many,
    routines,
    accounts,
    failures,
)
