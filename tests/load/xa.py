"""A load of XA transactions: prepared, committed, rolled back, in one phase, empty, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from threading import Event
from typing import Final, Protocol

import pymysql

from tests.load.in_threads import in_threads
from tests.servers.mysqld import Server

ROWS: Final = 40
"""Of each session in each database, at the beginning."""
MAX_PREPARED: Final = 3
RETRIED: Final = frozenset({1205, 1213})
UNKNOWN_XID: Final = 1397
DATABASES: Final = ("xa0", "xa1", "xa2")
"""Those of a load, unless it is told how many."""


@dataclass(slots=True)
class Branch:
    """A transaction that is prepared: the rows that it locks, and those that a commit leaves."""

    locked: set[tuple[str, int]] = field(default_factory=set)
    made: set[tuple[str, int]] = field(default_factory=set)
    gone: set[tuple[str, int]] = field(default_factory=set)


class Session:
    """One session of the load, with xids and rows of its own; see `XaLoad`."""

    def __init__(
        self,
        server: Server,
        databases: Sequence[str],
        seed: int,
        number: int,
        *,
        reuse: bool,
        formats: tuple[int, int, int],
        no_global_part: str,
    ) -> None:
        self._server = server
        self._databases = databases
        self._rng = Random(f"{seed} {number}")
        self._xids = (
            f"'session {number}{{n}}','',{formats[0]}", f"X'00{number:02x}','{{n}}',{formats[1]}",
            f"'{no_global_part}','{number}{{n}}',{formats[2]}",
            f"0x{number:02x}FF,'b''\\\\q{{n}}',{formats[0]}",
        )  # fmt: skip
        self._reuse = reuse
        self._used = 0
        self._next_id = number * 1_000_000 + ROWS
        self.rows = {(name, number * 1_000_000 + i) for name in databases for i in range(ROWS)}
        self.prepared: dict[str, Branch] = {}
        self.completed = 0

    def run(self, stopping: Event, rate: float) -> None:
        """Act until `stopping`, at most `rate` times a second."""
        with self._connected() as first, self._connected() as second:
            while not stopping.wait(self._rng.random() * 2 / rate):
                self._act(first, second if self._rng.random() < 0.5 else first)

    def complete_all(self, *, but: int) -> None:
        """Complete what is prepared, except for so many."""
        with self._connected() as client:
            # What has changed nothing is not in the binary log: only the source has it prepared.
            for xid in [xid for xid, branch in self.prepared.items() if not branch.locked]:
                self._complete(client, xid)
            while len(self.prepared) > but:
                self._complete(client, next(iter(self.prepared)))

    @contextmanager
    def _connected(self) -> Iterator[pymysql.connections.Connection]:
        with closing(self._server.client()) as client:
            self._run(client, "SET innodb_lock_wait_timeout = 5")
            yield client

    def _act(
        self, first: pymysql.connections.Connection, other: pymysql.connections.Connection
    ) -> None:
        chance = self._rng.random()
        if chance < 0.35 and len(self.prepared) < MAX_PREPARED:
            self._transact(first, self._free_xid(), "PREPARE")
        elif chance < 0.65 and self.prepared:
            self._complete(other, self._rng.choice(sorted(self.prepared)))
        elif chance < 0.75:
            self._transact(first, self._free_xid(), "COMMIT ONE PHASE")
        elif chance < 0.8 and len(self.prepared) < MAX_PREPARED:
            self._empty(first, self._free_xid())
        else:
            self._transact(first, "", "COMMIT")

    def _free_xid(self) -> str:
        self._used += 1
        suffix = "" if self._reuse else f"/{self._used}"
        xids = (xid.format(n=suffix) for xid in self._xids)
        return self._rng.choice([xid for xid in xids if xid not in self.prepared])

    def _transact(self, client: pymysql.connections.Connection, xid: str, end: str) -> None:
        branch = Branch()
        busy = {row for other in self.prepared.values() for row in other.locked}
        changes = [self._change(branch, busy) for _ in range(self._rng.randint(1, 4))]
        names = self._rng.choice(("ROW", "ROW", "MIXED", "STATEMENT"))
        before = [f"SET binlog_format = {names}"]
        if self._rng.random() < 0.2:
            before.append("SET binlog_transaction_compression = ON")
        try:
            self._run(client, *before)
            if xid:
                self._run(client, f"XA START {xid}", *changes, f"XA END {xid}")
                verb, _, one_phase = end.partition(" ")
                self._run(client, f"XA {verb} {xid} {one_phase}")
            else:
                self._run(client, "BEGIN", *changes, end)
        except pymysql.err.OperationalError as error:
            if error.args[0] not in RETRIED:
                raise
            for undo in (f"XA END {xid}", f"XA ROLLBACK {xid}") if xid else ("ROLLBACK",):
                with suppress(pymysql.err.MySQLError):
                    self._run(client, undo)
        else:
            if end == "PREPARE":
                self.prepared[xid] = branch
            else:
                self._committed(branch)
        finally:
            self._run(client, "SET binlog_transaction_compression = OFF")

    def _change(self, branch: Branch, busy: set[tuple[str, int]]) -> str:
        chance = self._rng.random()
        known = sorted(self.rows - busy - branch.locked)
        if chance < 0.35 or not known:
            self._next_id += 1
            row = self._rng.choice(self._databases), self._next_id
            branch.made.add(row)
            change = f"INSERT INTO {row[0]}.t VALUES ({row[1]}, 1, 'made')"
        elif chance < 0.85:
            row = self._rng.choice(known)
            change = f"UPDATE {row[0]}.t SET n = n + 1 WHERE id = {row[1]}"
        else:
            row = self._rng.choice(known)
            branch.gone.add(row)
            change = f"DELETE FROM {row[0]}.t WHERE id = {row[1]}"
        branch.locked.add(row)
        return change

    def _empty(self, client: pymysql.connections.Connection, xid: str) -> None:
        """Prepare a transaction without changes: in statements, it is in the binary log."""
        database = self._rng.choice(self._databases)
        self._run(
            client,
            f"SET binlog_format = {self._rng.choice(('ROW', 'STATEMENT'))}",
            f"XA START {xid}",
            # A row that is not there would lock the gap.
            f"UPDATE {database}.none SET n = 1 WHERE id = 1",
            f"XA END {xid}",
            f"XA PREPARE {xid}",
        )
        self.prepared[xid] = Branch()

    def _complete(self, client: pymysql.connections.Connection, xid: str) -> None:
        commits = self._rng.random() < 0.6
        self._run(client, f"XA {'COMMIT' if commits else 'ROLLBACK'} {xid}")
        branch = self.prepared.pop(xid)
        if commits:
            self._committed(branch)

    def _committed(self, branch: Branch) -> None:
        self.rows |= branch.made
        self.rows -= branch.gone
        self.completed += 1

    @staticmethod
    def _run(client: pymysql.connections.Connection, *statements: str) -> None:
        with client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


class MariadbSession:
    """As `Session` on a MariaDB, where what is prepared keeps its connection until that ends.

    So each transaction has one of its own; none locks a row that another has prepared.
    """

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
            if chance < 0.4 and len(self.prepared) < MAX_PREPARED:
                self._transact("PREPARE")
            elif chance < 0.7 and self.prepared:
                self._complete(self._rng.choice(sorted(self.prepared)))
            else:
                self._transact("COMMIT ONE PHASE" if chance < 0.8 else "")

    def complete_all(self, *, but: int) -> None:
        """Complete what is prepared, except for so many."""
        for xid in list(self.prepared)[: len(self.prepared) - but]:
            self._complete(xid)

    def _complete(self, xid: str) -> None:
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


class Acting(Protocol):
    """A session of a load."""

    completed: int

    def run(self, stopping: Event, rate: float) -> None:
        """Act until `stopping`, at most `rate` times a second."""

    def complete_all(self, *, but: int) -> None:
        """Complete what is prepared, except for so many."""


class SideBySide:
    """Several sessions at once."""

    def __init__(self, sessions: Sequence[Acting]) -> None:
        self._sessions = sessions

    def running(self, rate: float) -> AbstractContextManager[None]:
        """Run all sessions during the block, each at most `rate` times a second."""

        def run(session: Acting) -> Callable[[Event], None]:
            return lambda stopping: session.run(stopping, rate)

        return in_threads(map(run, self._sessions))

    def run(self, completed: int, rate: float) -> None:
        """Run all sessions until so many transactions are completed; AssertionError after 120 s."""
        deadline = time.monotonic() + 120
        with self.running(rate):
            while self.completed < completed:
                assert time.monotonic() < deadline, self.completed
                time.sleep(0.02)

    def complete_all(self, *, but: int = 0) -> None:
        """Complete what the sessions have prepared, except for so many of each."""
        for session in self._sessions:
            session.complete_all(but=but)

    @property
    def completed(self) -> int:
        """How many transactions have been committed."""
        return sum(session.completed for session in self._sessions)


class XaLoad(SideBySide):
    """Several sessions side by side, over databases that they share.

    With `reuse` each of them has a few xids, which it uses again and again. `formats` are format
    ids of the xids: after a crash, a MySQL with a binary log loses some unless they are equal.
    `for_mariadb`: a MariaDB accepts all of them, too.
    """

    def __init__(
        self,
        server: Server,
        *,
        seed: int,
        sessions: int = 4,
        databases: int = len(DATABASES),
        reuse: bool = False,
        formats: tuple[int, int, int] = (1, 2147483647, 0),
        for_mariadb: bool = False,
    ) -> None:
        self._server = server
        self._databases = [f"xa{number}" for number in range(databases)]
        self._own = [
            Session(
                server,
                self._databases,
                seed,
                number,
                reuse=reuse,
                formats=(1, 1, 1) if for_mariadb else formats,
                no_global_part="-" if for_mariadb else "",
            )
            for number in range(1, sessions + 1)
        ]
        super().__init__(self._own)

    def prepare(self) -> None:
        """Create the databases and their rows."""
        for name in self._databases:
            self._server.sql(
                f"CREATE DATABASE {name};"
                f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT, v VARCHAR(20));"
                f"CREATE TABLE {name}.none (id INT PRIMARY KEY, n INT)"
            )
        for session in self._own:
            for name in self._databases:
                values = ",".join(
                    f"({id_}, 0, 'old')" for own, id_ in sorted(session.rows) if own == name
                )
                self._server.sql(f"INSERT INTO {name}.t VALUES {values}")


class MariadbXaLoad(SideBySide):
    """As `XaLoad` on a MariaDB, where a prepared transaction keeps its session.

    `formats` are format ids besides 1: a MySQL target that is killed needs the same everywhere.
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
        self._own = [
            MariadbSession(server, seed, number, reuse=reuse, formats=formats)
            for number in range(1, sessions + 1)
        ]
        super().__init__(self._own)

    def prepare(self) -> None:
        """Create the databases and their rows."""
        for name in DATABASES:
            self._server.sql(f"CREATE DATABASE {name}")
            self._server.sql(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB")
            for session in self._own:
                rows = ",".join(f"({id_}, 0)" for id_ in session.ids)
                self._server.sql(f"INSERT INTO {name}.t VALUES {rows}")
