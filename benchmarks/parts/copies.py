"""A backlog on top of data: each target begins with a copy of what the source had before it.

The source is filled, its data folder is copied, and only then the load runs, so that its binlog has
the load and nothing else. Who applies it is watched, and the statements are counted that each
target has been given: a target's tables are asked about, and asked again after a definition.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from benchmarks.replicas.kinds import Kind, Mysql
from benchmarks.replicas.runs import Applied, Pair, Work, run_mtsd, run_native
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Options, Server

MYSQL: Final[Kind] = Mysql()
_SHOWN: Final = 8
"""Kinds of statements in a table."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A source whose binlog contains a load, and the data that each target begins with.

    `binlog_bytes`: what the load has made the binlog grow by.
    """

    kind: Kind
    source: Server
    template: Path
    work: Work
    binlog_bytes: int

    @property
    def transactions(self) -> int:
        """Return how many the load is."""
        return self.work.transactions

    def pair(
        self,
        workers: int,
        *,
        durable: bool,
        native_first: bool = True,
        settings: Mapping[str, Value] | None = None,
    ) -> Pair:
        """Let both replicas apply the load, one right after the other; `settings` are mtsd's."""
        if native_first:
            first = self.native(workers, durable=durable)
            return Pair(first, self.external(workers, durable=durable, settings=settings))
        last = self.external(workers, durable=durable, settings=settings)
        return Pair(self.native(workers, durable=durable), last)

    def native(self, workers: int, *, durable: bool) -> Applied:
        """Let the server's own replica apply the load."""
        with self._target(workers, durable=durable) as target:
            replica = self.kind.native(self.source, target)
            return run_native(self.source, target, replica, self.work)

    def external(
        self, workers: int, *, durable: bool, settings: Mapping[str, Value] | None = None
    ) -> Applied:
        """Let mtsd apply the load."""
        own = {"replica.parallel_workers": workers, **(settings or {})}
        with self._target(workers, durable=durable) as target:
            return run_mtsd(self.source, target, own, self.work)

    @contextmanager
    def _target(self, workers: int, *, durable: bool) -> Iterator[Server]:
        options = self.kind.target(durable=durable, workers=workers)
        installation = replace(self.kind.installation, template=self.template)
        # In a folder of the load's: it is nothing for others.
        folder = self.template.parent
        with Server(options, installation=installation, parent=folder) as target:
            _forget(target)
            yield target


@contextmanager
def loaded(
    prepare: Callable[[Server], None],
    run: Callable[[Server], int],
    options: Options = MappingProxyType({}),
    kind: Kind = MYSQL,
) -> Iterator[Loaded]:
    """Start a source with these options, prepared, on which the load has run.

    `run` returns how many transactions it has committed.
    """
    made = Server({**kind.source(), **options}, installation=kind.installation)
    with TemporaryDirectory(prefix="mtsd-loaded-") as name, made as source:
        prepare(source)
        _forget(source)
        source.stop()
        template = Path(name) / "template"
        shutil.copytree(source.datadir, template)
        # A target has a server_uuid of its own (MySQL).
        (template / "auto.cnf").unlink(missing_ok=True)
        source.start()
        transactions = run(source)
        size = sum(int(row[1]) for row in source.sql("SHOW BINARY LOGS"))
        yield Loaded(kind, source, template, kind.work(source, transactions), size)


def table(pairs: Mapping[str, Sequence[Pair]]) -> str:
    """Return which statements the targets were given."""
    lines = ["", "Statements per transaction of the source, those of the clients who wait included"]
    width = max(map(len, pairs)) + 2
    for variant, row in pairs.items():
        for run in (run for pair in row for run in (pair.native, pair.mtsd)):
            most = sorted(run.statements.items(), key=lambda each: -each[1])[:_SHOWN]
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in most)
            lines.append(f"  {variant:{width}}{run.replica:17}{run.statements_each:7.2f}  {kinds}")
    return "\n".join(lines)


def _forget(server: Server) -> None:
    """Begin its binlog anew, and forget its GTIDs."""
    installation = server.installation
    server.sql("; ".join((installation.binlog_reset, *installation.gtid_resets)))
