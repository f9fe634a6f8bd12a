"""A mixed load, as an application has it: by the server's own replica, and by mtsd.

Eight databases with a dozen tables of all kinds each (foreign keys that cascade, generated columns,
checks, tables without a key); transactions on one of them and on several, large ones, and a
definition now and then (`tests.load.mixed`). On MariaDB it is a smaller mix, of four databases with
a definition after every 24 transactions (`tests.load.mariadb`). Whoever applies rows has to find
out what their tables are like, and once more after each definition: a backlog of small transactions
on the same tables does not show what that costs. So the statements are counted, too, that each
target has been given.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.parts import copies
from benchmarks.replicas.kinds import Kind, Mariadb
from tests.load.mariadb import DATABASES, MariadbLoad
from tests.load.mixed import MixedLoad
from tests.servers.mysqld import Server

_CONNECTIONS: Final = 4
_DATABASES: Final = 8
_SEED: Final = 4


class _Load:
    def __init__(self, transactions: int) -> None:
        self._transactions = transactions
        self._made: MixedLoad | None = None

    def prepare(self, source: Server) -> None:
        self._made = MixedLoad(source, _SEED, _DATABASES, _CONNECTIONS)
        self._made.prepare()

    def run(self, _: Server) -> int:
        if self._made is None:
            raise RuntimeError("not prepared")
        self._made.run(transactions=self._transactions)
        return self._made.committed


class _MariadbLoad:
    def __init__(self, transactions: int) -> None:
        self._transactions = transactions

    def prepare(self, source: Server) -> None:
        MariadbLoad(source, _SEED).prepare()

    def run(self, source: Server) -> int:
        made = MariadbLoad(source, _SEED)
        made.run(self._transactions // len(DATABASES))
        return len({(entry.worker, entry.number) for entry in made.ledger.committed})


@contextmanager
def loaded_source(transactions: int, kind: Kind) -> Iterator[copies.Loaded]:
    """Start a source whose binlog contains the load, and nothing of what came before it."""
    load = _MariadbLoad(transactions) if isinstance(kind, Mariadb) else _Load(transactions)
    with copies.loaded(load.prepare, load.run, kind=kind) as loaded:
        yield loaded
