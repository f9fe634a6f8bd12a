"""What a MySQL can do where each transaction keeps its GTID, and many share a commit.

The rows of many transactions can commit together, under the GTID of the last one. The others can
only be executed as transactions without effect, each a commit of its own, which several sessions
make at once. Measured is how fast that is, beside each transaction by itself; and what a replica
gets that leaves such a server between the two.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final

from benchmarks.replicas import servers
from benchmarks.replicas.native import NativeReplica, NativeReplicaError
from benchmarks.replicas.process import cpu_seconds
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from tests.servers.mysqld import Server

_UUID: Final = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_SESSIONS: Final = (1, 4, 16, 64)
_TOGETHER: Final = 64
"""Transactions whose rows share a commit."""
_COUNT: Final = 6_400
_CREATE: Final = "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b INT)"
_WAIT_S: Final = 10.0
_TABLES: Final = {"a table with a key": "a INT PRIMARY KEY", "a table without a key": "a INT"}

Packets = Sequence[Sequence[bytes]]
"""Statements that are sent at once, one packet after another."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How fast something was: transactions a second, and µs of the server's processor for each."""

    what: str
    durable: bool
    rate: float
    cpu_each: float


def measured() -> list[Kept]:
    """Try each way, on a durable server and on one that is not."""
    found = []
    for durable in (True, False):
        with servers.target(durable=durable, workers=4) as server:
            for sessions in _SESSIONS:
                for what, run in _WAYS.items():
                    server.sql("DROP DATABASE IF EXISTS d")
                    server.sql("RESET BINARY LOGS AND GTIDS")
                    server.sql(_CREATE)
                    before = cpu_seconds(server.pid)
                    seconds = asyncio.run(run(server, sessions))
                    cpu = (cpu_seconds(server.pid) - before) / _COUNT * 1e6
                    found.append(
                        Kept(f"{what}, {sessions} sessions", durable, _COUNT / seconds, cpu)
                    )
    return found


def left_between() -> dict[str, str]:
    """Return, by kind of table, what a replica gets that has the rows and not all of the GTIDs.

    It is stopped, or promoted, after the commit of the rows, and then follows the source by GTID.
    """
    found = {}
    for name, column in _TABLES.items():
        with ExitStack() as stack:
            source = stack.enter_context(servers.source())
            target = stack.enter_context(servers.target(durable=True, workers=4))
            for server in (source, target):
                server.sql(f"CREATE DATABASE d; CREATE TABLE d.t ({column})")
                server.sql("RESET BINARY LOGS AND GTIDS")
            for number in range(1, 5):
                source.sql(f"INSERT INTO d.t VALUES ({number})")
            uuid = str(source.sql("SELECT @@GLOBAL.server_uuid")[0][0])
            target.sql(
                f"SET gtid_next = '{uuid}:4'; BEGIN; INSERT INTO d.t VALUES (1), (2), (3), (4);"
                "COMMIT; SET gtid_next = 'AUTOMATIC'"
            )
            replica = NativeReplica(source, target)
            replica.start()
            try:
                replica.wait_until_caught_up(_WAIT_S)
            except NativeReplicaError:
                found[name] = "its replica stops with an error"
            else:
                (rows,) = target.sql("SELECT COUNT(*) FROM d.t")
                found[name] = f"no error, and {rows[0]} rows where the source has 4"
    return found


def table(found: Sequence[Kept], between: dict[str, str]) -> str:
    """Return both as text."""
    lines = ["\nTransactions that keep their GTIDs", f"  {'':54}{'trx/s':>10}{'µs of CPU':>12}"]
    for one in found:
        name = f"{one.what}, {'' if one.durable else 'not '}durable"
        lines.append(f"  {name:54}{one.rate:>10,.0f}{one.cpu_each:>12,.0f}")
    lines.append("\nA replica that leaves between the rows and their GTIDs")
    lines += [f"  {name}: {what}" for name, what in between.items()]
    return "\n".join(lines)


def _next(number: int) -> bytes:
    return f"SET gtid_next='{_UUID}:{number}'".encode()


def _empty(number: int) -> list[bytes]:
    return [_next(number), b"BEGIN", b"COMMIT"]


def _own(number: int) -> list[bytes]:
    return [
        _next(number),
        b"BEGIN",
        b"INSERT INTO d.t VALUES (%d,%d)" % (number, number),
        b"COMMIT",
    ]


async def _spread(
    size: int, made: Callable[[int], list[bytes]], server: Server, sessions: int
) -> float:
    """Return the seconds of transactions over so many sessions, `size` of them in a packet."""
    numbers = list(range(1, _COUNT + 1))
    packets = [
        [text for number in numbers[at : at + size] for text in made(number)]
        for at in range(0, _COUNT, size)
    ]

    async def work(connection: Connection, packets: Packets) -> None:
        for packet in packets:
            await connection.run(b";".join(packet), len(packet))

    connections = [await _connected(server) for _ in range(sessions)]
    began = monotonic()
    await asyncio.gather(
        *(work(connection, packets[n::sessions]) for n, connection in enumerate(connections))
    )
    seconds = monotonic() - began
    for connection in connections:
        connection.close()
    return seconds


async def _combined(server: Server, sessions: int) -> float:
    """Return the seconds of rows that share commits, one session's, and of their other GTIDs."""
    waiting: asyncio.Queue[list[bytes]] = asyncio.Queue(2 * sessions)

    async def work(connection: Connection) -> None:
        while packet := await waiting.get():
            await connection.run(b";".join(packet), len(packet))

    connections = [await _connected(server) for _ in range(sessions)]
    rows = await _connected(server)
    began = monotonic()
    workers = [asyncio.create_task(work(connection)) for connection in connections]
    for first in range(1, _COUNT + 1, _TOGETHER):
        numbers = range(first, first + _TOGETHER)
        values = b",".join(b"(%d,%d)" % (number, number) for number in numbers)
        packet = [_next(numbers[-1]), b"BEGIN", b"INSERT INTO d.t VALUES " + values, b"COMMIT"]
        await rows.run(b";".join(packet), len(packet))
        others = list(numbers[:-1])
        share = -(-len(others) // sessions)
        for at in range(0, len(others), share):
            texts = [text for number in others[at : at + share] for text in _empty(number)]
            await waiting.put(texts)
    for _ in workers:
        await waiting.put([])
    await asyncio.gather(*workers)
    seconds = monotonic() - began
    for connection in (*connections, rows):
        connection.close()
    return seconds


async def _connected(server: Server) -> Connection:
    return await Connection.open(Endpoint("target", "", 0, str(server.socket), "root", ""))


_WAYS: Final[dict[str, Callable[[Server, int], Coroutine[None, None, float]]]] = {
    "without effect, one a packet": partial(_spread, 1, _empty),
    "without effect, 256 a packet": partial(_spread, 256, _empty),
    "each with its row, 16 a packet": partial(_spread, 16, _own),
    f"rows of {_TOGETHER} in one commit": _combined,
}
