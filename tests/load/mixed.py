"""A mixed load for a source: everything that a replica must carry, over several connections.

Seeded: each worker runs the same statements for the same seed, only their interleaving is chance.
Every transaction enters a number of its own into the journal of each database that it changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from typing import Final

import pymysql
from pymysql.constants import CLIENT

from tests.load import tables
from tests.load.changes import Changes
from tests.load.columns import WIDE
from tests.load.definitions import (
    PLAIN,
    Definitions,
    Life,
    create_select,
    event,
    non_transactional,
    user,
)
from tests.load.journal import Entry, Ledger
from tests.servers.mysqld import Server

RETRIED: Final = frozenset({1205, 1213})
"""Lock wait and deadlock: the transaction is rolled back and another one comes in its place."""
LOST: Final = frozenset({0, 1053, 1077, 1079, 2002, 2003, 2006, 2013, 3169})
"""The server is gone or going, or the connection is."""

EVERY_DEFAULT: Final = (
    "SET SESSION binlog_transaction_compression = DEFAULT, binlog_row_image = DEFAULT,"
    " binlog_row_value_options = DEFAULT, binlog_rows_query_log_events = DEFAULT,"
    " binlog_format = DEFAULT, foreign_key_checks = DEFAULT, unique_checks = DEFAULT,"
    " sql_mode = DEFAULT, time_zone = DEFAULT, lc_time_names = DEFAULT,"
    " explicit_defaults_for_timestamp = DEFAULT, default_collation_for_utf8mb4 = DEFAULT,"
    " sql_generate_invisible_primary_key = DEFAULT"
)


@dataclass(frozen=True, slots=True)
class Mix:
    """What a load is mixed of, besides transactions on one and on several databases.

    `ddl`: tables, views, triggers, routines, databases, and what ANALYZE and its like log.
    `rotation`: FLUSH BINARY LOGS. `large`: transactions of thousands of rows. `over_max`:
    transactions on more than 16 databases. `abroad`: foreign keys across databases. `sessions`:
    compression, row images, partial JSON, unchecked keys, Rows_query events. `gtids`: tagged ones
    and empty groups (only where the source has gtid_mode=ON). `events`, `users`: their DDL.
    `create_select`: CREATE TABLE … SELECT. `statement_format`: sessions with binlog_format
    STATEMENT and MIXED. `non_transactional`: MyISAM tables. `temporary`: temporary tables (row
    format logs nothing of them).
    """

    ddl: bool = True
    rotation: bool = True
    large: bool = True
    over_max: bool = True
    abroad: bool = True
    sessions: bool = True
    gtids: bool = True
    events: bool = False
    users: bool = False
    create_select: bool = False
    statement_format: bool = False
    non_transactional: bool = False
    temporary: bool = False

    @property
    def lives(self) -> Sequence[Life]:
        """The lives of DDL that belong to it."""
        chosen = list(PLAIN) if self.ddl else []
        for wanted, life in (
            (self.events, event),
            (self.users, user),
            (self.create_select, create_select),
            (self.non_transactional, non_transactional),
        ):
            if wanted:
                chosen.append(life)
        return chosen


@dataclass(slots=True)
class Transaction:
    """A transaction to be run: what it changes in which databases, and how its session is set."""

    databases: Sequence[str]
    statements: list[str]
    settings: dict[str, str] = field(default_factory=dict)
    commits: bool = True


class MixedLoad:
    """The load on `server`: databases d0, d1, …, one with an odd name, small ones e0, e1, ….

    `ledger` knows which transactions have committed (see journal.audit). With `tolerant`, lost
    connections do not end a run: its workers connect again, for `patience` seconds at most.
    """

    def __init__(
        self,
        server: Server,
        seed: int,
        databases: int = 8,
        connections: int = 4,
        *,
        mix: Mix | None = None,
        tolerant: bool = False,
        patience: float = 60.0,
    ) -> None:
        self.server = server
        self.mix = mix or Mix()
        self.tolerant = tolerant
        self.patience = patience
        self.ledger = Ledger()
        self.databases = [f"d{number}" for number in range(databases)]
        self.stopping = Event()
        self._seed = seed
        self._workers = [
            Worker(self, Random(f"{seed} {number}"), number, connections)
            for number in range(1, connections + 1)
        ]

    @property
    def committed(self) -> int:
        """Transactions that the server has said are committed, DDL not counted."""
        return sum(worker.committed for worker in self._workers)

    @property
    def definitions(self) -> int:
        """Steps of DDL that have been taken."""
        return sum(worker.definitions for worker in self._workers)

    @property
    def retried(self) -> int:
        """Transactions given up for a deadlock or a lost connection."""
        return sum(worker.retried for worker in self._workers)

    def prepare(self) -> None:
        """Make the databases, the tables, and a few rows in each of those with every type."""
        changes = Changes(Random(f"{self._seed} rows"), 0, 1)
        scripts = [tables.database(name) for name in self.databases]
        for name, script in zip(self.databases, scripts, strict=True):
            for table, columns in WIDE.items():
                script.append(changes.insert_wide(name, table, columns, 4))
            script += [
                # Zero in such a column, and dates of zero, are values like any other.
                "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
                "INSERT INTO accounts (id, name) VALUES (0, 'zero')",
                "INSERT INTO times (day, datetime_3, timestamp_2, time_0)"
                " VALUES ('0000-00-00', '0000-00-00', '0000-00-00', '0'), (0, 0, 0, 0)",
            ]
        scripts += [tables.odd(), tables.small()]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._run_script, scripts))
        self._run_script(tables.special(self.databases[0], self.databases[-1]))

    def run(
        self,
        *,
        transactions: int | None = None,
        seconds: float | None = None,
        until: Event | None = None,
        rate: float | None = None,
    ) -> None:
        """Run until that many transactions have committed, the time is over, or `until` is set.

        `rate` caps the transactions per second. It can be called again and goes on with other
        numbers. Raises the first error of a worker: pymysql's, or TimeoutError where a tolerant
        load has waited too long for the server.
        """
        self.stopping.clear()
        deadline = None if seconds is None else time.monotonic() + seconds
        count = len(self._workers)
        errors: list[BaseException] = []

        def work(worker: Worker) -> None:
            share = None
            if transactions is not None:
                share = transactions // count + (worker.number <= transactions % count)
            try:
                worker.run(share, deadline, until, None if rate is None else rate / count)
            except BaseException as error:  # noqa: BLE001 - it is raised by the thread that waits
                errors.append(error)
                self.stopping.set()

        threads = [
            Thread(target=work, args=(worker,), name=f"load-{worker.number}", daemon=True)
            for worker in self._workers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    @contextmanager
    def running(self, *, rate: float | None = None) -> Iterator[None]:
        """Run in the background while the block runs; raises the load's error at its end."""
        until = Event()
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(self.run, until=until, rate=rate)
            try:
                yield
            finally:
                until.set()
            run.result()

    def _run_script(self, statements: Sequence[str]) -> None:
        with closing(self.server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, statements)


class Worker:
    """One connection of a load, and what it will do."""

    def __init__(self, load: MixedLoad, rng: Random, number: int, workers: int) -> None:
        self.number = number
        self.committed = 0
        self.definitions = 0
        self.retried = 0
        self._load = load
        self._rng = rng
        self._changes = Changes(rng, number, workers)
        self._definitions = Definitions(rng, number, load.databases, load.mix.lives)
        self._used = 0
        self._client: pymysql.connections.Connection | None = None
        self._tagged = False
        mix = load.mix
        makers: Sequence[tuple[bool, float, Callable[[], Transaction]]] = (
            (True, 60, self._single),
            (True, 14, self._several),
            (True, 10, self._cascade),
            (True, 3, self._rolled_back),
            (True, 4, self._savepoints),
            (True, 2, self._odd),
            (True, 1, self._searched),
            (True, 4, self._json),
            (mix.large, 0.15, self._bulk),
            (mix.over_max, 0.3, self._over_max),
            (mix.abroad, 0.5, self._abroad),
            (mix.statement_format, 6, self._statements),
            (mix.temporary, 1, self._temporary),
        )
        self._makers = [maker for wanted, _, maker in makers if wanted]
        self._weights = [weight for wanted, weight, _ in makers if wanted]

    def run(
        self,
        transactions: int | None,
        deadline: float | None,
        until: Event | None,
        rate: float | None,
    ) -> None:
        """Run until one of the ends is reached; see MixedLoad.run."""
        goal = None if transactions is None else self.committed + transactions
        due = time.monotonic()
        try:
            while not (
                self._load.stopping.is_set()
                or (goal is not None and self.committed >= goal)
                or (deadline is not None and time.monotonic() >= deadline)
                or (until is not None and until.is_set())
            ):
                if rate is not None:
                    # What could not be done in time is not made up for by a burst.
                    due = max(due + 1 / rate, time.monotonic() - 0.1)
                    time.sleep(max(0.0, due - time.monotonic()))
                self._act()
        finally:
            self._disconnect()

    def _act(self) -> None:
        chance = self._rng.random()
        mix = self._load.mix
        if mix.lives and chance < 0.02:
            self._define()
        elif mix.rotation and chance < 0.0205:
            self._attempt(["FLUSH BINARY LOGS"])
        elif mix.gtids and chance < 0.022:
            self._empty_group()
        else:
            (maker,) = self._rng.choices(self._makers, self._weights)
            self._transact(maker())

    def _transact(self, transaction: Transaction) -> None:
        self._used += 1
        entries = [Entry(name, self.number, self._used) for name in transaction.databases]
        settings = {**self._settings(), **transaction.settings}
        statements = []
        if settings:
            listed = ", ".join(f"{name} = {value}" for name, value in settings.items())
            statements.append(f"SET SESSION {listed}")
        if self._rng.random() < 0.2:
            statements.append(f"USE {tables.quoted(self._rng.choice(transaction.databases))}")
        statements += ["START TRANSACTION", *transaction.statements]
        statements += [
            f"INSERT INTO {tables.quoted(entry.database)}.journal"
            f" VALUES ({entry.worker}, {entry.number})"
            for entry in entries
        ]
        statements.append("COMMIT" if transaction.commits else "ROLLBACK")
        if settings:
            listed = ", ".join(f"{name} = {DEFAULTS.get(name, 'DEFAULT')}" for name in settings)
            statements.append(f"SET SESSION {listed}")
        outcome = self._attempt(statements)
        if not transaction.commits:
            return
        if outcome:
            self.committed += 1
            self._load.ledger.commit(entries)
        elif outcome is None:
            self._load.ledger.doubt(entries)

    def _define(self) -> None:
        step = self._definitions.step()
        use = f"USE {tables.quoted(step.default)}"
        if self._attempt([use, *step.statements]):
            self.definitions += 1
        else:
            self._definitions.abandon()

    def _attempt(self, statements: Sequence[str]) -> bool | None:
        """Send the statements: True: done; False: rolled back; None: it cannot be known."""
        client = self._connected()
        try:
            send(client, statements)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
            self.retried += 1
            number = error.args[0] if error.args else 0
            if number in RETRIED:
                send(client, ["ROLLBACK", EVERY_DEFAULT, *self._gtid_default()])
                return False
            if number in LOST and self._load.tolerant:
                self._disconnect()
                return None
            raise
        return True
