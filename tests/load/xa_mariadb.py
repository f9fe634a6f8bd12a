"""A load of XA transactions on a MariaDB, where a prepared one keeps its session."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from random import Random
from threading import Event, Thread
from typing import Final

import pymysql

from tests.servers.mysqld import Server

ROWS: Final = 30
MOST_PREPARED: Final = 3
UNKNOWN_XID: Final = 1397
DATABASES: Final = ("xa0", "xa1", "xa2")


class Session:
    """One session of the load, with rows of its own; each prepare has a connection of its own."""

    def __init__(
        self, server: Server, seed: int, number: int, *, reuse: bool, formats: tuple[int, int]
    ) -> None:
        self._server = server
        self._reuse = reuse
        self._formats = formats
        self._rng = Random(f"{seed} {number}")
        self._number = number
        self._used = 0
        self._next_id = number * 1_000_000 + ROWS
        self.ids = range(number * 1_000_000, number * 1_000_000 + ROWS)
        self.prepared: dict[str, set[tuple[str, int]]] = {}
        """The xids, and the rows that each of them locks."""
        self.completed = 0

    def run(self, stopping: Event, rate: float) -> None:
        """Act until `stopping`, at most `rate` times a second."""
        while not stopping.wait(self._rng.random() * 2 / rate):
            chance = self._rng.random()
            if chance < 0.4 and len(self.prepared) < MOST_PREPARED:
                self._transact("PREPARE")
            elif chance < 0.7 and self.prepared:
                self.complete(self._rng.choice(sorted(self.prepared)))
            else:
                self._transact("COMMIT ONE PHASE" if chance < 0.8 else "")

    def complete(self, xid: str) -> None:
        """Commit or roll back what is prepared, as soon as its session has ended."""
        verb = "COMMIT" if self._rng.random() < 0.6 else "ROLLBACK"
        with closing(self._server.client()) as client, client.cursor() as cursor:
            deadline = time.monotonic() + 30
            while True:
                try:
                    cursor.execute(f"XA {verb} {xid}")
                    break
                except pymysql.err.MySQLError as error:
                    if error.args[0] != UNKNOWN_XID or time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        del self.prepared[xid]
        self.completed += 1

    def _transact(self, end: str) -> None:
        xid = self._free_xid()
        busy = set[tuple[str, int]]().union(*self.prepared.values())
        locked: set[tuple[str, int]] = set()
        changes = [self._change(locked, busy) for _ in range(self._rng.randint(1, 4))]
        binlog_format = self._rng.choice(("ROW", "ROW", "STATEMENT"))
        with closing(self._server.client()) as client, client.cursor() as cursor:
            statements = [f"SET binlog_format = {binlog_format}"]
            if end:
                verb, _, phase = end.partition(" ")
                statements += [f"XA START {xid}", *changes, f"XA END {xid}"]
                statements += [f"XA {verb} {xid} {phase}"]
            else:
                statements += ["BEGIN", *changes, "COMMIT"]
            for statement in statements:
                cursor.execute(statement)
        if end == "PREPARE":
            self.prepared[xid] = locked

    def _free_xid(self) -> str:
        self._used += 1
        suffix = "" if self._reuse else self._used
        small, large = self._formats
        xids = (
            f"'s{self._number}','{suffix}'", f"X'00{self._number:02x}','{suffix}',{small}",
            f"0x{self._number:02x}FF,'{suffix}',{large}", f"'t{self._number}','{suffix}'",
        )  # fmt: skip
        return self._rng.choice([xid for xid in xids if xid not in self.prepared])

    def _change(self, locked: set[tuple[str, int]], busy: set[tuple[str, int]]) -> str:
        database = self._rng.choice(DATABASES)
        free = [id_ for id_ in self.ids if (database, id_) not in busy | locked]
        if self._rng.random() < 0.3 or not free:
            self._next_id += 1
            return f"INSERT INTO {database}.t VALUES ({self._next_id}, 1)"
        id_ = self._rng.choice(free)
        locked.add((database, id_))
        return f"UPDATE {database}.t SET n = n + 1 WHERE id = {id_}"


class MariadbXaLoad:
    """Several sessions side by side, over databases that they share.

    With `reuse` each of them has a few xids, which it uses again and again. `formats` are format
    ids besides 1: a MySQL target that is killed needs the same everywhere.
    """

    def __init__(
        self,
        server: Server,
        *,
        seed: int,
        sessions: int = 3,
        reuse: bool = False,
        formats: tuple[int, int] = (7, 2147483647),
    ) -> None:
        self._server = server
        self.sessions = [
            Session(server, seed, number, reuse=reuse, formats=formats)
            for number in range(1, sessions + 1)
        ]

    def prepare(self, databases: Sequence[str] = DATABASES) -> None:
        """Create the databases and their rows."""
        for name in databases:
            self._server.sql(f"CREATE DATABASE {name}")
            self._server.sql(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB")
            for session in self.sessions:
                rows = ",".join(f"({id_}, 0)" for id_ in session.ids)
                self._server.sql(f"INSERT INTO {name}.t VALUES {rows}")

    @contextmanager
    def running(self, rate: float) -> Iterator[None]:
        """Run all sessions during the block, each at most `rate` times a second."""
        stopping = Event()
        failed: list[BaseException] = []

        def run(session: Session) -> None:
            try:
                session.run(stopping, rate)
            except BaseException as error:
                failed.append(error)
                raise

        threads = [Thread(target=run, args=(session,)) for session in self.sessions]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
        if failed:
            raise failed[0]

    def complete_all(self, *, but: int = 0) -> None:
        """Complete what the sessions have prepared, except for so many of each."""
        for session in self.sessions:
            for xid in list(session.prepared)[: len(session.prepared) - but]:
                session.complete(xid)
