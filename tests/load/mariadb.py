"""A load that both families understand: rows, definitions and tables copied, in every format.

Each transaction enters its number into a journal without a key, so that one that is lost or applied
twice shows, whatever the tables hold.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Event, Thread
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from tests.servers.mariadb import MariadbInstallation
from tests.servers.mysqld import Server

DATABASES: Final = ("d1", "d2", "d3", "d4")
_ROWS: Final = 40


class MariadbLoad:
    """Writers on a source, one for each database; `formats` are those of its transactions."""

    def __init__(self, source: Server, seed: int, formats: Sequence[str] = ("ROW",)) -> None:
        self._source = source
        self._seed = seed
        self._formats = formats

    def prepare(self) -> None:
        """Create the databases and tables."""
        for database in DATABASES:
            self._source.sql(
                f"CREATE DATABASE {database}; USE {database};"
                "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(400)) ENGINE=InnoDB;"
                "CREATE TABLE journal (worker INT NOT NULL, number BIGINT NOT NULL) ENGINE=InnoDB"
            )

    @contextmanager
    def running(self, pause: float = 0.01) -> Iterator[None]:
        """Write for the time of the block."""
        stopping = Event()
        failed: list[BaseException] = []

        def write(worker: int) -> None:
            try:
                self.write(worker, until=stopping, pause=pause)
            except BaseException as error:
                failed.append(error)
                raise

        threads = [Thread(target=write, args=(each,)) for each in range(len(DATABASES))]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
        assert failed == []

    def write(
        self, worker: int, *, until: Event, pause: float = 0.0, transactions: int = 1 << 30
    ) -> None:
        """Write as one of the writers, until told to stop or so many transactions."""
        chance = random.Random(self._seed * 100 + worker)
        own = DATABASES[worker]
        with closing(self._source.client(own)) as client, client.cursor() as cursor:
            for number in range(transactions):
                if until.is_set():
                    return
                cursor.execute(f"SET SESSION binlog_format = {chance.choice(self._formats)}")
                if number % 25 == 24:
                    two_phases = isinstance(self._source.installation, MariadbInstallation)
                    for statement in _definition(chance, number, two_phases=two_phases):
                        cursor.execute(statement)
                cursor.execute("BEGIN")
                cursor.execute("INSERT INTO journal VALUES (%s, %s)", (worker, number))
                for _ in range(chance.randint(1, 4)):
                    cursor.execute(_change(chance))
                if chance.random() < 0.1:
                    other = chance.choice(DATABASES)
                    cursor.execute(f"INSERT INTO {other}.journal VALUES (%s, %s)", (worker, number))
                cursor.execute("ROLLBACK" if chance.random() < 0.05 else "COMMIT")
                until.wait(pause)


def _change(chance: random.Random) -> str:
    number = chance.randrange(_ROWS)
    kind = chance.random()
    text = chr(chance.randint(97, 122)) * chance.choice((1, 30, 300))
    if kind < 0.5:
        return f"REPLACE INTO t VALUES ({number}, '{text}')"
    if kind < 0.8:
        return f"UPDATE t SET v = CONCAT('{text}', id) WHERE id = {number}"
    return f"DELETE FROM t WHERE id = {number}"


def _definition(chance: random.Random, number: int, *, two_phases: bool) -> Sequence[str]:
    kind = chance.randrange(4)
    if kind == 0:
        return (f"CREATE TABLE copy_{number} ENGINE=InnoDB SELECT * FROM t",)
    if kind == 1:
        return (f"ALTER TABLE t ADD INDEX i_{number} (v(10))",)
    if kind == 2:
        return (f"CREATE TABLE n_{number} (a INT PRIMARY KEY)", f"DROP TABLE n_{number}")
    setting = ("SET SESSION binlog_alter_two_phase = 1",) if two_phases else ()
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
