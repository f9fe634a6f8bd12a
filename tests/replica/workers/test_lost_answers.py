"""Sessions in which the target has nothing left to answer, though an answer is awaited."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from threading import Event

import pytest
import uvloop

from mtsd.apply.session.obstacle import SILENT, Obstacles, wait_out_obstacles
from mtsd.model.errors import ConnectionLostError
from mtsd.replica.workers.lost_answers import AnswerTimeouts, LostAnswers, OpenSession
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import CurrentEndpoint, Endpoint
from tests.servers.mysqld import Server
from tests.servers.proxy import Proxy

pytestmark = pytest.mark.servers

IMPATIENT = AnswerTimeouts(look_period=0.2, awaited=1.0, idle=1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server({"max_allowed_packet": 1 << 28}) as server:
        yield server


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def watched(proxy: Proxy, server: Server) -> AsyncIterator[Connection]:
    """Yield a connection through the proxy, at whose answers somebody looks."""
    connection = await Connection.open(Endpoint("target", "127.0.0.1", proxy.port, "", "root", ""))

    def sessions() -> Iterator[OpenSession]:
        awaited = None if connection.is_sending else connection.awaited
        yield OpenSession(connection.thread_id, awaited, connection.close)

    current = CurrentEndpoint(Endpoint("target", "127.0.0.1", server.port, "", "root", ""))
    looking = asyncio.create_task(LostAnswers(current, sessions, IMPATIENT).run())
    try:
        yield connection
    finally:
        looking.cancel()
        connection.close()


async def test_a_target_that_hangs_is_told_and_keeps_its_sessions(server: Server) -> None:
    wait_out_obstacles(obstacles := Obstacles())
    with Proxy(server) as proxy:
        endpoint = Endpoint("target", "127.0.0.1", proxy.port, "", "root", "", connect_timeout=0.3)
        connection = await Connection.open(replace(endpoint, connect_timeout=60.0))
        looks = LostAnswers(
            CurrentEndpoint(endpoint),
            lambda: [OpenSession(connection.thread_id, connection.awaited, connection.close)],
            AnswerTimeouts(look_period=0.05, asked=0.1, awaited=0.1, idle=0),
        )
        looking = asyncio.create_task(looks.run())
        proxy.stall(60)
        asking = asyncio.create_task(connection.run(b"DO 1", 1))
        await until(lambda: obstacles.what == SILENT)
        assert obstacles.error is not None
        assert "no answer from 127.0.0.1" in obstacles.error.text
        proxy.stall(0)
        await asyncio.wait_for(asking, 60)
        await until(lambda: not obstacles.what)
        looking.cancel()
        connection.close()


async def until(reached: Callable[[], bool]) -> None:
    """Return once it is; the limit of the test is what ends it otherwise."""
    while not reached():  # noqa: ASYNC110 - nothing tells it
        await asyncio.sleep(0.02)


async def test_one_that_never_comes(server: Server) -> None:
    swallows = Event()

    def changes() -> Callable[[bytes], bytes]:
        return lambda data: b"" if swallows.is_set() else data

    with Proxy(server, changes) as proxy:
        async with watched(proxy, server) as connection:
            await connection.run(b"DO 1;DO 2", 2)
            swallows.set()
            with pytest.raises(ConnectionLostError):
                await asyncio.wait_for(connection.run(b"DO 3", 1), 60)


@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("way", ["tls", "clear", "socket"])
def test_a_session_that_the_target_has_closed_sends_nothing(
    way: str, loop: Callable[[Coroutine[None, None, None]], None], server: Server
) -> None:
    """That of an idle worker, which nobody has used since: the look at the others goes on."""
    endpoint = Endpoint(
        "target", "127.0.0.1", server.port, str(server.socket) if way == "socket" else "",
        "root", "", tls=unverified() if way == "tls" else None,
    )  # fmt: skip

    async def closed() -> None:
        connection = await Connection.open(endpoint)
        assert connection.encrypted == (way == "tls")
        server.sql(f"KILL {connection.thread_id}")
        try:
            await asyncio.sleep(0.2)
            assert not connection.is_sending
            for _ in range(2):
                with contextlib.suppress(ConnectionLostError):
                    connection.send(b"DO 1")
                await asyncio.sleep(0.2)
                # With what has not been acknowledged, until that is known to be lost.
                assert isinstance(connection.is_sending, bool)
            assert not connection.is_sending
        finally:
            connection.close()
            await asyncio.sleep(0)

    loop(closed())


async def test_one_that_takes_long_comes(server: Server) -> None:
    with Proxy(server) as proxy:
        async with watched(proxy, server) as connection:
            await connection.run(b"DO 1", 1)
            await asyncio.wait_for(connection.run(b"DO SLEEP(4)", 1), 120)


async def test_one_whose_question_has_not_arrived_is_waited_for(server: Server) -> None:
    """It is more than sockets and the proxy hold; the target is idle as long as it is on its way.

    Nobody looks at how its end arrives: that is slow on a busy machine, and looks like an answer
    that never comes.
    """
    statement = b"DO LENGTH('%b')" % (b"x" * (1 << 25))
    with Proxy(server) as proxy:
        async with watched(proxy, server) as connection:
            await connection.run(b"DO 1", 1)
            proxy.stall(60, ("up",))
            running = asyncio.create_task(connection.run(statement, 1))
            await asyncio.sleep(3)
            assert connection.is_sending
            assert not running.done()
        with pytest.raises(ConnectionLostError):
            await running
