"""Ordinary loads: what is there before each of them, and the transactions that it runs.

Those of sysbench are its own (Debian's package `sysbench`, which has to be installed), TPC-C is in
`benchmarks.inputs.tpcc`, the others are a few statements each.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Final

from pymysql.constants import CLIENT

from benchmarks.inputs import tpcc
from tests.load.worker import send
from tests.servers.mysqld import Server

CONNECTIONS: Final = 4
_SYSBENCH_TABLES: Final = 4
_SYSBENCH_ROWS: Final = 10_000
_AT_ONCE: Final = 20
"""Transactions sent before their results are read."""
_READ_COMMITTED: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
_OF_STATEMENTS: Final = "SET SESSION binlog_format = 'STATEMENT'"

Made = Iterator[list[str]]
"""The statements of one transaction after another."""


@dataclass(frozen=True, slots=True)
class OrdinaryLoad:
    """A load: what is there before it, and so many transactions of `run` (server, transactions).

    `run` returns how many it has committed.
    """

    name: str
    transactions: int
    prepare: Callable[[Server], None]
    run: Callable[[Server, int], int]


def _sysbench(name: str, *arguments: str) -> OrdinaryLoad:
    def sysbench(server: Server, *more: str) -> None:
        program = shutil.which("sysbench")
        if program is None:
            raise SystemExit("sysbench is missing: apt-get install sysbench, or choose by --load")
        command = [
            program, name, "--db-driver=mysql", f"--mysql-socket={server.socket}",
            "--mysql-user=root", "--mysql-db=sbtest", f"--tables={_SYSBENCH_TABLES}",
            f"--table-size={_SYSBENCH_ROWS}", "--rand-seed=4", *arguments, *more,
        ]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"sysbench: {done.stdout[-2000:]}")

    def prepare(server: Server) -> None:
        server.sql("CREATE DATABASE sbtest")
        sysbench(server, "prepare")

    def run(server: Server, transactions: int) -> int:
        before = _commits(server)
        limits = (f"--threads={CONNECTIONS}", f"--events={transactions}", "--time=0")
        sysbench(server, *limits, "run")
        return _commits(server) - before

    return OrdinaryLoad(f"sysbench {name}", 20_000, prepare, run)


def _commits(server: Server) -> int:
    """Return how many transactions the server has logged since its GTIDs were reset."""
    *_, gtids = server.binlog_end()
    return int(re.split("[-:]", gtids)[-1] or 0)


def _of(
    name: str,
    transactions: int,
    tables: Sequence[str],
    made: Callable[[Random, int], Made],
    *,
    connections: int = CONNECTIONS,
    session: str = _READ_COMMITTED,
) -> OrdinaryLoad:
    """Return a load in the database `ordinary`, by so many connections that begin with `session`.

    `made` yields the transactions of a connection, from its random numbers and its first id.
    """

    def prepare(server: Server) -> None:
        with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, [tpcc.LONG_RECURSION, "CREATE DATABASE ordinary", "USE ordinary", *tables])

    def run(server: Server, count: int) -> int:
        def work(connection: int) -> int:
            share = count // connections
            transactions = made(Random(f"{name} {connection}"), (connection + 1) * 10_000_000)
            with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
                send(client, [session, "USE ordinary"])
                for begun in range(0, share, _AT_ONCE):
                    some = range(min(_AT_ONCE, share - begun))
                    send(client, [text for _ in some for text in next(transactions)])
            return share

        with ThreadPoolExecutor(connections) as pool:
            return sum(pool.map(work, range(connections)))

    return OrdinaryLoad(name, transactions, prepare, run)


def _pairs_of_changes(insert: str, update: str) -> Callable[[Random, int], Made]:
    """Return transactions of an INSERT and an UPDATE, with {id}, {old} and {n} filled in."""

    def made(rng: Random, first: int) -> Made:
        for id_ in range(first, first + 10_000_000):
            values = {"id": id_, "old": rng.randrange(first, id_ + 1), "n": rng.randrange(10**6)}
            yield ["BEGIN", insert.format(**values), update.format(**values), "COMMIT"]

    return made


def _wide(name: str, transactions: int, columns: int, characters: int = 40) -> OrdinaryLoad:
    types = "INT NOT NULL", f"VARCHAR({characters})", "DECIMAL(12,2)", "DATETIME"
    values = "{n}", f"LEFT('text of {{n}}', {characters})", "{n}.25", "'2026-01-02 03:04:05'"
    defined = ", ".join(f"c{n} {types[n % 4]}" for n in range(columns))
    inserted = ", ".join(values[n % 4] for n in range(columns))
    return _of(
        name,
        transactions,
        [f"CREATE TABLE wide (id BIGINT PRIMARY KEY, {defined})"],
        _pairs_of_changes(
            f"INSERT INTO wide VALUES ({{id}}, {inserted})",
            "UPDATE wide SET c0 = {n}, c1 = 'changed' WHERE id = {old}",
        ),
    )


_DOCUMENT: Final = (
    '{{"name": "customer {n}", "tags": ["a", "b", "c"], "address": {{"street": "a street",'
    ' "number": {n}}}, "note": "a note as long as such notes are in most documents"}}'
)


def _cascades(_: Random, first: int) -> Made:
    for id_ in range(first, first + 10_000_000):
        children = ", ".join(f"({id_ * 4 + n}, {id_}, 'a child')" for n in range(3))
        yield [
            "BEGIN",
            f"INSERT INTO parents VALUES ({id_}, 'a parent')",
            f"INSERT INTO children VALUES {children}",
            f"DELETE FROM parents WHERE id = {id_ - 5}",
            "COMMIT",
        ]


def _with_definitions(every: int, databases: int) -> Callable[[Random, int], Made]:
    """Return small transactions over databases, with a definition after so many of them."""

    def made(rng: Random, first: int) -> Made:
        for n in range(10_000_000):
            id_, name = first + n, f"ordinary{n % databases}"
            yield [
                "BEGIN",
                f"INSERT INTO {name}.items VALUES ({id_}, 'an item', {rng.randrange(1000)})",
                f"UPDATE {name}.items SET amount = amount + 1 WHERE id = {max(first, id_ - 8)}",
                "COMMIT",
            ]
            if n % every == every - 1:
                step = n // every
                if step % 2:
                    text = f"ALTER TABLE {name}.items COMMENT 'changed {step} times'"
                else:
                    text = f"CREATE TABLE {name}.made{step} (id INT PRIMARY KEY, v VARCHAR(20))"
                yield [text]

    return made


def _databases(count: int) -> list[str]:
    return [
        text
        for n in range(count)
        for text in (
            f"CREATE DATABASE ordinary{n}",
            f"CREATE TABLE ordinary{n}.items (id BIGINT PRIMARY KEY, name VARCHAR(40), amount INT)",
        )
    ]


def _temporary(rng: Random, first: int) -> Made:
    """Yield the transactions of a session that collects rows in temporary tables, over and over."""
    connection = first // 10_000_000
    for n in range(10_000_000):
        id_ = first + n * 10
        own, other = (f"ordinary{(connection + more) % 4}" for more in (0, n % 3 // 2))
        rows = ", ".join(f"({id_ + row}, {rng.randrange(1000)})" for row in range(10))
        yield [
            f"CREATE TEMPORARY TABLE {own}.basket (id BIGINT PRIMARY KEY, amount INT, KEY (amount))"
        ]
        yield [f"INSERT INTO {own}.basket VALUES {rows}"]
        yield [
            "BEGIN",
            f"INSERT INTO {other}.items SELECT id, 'from a basket', amount FROM {own}.basket",
            f"UPDATE {other}.items SET amount = amount + 1 WHERE id = {id_}",
            "COMMIT",
        ]
        yield [f"DROP TEMPORARY TABLE {own}.basket"]
        yield [f"UPDATE {own}.items SET name = 'changed {n}' WHERE id = {id_ - 10}"]


def _truncated(_: Random, first: int) -> Made:
    """Yield a table that is filled and emptied, over and over."""
    table = f"emptied{first // 10_000_000 - 1}"
    while True:
        for id_ in range(19):
            yield [f"INSERT INTO {table} VALUES ({id_}, 'a row')"]
        yield [f"TRUNCATE {table}"]


def _of_ranges(rng: Random, first: int) -> Made:
    """Yield updates of 1,000 of the 10,000 rows that each connection finds."""
    while True:
        begin = first + rng.randrange(9_000)
        yield [f"UPDATE items SET amount = amount + 1 WHERE id BETWEEN {begin} AND {begin + 999}"]


def _purged(_: Random, first: int) -> Made:
    """Yield what comes in by a thousand rows, and goes by a thousand."""
    for id_ in range(first, first + 10_000_000, 1000):
        yield [f"INSERT INTO items SELECT {id_} + i, 'a row', i FROM numbers WHERE i < 1000"]
        yield [f"DELETE FROM items WHERE id BETWEEN {first} AND {id_} ORDER BY id LIMIT 1000"]


def _without_transactions(_: Random, first: int) -> Made:
    """Yield nine rows of a table with transactions after each of one without."""
    for id_ in range(first, first + 10_000_000):
        table = "items" if id_ % 10 else "counted"
        yield [f"INSERT INTO {table} VALUES ({id_}, 'a row', 1)"]


def _blobs(rng: Random, first: int) -> Made:
    for id_ in range(first, first + 10_000_000):
        yield [f"INSERT INTO blobs VALUES ({id_}, REPEAT('{rng.randrange(10**15):016}', 4096))"]


def _many_rows(_: Random, first: int) -> Made:
    for n in range(10_000_000):
        id_ = first + n * 2000
        statements = [
            "BEGIN",
            f"INSERT INTO items SELECT {id_} + i, 'one of many rows', i FROM numbers",
        ]
        if n % 3 == 2:
            statements.append(
                f"DELETE FROM items WHERE id BETWEEN {id_ - 2000} AND {id_ - 2000 + 499}"
            )
        yield [*statements, "COMMIT"]


def _numbers(count: int) -> list[str]:
    """Return what makes a table of the numbers below `count`."""
    below = (
        f"WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1})"
    )
    return [
        "CREATE TABLE numbers (i INT PRIMARY KEY)",
        f"INSERT INTO numbers {below} SELECT i FROM n",
    ]


_ITEMS: Final = "CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR(40), amount INT)"

LOADS: Final[tuple[OrdinaryLoad, ...]] = (
    _sysbench("oltp_insert"),
    _sysbench("oltp_update_index"),
    _sysbench("oltp_write_only"),
    OrdinaryLoad("TPC-C", 4_000, tpcc.prepare, tpcc.run),
    _wide("wide rows", 4_000, 99),
    _of(
        "JSON",
        8_000,
        ["CREATE TABLE documents (id BIGINT PRIMARY KEY, document JSON)"],
        _pairs_of_changes(
            f"INSERT INTO documents VALUES ({{id}}, '{_DOCUMENT}')",
            "UPDATE documents SET document = JSON_SET(document, '$.name', 'changed {n}')"
            " WHERE id = {old}",
        ),
    ),
    _of(
        "no key",
        2_000,
        ["CREATE TABLE heap (a BIGINT, b VARCHAR(60))"],
        _pairs_of_changes(
            "INSERT INTO heap VALUES ({id}, 'a row without a key')",
            "UPDATE heap SET b = 'changed {n}' WHERE a = {old}",
        ),
        connections=1,
    ),
    _of(
        "cascades",
        8_000,
        [
            "CREATE TABLE parents (id BIGINT PRIMARY KEY, name VARCHAR(40))",
            (
                "CREATE TABLE children (id BIGINT PRIMARY KEY, parent BIGINT NOT NULL,"
                " name VARCHAR(40), FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE)"
            ),
        ],
        _cascades,
    ),
    _of(
        "computed columns",
        8_000,
        [
            (
                "CREATE TABLE computed (id BIGINT PRIMARY KEY, a INT NOT NULL, b VARCHAR(40),"
                " c INT AS (a * 2) VIRTUAL, d VARCHAR(50) AS (CONCAT(b, '!')) STORED,"
                " e DATETIME DEFAULT CURRENT_TIMESTAMP, KEY (c), CHECK (a >= 0))"
            )
        ],
        _pairs_of_changes(
            "INSERT INTO computed (id, a, b) VALUES ({id}, {n}, 'a text')",
            "UPDATE computed SET a = {n} WHERE id = {old}",
        ),
    ),
    _of(
        "a definition after 60 transactions",
        6_000,
        _databases(1),
        _with_definitions(60, 1),
        connections=1,
    ),
    _of(
        "a definition after 50, 8 databases",
        6_000,
        _databases(8),
        _with_definitions(50, 8),
        connections=1,
    ),
    _of(
        "temporary tables, as statements",
        8_000,
        _databases(4),
        _temporary,
        connections=8,
        session=_OF_STATEMENTS,
    ),
    _of(
        "blobs of 64 KB",
        2_000,
        ["CREATE TABLE blobs (id BIGINT PRIMARY KEY, payload MEDIUMBLOB)"],
        _blobs,
    ),
    _of(
        "2,000 rows a transaction",
        160,
        [_ITEMS, *_numbers(2000)],
        _many_rows,
    ),
    _of(
        "TRUNCATE after 19 inserts",
        8_000,
        [f"CREATE TABLE emptied{n} (id INT PRIMARY KEY, v VARCHAR(9))" for n in range(CONNECTIONS)],
        _truncated,
    ),
    _of("purge by 1,000 rows", 1_200, [_ITEMS, *_numbers(1000)], _purged),
    _of(
        "updates of 1,000 rows",
        800,
        [
            _ITEMS,
            *_numbers(10_000),
            *(
                f"INSERT INTO items SELECT {n + 1}0000000 + i, 'a', i FROM numbers"
                for n in range(4)
            ),
        ],
        _of_ranges,
    ),
    _of(
        "MyISAM, one in ten transactions",
        6_000,
        [_ITEMS, _ITEMS.replace("items", "counted") + " ENGINE = MyISAM"],
        _without_transactions,
    ),
)
NAMES: Final = tuple(load.name for load in LOADS)
AS_SQL: Final = (
    # With longer texts, a row of so many columns is too large for InnoDB.
    _wide("600 columns", 1_500, 599, 8),
    *(one for one in LOADS if one.name == "no key"),
)
"""Those that cost most where rows are applied as SQL."""
