"""The loads of the benchmarks: small transactions, at once or at a rate, and one large transaction.

A small transaction inserts a row, updates one that came shortly before, and every third deletes
one. Its number is the inserted row's key, so that it can be found again in any server's binlog.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random
from typing import Final

from tests.servers.mysqld import Server

PREFIX: Final = "bench"
"""What the names of the databases begin with: bench0, bench1, ..."""

_LARGE_ROW: Final = 1000
"""Bytes of a row of the large transaction, about."""

_SMALL_TABLE: Final = """
CREATE TABLE item (
  id BIGINT NOT NULL PRIMARY KEY,
  owner INT NOT NULL,
  state TINYINT NOT NULL,
  name VARCHAR(40) NOT NULL,
  amount DECIMAL(12, 2) NOT NULL,
  score DOUBLE,
  made DATETIME(6) NOT NULL,
  tag CHAR(8),
  parent BIGINT,
  note VARCHAR(200) NOT NULL,
  KEY (owner)
);
CREATE PROCEDURE small(number BIGINT)
BEGIN
  START TRANSACTION;
  INSERT INTO item VALUES (number, number % 997, number % 5, CONCAT('item ', number),
    number * 1.25, number / 3, '2024-02-29 12:00:00.000001', 'tag', NULL, REPEAT('x', 60));
  UPDATE item SET amount = amount + 1, note = CONCAT('changed by ', number)
    WHERE id = GREATEST(number - 7, 1);
  IF number % 3 = 0 THEN
    DELETE FROM item WHERE id = number - 20;
  END IF;
  COMMIT;
END;
CREATE PROCEDURE smalls(transactions BIGINT)
BEGIN
  DECLARE number BIGINT DEFAULT 1;
  WHILE number <= transactions DO
    CALL small(number);
    SET number = number + 1;
  END WHILE;
END;
"""

_LARGE_TABLE: Final = f"""
CREATE TABLE large (
  id BIGINT NOT NULL PRIMARY KEY,
  owner INT NOT NULL,
  body VARBINARY({_LARGE_ROW}) NOT NULL
);
CREATE PROCEDURE fill_large(wanted BIGINT)
BEGIN
  DECLARE have BIGINT DEFAULT 1;
  START TRANSACTION;
  INSERT INTO large VALUES (1, 1, REPEAT('y', {_LARGE_ROW - 20}));
  WHILE have < wanted DO
    INSERT INTO large SELECT id + have, id % 997, body FROM large WHERE id <= wanted - have;
    SET have = LEAST(have * 2, wanted);
  END WHILE;
  COMMIT;
END;
"""


def prepare(server: Server, databases: int) -> None:
    """Make the databases, their tables and procedures."""
    for number in range(databases):
        name = f"{PREFIX}{number}"
        server.sql(f"CREATE DATABASE {name}; USE {name}; {_SMALL_TABLE}")
    server.sql(f"USE {PREFIX}0; {_LARGE_TABLE}")


def fill(server: Server, transactions: int, databases: int) -> None:
    """Commit small transactions as fast as can be, in all databases side by side."""
    share, more = divmod(transactions, databases)

    def one(number: int) -> None:
        server.sql(f"CALL smalls({share + (number < more)})", f"{PREFIX}{number}")

    with ThreadPoolExecutor(databases) as pool:
        list(pool.map(one, range(databases)))


def large(server: Server, size: int) -> None:
    """Commit one transaction of about `size` bytes of binlog."""
    server.sql(f"CALL fill_large({size // _LARGE_ROW})", f"{PREFIX}0")


def live(server: Server, rate: float, seconds: float, databases: int, seed: int) -> int:
    """Commit small transactions at random instants, `rate` a second; returns how many.

    Arrivals are independent of each other (a Poisson process), one connection a database.
    """
    begins = time.monotonic() + 0.5

    def one(number: int) -> int:
        arrivals = _arrivals(Random(seed + number), rate / databases, seconds)
        with closing(server.client(f"{PREFIX}{number}")) as client:
            return _paced(
                ((begins + at) for at in arrivals),
                lambda nth: client.query(f"CALL small({nth})"),
            )

    with ThreadPoolExecutor(databases) as pool:
        return sum(pool.map(one, range(databases)))


def _arrivals(random: Random, rate: float, seconds: float) -> Iterable[float]:
    at = random.expovariate(rate)
    while at < seconds:
        yield at
        at += random.expovariate(rate)


def _paced(instants: Iterable[float], send: Callable[[int], object]) -> int:
    nth = 0
    for instant in instants:
        time.sleep(max(instant - time.monotonic(), 0.0))
        nth += 1
        send(nth)
    return nth
