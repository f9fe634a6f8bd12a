"""A backlog of either family, of XA transactions too: by the server's own replica, and by mtsd.

As in `benchmarks.parts.backlog`, but on both families, and up to the moment when a reader sees the
last transaction: a MariaDB's binlog has commit times in whole seconds only.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.replicas import servers
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.native_mariadb import NativeMariadbReplica
from benchmarks.replicas.runs import (
    Applied,
    LastSeen,
    Pair,
    RowsDifferError,
    Work,
    run_mtsd,
    run_native,
)
from tests.load import mariadb, small
from tests.load.compare import differences
from tests.replica.daemon_process import Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server

MYSQL: Final = "MySQL"
MARIADB: Final = "MariaDB"
CLIENTS: Final = 16
_SESSION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
"""Understood by both families."""


@dataclass(frozen=True, slots=True)
class FamilyLoad:
    """What a pair of runs applies: so many transactions; with `xa` prepared, then committed."""

    family: str
    transactions: int
    databases: int
    parallel_type: str
    """Of mtsd."""
    xa: bool = True

    @property
    def name(self) -> str:
        """Return what a table calls it."""
        many = "one database" if self.databases == 1 else f"{self.databases} databases"
        name = f"{self.family}, {many}"
        return f"XA, {name}" if self.xa else f"{name}, {self.parallel_type}"

    @property
    def target_transactions(self) -> int:
        """Return how many groups it is."""
        return 2 * self.transactions if self.xa else self.transactions


@contextmanager
def loaded_source(load: FamilyLoad) -> Iterator[Server]:
    """Start a source whose binlog contains the transactions, and one more."""
    mysql = load.family == MYSQL
    source = (
        servers.source()
        if mysql
        else Server(servers.MARIADB_SOURCE, installation=provide_mariadb("10.11"))
    )
    with source:
        _prepare(source, load)
        if load.xa:
            small.fill_xa(source, load.transactions, load.databases, CLIENTS)
        else:
            small.fill(source, load.transactions, load.databases, CLIENTS, session=_SESSION)
            small.enter_last(source, load.databases)
        yield source


def pair(source: Server, load: FamilyLoad, workers: int, *, native_first: bool) -> Pair:
    """Let both replicas apply it to durable targets, one right after the other."""
    if native_first:
        first = _native(source, load, workers)
        return Pair(first, _external(source, load, workers))
    last = _external(source, load, workers)
    return Pair(_native(source, load, workers), last)


def _native(source: Server, load: FamilyLoad, workers: int) -> Applied:
    with _target(load, workers) as target:
        _prepare(target, load)
        of_mysql = load.family == MYSQL
        replica = (NativeReplica if of_mysql else NativeMariadbReplica)(source, target)
        return run_native(source, target, replica, _work(load))


def _external(source: Server, load: FamilyLoad, workers: int) -> Applied:
    own: Mapping[str, Value] = {
        "replica.parallel_workers": workers,
        "replica.parallel_type": load.parallel_type,
    }
    with _target(load, workers) as target:
        _prepare(target, load)
        return run_mtsd(source, target, own, _work(load))


def _work(load: FamilyLoad) -> Work:
    end = LastSeen(load.target_transactions, lambda target: _has_last(target, load))
    return Work(load.transactions, end, lambda source, target: _verify(source, target, load))


def _target(load: FamilyLoad, workers: int) -> Server:
    if load.family == MYSQL:
        return servers.target(durable=True, workers=workers)
    options = servers.mariadb_target_options(durable=True, workers=workers)
    return Server(options, installation=provide_mariadb("10.11"))


def _prepare(server: Server, load: FamilyLoad) -> None:
    small.prepare(server, load.databases)
    if load.family == MYSQL:
        server.sql("RESET BINARY LOGS AND GTIDS")
    else:
        server.sql("RESET MASTER; SET GLOBAL gtid_slave_pos = ''")


def _has_last(target: Server, load: FamilyLoad) -> bool:
    name = small.database_names(load.databases)[-1]
    return bool(target.sql(f"SELECT 1 FROM {name}.ticks WHERE id = -1"))


def _verify(source: Server, target: Server, load: FamilyLoad) -> None:
    """Raise RowsDifferError unless all rows are the same, and nothing is still prepared."""
    found = differences(source, target) if load.family == MYSQL else mariadb.unequal(source, target)
    if found or target.sql("XA RECOVER"):
        raise RowsDifferError("\n".join(found) or "the target has prepared transactions left")
