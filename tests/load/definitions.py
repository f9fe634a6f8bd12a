"""The mixed load's DDL: the lives of tables, views, triggers, routines, databases, users, events.

A life is a generator of steps, from its object's creation to, mostly, its end. A worker has a few
lives at a time and takes a step of one of them now and then. Every life has names of its own, so
that one whose step may or may not have happened (the connection was lost) can be left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.load.contents import quoted


@dataclass(frozen=True, slots=True)
class Step:
    """Statements to be sent at once, after USE of `default`."""

    default: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a life is lived: its own `name` in `database`; `other` is another database."""

    rng: Random
    name: str
    database: str
    other: str

    def step(self, *statements: str) -> Step:
        """Return a step whose statements name their database or not, as chance will have it.

        In the statements § stands for the name with its database, if that is needed.
        """
        elsewhere = self.rng.random() < 0.3
        default = self.other if elsewhere else self.database
        dot = f"{quoted(self.database)}." if elsewhere else ""
        return Step(
            default,
            tuple(text.replace("§", dot + self.name) for text in statements),
        )


Life = Callable[[Place], Iterator[Step]]

# Each on columns that no other touches, so that they go in any order.
ALTERATIONS: Final = (
    "ADD COLUMN d INT DEFAULT 4",
    "ADD COLUMN e VARCHAR(10) NOT NULL DEFAULT 'e' FIRST, ADD COLUMN e2 JSON AFTER a",
    "ADD COLUMN g INT GENERATED ALWAYS AS (a * 2) VIRTUAL, ADD KEY (g)",
    # An index without a name: added twice, there are two.
    "ADD INDEX (a)",
    "ADD INDEX named (a, k), ALGORITHM = INPLACE, LOCK = NONE",
    "ADD CHECK (a > -1000)",
    "MODIFY b VARCHAR(100) CHARACTER SET utf8mb4",
    "CHANGE c c2 DECIMAL(12,4) NULL COMMENT 'was c'",
    "RENAME COLUMN x TO `x 1`",
    "ALTER COLUMN z SET DEFAULT 'z'",
    "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "COMMENT = 'altered'",
    "ENGINE = InnoDB",
    "ROW_FORMAT = COMPACT",
    "ADD COLUMN i INT INVISIBLE DEFAULT 2, ALGORITHM = INSTANT",
    "DROP COLUMN y",
)


def table(place: Place) -> Iterator[Step]:
    """Create a table, alter it with rows in it, rename it, copy its form, drop it."""
    rng = place.rng
    key = rng.choice(("", ", PRIMARY KEY (k)", ", UNIQUE (k)"))
    yield place.step(
        "CREATE TABLE § (k INT NOT NULL, a INT, b VARCHAR(20) CHARACTER SET latin1,"
        f" c DECIMAL(8,2), x INT, y BLOB, z VARCHAR(9){key})"
    )
    yield place.step(
        "INSERT INTO § (k, a, b, c, y) VALUES (0, 1, 'é', 1.5, x'00'), (1, 2, '', 2, '')"
    )
    for number, alteration in enumerate(rng.sample(ALTERATIONS, rng.randint(2, 6))):
        yield place.step(f"ALTER TABLE § {alteration}")
        yield place.step(
            f"INSERT INTO § (k, a) VALUES ({10 + number}, {number})",
            f"UPDATE § SET k = k + 100 WHERE k = {number}",
        )
    yield place.step("RENAME TABLE § TO §_new")
    yield place.step("CREATE TABLE § LIKE §_new", "INSERT INTO § (k) SELECT k FROM §_new")
    yield place.step("TRUNCATE TABLE §_new")
    yield place.step(f"INSERT INTO §_new (k) VALUES ({rng.randrange(99)})")
    yield place.step("CREATE INDEX later ON § (k)", "DROP INDEX later ON §")
    yield place.step("RENAME TABLE § TO §_gone, §_new TO §")
    yield place.step("DROP TABLE §_gone")
    if rng.random() < 0.7:
        yield place.step("DROP TABLE IF EXISTS §, §_never")


def moved(place: Place) -> Iterator[Step]:
    """Move tables between two databases, and drop them with one statement."""
    here, there = quoted(place.database), quoted(place.other)
    name = place.name
    yield place.step("CREATE TABLE § (k INT PRIMARY KEY)", "INSERT INTO § VALUES (1), (2)")
    yield place.step(f"RENAME TABLE {here}.{name} TO {there}.{name}")
    yield place.step(f"INSERT INTO {there}.{name} VALUES (3)")
    yield place.step(f"CREATE TABLE {here}.{name} LIKE {there}.{name}")
    yield place.step(f"CREATE VIEW {here}.{name}_v AS SELECT * FROM {there}.{name}")
    yield place.step(f"DROP VIEW {here}.{name}_v")
    yield place.step(f"DROP TABLE {here}.{name}, {there}.{name}")


def shared(place: Place) -> Iterator[Step]:
    """Alter a table that all workers write to, while they do."""
    here, name = quoted(place.database), place.name
    yield Step(place.database, (f"ALTER TABLE accounts ADD COLUMN {name} INT DEFAULT 3",))
    yield Step(place.other, (f"UPDATE {here}.accounts SET {name} = id % 5 WHERE id % 9 = 0",))
    yield Step(place.other, (f"CREATE INDEX {name} ON {here}.accounts ({name})",))
    yield Step(place.database, (f"ALTER TABLE accounts ALTER INDEX {name} INVISIBLE",))
    yield Step(place.database, (f"DROP INDEX {name} ON accounts",))
    yield Step(place.database, (f"ALTER TABLE accounts DROP COLUMN {name}",))
    yield Step(place.database, (f"ALTER TABLE nokey ADD COLUMN {name} TIMESTAMP(2) NULL",))
    yield Step(place.database, (f"ALTER TABLE nokey DROP COLUMN {name}",))
    yield Step(place.database, ("TRUNCATE TABLE bulk",))


def partitions(place: Place) -> Iterator[Step]:
    """Add, reorganize, empty and drop partitions."""
    rows = "(1), (2), (11), (12), (21)"
    yield place.step(
        "CREATE TABLE § (k INT PRIMARY KEY) PARTITION BY RANGE (k) (PARTITION a VALUES LESS THAN"
        " (10), PARTITION b VALUES LESS THAN (20), PARTITION c VALUES LESS THAN (30))"
    )
    yield place.step(f"INSERT INTO § VALUES {rows}")
    yield place.step("ALTER TABLE § ADD PARTITION (PARTITION d VALUES LESS THAN MAXVALUE)")
    yield place.step(
        "ALTER TABLE § REORGANIZE PARTITION a INTO (PARTITION a0 VALUES LESS THAN (2),"
        " PARTITION a1 VALUES LESS THAN (10))"
    )
    yield place.step("ALTER TABLE § TRUNCATE PARTITION b", "ALTER TABLE § DROP PARTITION c")
    yield place.step("CREATE TABLE §_out (k INT PRIMARY KEY)")
    # A MySQL exchanges nothing where tables share a file (innodb_file_per_table = OFF).
    yield place.step(
        "SET @exchange = IF(@@innodb_file_per_table,"
        " 'ALTER TABLE § EXCHANGE PARTITION a1 WITH TABLE §_out', 'DO 0')",
        "PREPARE exchange FROM @exchange", "EXECUTE exchange",
    )  # fmt: skip
    yield place.step("ALTER TABLE § REMOVE PARTITIONING")
    yield place.step("DROP TABLE §, §_out")


def view(place: Place) -> Iterator[Step]:
    """Create, replace, alter and drop a view, and write through it."""
    accounts = f"{quoted(place.database)}.accounts"
    yield place.step(f"CREATE VIEW § AS SELECT id, balance FROM {accounts} WHERE kind = 3")
    yield place.step("UPDATE § SET balance = balance + 1 WHERE id < 100")
    yield place.step(
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW § (n, s)"
        f" AS SELECT name, 'é😀\\'' FROM {accounts}"
    )
    yield place.step(f"ALTER ALGORITHM = MERGE VIEW § AS SELECT id FROM {accounts}")
    yield place.step("DROP VIEW §")


def trigger(place: Place) -> Iterator[Step]:
    """Let triggers write a log of another table's changes and change its rows, for a while."""
    here, name = quoted(place.database), place.name
    yield place.step("CREATE TABLE § (what VARCHAR(20), number INT)")
    yield Step(
        place.database,
        (
            (
                f"CREATE TRIGGER {name}_1 AFTER UPDATE ON worded FOR EACH ROW BEGIN"
                f" INSERT INTO {name} VALUES (NEW.word, NEW.number); END"
            ),
        ),
    )
    yield Step(
        place.other,
        (
            (
                f"CREATE TRIGGER {here}.{name}_2 BEFORE UPDATE ON {here}.accounts FOR EACH ROW"
                " SET NEW.kind = NEW.kind % 50"
            ),
        ),
    )
    yield Step(place.database, ("UPDATE worded SET v = CONCAT(LEFT(v, 3), '!') WHERE number < 5",))
    yield Step(place.other, (f"DROP TRIGGER {here}.{name}_1",))
    yield Step(place.database, (f"DROP TRIGGER IF EXISTS {name}_2",))
    yield place.step("DROP TABLE §")


def routine(place: Place) -> Iterator[Step]:
    """Create, call, alter and drop a procedure and a function."""
    here = quoted(place.database)
    yield place.step("CREATE TABLE § (k INT, v VARCHAR(20))")
    yield place.step(
        "CREATE PROCEDURE § (IN rows_ INT, OUT done INT) COMMENT 'it''s; a \"procedure\"' BEGIN"
        " DECLARE i INT DEFAULT 0; WHILE i < rows_ DO"
        f" INSERT INTO {here}.{place.name} VALUES (i, 'é;'); SET i = i + 1; END WHILE;"
        f" UPDATE {here}.{place.name} SET v = 'even' WHERE k % 2 = 0; SET done = i; END"
    )
    yield place.step(
        "CREATE FUNCTION §_f (n INT) RETURNS VARCHAR(9) CHARSET utf8mb4 DETERMINISTIC NO SQL"
        " RETURN CONCAT('f', n)"
    )
    yield place.step("CALL §(5, @done)")
    yield place.step("START TRANSACTION", "INSERT INTO § VALUES (9, §_f(9))", "COMMIT")
    yield place.step("ALTER PROCEDURE § SQL SECURITY INVOKER COMMENT 'altered'")
    yield place.step("DROP PROCEDURE §", "DROP FUNCTION IF EXISTS §_f")
    yield place.step("DROP TABLE §")


def database(place: Place) -> Iterator[Step]:
    """Create a database of its own with tables, change its defaults, drop it with what it holds."""
    name = place.rng.choice((place.name, f"{place.name} `é` 'x'"))
    own = quoted(name)
    yield Step(place.other, (f"CREATE DATABASE {own} CHARACTER SET latin1",))
    yield Step(name, ("CREATE TABLE t (a VARCHAR(5), b INT KEY)", "INSERT INTO t VALUES ('é', 1)"))
    yield Step(place.other, (f"ALTER DATABASE {own} COLLATE utf8mb4_bin",))
    yield Step(name, ("CREATE TABLE t2 (a VARCHAR(5))", "INSERT INTO t2 VALUES ('a'), ('a')"))
    yield Step(
        place.other,
        (
            "START TRANSACTION",
            f"INSERT INTO {own}.t VALUES ('b', 2)",
            f"UPDATE {quoted(place.other)}.accounts SET kind = 5 WHERE id < 5",
            "COMMIT",
        ),
    )
    if place.rng.random() < 0.7:
        yield Step(place.rng.choice((name, place.other)), (f"DROP DATABASE {own}",))


def context(place: Place) -> Iterator[Step]:
    """Run DDL whose meaning depends on the session: SQL mode, time zone, character sets, …."""
    after = f"SET SESSION {CONTEXT_RESET}"
    for number, (before, definition) in enumerate(place.rng.sample(SESSIONS, 3)):
        yield place.step(before, definition, after)
        yield place.step("INSERT INTO § () VALUES ()")
        kept = place.rng.random() < 0.4
        yield place.step(f"RENAME TABLE § TO §_{number}" if kept else "DROP TABLE §")


CONTEXT_RESET: Final = ", ".join(
    f"{name} = DEFAULT"
    for name in (
        "sql_mode",
        "time_zone",
        "lc_time_names",
        "explicit_defaults_for_timestamp",
        "default_collation_for_utf8mb4",
        "sql_generate_invisible_primary_key",
        "foreign_key_checks",
    )
)

# What a session sets, and a definition that comes out different without it.
SESSIONS: Final = (
    (
        "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
        "CREATE TABLE § (\"a b\" VARCHAR(9) DEFAULT ('x' || 'y'))",
    ),
    (
        "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "CREATE TABLE § (a VARCHAR(20) DEFAULT 'back\\' COMMENT '\\')",
    ),
    ("SET SESSION sql_mode = ''", "CREATE TABLE § (a DATETIME NOT NULL DEFAULT '0000-00-00')"),
    (
        "SET SESSION sql_mode = 'REAL_AS_FLOAT'",
        "CREATE TABLE § (a REAL DEFAULT 0.1, b INT DEFAULT '3')",
    ),
    (
        "SET SESSION time_zone = '+05:30'",
        "CREATE TABLE § (a TIMESTAMP(3) DEFAULT '2024-02-29 12:00:00.125')",
    ),
    (
        "SET SESSION explicit_defaults_for_timestamp = OFF",
        "CREATE TABLE § (a TIMESTAMP, b INT)",
    ),
    (
        "SET SESSION default_collation_for_utf8mb4 = utf8mb4_general_ci",
        "CREATE TABLE § (a VARCHAR(9) CHARACTER SET utf8mb4)",
    ),
    (
        "SET SESSION sql_generate_invisible_primary_key = ON",
        "CREATE TABLE § (a INT)",
    ),
    (
        "SET SESSION foreign_key_checks = OFF",
        "CREATE TABLE § (a INT DEFAULT 0 PRIMARY KEY, b INT REFERENCES nowhere (a))",
    ),
)


def maintenance(place: Place) -> Iterator[Step]:
    """Run what is written to the binlog though it changes no rows, and returns some."""
    here = quoted(place.database)
    yield Step(place.other, (f"ANALYZE TABLE {here}.accounts, {here}.bulk",))
    yield Step(place.database, ("ANALYZE TABLE accounts UPDATE HISTOGRAM ON kind WITH 8 BUCKETS",))
    yield Step(place.database, ("OPTIMIZE TABLE nullable",))
    yield Step(place.other, (f"FLUSH TABLES {here}.worded",))
    yield Step(place.database, ("ANALYZE TABLE accounts DROP HISTOGRAM ON kind",))
    yield Step(place.database, ("REPAIR TABLE bulk", "ANALYZE NO_WRITE_TO_BINLOG TABLE bulk"))


def event(place: Place) -> Iterator[Step]:
    """Create, alter and drop events that are years away."""
    do = f"DO BEGIN INSERT INTO {quoted(place.database)}.nokey (a) VALUES (1); END"
    yield place.step(
        f"CREATE EVENT § ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01 00:00:00' {do}",
        f"CREATE EVENT §_2 ON SCHEDULE AT '2037-05-05 05:05:05' DISABLE COMMENT 'é' {do}",
    )
    yield place.step(
        "ALTER EVENT § ON SCHEDULE EVERY 2 DAY STARTS '2037-01-01 00:00:00' COMMENT 'later'"
    )
    yield place.step("ALTER EVENT §_2 ENABLE")
    yield place.step("ALTER EVENT § DISABLE")
    yield place.step("DROP EVENT §_2")
    if place.rng.random() < 0.5:
        yield place.step("DROP EVENT IF EXISTS §")


def user(place: Place) -> Iterator[Step]:
    """Create, change and drop users and what they may do."""
    account, name = f"'{place.name}'@'localhost'", place.name
    yield Step(place.other, (f"CREATE USER {account} IDENTIFIED BY 'word' COMMENT 'one'",))
    yield Step(place.other, (f"GRANT SELECT, INSERT ON {quoted(place.database)}.* TO {account}",))
    yield Step(place.other, (f"CREATE ROLE '{name}_r'", f"GRANT '{name}_r' TO {account}"))
    yield Step(place.database, (f"GRANT UPDATE (kind) ON accounts TO '{name}_r'",))
    yield Step(place.other, (f"ALTER USER {account} IDENTIFIED BY 'other' ACCOUNT LOCK",))
    yield Step(place.other, (f"REVOKE INSERT ON {quoted(place.database)}.* FROM {account}",))
    yield Step(place.other, (f"RENAME USER {account} TO '{name}_n'@'localhost'",))
    if place.rng.random() < 0.6:
        yield Step(place.other, (f"DROP USER '{name}_n'@'localhost'", f"DROP ROLE '{name}_r'"))


def create_select(place: Place) -> Iterator[Step]:
    """Create tables with the rows of others."""
    accounts = f"{quoted(place.database)}.accounts"
    yield place.step(f"CREATE TABLE § AS SELECT id, name, balance FROM {accounts} LIMIT 50")
    yield place.step(
        f"CREATE TABLE §_2 (k INT AUTO_INCREMENT PRIMARY KEY) SELECT kind FROM {accounts} LIMIT 9"
    )
    yield place.step("CREATE TABLE §_3 SELECT * FROM § WHERE FALSE")
    yield place.step("DROP TABLE §, §_2, §_3")


def non_transactional(place: Place) -> Iterator[Step]:
    """Write to a table of an engine without transactions."""
    yield place.step("CREATE TABLE § (k INT PRIMARY KEY, v INT) ENGINE = MyISAM")
    yield place.step("INSERT INTO § VALUES (1, 1), (2, 2), (3, 3)")
    yield place.step("UPDATE § SET v = v + 1 WHERE k < 3", "DELETE FROM § WHERE k = 3")
    yield place.step("START TRANSACTION", "INSERT INTO § VALUES (4, 4), (5, 5)", "COMMIT")
    yield place.step("ALTER TABLE § ENGINE = InnoDB")
    yield place.step("DROP TABLE §")


PLAIN: Final[Sequence[Life]] = (
    table,
    table,
    moved,
    shared,
    partitions,
    view,
    trigger,
    routine,
    database,
    context,
    maintenance,
)


class Definitions:
    """The lives that one worker leads; `lives` are those it chooses from."""

    def __init__(
        self, rng: Random, worker: int, databases: Sequence[str], lives: Sequence[Life] = PLAIN
    ) -> None:
        self._rng = rng
        self._worker = worker
        self._databases = databases
        self._lives = lives
        self._begun = 0
        self._led: list[Iterator[Step]] = []
        self._last: Iterator[Step] | None = None

    def step(self) -> Step:
        """Return the next step of one of the lives."""
        while True:
            while len(self._led) < 3:
                self._led.append(self._begin())
            self._last = self._rng.choice(self._led)
            step = next(self._last, None)
            if step is not None:
                return step
            self._led.remove(self._last)

    def abandon(self) -> None:
        """Go no further with the life whose step was returned last."""
        if self._last in self._led:
            self._led.remove(self._last)

    def _begin(self) -> Iterator[Step]:
        self._begun += 1
        database, other = self._rng.sample(self._databases, 2)
        life = self._rng.choice(self._lives)
        return life(Place(self._rng, f"x{self._worker}_{self._begun}", database, other))
