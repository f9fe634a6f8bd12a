"""A load that both families understand: rows, definitions and tables copied, in every format.

Each transaction enters its number into a journal without a key, so that one that is lost or applied
twice shows, whatever the tables hold.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from threading import Event
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from tests.load.files import Files, write_files
from tests.load.in_threads import in_threads
from tests.load.journal import Entry, Ledger
from tests.load.statements import TABLES, Statements, Transaction
from tests.servers.mariadb import MariadbInstallation
from tests.servers.mysqld import Server

DATABASES: Final = ("d1", "d2", "d3", "d4")
_ROWS: Final = 40
_RETRIED: Final = frozenset({1205, 1213})
"""Lock wait and deadlock: the transaction is rolled back, and the next one takes its place."""


class MariadbLoad:
    """Writers on a source, one for each database; `formats` are those of its transactions.

    With `statements`, most transactions and definitions are those of `tests.load.statements`: the
    source has to trust the creators of functions, and both servers need `local_infile`.
    `ledger` knows which transactions have committed (see `tests.load.journal.audit`).
    """

    def __init__(
        self,
        source: Server,
        seed: int,
        formats: Sequence[str] = ("ROW",),
        *,
        statements: bool = False,
    ) -> None:
        self.ledger = Ledger()
        self._source = source
        self._seed = seed
        self._formats = formats
        self._files: Files | None = write_files(source) if statements else None

    def prepare(self) -> None:
        """Create the databases and tables."""
        collation = " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" if self._files else ""
        for database in DATABASES:
            self._source.sql(
                f"CREATE DATABASE {database}{collation}; USE {database};"
                "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(400)) ENGINE=InnoDB;"
                "CREATE TABLE journal (worker INT NOT NULL, number BIGINT NOT NULL) ENGINE=InnoDB"
            )
            if self._files is not None:
                with closing(self._source.client(database)) as client, client.cursor() as cursor:
                    for statement in TABLES:
                        cursor.execute(statement)

    def run(self, transactions: int) -> None:
        """Write so many transactions by each of the writers, side by side and without a pause."""

        def write(worker: int) -> None:
            self.write(worker, until=Event(), transactions=transactions)

        with ThreadPoolExecutor(len(DATABASES)) as pool:
            list(pool.map(write, range(len(DATABASES))))

    def running(self, pause: float = 0.01) -> AbstractContextManager[None]:
        """Write for the time of the block."""

        def write(worker: int) -> Callable[[Event], None]:
            return lambda stopping: self.write(worker, until=stopping, pause=pause)

        return in_threads(map(write, range(len(DATABASES))))

    def write(
        self, worker: int, *, until: Event, pause: float = 0.0, transactions: int = 1 << 30
    ) -> None:
        """Write as one of the writers, until told to stop or so many transactions."""
        chance = random.Random(self._seed * 100 + worker)
        own = DATABASES[worker]
        others = [name for name in DATABASES if name != own]
        two_phases = isinstance(self._source.installation, MariadbInstallation)
        rows = _Rows(chance, others, two_phases=two_phases)
        made = None if self._files is None else Statements(chance, own, others, self._files)
        with closing(self._client(own)) as client, client.cursor() as cursor:
            for number in range(transactions):
                if until.is_set():
                    return
                if number % 25 == 24:
                    cursor.execute(f"SET SESSION binlog_format = {chance.choice(self._formats)}")
                    for statement in (made or rows).definitions(number):
                        cursor.execute(statement)
                maker = rows if made is None or chance.random() < 0.2 else made
                written = maker.transaction(number)
                entries = [Entry(name, worker, number) for name in (own, written.abroad) if name]
                self._transact(cursor, written, entries, chance)
                until.wait(pause)

    def _transact(
        self,
        cursor: Cursor,
        written: Transaction,
        entries: Sequence[Entry],
        chance: random.Random,
    ) -> None:
        """Run a transaction with its entries in the journals, and note whether it has committed."""
        chosen = "STATEMENT" if written.statements_only else chance.choice(self._formats)
        end = "ROLLBACK" if chance.random() < 0.05 else "COMMIT"
        journals = [
            f"INSERT INTO {each.database}.journal VALUES ({each.worker}, {each.number})"
            for each in entries
        ]
        setting = f"SET SESSION binlog_format = {chosen}"
        statements = [setting, *written.settings, "BEGIN", *journals, *written.statements, end]
        statement = ""
        try:
            for statement in statements:
                cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _RETRIED:
                error.add_note(statement)
                raise
            cursor.execute("ROLLBACK")
        else:
            if end == "COMMIT":
                self.ledger.commit(entries)

    def _client(self, database: str) -> pymysql.Connection[Cursor]:
        return pymysql.connect(
            unix_socket=str(self._source.socket), user="root", database=database,
            charset="utf8mb4", autocommit=True, local_infile=True, ssl_disabled=True,
        )  # fmt: skip


class _Rows:
    """Makes transactions that are the same in each format, and definitions."""

    def __init__(self, chance: random.Random, others: Sequence[str], *, two_phases: bool) -> None:
        self._chance = chance
        self._others = others
        self._two_phases = two_phases

    def transaction(self, _number: int) -> Transaction:
        changes = [self._change() for _ in range(self._chance.randint(1, 4))]
        abroad = self._chance.choice(self._others) if self._chance.random() < 0.1 else ""
        return Transaction(changes, abroad)

    def _change(self) -> str:
        chance = self._chance
        number = chance.randrange(_ROWS)
        kind = chance.random()
        text = chr(chance.randint(97, 122)) * chance.choice((1, 30, 300))
        if kind < 0.5:
            return f"REPLACE INTO t VALUES ({number}, '{text}')"
        if kind < 0.8:
            return f"UPDATE t SET v = CONCAT('{text}', id) WHERE id = {number}"
        return f"DELETE FROM t WHERE id = {number}"

    def definitions(self, number: int) -> Sequence[str]:
        kind = self._chance.randrange(4)
        if kind == 0:
            return (f"CREATE TABLE copy_{number} ENGINE=InnoDB SELECT * FROM t",)
        if kind == 1:
            return (f"ALTER TABLE t ADD INDEX i_{number} (v(10))",)
        if kind == 2:
            return (f"CREATE TABLE n_{number} (a INT PRIMARY KEY)", f"DROP TABLE n_{number}")
        setting = ("SET SESSION binlog_alter_two_phase = 1",) if self._two_phases else ()
        return (*setting, f"ALTER TABLE t COMMENT 'c{number}'")


def unequal(source: Server, target: Server) -> list[str]:
    """Return a line for each table that differs, by definition or CHECKSUM TABLE."""
    ours, theirs = _contents(source), _contents(target)
    return [
        f"{name}: {ours.get(name, 'only at the target')} and {theirs.get(name, 'missing there')}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def unequal_rows(source: Server, target: Server) -> list[str]:
    """Return a line for each table whose rows differ, for servers of different families."""
    found = []
    with closing(source.client()) as ours, closing(target.client()) as theirs:
        for name in sorted(_tables(ours) | _tables(theirs)):
            rows = []
            for client in (ours, theirs):
                with client.cursor() as cursor:
                    cursor.execute(f"SELECT * FROM {name}")
                    rows.append(Counter(cursor.fetchall()))
            if rows[0] != rows[1]:
                found.append(f"{name}: {rows[0] - rows[1]} and {rows[1] - rows[0]}")
    return found


def _tables(client: pymysql.Connection[Cursor]) -> set[str]:
    with client.cursor() as cursor:
        cursor.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema"
            " NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys', 'mtsd')"
        )
        return {f"`{schema}`.`{name}`" for schema, name in cursor.fetchall()}


def _contents(server: Server) -> dict[str, str]:
    """Return definition and checksum of each table of a user, by name."""
    found: dict[str, str] = {}
    with closing(server.client()) as client, client.cursor() as cursor:
        cursor.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema"
            " NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys', 'mtsd')"
        )
        for schema, name in cursor.fetchall():
            for query in (
                f"SHOW CREATE TABLE {schema}.`{name}`",
                f"CHECKSUM TABLE {schema}.`{name}`",
            ):
                cursor.execute(query)
                found[f"{schema}.{name}, {query.split()[0]}"] = str(cursor.fetchall()[0][1])
    return found
