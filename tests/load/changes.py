"""What the mixed load's transactions change: seeded makers of SQL statements, without a server.

Rows are found by guesses (how many there may be is estimated from what this worker has inserted),
so a statement may meet fewer rows than it names, or none.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Final

from tests.load.columns import WIDE, Column, binary, text
from tests.load.contents import quoted
from tests.load.files import Files
from tests.load.tables import ODD, ODD_COLUMN, ODD_TABLE

NAMES: Final = ("Ann", "Bob", "Çelik", "Дима", "漢字", "😀 smile", "O'Neil", 'say "so"', "NUL\0")
WORDS: Final = ("alpha", "Alpha", "ALPHA", "beta", "βeta", "gamma", "straße", "STRASSE", "é", "e")

NOKEY_VALUES: Final = 50
"""Different values of nokey.a: the fewer, the smaller the table stays."""
PARENTS: Final = 40
"""How many parents a worker keeps in a database before it only changes and deletes them."""


class Changes:
    """Makes statements for one of `workers` workers; the seed is in `rng`."""

    def __init__(self, rng: Random, worker: int, workers: int, files: Files | None = None) -> None:
        """`files` are those that `loaded` needs."""
        self._rng = rng
        self._worker = worker
        self._workers = workers
        self._files = files
        self._made: Counter[tuple[str, str]] = Counter()
        self._codes = 0
        self._parents: dict[str, deque[int]] = {}
        self._kinds: tuple[tuple[Callable[[str], str], int], ...] = (
            (self.accounts, 50),
            (self.nokey, 8),
            (self.nullable, 8),
            (self.worded, 8),
            (self.modern, 8),
            (self.partitioned, 6),
            (self.wide, 12),
        )

    def some(self, database: str) -> list[str]:
        """Return one to five statements on tables of the database."""
        makers, weights = zip(*self._kinds, strict=True)
        count = self._rng.choice((1, 1, 2, 2, 3, 5))
        return [make(database) for make in self._rng.choices(makers, weights, k=count)]

    def accounts(self, database: str) -> str:
        """Insert, change or delete up to 20 accounts."""
        rng, table = self._rng, f"{database}.accounts"
        action = rng.random()
        if action < 0.45:
            rows = ", ".join(
                f"({text(rng.choice(NAMES))}, {rng.randint(-9999, 9999)}.{rng.randrange(100):02},"
                f" {rng.randrange(20)}, {rng.choice(('NULL', text('note 😀' * rng.randrange(9))))})"
                for _ in range(self._rows(database, "accounts", rng.choice((1, 1, 2, 5, 20))))
            )
            return f"INSERT INTO {table} (name, balance, kind, note) VALUES {rows}"
        id_ = self._id(database, "accounts")
        if action < 0.65:
            return f"UPDATE {table} SET balance = balance + 1.25 WHERE id = {id_}"
        if action < 0.75:
            return (
                f"UPDATE {table} SET kind = kind + 1, note = {text(rng.choice(NAMES))}"
                f" WHERE id BETWEEN {id_} AND {id_ + rng.randrange(20)}"
            )
        if action < 0.8:
            return f"UPDATE {table} SET name = CONCAT(LEFT(name, 8), '+') WHERE id = {id_}"
        return f"DELETE FROM {table} WHERE id BETWEEN {id_} AND {id_ + rng.choice((0, 0, 3, 19))}"

    def nokey(self, database: str) -> str:
        """Insert, change or delete rows of the table without a key, doubles among them."""
        rng, table = self._rng, f"{database}.nokey"
        action, a = rng.random(), rng.randrange(NOKEY_VALUES)
        if action < 0.5:
            row = (
                f"({a}, {text(rng.choice(NAMES))},"
                f" {rng.uniform(-1, 1):.16e}, '2024-02-29 01:02:03.4',"
                f" {binary(rng.randbytes(9))}, 0.1E0, b'101', JSON_ARRAY({a}, 'x'))"
            )
            rows = ", ".join([row] * rng.choice((1, 1, 2)))
            return f"INSERT INTO {table} (a, b, c, d, e, f, g, h) VALUES {rows}"
        if action < 0.7:
            return f"UPDATE {table} SET b = {text(rng.choice(NAMES))}, c = NULL WHERE a = {a}"
        return f"DELETE FROM {table} WHERE a = {a}" + rng.choice(("", " LIMIT 1"))

    def nullable(self, database: str) -> str:
        """Change the table whose unique keys may hold NULLs, in the ways that meet duplicates."""
        rng, table = self._rng, f"{database}.nullable"
        a = rng.choice(("NULL", "1", "2", str(rng.randrange(200))))
        b = rng.choice(("NULL", *(text(word) for word in WORDS)))
        c = rng.choice(("NULL", "NULL", binary(rng.randbytes(4))))
        values = f"{table} (a, b, c, d) VALUES ({a}, {b}, {c}, {rng.randrange(100)})"
        return rng.choice(
            (
                f"INSERT IGNORE INTO {values}",
                f"REPLACE INTO {values}",
                f"INSERT INTO {values} ON DUPLICATE KEY UPDATE d = d + 1",
                f"UPDATE IGNORE {table} SET b = {b} WHERE a <=> {a}",
                f"DELETE FROM {table} WHERE a <=> {a} AND d % 2 = 0",
            )
        )

    def worded(self, database: str) -> str:
        """Change primary keys of text, also to others that are equal by the collation."""
        rng, table = self._rng, f"{database}.worded"
        word, number = text(rng.choice(WORDS)), rng.randrange(60)
        return rng.choice(
            (
                f"INSERT IGNORE INTO {table} VALUES ({word}, {number}, 'v{number}')",
                f"UPDATE {table} SET word = UPPER(word) WHERE number = {number}",
                (
                    f"UPDATE IGNORE {table} SET number = number + 100 WHERE word = {word}"
                    f" AND number < 60"
                ),
                f"DELETE FROM {table} WHERE word = {word} AND number > {number}",
            )
        )

    def modern(self, database: str) -> str:
        """Change the table of generated, invisible and default values and functional indexes."""
        rng, table = self._rng, f"{database}.modern"
        action, id_ = rng.random(), self._id(database, "modern")
        document = f"JSON_OBJECT('tags', JSON_ARRAY({rng.randrange(9)}, {rng.randrange(9)}))"
        if action < 0.2:
            self._rows(database, "modern", 1)
            return f"INSERT INTO {table} () VALUES ()"
        if action < 0.5:
            self._rows(database, "modern", 1)
            return (
                f"INSERT INTO {table} (a, b, hidden, js) VALUES"
                f" ({rng.randrange(1000)}, {text(rng.choice(NAMES))}, DEFAULT, {document})"
            )
        if action < 0.8:
            change = rng.choice(("a = a + 1", f"js = {document}", "hidden = NULL", "b = DEFAULT"))
            return f"UPDATE {table} SET {change} WHERE id BETWEEN {id_} AND {id_ + 5}"
        return f"DELETE FROM {table} WHERE id = {id_}"

    def partitioned(self, database: str) -> str:
        """Change the partitioned table; an update may move a row to another partition."""
        rng, table = self._rng, f"{database}.partitioned"
        action, id_ = rng.random(), self._id(database, "partitioned")
        day = f"'{rng.randint(1990, 2030)}-0{rng.randint(1, 9)}-11'"
        if action < 0.5:
            self._rows(database, "partitioned", 2)
            return f"INSERT INTO {table} (made, v) VALUES ({day}, 'x'), ('2001-01-01', NULL)"
        if action < 0.75:
            return f"UPDATE {table} SET made = {day} WHERE id = {id_}"
        return f"DELETE FROM {table} WHERE id = {id_}"

    def wide(self, database: str) -> str:
        """Change one of the tables that hold every type."""
        rng = self._rng
        table, columns = rng.choice(list(WIDE.items()))
        action, id_ = rng.random(), self._id(database, table)
        if action < 0.5:
            chosen = [column for column in columns if rng.random() < 0.4]
            return self.insert_wide(database, table, chosen, rng.choice((1, 1, 3)))
        if action < 0.8:
            chosen = rng.sample(columns, rng.randint(1, 3))
            changes = ", ".join(f"{column.name} = {self._value(column)}" for column in chosen)
            return f"UPDATE {database}.{table} SET {changes} WHERE id BETWEEN {id_} AND {id_ + 2}"
        return f"DELETE FROM {database}.{table} WHERE id = {id_}"

    def insert_wide(
        self, database: str, table: str, columns: list[Column] | tuple[Column, ...], rows: int
    ) -> str:
        """Insert rows with values for the columns given."""
        values = ", ".join(
            f"({', '.join(self._value(column) for column in columns)})"
            for _ in range(self._rows(database, table, rows))
        )
        names = ", ".join(column.name for column in columns)
        return f"INSERT INTO {database}.{table} ({names}) VALUES {values}"

    def json(self, database: str) -> list[str]:
        """Change parts of JSON documents, as partial updates where the session allows it."""
        id_ = self._id(database, "documents")
        number = self._rng.randrange(1000)
        change = self._rng.choice(
            (
                f"js = JSON_SET(js, '$.number', {number})",
                "js = JSON_REPLACE(js, '$.inner.b', 'é😀', '$.inner.a', 1.5E0)",
                "js = JSON_REMOVE(js, '$.tags[0]'), js_list = JSON_SET(js_list, '$.name', NULL)",
                f"js_list = JSON_SET(js_list, '$.name', '{number}'), vector_3 = NULL",
            )
        )
        return [f"UPDATE {database}.documents SET {change} WHERE id BETWEEN {id_} AND {id_ + 9}"]

    def cascade(self, database: str) -> list[str]:
        """Insert a family of rows, or change or delete a parent, which its family follows."""
        rng = self._rng
        parents = self._parents.setdefault(database, deque())
        action = rng.random()
        if not parents or (action < 0.4 and len(parents) < PARENTS):
            code = self._code()
            parents.append(code)
            children = ", ".join(f"({code}, {n})" for n in range(rng.randint(1, 4)))
            return [
                f"INSERT INTO {database}.parent (code, name) VALUES ({code}, 'p{code}')",
                f"INSERT INTO {database}.child (parent_code, number) VALUES {children}",
                (
                    f"INSERT INTO {database}.grandchild (child_id, parent_code)"
                    f" SELECT id, parent_code FROM {database}.child WHERE parent_code = {code}"
                ),
            ]
        code = parents.popleft()
        if action < 0.75:
            new = self._code()
            parents.append(new)
            return [f"UPDATE {database}.parent SET code = {new} WHERE code = {code}"]
        return [f"DELETE FROM {database}.parent WHERE code = {code}"]

    def orphan(self, database: str) -> list[str]:
        """Insert rows without their parents: for a session that does not check foreign keys."""
        return [
            f"INSERT INTO {database}.child (parent_code, number) VALUES ({-self._code()}, 0)",
            f"DELETE FROM {database}.child WHERE parent_code < 0 AND number < 0",
        ]

    def bulk(self, database: str) -> list[str]:
        """Insert, change or delete thousands of rows."""
        rows = self._rng.randint(1000, 4000)
        return self._rng.choice(
            (
                [
                    (
                        f"INSERT INTO {database}.bulk (a, b)"
                        " WITH RECURSIVE n (i) AS (SELECT 1 UNION"
                        f" ALL SELECT i + 1 FROM n WHERE i < {rows})"
                        " SELECT i % 100, LEFT(SHA2(i, 256), 40) FROM n"
                    )
                ],
                [f"UPDATE {database}.bulk SET a = a + 1 ORDER BY id LIMIT {rows}"],
                [f"DELETE FROM {database}.bulk ORDER BY id LIMIT {rows}"],
            )
        )

    def both(self, one: str, other: str) -> list[str]:
        """Change two databases with one statement."""
        id_ = self._id(one, "accounts")
        return [
            (
                f"UPDATE {one}.accounts a JOIN {other}.accounts b ON a.id = b.id"
                f" SET a.balance = a.balance + 1, b.balance = b.balance - 1"
                f" WHERE a.id BETWEEN {id_} AND {id_ + 3}"
            )
        ]

    def abroad(self, home: str, abroad: str) -> list[str]:
        """Change rows that a foreign key of another database refers to."""
        rng, id_ = self._rng, self._rng.randrange(30) * self._workers + self._worker
        if rng.random() < 0.6:
            return [
                (
                    f"INSERT INTO {home}.home (id, v) VALUES ({id_}, 1)"
                    " ON DUPLICATE KEY UPDATE v = v + 1"
                ),
                f"INSERT INTO {abroad}.abroad (home_id, v) VALUES ({id_}, 0)",
            ]
        return [f"DELETE FROM {home}.home WHERE id = {id_}"]

    def searched(self, database: str) -> list[str]:
        """Change the table with full-text and spatial indexes."""
        rng, id_ = self._rng, self._id(database, "searched")
        if rng.random() < 0.6:
            self._rows(database, "searched", 1)
            return [
                (
                    f"INSERT INTO {database}.searched (words, shape) VALUES"
                    f" ({text(' '.join(rng.choices(WORDS, k=5)))},"
                    f" POINT({rng.randrange(99)}, {rng.randrange(99)}))"
                )
            ]
        return [
            f"UPDATE {database}.searched SET words = CONCAT(words, ' more') WHERE id = {id_}",
            f"DELETE FROM {database}.searched WHERE id = {id_ + 7}",
        ]

    def odd(self) -> list[str]:
        """Change the table with odd names."""
        rng, id_ = self._rng, self._rng.randrange(300)
        table, column = f"{quoted(ODD)}.{quoted(ODD_TABLE)}", quoted(ODD_COLUMN)
        return [
            (
                f"INSERT INTO {table} VALUES ({id_}, {text(rng.choice(NAMES))}, {text('中')})"
                f" ON DUPLICATE KEY UPDATE `select` = {text(rng.choice(NAMES))}"
            ),
            f"DELETE FROM {table} WHERE {column} = {rng.randrange(300)}",
        ]

    def statements(self, database: str) -> list[str]:
        """Return changes that are the same when their text is run again, for statement format."""
        rng, id_ = self._rng, self._id(database, "accounts")
        a, name = rng.randrange(NOKEY_VALUES), text(rng.choice(NAMES))
        choices = (
            (
                f"UPDATE {database}.accounts SET balance = balance * 2 WHERE kind = {a % 20}"
                f" AND balance BETWEEN -99 AND 99"
            ),
            f"UPDATE {database}.accounts SET note = NOW(6) WHERE id BETWEEN {id_} AND {id_ + 3}",
            (
                f"UPDATE {database}.accounts SET note = DATE_FORMAT('2024-02-29', '%W %M')"
                f" WHERE id = {id_}"
            ),
            f"DELETE FROM {database}.accounts WHERE id = {id_}",
            f"INSERT INTO {database}.nokey (a, b, d) VALUES ({a}, {name}, '2024-02-29 12:00:00')",
            f"UPDATE {database}.nokey SET b = 'it''s \\\\' WHERE a = {a}",
            f"DELETE FROM {database}.nokey WHERE a = {a}",
        )
        return rng.sample(choices, rng.randint(1, 3))

    def generated(self, database: str) -> list[str]:
        """Return changes for statement format that need more than their text to run again."""
        rng, id_ = self._rng, self._id(database, "accounts")
        name = text(rng.choice(NAMES))
        choices = (
            f"INSERT INTO {database}.accounts (name, balance) VALUES (@name, FLOOR(RAND() * 99))",
            f"INSERT INTO {database}.nokey (a, c, e) VALUES (LAST_INSERT_ID() % 99, @real, @bytes)",
            f"UPDATE {database}.accounts SET note = CONCAT(@name, @decimal) WHERE id = {id_}",
            (
                f"UPDATE {database}.accounts SET balance = FLOOR(RAND() * 50)"
                f" WHERE id BETWEEN {id_} AND {id_ + 3} ORDER BY id"
            ),
        )
        made = rng.sample(choices, rng.randint(1, 4))
        self._rows(database, "accounts", 1)
        bytes_ = rng.randbytes(rng.randrange(9)).hex()
        return [
            f"SET @name = {name}, @bytes = X'{bytes_}'",
            f"SET @real = {rng.random():.16e}, @decimal = {rng.randrange(999)}.50",
            *made,
        ]

    def loaded(self, database: str) -> list[str]:
        """Load a file, sometimes one of thousands of rows, and delete what was loaded before."""
        if self._files is None:
            raise ValueError("no files have been written")
        rng = self._rng
        table = f"{database}.loaded"
        file = self._files.large if rng.random() < 0.05 else self._files.small
        last = self._made[database, "loaded"]
        number = last + self._rows(database, "loaded", 1)
        made = [
            f"SET @name = {text(rng.choice(NAMES))}",
            (
                f"LOAD DATA INFILE '{file}' INTO TABLE {table} CHARACTER SET utf8mb4 (id, @text)"
                f" SET worker = {self._worker}, number = {number}, v = CONCAT(@name, @text),"
                " r = RAND()"
            ),
        ]
        delete = f"DELETE FROM {table} WHERE worker = {self._worker} AND number < {number - 3}"
        return [*made, delete] if rng.random() < 0.5 else [delete, *made]

    def _value(self, column: Column) -> str:
        return "NULL" if self._rng.random() < 0.1 else column.literal(self._rng)

    def _rows(self, database: str, table: str, rows: int) -> int:
        """Note that rows are inserted, and return their number."""
        self._made[database, table] += rows
        return rows

    def _id(self, database: str, table: str) -> int:
        return self._rng.randint(1, 1 + self._made[database, table] * self._workers)

    def _code(self) -> int:
        self._codes += 1
        return self._codes * 1000 + self._worker
