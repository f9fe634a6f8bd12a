"""The servers of a benchmark by kind: MySQL, or MariaDB of a series; and where their runs end."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from benchmarks.replicas import servers
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.native_mariadb import NativeMariadbReplica
from benchmarks.replicas.runs import (
    LastCommit,
    LastSeen,
    Native,
    RowsDifferError,
    Work,
)
from tests.load import mariadb
from tests.servers.mariadb import SUITES, provide_mariadb
from tests.servers.mysqld import Options, Server
from tests.servers.provision import Installation, provide

_ENDED: Final = "ended"
"""A database that the source makes after a load."""
_PERIOD_S: Final = 0.05
"""How often a reader looks for it: of a run of some seconds, one hundredth."""


class Kind(Protocol):
    """What source and target are."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    @property
    def installation(self) -> Installation:
        """What is run."""

    def source(self) -> Options:
        """Return the options of a source."""

    def target(self, *, durable: bool, workers: int) -> Options:
        """Return those of a target whose own replica has so many workers."""

    def native(self, source: Server, target: Server) -> Native:
        """Return the target's own replica."""

    def work(self, source: Server, transactions: int) -> Work:
        """Return the work of a source that has all of a load; called once for each load."""


@dataclass(frozen=True, slots=True)
class Mysql:
    """MySQL. A run ends with the last commit in the target's binlog."""

    name: str = "MySQL"

    @property
    def installation(self) -> Installation:
        """See `Kind`."""
        return provide()

    def source(self) -> Options:
        """See `Kind`."""
        return servers.SOURCE

    def target(self, *, durable: bool, workers: int) -> Options:
        """See `Kind`."""
        return servers.target_options(durable=durable, workers=workers)

    def native(self, source: Server, target: Server) -> Native:
        """See `Kind`."""
        return NativeReplica(source, target)

    def work(self, source: Server, transactions: int) -> Work:
        """See `Kind`."""
        databases = [str(name) for (name,) in source.sql("SHOW DATABASES")]
        return Work(transactions, LastCommit(databases))


@dataclass(frozen=True, slots=True)
class Mariadb:
    """MariaDB of a series ("11.8").

    Its binlog has commit times in whole seconds only. So the source makes a database after the
    load, and a run ends when a reader sees that: a definition comes after everything before it,
    with every policy, and in the server's own replica.
    """

    series: str

    @property
    def name(self) -> str:
        """See `Kind`."""
        return f"MariaDB {self.series}"

    @property
    def installation(self) -> Installation:
        """See `Kind`."""
        return provide_mariadb(self.series)

    def source(self) -> Options:
        """See `Kind`."""
        return servers.MARIADB_SOURCE

    def target(self, *, durable: bool, workers: int) -> Options:
        """See `Kind`."""
        return servers.mariadb_target_options(durable=durable, workers=workers)

    def native(self, source: Server, target: Server) -> Native:
        """See `Kind`."""
        return NativeMariadbReplica(source, target)

    def work(self, source: Server, transactions: int) -> Work:
        """See `Kind`."""
        source.sql(f"CREATE DATABASE {_ENDED}")
        return Work(transactions, LastSeen(transactions, _has_ended, _PERIOD_S), _verify)


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {"9.7": Mysql(), **{series: Mariadb(series) for series in SUITES}}
)
"""By version."""


def _has_ended(target: Server) -> bool:
    return bool(target.sql(f"SHOW DATABASES LIKE '{_ENDED}'"))


def _verify(source: Server, target: Server) -> None:
    """Raise RowsDifferError unless definitions and checksums of all tables are the same.

    A checksum of a table with virtual columns takes in what happens to be in memory (measured with
    11.8). So where only checksums differ, the rows are compared.
    """
    found = mariadb.unequal(source, target)
    if all(", CHECKSUM: " in line for line in found):
        found = found and mariadb.unequal_rows(source, target)
    if found:
        raise RowsDifferError("\n".join(found))
