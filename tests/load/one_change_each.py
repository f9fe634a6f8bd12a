"""A load without conflicts: no two of its transactions of rows change the same row.

So they may be applied in any order. Now and then comes what keeps its order: a definition, a
statement that depends on all rows so far, an XA transaction.
"""

from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Final

from tests.servers.mysqld import Server

DATABASES: Final = ("one", "two")
ROWS: Final = 4000
"""How many transactions there is room for."""
_ADDED: Final = 1_000_000


def prepare(server: Server) -> None:
    """Make the tables, with the rows that `change` changes; it ends with a definition."""
    for name in DATABASES:
        server.sql(
            f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(250));"
            f"CREATE TABLE {name}.log (n INT, v VARCHAR(99));"
            f"SET cte_max_recursion_depth = {ROWS};"
            f"INSERT INTO {name}.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            f" WHERE i < {ROWS}) SELECT i, 'before' FROM n"
        )
    server.sql(f"CREATE TABLE {DATABASES[0]}.ready (i INT)")


def change(server: Server, transactions: int, *, first: int = 1, only_rows: bool = False) -> None:
    """Commit that many transactions; number n, from `first` on, changes what is its own.

    With `only_rows`, there is nothing that keeps its order.
    """
    rng = Random(first)
    with closing(server.client()) as client, client.cursor() as cursor:
        for number in range(first, first + transactions):
            others = _others(rng, number) if not only_rows and number % 50 == 0 else ()
            for statement in (*_rows(rng, number), *others):
                cursor.execute(statement)


def _rows(rng: Random, number: int) -> Iterator[str]:
    yield "BEGIN"
    for name in rng.sample(DATABASES, rng.choice((1, 1, 1, 2))):
        yield rng.choice((
            f"UPDATE {name}.t SET v = 'changed by {number}' WHERE id = {number}",
            f"DELETE FROM {name}.t WHERE id = {number}",
            f"UPDATE {name}.t SET id = {2 * _ADDED + number} WHERE id = {number}",
            f"INSERT INTO {name}.t VALUES ({_ADDED + number}, 'added by {number}')",
        ))  # fmt: skip
        yield f"INSERT INTO {name}.log (n, v) VALUES ({number}, 'one of {rng.randrange(9)}')"
    yield "COMMIT"


def _others(rng: Random, number: int) -> Iterator[str]:
    name = rng.choice(DATABASES)
    match rng.randrange(3):
        case 0:
            yield f"ALTER TABLE {name}.log ADD COLUMN c{number} INT DEFAULT {number}"
        case 1:
            yield "SET binlog_format = STATEMENT"
            yield f"UPDATE {name}.t SET v = CONCAT(v, '+') WHERE id % {_ADDED} <= {number}"
            yield "SET binlog_format = ROW"
        case _:
            yield f"XA START 'x{number}'"
            yield f"UPDATE {name}.t SET v = CONCAT(v, 'x') WHERE id % {_ADDED} <= {number}"
            yield f"XA END 'x{number}'"
            yield f"XA PREPARE 'x{number}'"
            yield f"XA COMMIT 'x{number}'"
