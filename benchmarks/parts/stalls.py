"""How long the daemon's event loop stands still while very large statements and rows go through.

Everything of the daemon is on that loop: its status socket, the watchdog's sign, the other workers.
So the status is asked for all the time, and the slowest answer counts. The client has a process of
its own, which does nothing else.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, Range
from benchmarks.replicas import servers
from benchmarks.replicas.external import External
from benchmarks.replicas.machine import Load, watched
from mtsd.control.client import get
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Options, Server

MAX_MS: Final = 100.0
_LARGEST: Final[Options] = {"max_allowed_packet": "1G", "binlog_format": "ROW"}
_MARIADB: Final[Options] = {**_LARGEST, "innodb_log_file_size": "1G"}
_TIMEOUT_S: Final = 900.0
_PAUSE_S: Final = 0.005
_PREPARED: Final = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v LONGBLOB)"


@dataclass(frozen=True, slots=True)
class Stall:
    """What happened while one load went through; `slowest` and `median` answer in ms.

    `own_cpu` is the daemon's processor time, `seconds` how long all of it took, in seconds.
    """

    name: str
    slowest: float
    median: float
    own_cpu: float
    seconds: float
    load: Load


def _one_text(size: int) -> bytes:
    return b"INSERT INTO d.t VALUES (1, '%b')" % (b"x" * size)


def _many_rows(size: int) -> bytes:
    row = b"'%b'" % (b"a word; and -- another, " * 4)
    count = size // (len(row) + 12)
    return b"INSERT INTO d.t VALUES " + b",".join(b"(%d,%b)" % (n, row) for n in range(count))


def _like_comments(size: int) -> bytes:
    """Return what looks as if it had to be read whole: comments, semicolons, mtsd's own schema."""
    return b"INSERT INTO d.t VALUES (1, '%b'); /* it ends here */" % (
        b"/*! mtsd.t; -- # */ " * (size // 20)
    )


LOADS: Final[dict[str, tuple[str, Callable[[int], bytes]]]] = {
    "INSERT of one text": ("STATEMENT", _one_text),
    "INSERT of many rows": ("STATEMENT", _many_rows),
    "INSERT with what looks like comments": ("STATEMENT", _like_comments),
    "one row": ("ROW", _one_text),
    "many rows": ("ROW", _many_rows),
}


def measured(size: int, workers: int) -> list[Stall]:
    """Let each load of `size` bytes go through, of a MySQL and of a MariaDB."""
    found: list[Stall] = []
    for family in ("MySQL", "MariaDB"):
        for name, (binlog_format, statement) in LOADS.items():
            with _servers(family) as (source, target):
                found.append(
                    _run(
                        f"{family}, {name}", source, target, workers, binlog_format, statement(size)
                    )
                )
    return found


@contextmanager
def _servers(family: str) -> Iterator[tuple[Server, Server]]:
    if family == "MySQL":
        with (
            servers.source(_LARGEST) as source,
            servers.target(durable=False, workers=0, options=_LARGEST) as target,
        ):
            yield source, target
        return
    installation = provide_mariadb("11.8")
    with (
        Server(_MARIADB, installation=installation) as source,
        Server(_MARIADB, installation=installation) as target,
    ):
        yield source, target


def _run(
    name: str, source: Server, target: Server, workers: int, binlog_format: str, statement: bytes
) -> Stall:
    source.sql(_PREPARED)
    daemon = External(source, target, {"replica.parallel_workers": workers})
    watch = watched(source, target, daemon=daemon)
    with daemon:
        daemon.wait_until_caught_up(_TIMEOUT_S)
        cpu, began = daemon.cpu_seconds, time.monotonic()
        with _asked(daemon.socket) as answers:
            with closing(source.client()) as client, client.cursor() as cursor:
                cursor.execute(f"SET SESSION binlog_format = {binlog_format}")
                cursor.execute(statement)
                client.commit()
            daemon.wait_until_caught_up(_TIMEOUT_S)
            cpu, seconds = daemon.cpu_seconds - cpu, time.monotonic() - began
        load = watch.ended()
        daemon.stop()
    times = sorted(answers)
    return Stall(name, times[-1] * 1e3, times[len(times) // 2] * 1e3, cpu, seconds, load)


@contextmanager
def _asked(socket: Path) -> Iterator[list[float]]:
    """Ask for the status all the time; what is yielded has the answers' times, s, afterwards."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_ask, args=(socket, stop, theirs), daemon=True)
    process.start()
    answers: list[float] = []
    try:
        ours.recv()
        yield answers
    finally:
        stop.set()
        answers += ours.recv()
        process.join()


def _ask(
    socket: Path,
    stop: Event,
    told: "Connection[object, object]",
) -> None:
    times: list[float] = []
    get(socket, "/status", _TIMEOUT_S)
    told.send(None)
    while not stop.is_set():
        began = time.monotonic()
        get(socket, "/status", _TIMEOUT_S)
        times.append(time.monotonic() - began)
        time.sleep(_PAUSE_S)
    told.send(times)


def table(found: list[Stall], size: int) -> str:
    """Return the figures as a table of Markdown."""
    lines = [
        f"Statements and rows of {size / 1e6:.0f} MB: the status socket's answers",
        "",
        "| load | slowest answer | median | processor time of mtsd | in all |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {each.slowest:.0f} ms{' *' * each.load.disturbed} | {each.median:.1f} ms"
        f" | {each.own_cpu:.2f} s | {each.seconds:.1f} s |"
        for each in found
    ]
    return "\n".join(lines) + "\n"


def figures(found: list[Stall]) -> list[Figure]:
    """Return the slowest answer during each load, which is limited."""
    return [
        Figure(
            f"{each.name}: slowest answer of the status socket",
            Range.of([each.slowest]),
            MAX_MS,
            at_most=True,
            unit=" ms",
        )
        for each in found
    ]
