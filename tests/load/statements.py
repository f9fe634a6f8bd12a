"""Transactions and definitions in which a statement says less than it does, for both families.

They read user variables, RAND(), LAST_INSERT_ID() and AUTO_INCREMENT values, load files, and
change rows through functions, procedures, triggers and temporary tables. Each worker has a
database of its own; a transaction changes a second one at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.load.files import Files

ABOVE_SIGNED: Final = (1 << 63) + 100
"""An AUTO_INCREMENT value that a signed 64-bit number cannot hold."""
_COUNTED: Final = 8
_COLLATIONS: Final = ("utf8mb4_general_ci", "utf8mb4_bin")
_MODES: Final = ("DEFAULT", "''", "'STRICT_ALL_TABLES,PIPES_AS_CONCAT'")
_ZONES: Final = ("'+00:00'", "'+05:30'", "'-08:00'")
_TEXTS: Final = ("plain", "é漢", "😀 smile", "it''s", "")
_TYPED: Final = "id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY"

TABLES: Final = (
    (
        f"CREATE TABLE variables ({_TYPED}, i BIGINT, u BIGINT UNSIGNED, d DECIMAL(30,10),"
        " r DOUBLE, one DOUBLE, s VARCHAR(60) CHARACTER SET utf8mb4, l VARCHAR(30) CHARACTER SET"
        " latin1, b VARBINARY(40), n INT, c VARCHAR(64), at DATETIME(6)) ENGINE = InnoDB"
    ),
    (
        f"CREATE TABLE high ({_TYPED}, v BIGINT UNSIGNED, r DOUBLE) ENGINE = InnoDB"
        f" AUTO_INCREMENT = {ABOVE_SIGNED}"
    ),
    # Without a key: what is done twice is there twice.
    "CREATE TABLE log (what VARCHAR(60), n BIGINT UNSIGNED, r DOUBLE) ENGINE = InnoDB",
    "CREATE TABLE counted (id INT PRIMARY KEY, n BIGINT NOT NULL) ENGINE = InnoDB",
    "INSERT INTO counted VALUES " + ", ".join(f"({id_}, 0)" for id_ in range(_COUNTED)),
    "CREATE TABLE watched (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE = InnoDB",
    (
        "CREATE TABLE loaded (number INT, id INT, v VARCHAR(200) CHARACTER SET utf8mb4, r DOUBLE,"
        " PRIMARY KEY (number, id)) ENGINE = InnoDB"
    ),
    f"CREATE TABLE altered ({_TYPED}, v INT NOT NULL) ENGINE = InnoDB",
    (
        "CREATE FUNCTION f(x INT) RETURNS INT BEGIN"
        " INSERT INTO log VALUES ('function', x, RAND());"
        f" UPDATE counted SET n = n + 1 WHERE id = x % {_COUNTED}; RETURN x + 1; END"
    ),
    (
        "CREATE PROCEDURE p(IN word VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
        " IN many INT, OUT done INT)"
        " BEGIN DECLARE i INT DEFAULT 0; WHILE i < many DO"
        " INSERT INTO high (v, r) VALUES (i, RAND());"
        " INSERT INTO log VALUES (CONCAT('procedure ', word), LAST_INSERT_ID(), i);"
        " SET i = i + 1; END WHILE; SET done = i; END"
    ),
    (
        "CREATE TRIGGER inserted AFTER INSERT ON watched FOR EACH ROW"
        " INSERT INTO log VALUES (CONCAT('inserted ', NEW.v), NEW.id, RAND())"
    ),
    "CREATE TRIGGER updates BEFORE UPDATE ON watched FOR EACH ROW SET NEW.v = CONCAT(NEW.v, '!')",
    (
        "CREATE TRIGGER deleted AFTER DELETE ON watched FOR EACH ROW"
        f" UPDATE counted SET n = n + OLD.id WHERE id = OLD.id % {_COUNTED}"
    ),
)
"""What each database has besides the tables of the load."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What is run between BEGIN and COMMIT, in sessions with these settings.

    `abroad`: the other database that it changes. `statements_only`: the target, which applies rows
    as SQL, has a trigger on the table.
    """

    statements: Sequence[str]
    abroad: str = ""
    statements_only: bool = False
    settings: Sequence[str] = field(default_factory=tuple)


class Statements:
    """Makes what one worker runs in `own`, its database; `others` have other workers."""

    def __init__(self, chance: Random, own: str, others: Sequence[str], files: Files) -> None:
        self._chance = chance
        self._own = own
        self._others = others
        self._files = files
        self._kinds = (
            (self._variables, 20),
            (self._generated, 16),
            (self._high, 10),
            (self._two_tables, 10),
            (self._two_databases, 5),
            (self._function, 10),
            (self._procedure, 8),
            (self._watched, 12),
            (self._temporary, 10),
            (self._small_file, 8),
            (self._large_file, 1),
        )
        self._defined = (
            self._copy, self._typed, self._index, self._column, self._table, self._view,
            self._routine, self._event, self._database, self._comment,
        )  # fmt: skip

    def transaction(self, number: int) -> Transaction:
        """Return the transaction with this number; no two have the same."""
        makers, weights = zip(*self._kinds, strict=True)
        (make,) = self._chance.choices(makers, weights)
        made = make(number)
        chance = self._chance
        settings = (
            f"SET NAMES utf8mb4 COLLATE {chance.choice(_COLLATIONS)}",
            f"SET SESSION time_zone = {chance.choice(_ZONES)}, sql_mode = {chance.choice(_MODES)}",
        )
        return Transaction(made.statements, made.abroad, made.statements_only, settings)

    def definitions(self, number: int) -> Sequence[str]:
        """Return statements that commit implicitly; what they leave behind is bounded."""
        return self._chance.choice(self._defined)(number)

    def _variables(self, _number: int) -> Transaction:
        chance = self._chance
        names = "i, u, d, r, one, s, l, b, n"
        listed = ", ".join(f"@{name}" for name in names.split(", "))
        use = chance.choice(
            (
                f"INSERT INTO variables ({names}, c, at) VALUES ({listed}, COLLATION(@s), NOW(6))",
                (
                    f"INSERT INTO variables ({names}, at) VALUES ({listed}, @n),"
                    f" ({', '.join(['@n'] * 9)}, NOW())"
                ),
                "INSERT INTO log VALUES (CONCAT(@s, '/', @d, '/', @r, '/', @one, '/', @n), @u, @r)",
            )
        )
        id_ = chance.randrange(1, 200)
        change = (
            f"UPDATE variables SET i = @i, u = @u, s = CONCAT(LEFT(s, 30), @s), b = @b, d = @d / 3"
            f" WHERE id BETWEEN {id_} AND {id_ + 2}"
        )
        return Transaction([*self._set(), use, chance.choice((change, "DO 0"))])

    def _set(self) -> list[str]:
        """Return a SET of a variable of every type."""
        chance = self._chance
        text, collation = chance.choice(_TEXTS), chance.choice(_COLLATIONS)
        return [
            (
                f"SET @i = {chance.randint(-(1 << 63), (1 << 63) - 1)},"
                f" @u = CAST({(1 << 64) - 1 - chance.randrange(1000)} AS UNSIGNED),"
                f" @d = {chance.randint(-9999, 9999)}.{chance.randrange(1000):03}0,"
                f" @r = {chance.uniform(-1, 1):.16e} / 3, @one = 1E0, @n = NULL,"
                f" @s = _utf8mb4 '{text}' COLLATE {collation}, @l = _latin1 X'E9{'41' * 5}',"
                f" @b = X'00FF27{chance.randbytes(chance.randrange(9)).hex()}'"
            )
        ]

    def _generated(self, _number: int) -> Transaction:
        chance = self._chance
        id_ = chance.randrange(1, 200)
        made = [
            "INSERT INTO variables (i, r) VALUES (LAST_INSERT_ID() % 99, RAND()), (2, RAND())",
            f"INSERT INTO variables (u, r) VALUES (LAST_INSERT_ID(), RAND({chance.randrange(99)}))",
            (
                "INSERT INTO log SELECT 'generated', LAST_INSERT_ID(), RAND() FROM counted"
                " ORDER BY id LIMIT 3"
            ),
            (
                f"UPDATE variables SET r = RAND(), u = LAST_INSERT_ID()"
                f" WHERE id BETWEEN {id_} AND {id_ + 4} ORDER BY id"
            ),
            f"DELETE FROM variables WHERE id > 50 AND RAND() < 0.2 ORDER BY id LIMIT {id_}",
            f"DELETE FROM log WHERE n < {id_} ORDER BY n, what, r LIMIT 20",
        ]
        return Transaction(chance.sample(made, chance.randint(1, 4)))

    def _high(self, number: int) -> Transaction:
        made = [
            "INSERT INTO high (v) VALUES (1), (2)",
            "INSERT INTO high (v, r) VALUES (LAST_INSERT_ID(), RAND())",
            "UPDATE high SET v = LAST_INSERT_ID() WHERE id = LAST_INSERT_ID()",
        ]
        if self._chance.random() < 0.3:
            # The first ids are those that the table begins with.
            jump = ABOVE_SIGNED + (number + 1) * 100_000
            made += [f"SET INSERT_ID = {jump}", "INSERT INTO high (v) VALUES (3)"]
            made += [f"DELETE FROM high WHERE id < {jump - 1_000_000}"]
        return Transaction(made)

    def _two_tables(self, _number: int) -> Transaction:
        id_ = self._chance.randrange(_COUNTED)
        return Transaction(
            [
                (
                    "UPDATE t JOIN counted c ON t.id = c.id SET t.v = CONCAT(LEFT(t.v, 300), c.n),"
                    f" c.n = c.n + 1 WHERE c.id >= {id_}"
                ),
                (
                    "DELETE t, v FROM t JOIN variables v ON v.id = t.id"
                    f" WHERE t.id BETWEEN {id_ * 4} AND {id_ * 4 + 1}"
                ),
            ]
        )

    def _two_databases(self, _number: int) -> Transaction:
        other = self._chance.choice(self._others)
        id_ = self._chance.randrange(_COUNTED)
        changes = (
            f"UPDATE {self._own}.counted a JOIN {other}.counted b ON a.id = b.id"
            f" SET a.n = (a.n + b.n) % 1000003, b.n = b.n + 1 WHERE a.id = {id_}"
        )
        return Transaction([changes], other)

    def _function(self, _number: int) -> Transaction:
        x = self._chance.randrange(1000)
        made = [
            f"SELECT f({x})",
            f"INSERT INTO variables (i, r) VALUES (f({x}), RAND())",
            f"UPDATE t SET v = CONCAT('f', f(id)) WHERE id BETWEEN {x % 30} AND {x % 30 + 2}",
        ]
        return Transaction(self._chance.sample(made, self._chance.randint(1, 2)))

    def _procedure(self, _number: int) -> Transaction:
        word = self._chance.choice(_TEXTS)
        return Transaction(
            [
                f"CALL p('{word}', {self._chance.randint(1, 3)}, @done)",
                "INSERT INTO log VALUES ('done', @done, LAST_INSERT_ID())",
            ]
        )

    def _watched(self, _number: int) -> Transaction:
        id_ = self._chance.randrange(40)
        made = [
            f"INSERT IGNORE INTO watched VALUES ({id_}, 'w{id_}'), ({id_ + 40}, 'w')",
            f"UPDATE watched SET v = CONCAT(LEFT(v, 40), RAND()) WHERE id = {id_}",
            f"DELETE FROM watched WHERE id BETWEEN {id_} AND {id_ + 2} ORDER BY id",
        ]
        chosen = self._chance.sample(made, self._chance.randint(1, 3))
        return Transaction(chosen, statements_only=True)

    def _temporary(self, _number: int) -> Transaction:
        rows = ", ".join(f"({n}, RAND())" for n in range(self._chance.randint(1, 4)))
        made = [
            "CREATE TEMPORARY TABLE passing (a INT, b DOUBLE)",
            f"INSERT INTO passing VALUES {rows}",
            "INSERT INTO log SELECT 'passing', a, b FROM passing ORDER BY a",
            "UPDATE passing SET b = RAND() ORDER BY a",
            "DELETE FROM passing WHERE a = 1",
            "INSERT INTO variables (i, r) SELECT a, b FROM passing ORDER BY a",
            "DROP TEMPORARY TABLE passing",
        ]
        if self._chance.random() < 0.3:
            # It hides a base table for some statements.
            made[-1:] = [
                "CREATE TEMPORARY TABLE t SELECT a, b FROM passing ORDER BY a",
                "UPDATE t SET a = a + 10",
                "INSERT INTO log SELECT 'hidden', a, b FROM t ORDER BY a",
                "DROP TEMPORARY TABLE t",
                "UPDATE t SET v = CONCAT(LEFT(v, 300), 'there') WHERE id < 5",
                made[-1],
            ]
        return Transaction(made)

    def _small_file(self, number: int) -> Transaction:
        local = self._chance.choice(("", "LOCAL "))
        return Transaction(
            [
                f"SET @prefix = '{self._chance.choice(_TEXTS)}'",
                (
                    f"LOAD DATA {local}INFILE '{self._files.small}' INTO TABLE loaded"
                    " CHARACTER SET utf8mb4 (id, @text)"
                    f" SET number = {number}, v = CONCAT(@prefix, @text), r = RAND()"
                ),
                f"DELETE FROM loaded WHERE number BETWEEN {number - 200} AND {number - 50}",
            ]
        )

    def _large_file(self, number: int) -> Transaction:
        return Transaction(
            [
                (
                    f"LOAD DATA INFILE '{self._files.large}' INTO TABLE loaded"
                    f" CHARACTER SET utf8mb4 (id, v) SET number = {number}"
                ),
                (
                    f"UPDATE loaded SET r = RAND() WHERE number = {number} AND id % 500 = 0"
                    " ORDER BY id"
                ),
                f"DELETE FROM loaded WHERE number < {number} AND id > 10",
            ]
        )

    def _copy(self, number: int) -> Sequence[str]:
        return (
            f"CREATE TABLE copy_{number} ENGINE = InnoDB SELECT * FROM t",
            f"INSERT INTO copy_{number} SELECT * FROM t",
            *self._dropped("TABLE", "copy", number),
        )

    def _typed(self, number: int) -> Sequence[str]:
        return (
            *self._set(),
            (
                f"CREATE TABLE typed_{number} ENGINE = InnoDB"
                " SELECT @i AS i, CAST(@d AS DECIMAL(30,10)) AS d, @r AS r, @one AS one, @s AS s,"
                " @l AS l, @b AS b, NULLIF(RAND(), 2) AS x"
            ),
            *self._dropped("TABLE", "typed", number),
        )

    def _dropped(self, what: str, name: str, number: int) -> list[str]:
        """Return what drops the one made some time before."""
        return [f"DROP {what} IF EXISTS {name}_{max(number - 500, 0)}"]

    def _index(self, number: int) -> Sequence[str]:
        # One that is added twice stays behind.
        return (f"ALTER TABLE t ADD INDEX (v({number % 9 + 1}))", "ALTER TABLE t DROP INDEX v")

    def _column(self, number: int) -> Sequence[str]:
        return (
            f"INSERT INTO altered (v) VALUES ({number}), (LAST_INSERT_ID() % 1000)",
            f"ALTER TABLE altered ADD COLUMN c_{number} INT NOT NULL DEFAULT {number}",
            f"UPDATE altered SET c_{number} = c_{number} + v",
            f"ALTER TABLE altered DROP COLUMN v, CHANGE c_{number} v INT NOT NULL",
        )

    def _table(self, number: int) -> Sequence[str]:
        return (
            f"CREATE TABLE n_{number} (a INT PRIMARY KEY, b VARCHAR(20)) ENGINE = InnoDB",
            f"INSERT INTO n_{number} VALUES (1, 'one'), (2, RAND())",
            f"RENAME TABLE n_{number} TO m_{number}",
            f"INSERT INTO log SELECT b, a, 0 FROM m_{number} ORDER BY a",
            f"TRUNCATE TABLE m_{number}",
            f"DROP TABLE IF EXISTS n_{number}, m_{number}",
        )

    def _view(self, number: int) -> Sequence[str]:
        return (
            f"CREATE OR REPLACE VIEW seen AS SELECT id, v FROM altered WHERE v > {number}",
            f"CREATE VIEW view_{number} AS SELECT id, 'é' AS e FROM t",
            *self._dropped("VIEW", "view", number),
        )

    def _routine(self, number: int) -> Sequence[str]:
        return (
            f"CREATE PROCEDURE q_{number}() INSERT INTO log VALUES ('q', {number}, RAND())",
            f"CALL q_{number}()",
            *self._dropped("PROCEDURE", "q", number),
        )

    def _event(self, number: int) -> Sequence[str]:
        return (
            f"SET @hours = {number % 9 + 1}",
            f"CREATE EVENT e_{number} ON SCHEDULE EVERY @hours HOUR DO DELETE FROM log",
            *self._dropped("EVENT", "e", number),
        )

    def _database(self, number: int) -> Sequence[str]:
        name = f"{self._own}_{number}"
        return (
            f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            f"CREATE TABLE {name}.t (a INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB",
            f"INSERT INTO {name}.t VALUES (NULL), (NULL)",
            *self._dropped("DATABASE", self._own, number),
        )

    def _comment(self, number: int) -> Sequence[str]:
        return (f"ALTER TABLE t COMMENT 'c{number}'",)
