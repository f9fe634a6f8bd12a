"""A run of a replica over a load that waits in the source's binlog, and what is measured of it.

The server's own replica begins with START REPLICA, when its relay log contains the whole load and
its process is running. mtsd begins when its process is running, so that connecting, creating its
tables and reading from the source count. Where a run ends is said by the load: with the last commit
in the target's binlog, or when a reader sees the last transaction.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from benchmarks.replicas import servers
from benchmarks.replicas.commits import span
from benchmarks.replicas.external import External
from benchmarks.replicas.machine import Load, watched
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.native_mariadb import NativeMariadbReplica
from benchmarks.replicas.process import cpu_seconds
from tests.load.compare import differences
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server

_TIMEOUT_S: Final = 900.0
_POLL_S: Final = 0.01

Native = NativeReplica | NativeMariadbReplica


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
    statements: Mapping[str, int]
    """By kind, those that the target has been given meanwhile."""

    @property
    def rate(self) -> float:
        """Transactions of the source per second."""
        return self.source_transactions / self.seconds

    @property
    def statements_each(self) -> float:
        """The target's statements per transaction of the source."""
        return sum(self.statements.values()) / self.source_transactions

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


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run came to: transactions on the target, and when the first and last committed.

    In seconds since 1970; `first` is None where only the last one is known.
    """

    transactions: int
    first: float | None
    last: float


class End(Protocol):
    """Where a run ends."""

    def of_native(self, replica: Native, target: Server) -> float:
        """Wait for the end of the server's own replica; return when that was."""

    def of_mtsd(self, daemon: External, target: Server) -> float:
        """Wait for the end of mtsd's run; return when that was."""

    def ended(self, target: Server, at: float) -> Ended:
        """Return what the run came to that was waited for until then."""


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The last commit in the target's binlog that concerns these databases: of a MySQL."""

    databases: Sequence[str]

    def of_native(self, replica: Native, target: Server) -> float:
        """See `End`."""
        if isinstance(replica, NativeMariadbReplica):
            raise TypeError(f"a MariaDB's binlog has whole seconds only: {target}")
        replica.wait_until_caught_up(_TIMEOUT_S)
        return time.time()

    def of_mtsd(self, daemon: External, target: Server) -> float:  # noqa: ARG002
        """See `End`."""
        daemon.wait_until_caught_up(_TIMEOUT_S)
        return time.time()

    def ended(self, target: Server, at: float) -> Ended:  # noqa: ARG002
        """See `End`."""
        commits = span(target, self.databases)
        return Ended(commits.transactions, commits.first / 1e6, commits.last / 1e6)


@dataclass(frozen=True, slots=True)
class LastSeen:
    """When a reader sees the last of so many transactions of the target: of either family."""

    transactions: int
    is_there: Callable[[Server], bool]
    period: float = _POLL_S
    """Seconds from one look to the next."""

    def of_native(self, replica: Native, target: Server) -> float:
        """See `End`."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not self.is_there(target):
            replica.check(deadline)
            time.sleep(self.period)
        return time.time()

    def of_mtsd(self, daemon: External, target: Server) -> float:
        """See `End`."""
        daemon.wait_until(lambda: self.is_there(target), _TIMEOUT_S, self.period)
        ended = time.time()
        daemon.wait_until_caught_up(_TIMEOUT_S)
        return ended

    def ended(self, target: Server, at: float) -> Ended:  # noqa: ARG002
        """See `End`."""
        return Ended(self.transactions, None, at)


def verify(source: Server, target: Server) -> None:
    """Raise RowsDifferError unless the target contains the same rows as the source."""
    if found := differences(source, target):
        raise RowsDifferError("\n".join(found))


@dataclass(frozen=True, slots=True)
class Work:
    """What a run has to do: so many transactions of the source, up to an end, and how to verify."""

    transactions: int
    end: End
    verify: Callable[[Server, Server], None] = verify


class _Measured:
    """What a target does while a replica works on it: from now on until `end`."""

    def __init__(self, source: Server, target: Server, daemon: External | None = None) -> None:
        self._target = target
        self._watch = watched(source, target, daemon=daemon)
        self._given = _statements(target)
        self._cpu = cpu_seconds(target.pid)
        self._load: Load | None = None

    def end(self) -> None:
        """Measure, before anything is stopped."""
        self._cpu = cpu_seconds(self._target.pid) - self._cpu
        self._given = _statements(self._target, since=self._given)
        self._load = self._watch.ended()

    def applied(self, replica: str, work: Work, ended: Ended, began: float) -> Applied:
        """Return what was measured of a replica in the server that has begun at that time."""
        if self._load is None:
            raise RuntimeError("the end was not measured")
        return Applied(
            replica=replica,
            source_transactions=work.transactions,
            target_transactions=ended.transactions,
            seconds=ended.last - began,
            seconds_of_commits=ended.last - (began if ended.first is None else ended.first),
            start_up=0.0,
            server_cpu=self._cpu,
            own_cpu=None,
            peak_memory=None,
            load=self._load,
            settings=servers.settings(self._target),
            statements=self._given,
        )


def run_native(source: Server, target: Server, replica: Native, work: Work) -> Applied:
    """Let the server's own replica do the work on a prepared target."""
    replica.receive(_TIMEOUT_S)
    measured = _Measured(source, target)
    began = time.time()
    replica.start_applying()
    at = work.end.of_native(replica, target)
    measured.end()
    replica.stop()
    ended = work.end.ended(target, at)
    work.verify(source, target)
    return measured.applied("the server's own", work, ended, began)


def run_mtsd(source: Server, target: Server, settings: Mapping[str, Value], work: Work) -> Applied:
    """Let mtsd, with these settings, do the work on a prepared target."""
    daemon = External(source, target, settings)
    measured = _Measured(source, target, daemon)
    with daemon:
        at = work.end.of_mtsd(daemon, target)
        own_cpu, memory = daemon.cpu_seconds, daemon.peak_memory
        measured.end()
        daemon.stop()
    ended = work.end.ended(target, at)
    work.verify(source, target)
    return replace(
        measured.applied("mtsd", work, ended, daemon.began),
        start_up=daemon.began - daemon.started,
        own_cpu=own_cpu,
        peak_memory=memory,
        settings=daemon.settings,
    )


def _statements(server: Server, since: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return how many statements of each kind the server has run, with `since` since then."""
    rows = server.sql("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
    counts = {str(name).removeprefix("Com_"): int(count) for name, count in rows}
    before = since or {}
    grown = {name: count - before.get(name, 0) for name, count in counts.items()}
    return {name: count for name, count in grown.items() if count}
