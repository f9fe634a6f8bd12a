"""A mixed load, as an application has it: by the server's own replica, and by mtsd.

Eight databases with a dozen tables of all kinds each (foreign keys that cascade, generated columns,
checks, tables without a key); transactions on one of them and on several, large ones, and a
definition now and then (`tests.load.mixed`). Whoever applies rows has to find out what their tables
are like, and once more after each definition: a backlog of small transactions on the same tables
does not show what that costs. So the statements are counted, too, that each target has been given.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import servers
from benchmarks.backlog import Applied, verify
from benchmarks.commits import span
from benchmarks.external import External
from benchmarks.machine import watched
from benchmarks.native import NativeReplica
from benchmarks.process import cpu_seconds
from tests.load.mixed import MixedLoad
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server
from tests.servers.provision import provide

_CONNECTIONS: Final = 4
_DATABASES: Final = 8
_SEED: Final = 4
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
class Mixed:
    """A source whose binlog contains the load, and the data that each target begins with.

    `transactions` and `definitions` are those of the load.
    """

    source: Server
    template: Path
    transactions: int
    definitions: int


@contextmanager
def loaded_source(transactions: int) -> Iterator[Mixed]:
    """Start a source whose binlog contains the load, and nothing of what came before it."""
    with TemporaryDirectory(prefix="mtsd-mixed-") as name, servers.source() as source:
        load = MixedLoad(source, _SEED, _DATABASES, _CONNECTIONS)
        load.prepare()
        source.sql("RESET BINARY LOGS AND GTIDS")
        source.stop()
        template = Path(name) / "template"
        shutil.copytree(source.datadir, template)
        # A target has a server_uuid of its own.
        (template / "auto.cnf").unlink()
        source.start()
        load.run(transactions=transactions)
        yield Mixed(source, template, load.committed, load.definitions)


def pair(mixed: Mixed, workers: int, *, durable: bool) -> tuple[Counted, Counted]:
    """Let the server's own replica apply the load, and right after it mtsd."""
    return _native(mixed, workers, durable=durable), _external(mixed, workers, durable=durable)


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


def _native(mixed: Mixed, workers: int, *, durable: bool) -> Counted:
    source = mixed.source
    with _target(mixed, workers, durable=durable) as target:
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
            source_transactions=mixed.transactions,
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


def _external(mixed: Mixed, workers: int, *, durable: bool) -> Counted:
    source = mixed.source
    settings: Mapping[str, Value] = {"replica.parallel_workers": workers}
    with _target(mixed, workers, durable=durable) as target:
        daemon = External(source, target, settings)
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
            source_transactions=mixed.transactions,
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
def _target(mixed: Mixed, workers: int, *, durable: bool) -> Iterator[Server]:
    options = servers.target(durable=durable, workers=workers).options
    installation = replace(provide(), template=mixed.template)
    # In a folder of the load's: it is nothing for others.
    with Server(options, installation=installation, parent=mixed.template.parent) as target:
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
