"""A load that redefines, empties and drops the tables that it changes, with XA and rotations."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from threading import Event
from typing import Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from tests.servers.mariadb import MariadbInstallation
from tests.servers.mysqld import Server

_SETUP: Final = """
CREATE DATABASE k; USE k;
CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(80), n INT NOT NULL DEFAULT 0,
    former INT NOT NULL DEFAULT 0, dropped INT DEFAULT 7, balance DECIMAL(20, 4),
    moment DATETIME(6), raw VARBINARY(60), doc JSON) CHARACTER SET latin1;
CREATE TABLE u LIKE t;
CREATE TABLE x (id BIGINT PRIMARY KEY, n INT);
CREATE TABLE d (id BIGINT PRIMARY KEY)
"""
TABLES: Final = ("t", "u", "x", "d")
_EVOLUTION: Final = (
    ("ADD COLUMN added INT", "added = {0}"),
    ("MODIFY n BIGINT NOT NULL DEFAULT 0", "n = n + 5000000000"),
    ("CONVERT TO CHARACTER SET utf8mb4", "name = CONCAT('€', id)"),
    ("DROP COLUMN dropped", "balance = -balance"),
    ("RENAME COLUMN former TO renamed", "renamed = renamed + 1"),
)
"""What ALTER TABLE does to `t` and `u`, and what an UPDATE sets from then on."""
_EVERY: Final = 20
"""Transactions between two of the happenings."""
_PAUSE_S: Final = 0.05

Purgeable = Callable[[], str]
"""Returns the first file that a reader may still need, "" if that is not known."""


class EvolvingLoad:
    """Changes of four tables at random, and a round of happenings: ALTER TABLE, TRUNCATE, ….

    How many changes it has made is in `counted`, by the operations of the shape `changes`.
    """

    def __init__(self, server: Server, purgeable: Purgeable, seed: int = 42) -> None:
        server.sql(_SETUP)
        self.counted: Counter[str] = Counter()
        self._server = server
        self._purgeable = purgeable
        self._rng = random.Random(seed)
        self._compresses = not isinstance(server.installation, MariadbInstallation)
        self._next = 0
        self._sets = ["n = n + 1"]
        self._evolution = iter(_EVOLUTION)
        self._prepared: list[tuple[str, str]] = []
        """The files in which XA transactions were prepared and ended."""
        self._numbers = count(1)

    def run(self, until: Event) -> None:
        """Run the load; it ends after a whole round of happenings, with all kinds of ALTER."""
        with (
            closing(self._server.client("k")) as client,
            closing(self._server.client("k")) as aside,
        ):
            self._client, self._aside = client, aside
            happenings = [
                self._flush, self._prepare, self._evolve, self._flush, self._complete,
                self._truncate, self._purge, self._recreate,
            ]  # fmt: skip
            rounds = count()
            while next(rounds) < len(_EVOLUTION) or not until.is_set():
                for happening in happenings:
                    for _ in range(_EVERY):
                        self._transaction()
                        until.wait(_PAUSE_S)
                    happening()

    def _transaction(self) -> None:
        rng = self._rng
        table = rng.choice("tu")
        first = self._next * 10
        self._next += 1
        if self._compresses:
            compressed = "ON" if self._next % 5 == 0 else "OFF"
            self._run(f"SET binlog_transaction_compression = {compressed}")
        values = ", ".join(self._row(first + n) for n in range(rng.randrange(1, 10)))
        sets = rng.choice(self._sets).format(rng.randrange(99))
        moved, deleted = (rng.randrange(max(0, first - 100), first + 10) for _ in range(2))
        self._run(
            "BEGIN",
            f"INSERT INTO {table} (id, name, balance, moment, raw, doc) VALUES {values}",
            f"UPDATE {table} SET {sets} WHERE id > {first - 100} AND id % 7 = {rng.randrange(7)}",
            f"UPDATE {table} SET id = -id WHERE id = {moved}",
            f"DELETE FROM {table} WHERE id = {deleted}",
            "COMMIT",
        )

    def _row(self, number: int) -> str:
        rng = self._rng
        return (
            f"({number}, 'größer{'.' * rng.randrange(60)}', {rng.randrange(10**9) / 10000},"
            f" '2026-01-02 03:04:05.{rng.randrange(10**6):06}', x'{rng.randbytes(9).hex()}',"
            f' \'{{"n": {rng.randrange(99)}, "s": ["x", null]}}\')'
        )

    def _flush(self) -> None:
        self._run("FLUSH BINARY LOGS")

    def _prepare(self) -> None:
        number = next(self._numbers)
        self._prepared.append((self._file(), ""))
        self._pending = _changed(
            self._aside,
            "XA START 'k'",
            f"INSERT INTO x VALUES ({number}, 0), ({-number}, 0)",
            f"UPDATE x SET n = n + 1 WHERE id % 2 = {number % 2}",
            f"DELETE FROM x WHERE id = {1 - number}",
            "XA END 'k'",
            "XA PREPARE 'k'",
        )

    def _complete(self) -> None:
        if self._rng.random() < 0.7:
            _changed(self._aside, "XA COMMIT 'k'")
            self.counted += self._pending
        else:
            _changed(self._aside, "XA ROLLBACK 'k'")
        self._prepared[-1] = (self._prepared[-1][0], self._file())

    def _evolve(self) -> None:
        alter, sets = next(self._evolution, ("", ""))
        if not alter:
            return
        for table in "tu":
            self._run(f"ALTER TABLE {table} {alter}")
            if "RENAME" in alter:
                # Rows from before would have the former name in the changes.
                self._run(f"UPDATE {table} SET {sets}")
        self._sets.append(sets)

    def _truncate(self) -> None:
        self._run("TRUNCATE t")

    def _recreate(self) -> None:
        number = next(self._numbers)
        self._run(
            "DROP TABLE d",
            f"CREATE TABLE d (id BIGINT PRIMARY KEY, c{number} INT)",
            f"INSERT INTO d VALUES (1, {number}), (2, NULL)",
        )

    def _purge(self) -> None:
        """Purge what is not needed any more, nor has an XA PREPARE whose end was not read."""
        needed = self._purgeable()
        self._prepared = [one for one in self._prepared if one[1] >= needed]
        first = min([needed, *(prepared for prepared, _ in self._prepared)])
        if first:
            self._run(f"PURGE BINARY LOGS TO '{first}'")

    def _file(self) -> str:
        file, *_ = self._server.binlog_end()
        return file

    def _run(self, *statements: str) -> None:
        self.counted += _changed(self._client, *statements)


def _changed(client: "Connection[Cursor]", *statements: str) -> Counter[str]:
    """Run statements; return how many changes they make, by the operations of `changes`."""
    found: Counter[str] = Counter()
    with client.cursor() as cursor:
        for statement in statements:
            rows = cursor.execute(statement)
            match statement.partition(" ")[0]:
                case "INSERT" | "UPDATE" | "DELETE" as word:
                    found[word.lower()] += rows
                case "TRUNCATE" | "DROP":
                    found["truncate"] += 1
    return found


@contextmanager
def evolving_load(server: Server, purgeable: Purgeable) -> Iterator[EvolvingLoad]:
    """Run a load for the time of the block, and on to the end of its round."""
    load = EvolvingLoad(server, purgeable)
    stopping = Event()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(load.run, stopping)
        try:
            yield load
        finally:
            stopping.set()
        running.result()
