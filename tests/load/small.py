"""The benchmarks' transactions: a backlog of small ones, a steady stream, and a very large one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from random import Random
from threading import Event
from typing import Final

from pymysql.constants import CLIENT

from tests.load.worker import send
from tests.servers.mysqld import Server

AT_ONCE: Final = 60
"""Transactions sent before their results are read."""

NOTE: Final = "a note as long as such notes are, so that a row has as many bytes as rows often have"

SESSION: Final = (
    "SET SESSION transaction_isolation = 'READ-COMMITTED', cte_max_recursion_depth = 1000000"
)
STATEMENTS: Final = "SET SESSION transaction_isolation = 'REPEATABLE-READ'"
"""Of a session whose changes may be logged as statements."""

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS items (
        id BIGINT NOT NULL PRIMARY KEY,
        account INT NOT NULL,
        amount DECIMAL(12,2) NOT NULL,
        name VARCHAR(60) NOT NULL,
        note VARCHAR(200),
        changed TIMESTAMP(6) NOT NULL,
        KEY (account)
    )""",
    """CREATE TABLE IF NOT EXISTS ticks (
        id BIGINT NOT NULL PRIMARY KEY,
        stamp BIGINT NOT NULL COMMENT 'microseconds since 1970 by the source, just before COMMIT',
        v VARCHAR(60)
    )""",
    """CREATE TABLE IF NOT EXISTS blobs (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, payload VARBINARY(8000) NOT NULL
    )""",
)


@dataclass(frozen=True, slots=True)
class Filled:
    """What a load has made: transactions, how long it took (s), and what the binlog grew by."""

    transactions: int
    seconds: float
    binlog_bytes: int

    @property
    def rate(self) -> float:
        """Transactions a second."""
        return self.transactions / self.seconds if self.seconds else 0.0


def database_names(databases: int = 8) -> list[str]:
    """Return the names of the databases that the functions here work on."""
    return [f"small{number}" for number in range(databases)]


def prepare(server: Server, databases: int = 8) -> None:
    """Make the databases and their tables: items, ticks, blobs."""
    statements = [
        statement
        for name in database_names(databases)
        for statement in (f"CREATE DATABASE IF NOT EXISTS {name}", f"USE {name}", *TABLES)
    ]
    with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
        send(client, statements)


def fill(
    server: Server,
    transactions: int = 80_000,
    databases: int = 8,
    connections: int = 4,
    *,
    seed: int = 0,
    session: str = SESSION,
) -> Filled:
    """Commit small transactions as fast as the server takes them, after prepare().

    Each is on one database: an INSERT, an UPDATE, in every third a DELETE. It may be called again
    with another seed below 1000; rows never conflict. `session` begins each connection.
    """

    def work(connection: int) -> int:
        share = transactions // connections + (connection < transactions % connections)
        made = _small(Random(f"{seed} {connection}"), databases, seed * connections + connection)
        with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, [session])
            for begun in range(0, share, AT_ONCE):
                count = min(AT_ONCE, share - begun)
                send(client, [text for _ in range(count) for text in (*next(made)[1], "COMMIT")])
        return share

    return _measured(server, connections, work)


def hot(server: Server, transactions: int, connections: int = 4) -> Filled:
    """Commit transactions that all change the same row, after prepare()."""
    server.sql(f"INSERT INTO small0.items VALUES (1, 1, 0.25, 'hot', '{NOTE}', NOW(6))")

    def work(connection: int) -> int:
        share = transactions // connections + (connection < transactions % connections)
        with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, [SESSION])
            for begun in range(0, share, AT_ONCE):
                count = min(AT_ONCE, share - begun)
                send(client, ["UPDATE small0.items SET amount = amount + 1 WHERE id = 1"] * count)
        return share

    return _measured(server, connections, work)


def fill_xa(server: Server, transactions: int, databases: int, connections: int) -> Filled:
    """Prepare and commit XA transactions like those of fill(), after prepare().

    The last transaction is that of `enter_last`.
    """

    def work(connection: int) -> int:
        share = transactions // connections + (connection < transactions % connections)
        made = _small(Random(f"xa {connection}"), databases, connection)
        with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"])
            for number in range(share):
                xid = f"'connection {connection}','{number}'"
                _, (_, *changes) = next(made)
                ends = (f"XA {verb} {xid}" for verb in ("END", "PREPARE", "COMMIT"))
                send(client, [f"XA START {xid}", *changes, *ends])
        return share

    filled = _measured(server, connections, work)
    enter_last(server, databases)
    return filled


def enter_last(server: Server, databases: int) -> None:
    """Commit a transaction that enters -1 into the ticks of each database."""
    ticks = "".join(
        f"INSERT INTO {name}.ticks VALUES (-1, 0, 'last');" for name in database_names(databases)
    )
    server.sql(f"BEGIN; {ticks} COMMIT")


def live(
    server: Server,
    rate: float,
    seconds: float,
    databases: int = 8,
    connections: int = 4,
    *,
    first: int = 0,
    until: Event | None = None,
) -> Filled:
    """Commit `rate` transactions a second, evenly, for so long or until the event, after prepare().

    Transaction n (from `first` on) changes items of one of the databases and enters (n, stamp) into
    its ticks; stamp is the source's clock in microseconds just before the COMMIT. A source that
    cannot keep up gets the late ones at once, so that their number is always the same.
    """
    total, start = int(rate * seconds), time.monotonic() + 0.05

    def work(connection: int) -> int:
        done = 0
        made = _small(Random(f"live {connection}"), databases, 4_000_000 + first + connection)
        with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, [SESSION])
            for number in range(connection, total, connections):
                time.sleep(max(0.0, start + number / rate - time.monotonic()))
                if until is not None and until.is_set():
                    break
                database, changes = next(made)
                tick = (
                    f"INSERT INTO {database}.ticks VALUES ({first + number},"
                    f" CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED), 'tick')"
                )
                send(client, [*changes, tick, "COMMIT"])
                done += 1
        return done

    return _measured(server, connections, work)


def large(server: Server, size: int, *, row_bytes: int = 1000, database: int = 0) -> Filled:
    """Commit one transaction of about `size` bytes of binlog, in rows of that size."""
    rows_a_statement = max(1, min(64_000_000, size) // row_bytes)
    left = size // row_bytes
    statements = [SESSION, f"USE small{database}", "START TRANSACTION"]
    while left > 0:
        rows = min(left, rows_a_statement)
        left -= rows
        statements.append(
            "INSERT INTO blobs (payload) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1"
            f" FROM n WHERE i < {rows}) SELECT REPEAT(CHAR(i % 251), {row_bytes - 20}) FROM n"
        )
    statements.append("COMMIT")

    def work(_: int) -> int:
        with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            for statement in statements:
                send(client, [statement])
        return 1

    return _measured(server, 1, work)


def _small(rng: Random, databases: int, stream: int) -> Iterator[tuple[str, list[str]]]:
    """Yield a database and a transaction on it, without its end; each stream has ids of its own."""
    names = database_names(databases)
    held: dict[str, list[int]] = {name: [] for name in names}
    id_ = stream * 10_000_000
    for number in range(10_000_000):
        name, id_ = rng.choice(names), id_ + 1
        ids = held[name]
        ids.append(id_)
        statements = [
            "BEGIN",
            (
                f"INSERT INTO {name}.items VALUES ({id_}, {rng.randrange(1000)},"
                f" {rng.randrange(10**6)}.25, 'name of {id_}', '{NOTE} {number}', NOW(6))"
            ),
            (
                f"UPDATE {name}.items SET amount = amount + 1, note = '{NOTE}, changed by {number}'"
                f" WHERE id = {rng.choice(ids)}"
            ),
        ]
        if number % 3 == 2:
            place = rng.randrange(len(ids))
            ids[place], ids[-1] = ids[-1], ids[place]
            statements.append(f"DELETE FROM {name}.items WHERE id = {ids.pop()}")
        yield name, statements


def _measured(server: Server, connections: int, work: Callable[[int], int]) -> Filled:
    before, began = _written(server), time.monotonic()
    with ThreadPoolExecutor(connections) as pool:
        done = sum(pool.map(work, range(connections)))
    seconds = time.monotonic() - began
    return Filled(done, seconds, _written(server) - before)


def _written(server: Server) -> int:
    """Return the bytes of all binlog files."""
    return sum(int(row[1]) for row in server.sql("SHOW BINARY LOGS"))
