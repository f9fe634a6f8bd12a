"""How fast a waiting backlog is applied: by the server's own replica, and by mtsd.

Each replica has a target of its own, one after the other, and each target begins with the
databases of the load and nothing else. The server's own replica begins with START REPLICA, when its
relay log contains the whole backlog and its process is running; mtsd begins when its process is
running, so that connecting, creating its tables and reading from the source count. Both end with
the last commit of the load in the target's binlog.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.replicas import servers
from benchmarks.replicas.commits import span
from benchmarks.replicas.external import External
from benchmarks.replicas.machine import Load, watched
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.process import cpu_seconds
from tests.load import small
from tests.load.compare import differences
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server

_TIMEOUT_S: Final = 900.0


class RowsDifferError(RuntimeError):
    """A replica's target differs from the source: its figures are meaningless."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One replica's run over a backlog. Times in seconds, memory in bytes.

    `seconds` count from where the replica begins, `seconds_of_commits` from the first commit, both
    up to the last one; `start_up` is what a separate process takes before it begins. `own_cpu` and
    `peak_memory` are the daemon's, including its start-up, None if the replica is in the server;
    `server_cpu` is the target's, from where the replica begins until it has caught up.
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
    load: Load
    settings: Mapping[str, Value]

    @property
    def rate(self) -> float:
        """Transactions of the source per second."""
        return self.source_transactions / self.seconds

    @property
    def server_cpu_each(self) -> float:
        """The target's CPU per transaction of the source, in µs."""
        return self.server_cpu / self.source_transactions * 1e6

    @property
    def own_cpu_each(self) -> float:
        """The daemon's CPU per transaction of the source, in µs; 0 if there is no daemon."""
        return (self.own_cpu or 0.0) / self.source_transactions * 1e6

    @property
    def cpu_each(self) -> float:
        """The CPU per transaction of the source of everything that applies it, in µs."""
        return self.server_cpu_each + self.own_cpu_each


@dataclass(frozen=True, slots=True)
class Pair:
    """A run of the server's own replica, and the run of mtsd that it is compared with."""

    native: Applied
    mtsd: Applied

    @property
    def times(self) -> float:
        """How many times faster mtsd was."""
        return self.native.seconds / self.mtsd.seconds

    @property
    def disturbed(self) -> bool:
        """Whether either run was disturbed."""
        return self.native.load.disturbed or self.mtsd.load.disturbed


@contextmanager
def loaded_source(
    transactions: int, databases: int, connections: int = 4, *, statements: bool = False
) -> Iterator[Server]:
    """Start a source whose binlog contains the backlog and not a single event more.

    It was committed by so many connections, each of which changed rows of its own, and is logged as
    rows, or as `statements`.
    """
    with servers.source({"binlog_format": "STATEMENT" if statements else "ROW"}) as source:
        prepare(source, databases)
        session = small.STATEMENTS if statements else small.SESSION
        small.fill(source, transactions, databases, connections, session=session)
        yield source


def prepare(server: Server, databases: int) -> None:
    """Create the databases of the load, and leave no trace of that in the binlog."""
    small.prepare(server, databases)
    server.sql("RESET BINARY LOGS AND GTIDS")


def pair(
    source: Server,
    transactions: int,
    databases: int,
    workers: int,
    *,
    durable: bool,
    native_first: bool,
    settings: Mapping[str, Value] | None = None,
) -> Pair:
    """Let both replicas apply the backlog, one right after the other; `settings` are mtsd's."""
    load = (source, transactions, databases, workers)
    if native_first:
        first = native(*load, durable=durable)
        return Pair(first, external(*load, durable=durable, settings=settings))
    last = external(*load, durable=durable, settings=settings)
    return Pair(native(*load, durable=durable), last)


def native(
    source: Server, transactions: int, databases: int, workers: int, *, durable: bool
) -> Applied:
    """Let the server's own replica apply the backlog to a fresh target."""
    with servers.target(durable=durable, workers=workers) as target:
        prepare(target, databases)
        replica = NativeReplica(source, target)
        replica.receive(_TIMEOUT_S)
        watch = watched(source, target)
        cpu = cpu_seconds(target.pid)
        began = time.time()
        replica.start_applying()
        replica.wait_until_caught_up(_TIMEOUT_S)
        cpu = cpu_seconds(target.pid) - cpu
        load = watch.ended()
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
            load=load,
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
        daemon = External(source, target, own)
        watch = watched(source, target, daemon=daemon)
        cpu = cpu_seconds(target.pid)
        with daemon:
            daemon.wait_until_caught_up(_TIMEOUT_S)
            own_cpu, memory = daemon.cpu_seconds, daemon.peak_memory
            cpu = cpu_seconds(target.pid) - cpu
            load = watch.ended()
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
            load=load,
            settings=daemon.settings,
        )


def verify(source: Server, target: Server) -> None:
    """Raise RowsDifferError unless the target contains the same rows as the source."""
    if found := differences(source, target):
        raise RowsDifferError("\n".join(found))
