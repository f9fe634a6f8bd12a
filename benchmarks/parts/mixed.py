"""A mixed load, as an application has it: by the server's own replica, and by mtsd.

Eight databases with a dozen tables of all kinds each (foreign keys that cascade, generated columns,
checks, tables without a key); transactions on one of them and on several, large ones, and a
definition now and then (`tests.load.mixed`). Whoever applies rows has to find out what their tables
are like, and once more after each definition: a backlog of small transactions on the same tables
does not show what that costs. So the statements are counted, too, that each target has been given.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.parts import copies
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


@contextmanager
def loaded_source(transactions: int) -> Iterator[copies.Loaded]:
    """Start a source whose binlog contains the load, and nothing of what came before it."""
    load = _Load(transactions)
    with copies.loaded(load.prepare, load.run) as loaded:
        yield loaded
