"""A backlog on top of data: each target begins with a copy of what the source had before it.

The source is filled, its data folder is copied, and only then the load runs, so that its binlog has
the load and nothing else. Who applies it is watched, and the statements are counted that each
target has been given: a target's tables are asked about, and asked again after a definition.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from benchmarks.parts.backlog import Applied, verify
from benchmarks.replicas import servers
from benchmarks.replicas.commits import span
from benchmarks.replicas.external import External
from benchmarks.replicas.machine import watched
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.process import cpu_seconds
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Options, Server
from tests.servers.provision import provide

_TIMEOUT_S: Final = 600.0
_SHOWN: Final = 8
"""Kinds of statements in a table."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A run, and the statements that its target was given, by kind."""

    applied: Applied
    statements: Mapping[str, int]

    @property
    def each(self) -> float:
        """Statements per transaction of the source."""
        return sum(self.statements.values()) / self.applied.source_transactions


@dataclass(frozen=True, slots=True)
class Loaded:
    """A source whose binlog contains a load, and the data that each target begins with.

    `binlog_bytes`: what the load has made the binlog grow by.
    """

    source: Server
    template: Path
    transactions: int
    binlog_bytes: int

    def pair(
        self,
        workers: int,
        *,
        durable: bool,
        native_first: bool = True,
        settings: Mapping[str, Value] | None = None,
    ) -> tuple[Counted, Counted]:
        """Let both replicas apply the load, one right after the other; `settings` are mtsd's."""
        if native_first:
            first = self.native(workers, durable=durable)
            return first, self.external(workers, durable=durable, settings=settings)
        last = self.external(workers, durable=durable, settings=settings)
        return self.native(workers, durable=durable), last

    def native(self, workers: int, *, durable: bool) -> Counted:
        """Let the server's own replica apply the load."""
        source = self.source
        with _target(self.template, workers, durable=durable) as target:
            replica = NativeReplica(source, target)
            replica.receive(_TIMEOUT_S)
            watch = watched(source, target)
            before, cpu = _statements(target), cpu_seconds(target.pid)
            began = time.time()
            replica.start_applying()
            replica.wait_until_caught_up(_TIMEOUT_S)
            cpu = cpu_seconds(target.pid) - cpu
            given = _statements(target, since=before)
            load = watch.ended()
            replica.stop()
            commits = span(target, _databases(source))
            verify(source, target)
            applied = Applied(
                replica="the server's own",
                source_transactions=self.transactions,
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
            return Counted(applied, given)

    def external(
        self, workers: int, *, durable: bool, settings: Mapping[str, Value] | None = None
    ) -> Counted:
        """Let mtsd apply the load."""
        source = self.source
        own = {"replica.parallel_workers": workers, **(settings or {})}
        with _target(self.template, workers, durable=durable) as target:
            daemon = External(source, target, own)
            watch = watched(source, target, daemon=daemon)
            before, cpu = _statements(target), cpu_seconds(target.pid)
            with daemon:
                daemon.wait_until_caught_up(_TIMEOUT_S)
                own_cpu, memory = daemon.cpu_seconds, daemon.peak_memory
                cpu = cpu_seconds(target.pid) - cpu
                given = _statements(target, since=before)
                load = watch.ended()
                daemon.stop()
            commits = span(target, _databases(source))
            verify(source, target)
            applied = Applied(
                replica="mtsd",
                source_transactions=self.transactions,
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
            return Counted(applied, given)


@contextmanager
def loaded(
    prepare: Callable[[Server], None],
    run: Callable[[Server], int],
    options: Options = MappingProxyType({}),
) -> Iterator[Loaded]:
    """Start a source with these options, prepared, on which the load has run.

    `run` returns how many transactions it has committed.
    """
    with TemporaryDirectory(prefix="mtsd-loaded-") as name, servers.source(options) as source:
        prepare(source)
        source.sql("RESET BINARY LOGS AND GTIDS")
        source.stop()
        template = Path(name) / "template"
        shutil.copytree(source.datadir, template)
        # A target has a server_uuid of its own.
        (template / "auto.cnf").unlink()
        source.start()
        transactions = run(source)
        size = sum(int(row[1]) for row in source.sql("SHOW BINARY LOGS"))
        yield Loaded(source, template, transactions, size)


def table(pairs: Mapping[str, Sequence[tuple[Counted, Counted]]]) -> str:
    """Return which statements the targets were given."""
    lines = ["", "Statements per transaction of the source, those of the clients who wait included"]
    width = max(map(len, pairs)) + 2
    for variant, row in pairs.items():
        for run in (run for pair in row for run in pair):
            most = sorted(run.statements.items(), key=lambda each: -each[1])[:_SHOWN]
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in most)
            lines.append(f"  {variant:{width}}{run.applied.replica:17}{run.each:7.2f}  {kinds}")
    return "\n".join(lines)


@contextmanager
def _target(template: Path, workers: int, *, durable: bool) -> Iterator[Server]:
    options = servers.target(durable=durable, workers=workers).options
    installation = replace(provide(), template=template)
    # In a folder of the load's: it is nothing for others.
    with Server(options, installation=installation, parent=template.parent) as target:
        target.sql("RESET BINARY LOGS AND GTIDS")
        yield target


def _databases(server: Server) -> list[str]:
    return [str(name) for (name,) in server.sql("SHOW DATABASES")]


def _statements(server: Server, since: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return how many statements of each kind the server has run, with `since` since then."""
    rows = server.sql("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
    counts = {str(name).removeprefix("Com_"): int(count) for name, count in rows}
    before = since or {}
    grown = {name: count - before.get(name, 0) for name, count in counts.items()}
    return {name: count for name, count in grown.items() if count}
