"""How fast a backlog is applied that waits as a whole: by the server's own replica, and by mtsd.

Each replica has its target for itself, one after the other, and each target begins with the
databases of the load and nothing else. The server's own replica begins with START REPLICA, when its
relay log holds the whole backlog and its process runs; mtsd begins when its process runs, so that
connecting, making its tables and reading from the source count. Both end with the last commit of
the load in the target's binlog.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks import servers
from benchmarks.commits import span
from benchmarks.external import External
from benchmarks.native import NativeReplica
from benchmarks.process import cpu_seconds
from tests.load import small
from tests.load.compare import differences
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server

_TIMEOUT_S: Final = 900.0


class RowsDifferError(RuntimeError):
    """A replica has not made its target equal to the source: its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One replica's run over a backlog. Times in seconds, memory in bytes.

    `seconds` count from where the replica begins, `seconds_of_commits` from the first commit, both
    to the last one; `start_up` is what a process of its own takes before it begins. `own_cpu` and
    `peak_memory` are the daemon's, None where the replica is in the server; `server_cpu` is the
    target's.
    """

    replica: str
    source_transactions: int
    target_transactions: int
    seconds: float
    seconds_of_commits: float
    start_up: float
    server_cpu: float
    own_cpu: float | None
    peak_memory: int | None
    settings: Mapping[str, Value]

    @property
    def rate(self) -> float:
        """Transactions of the source a second."""
        return self.source_transactions / self.seconds


@contextmanager
def loaded_source(transactions: int, databases: int) -> Iterator[Server]:
    """Start a source whose binlog holds the backlog and not one event more."""
    with servers.source() as source:
        prepare(source, databases)
        small.fill(source, transactions, databases)
        yield source


def prepare(server: Server, databases: int) -> None:
    """Make the databases of the load, and leave no trace of that in the binlog."""
    small.prepare(server, databases)
    server.sql("RESET BINARY LOGS AND GTIDS")


def native(
    source: Server, transactions: int, databases: int, workers: int, *, durable: bool
) -> Applied:
    """Let the server's own replica apply the backlog to a fresh target."""
    with servers.target(durable=durable, workers=workers) as target:
        prepare(target, databases)
        replica = NativeReplica(source, target)
        replica.receive(_TIMEOUT_S)
        cpu = cpu_seconds(target.pid)
        began = time.time()
        replica.start_applying()
        replica.wait_until_caught_up(_TIMEOUT_S)
        cpu = cpu_seconds(target.pid) - cpu
        replica.stop()
        commits = span(target, small.database_names(databases))
        verify(source, target)
        return Applied(
            replica="the server's own",
            source_transactions=transactions,
            target_transactions=commits.transactions,
            seconds=commits.last / 1e6 - began,
            seconds_of_commits=(commits.last - commits.first) / 1e6,
            start_up=0.0,
            server_cpu=cpu,
            own_cpu=None,
            peak_memory=None,
            settings=servers.settings(target),
        )


def external(
    source: Server,
    transactions: int,
    databases: int,
    workers: int,
    *,
    durable: bool,
    settings: Mapping[str, Value] | None = None,
) -> Applied:
    """Let mtsd apply the backlog to a fresh target."""
    own = {"replica.parallel_workers": workers, **(settings or {})}
    with servers.target(durable=durable, workers=workers) as target:
        prepare(target, databases)
        cpu = cpu_seconds(target.pid)
        with External(source, target, own) as daemon:
            daemon.wait_until_caught_up(_TIMEOUT_S)
            own_cpu, memory = daemon.cpu_seconds, daemon.peak_memory
            cpu = cpu_seconds(target.pid) - cpu
            daemon.stop()
        commits = span(target, small.database_names(databases))
        verify(source, target)
        return Applied(
            replica="mtsd",
            source_transactions=transactions,
            target_transactions=commits.transactions,
            seconds=commits.last / 1e6 - daemon.began,
            seconds_of_commits=(commits.last - commits.first) / 1e6,
            start_up=daemon.began - daemon.started,
            server_cpu=cpu,
            own_cpu=own_cpu,
            peak_memory=memory,
            settings=daemon.settings,
        )


def verify(source: Server, target: Server) -> None:
    """Raise RowsDifferError unless the target holds what the source holds."""
    if found := differences(source, target):
        raise RowsDifferError("\n".join(found))
