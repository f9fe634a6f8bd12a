"""How long after its commit on the source a transaction commits on the target, under load.

Both replicas follow the same source at the same time, each to its own target, so both get the same
transactions and the same noise of the machine. Times are those of the binlogs (see `commits`); a
transaction is identified by its tick, a numbered row, even if mtsd has combined it with others.
"""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import quantiles
from typing import Final

from benchmarks.parts.backlog import prepare
from benchmarks.replicas import servers
from benchmarks.replicas.external import External
from benchmarks.replicas.machine import Load, watched
from benchmarks.replicas.native import NativeReplica
from benchmarks.replicas.runs import verify
from tests.load import small
from tests.servers.mysqld import Server

_TIMEOUT_S: Final = 300.0
_WARM_UP_S: Final = 2.0
"""The beginning of the load, which is not counted."""

_GTID: Final = re.compile(rb"\bimmediate_commit_timestamp=(\d+) ")
_TICK: Final = re.compile(rb"### INSERT INTO `\w+`\.`ticks`")
_KEY: Final = re.compile(rb"###   @1=(\d+)")


@dataclass(frozen=True, slots=True)
class Lag:
    """Lags of one replica, in milliseconds."""

    replica: str
    source_transactions: int
    target_transactions: int
    p50: float
    p95: float
    p99: float
    p999: float
    highest: float
    load: Load


def run(
    rate: float, seconds: float, databases: int, workers: int, *, durable: bool, large: int = 0
) -> tuple[Lag, Lag]:
    """Measure both, the server's own first, under a load of `rate` transactions a second.

    One transaction of `large` bytes is committed meanwhile, in a database of its own, if it is not
    zero.
    """
    with ExitStack() as stack:
        source = stack.enter_context(servers.source())
        targets = [
            stack.enter_context(servers.target(durable=durable, workers=workers)) for _ in range(2)
        ]
        for server in (source, *targets):
            prepare(server, databases + 1)
        replica = NativeReplica(source, targets[0])
        replica.start()
        daemon = stack.enter_context(
            External(source, targets[1], {"replica.parallel_workers": workers})
        )
        daemon.wait_until_caught_up(_TIMEOUT_S)
        time.sleep(1.0)
        all_servers = (source, *targets)
        watch = watched(*all_servers, daemon=daemon)
        warm_up = small.live(source, rate, _WARM_UP_S, databases).transactions
        with ThreadPoolExecutor(1) as beside:
            live = beside.submit(small.live, source, rate, seconds, databases, first=warm_up)
            if large:
                small.large(source, large, database=databases)
            live.result()
        replica.wait_until_caught_up(_TIMEOUT_S)
        daemon.wait_until_caught_up(_TIMEOUT_S)
        load = watch.ended()
        replica.stop()
        daemon.stop()
        for target in targets:
            verify(source, target)
        committed = {number: at for number, at in _ticks(source) if number >= warm_up}
        native, mtsd = (dict(_ticks(target)) for target in targets)
        return (
            _lag("the server's own", committed, native, load),
            _lag("mtsd", committed, mtsd, load),
        )


def _lag(name: str, committed: dict[int, int], applied: dict[int, int], load: Load) -> Lag:
    lags = [(applied[number] - at) / 1000 for number, at in committed.items()]
    cuts = quantiles(lags, n=1000, method="inclusive")
    return Lag(
        replica=name,
        source_transactions=len(lags),
        target_transactions=len({applied[number] for number in committed}),
        p50=cuts[499],
        p95=cuts[949],
        p99=cuts[989],
        p999=cuts[998],
        highest=max(lags),
        load=load,
    )


def _ticks(server: Server) -> Iterator[tuple[int, int]]:
    """Yield each tick's number and its transaction's commit time in µs since 1970."""
    files = [str(row[0]) for row in server.sql("SHOW BINARY LOGS")]
    text = server.tool("mysqlbinlog", "--base64-output=decode-rows", "--verbose", *files)
    commit_time = 0
    in_tick = False
    for line in text.splitlines():
        if found := _GTID.search(line):
            commit_time = int(found[1])
        elif _TICK.match(line):
            in_tick = True
        elif in_tick and (key := _KEY.match(line)):
            yield int(key[1]), commit_time
            in_tick = False
