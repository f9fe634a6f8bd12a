"""How fast a waiting backlog is applied: by the server's own replica, and by mtsd.

Each replica has a target of its own, one after the other, and each target begins with the
databases of the load and nothing else. `benchmarks.replicas.runs` says what is measured.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.replicas import servers
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.runs import Applied, LastCommit, Pair, Work, run_mtsd, run_native
from tests.load import small
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server


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
        work = _work(transactions, databases)
        return run_native(source, target, NativeReplica(source, target), work)


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
        return run_mtsd(source, target, own, _work(transactions, databases))


def _work(transactions: int, databases: int) -> Work:
    return Work(transactions, LastCommit(small.database_names(databases)))
