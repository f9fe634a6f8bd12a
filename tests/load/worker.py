"""One connection of a mixed load: it sends transactions and DDL and keeps the accounts of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from socket import AF_UNIX, socket
from threading import Event
from typing import Final

import pymysql
from pymysql.constants import CLIENT

from tests.load.changes import Changes
from tests.load.contents import quoted
from tests.load.definitions import Definitions
from tests.load.files import Files
from tests.load.journal import Entry, Ledger
from tests.load.mix import DEFAULTS, Mix, Transactions
from tests.servers.mysqld import Server

RETRIED: Final = frozenset({1205, 1213, 1412})
"""Lock wait, deadlock, an altered table: rolled back, and another transaction takes its place."""
LOST: Final = frozenset({0, 1053, 1077, 1079, 1317, 2002, 2003, 2006, 2013, 2014, 3169})
"""The server is gone or going, or the connection is."""

SESSION: Final = (
    "SET SESSION cte_max_recursion_depth = 100000, lock_wait_timeout = 30,"
    " innodb_lock_wait_timeout = 10"
)
# Whatever a transaction or a definition that failed half-way may have set.
EVERY_DEFAULT: Final = "SET SESSION " + ", ".join(
    f"{name} = DEFAULT"
    for name in (
        "binlog_format",
        "binlog_row_image",
        "binlog_row_value_options",
        "binlog_rows_query_log_events",
        "binlog_transaction_compression",
        "default_collation_for_utf8mb4",
        "explicit_defaults_for_timestamp",
        "foreign_key_checks",
        "lc_time_names",
        "sql_generate_invisible_primary_key",
        "sql_mode",
        "time_zone",
        "transaction_isolation",
        "unique_checks",
    )
)

DEFINITIONS: Final = 0.02
ROTATIONS: Final = 0.0005
EMPTY_GROUPS: Final = 0.0015


class Worker:
    """Worker `number` of `workers`; `timeout`: seconds to wait for a lost server, None: not."""

    def __init__(
        self,
        server: Server,
        ledger: Ledger,
        databases: Sequence[str],
        mix: Mix,
        *,
        seed: int,
        number: int,
        workers: int,
        timeout: float | None,
        files: Files | None = None,
    ) -> None:
        self.number = number
        self.committed = 0
        self.definitions = 0
        self.given_up = Counter[int]()
        self._server = server
        self._ledger = ledger
        self._mix = mix
        self._timeout = timeout
        self._rng = Random(f"{seed} {number}")
        self._transactions = Transactions(
            self._rng, Changes(self._rng, number, workers, files), databases, mix
        )
        self._definitions = Definitions(self._rng, number, databases, mix.lives)
        self._used = 0
        self._groups = 0
        self._uuid = f"{seed % 2**32:08x}-1111-1111-1111-{number:012x}"
        self._client: pymysql.connections.Connection | None = None
        self._gtids = False

    def run(
        self, stopping: Event, transactions: int | None, deadline: float | None, rate: float | None
    ) -> None:
        """Run until `stopping`, `deadline` (monotonic) or so many more commits.

        `rate` caps the transactions per second. Raises pymysql's errors; TimeoutError where the
        server was awaited for too long.
        """
        goal = None if transactions is None else self.committed + transactions
        due = time.monotonic()
        try:
            while not (
                stopping.is_set()
                or (goal is not None and self.committed >= goal)
                or (deadline is not None and time.monotonic() >= deadline)
            ):
                if rate is not None:
                    # What could not be done in time is not made up for by a long burst.
                    due = max(due + 1 / rate, time.monotonic() - 0.1)
                    if stopping.wait(max(0.0, due - time.monotonic())):
                        break
                self._act(stopping)
        finally:
            self._disconnect()

    def _act(self, stopping: Event) -> None:
        client = self._client or self._connect(stopping)
        if client is None:
            return
        chance = self._rng.random()
        if chance < DEFINITIONS:
            if self._mix.lives:
                self._define(client)
        elif chance < DEFINITIONS + ROTATIONS:
            if self._mix.rotation:
                self._attempt(client, ["FLUSH BINARY LOGS"])
        elif chance < DEFINITIONS + ROTATIONS + EMPTY_GROUPS:
            if self._mix.gtids and self._gtids:
                self._empty_group(client)
        else:
            self._transact(client)

    def _transact(self, client: pymysql.connections.Connection) -> None:
        transaction = self._transactions.next(tagged=self._mix.gtids and self._gtids)
        self._used += 1
        entries = [Entry(name, self.number, self._used) for name in transaction.databases]
        statements: list[str] = []
        if transaction.settings:
            listed = (f"{name} = {value}" for name, value in transaction.settings.items())
            statements.append(f"SET SESSION {', '.join(listed)}")
        if self._rng.random() < 0.2:
            statements.append(f"USE {quoted(self._rng.choice(transaction.databases))}")
        statements += ["START TRANSACTION", *transaction.statements]
        statements += [
            f"INSERT INTO {quoted(entry.database)}.journal VALUES ({entry.worker}, {entry.number})"
            for entry in entries
        ]
        statements.append("COMMIT" if transaction.commits else "ROLLBACK")
        if transaction.settings:
            listed = (f"{name} = {DEFAULTS.get(name, 'DEFAULT')}" for name in transaction.settings)
            statements.append(f"SET SESSION {', '.join(listed)}")
        done = self._attempt(client, statements)
        if not transaction.commits:
            return
        if done:
            self.committed += 1
            self._ledger.commit(entries)
        elif self._client is None:
            self._ledger.doubt(entries)

    def _define(self, client: pymysql.connections.Connection) -> None:
        step = self._definitions.step()
        if self._attempt(client, [f"USE {quoted(step.default)}", *step.statements]):
            self.definitions += 1
        else:
            self._definitions.abandon()

    def _empty_group(self, client: pymysql.connections.Connection) -> None:
        self._groups += 1
        own = f"SET SESSION gtid_next = '{self._uuid}:{self._groups}'"
        automatic = "SET SESSION gtid_next = 'AUTOMATIC'"
        self._attempt(client, [own, "START TRANSACTION", "COMMIT", automatic])

    def _attempt(self, client: pymysql.connections.Connection, statements: Sequence[str]) -> bool:
        """Send the statements and return whether all were done.

        If not, what was open is rolled back; or the connection is lost, and it cannot be known.
        """
        try:
            send(client, statements)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
            number = error.args[0] if error.args else 0
            self.given_up[number] += 1
            if number in RETRIED:
                # If the server goes just now, the next transaction will find out.
                with suppress(pymysql.err.Error):
                    send(client, ["ROLLBACK", EVERY_DEFAULT])
                    if self._gtids:
                        send(client, ["SET SESSION gtid_next = 'AUTOMATIC'"])
                return False
            if number in LOST and self._timeout is not None:
                self._disconnect()
                return False
            raise
        return True

    def _connect(self, stopping: Event) -> pymysql.connections.Connection | None:
        """Return a new connection; None if the load has been stopped before there was one."""
        deadline = time.monotonic() + (self._timeout or 0.0)
        while True:
            client = None
            try:
                client = self._open()
                send(client, [SESSION])
                with client.cursor() as cursor:
                    cursor.execute("SELECT @@gtid_mode")
                    self._gtids = cursor.fetchall() == (("ON",),)
            except pymysql.err.OperationalError as error:
                if client is not None:
                    client.close()
                if self._timeout is None or error.args[0] not in LOST:
                    raise
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no server for {self._timeout} s: {error}") from error
            else:
                self._client = client
                return client
            if stopping.wait(0.05):
                return None

    def _open(self) -> pymysql.connections.Connection:
        """Return a connection over a socket of our own.

        PyMySQL's own would be left open whenever a connection is refused.
        """
        client = pymysql.connect(
            user="root",
            charset="utf8mb4",
            autocommit=True,
            # A handshake would cost more than most transactions.
            ssl_disabled=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            defer_connect=True,
        )
        own = socket(AF_UNIX)
        try:
            own.connect(str(self._server.socket))
            client.connect(own)
        except OSError as error:
            own.close()
            raise pymysql.err.OperationalError(2002, str(error)) from error
        except BaseException:
            own.close()
            raise
        return client

    def _disconnect(self) -> None:
        if self._client is not None:
            with suppress(pymysql.err.Error):
                self._client.close()
        self._client = None


def send(client: pymysql.connections.Connection, statements: Sequence[str]) -> None:
    """Send the statements at once and read all results; raises pymysql's error of the first."""
    done = 0
    try:
        with client.cursor() as cursor:
            cursor.execute(";\n".join(statements))
            done += 1
            while cursor.nextset():
                done += 1
    except pymysql.err.Error as error:
        # A CALL has two results, so this may be too late by one.
        error.add_note("\n".join(statements[max(0, done - 1) : done + 1])[:2000])
        raise
