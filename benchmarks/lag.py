"""How long after its commit on the source a transaction is committed on the target, under a load.

Both replicas follow the same source at the same time, each to a target of its own, so both meet
the same transactions and the same noise of the machine. Times are those of the binlogs (see
`commits`); a transaction is known by the key of the row that it inserts, also where mtsd has
combined it with others.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import servers, small
from benchmarks.backlog import prepare, verify
from benchmarks.external import External
from benchmarks.native import NativeReplica
from tests.servers.mysqld import Server

_TIMEOUT_S: Final = 300.0
_WARM_UP_S: Final = 2.0
"""Of the load, at its beginning, that is not counted."""

_GTID: Final = re.compile(rb"\bimmediate_commit_timestamp=(\d+) ")
_INSERT: Final = b"### INSERT INTO `"
_KEY: Final = re.compile(rb"###   @1=(\d+)")

Times = dict[tuple[bytes, int], int]
"""Commit times in µs since 1970, by table and key of the inserted row."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Lags of one replica, in milliseconds."""

    replica: str
    source_transactions: int
    target_transactions: int
    p50: float
    p95: float
    p99: float
    highest: float


def run(rate: float, seconds: float, databases: int, workers: int) -> list[Lag]:
    """Measure both under a load of `rate` transactions a second."""
    with ExitStack() as stack:
        source = stack.enter_context(servers.source())
        targets = [
            stack.enter_context(servers.target(durable=True, workers=workers)) for _ in range(2)
        ]
        for server in (source, *targets):
            prepare(server, databases)
        replica = NativeReplica(source, targets[0])
        replica.start()
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mtsd-benchmark-")))
        daemon = stack.enter_context(
            External(source, targets[1], folder, {"replica.parallel_workers": workers})
        )
        daemon.wait_until_caught_up(_TIMEOUT_S)
        time.sleep(1.0)
        small.live(source, rate, _WARM_UP_S + seconds, databases, seed=1)
        replica.wait_until_caught_up(_TIMEOUT_S)
        daemon.wait_until_caught_up(_TIMEOUT_S)
        replica.stop()
        daemon.stop()
        for target in targets:
            verify(source, target)
        committed = _times(source)
        begin = min(committed.values()) + _WARM_UP_S * 1e6
        counted = {key: at for key, at in committed.items() if at >= begin}
        return [
            _lag(name, counted, _times(target))
            for name, target in zip(("the server's own", "mtsd"), targets, strict=True)
        ]


def _lag(name: str, committed: Times, applied: Times) -> Lag:
    lags = [(applied[key] - at) / 1000 for key, at in committed.items()]
    cuts = quantiles(lags, n=100, method="inclusive")
    return Lag(
        replica=name,
        source_transactions=len(lags),
        target_transactions=len({applied[key] for key in committed}),
        p50=cuts[49],
        p95=cuts[94],
        p99=cuts[98],
        highest=max(lags),
    )


def _times(server: Server) -> Times:
    return dict(_inserts(server))


def _inserts(server: Server) -> Iterator[tuple[tuple[bytes, int], int]]:
    """Yield each inserted row's table and key with its transaction's commit time."""
    files = [str(row[0]) for row in server.sql("SHOW BINARY LOGS")]
    text = server.tool("mysqlbinlog", "--base64-output=decode-rows", "--verbose", *files)
    commit_time = 0
    table = b""
    for line in text.splitlines():
        if found := _GTID.search(line):
            commit_time = int(found[1])
        elif line.startswith(_INSERT):
            table = line[len(_INSERT) - 1 :]
        elif table and (key := _KEY.match(line)):
            yield (table, int(key[1])), commit_time
            table = b""
