"""Statements of every size reach a real server whole."""

import asyncio
from collections.abc import Callable, Iterator

import aiomysql
import pytest
import uvloop
from pymysql.err import OperationalError

from mtsd.model.errors import (
    CannotConnectError,
    ConnectionLostError,
    NotSupportedError,
    ServerError,
)
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import translated
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

FULL = 0xFFFFFF
"""The largest payload of one packet: a larger statement goes on in the next."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with Server() as server:
        yield Endpoint("target", "", 0, str(server.socket), "root", "")


@pytest.mark.parametrize("size", [1000, FULL - 2, FULL - 1, FULL, FULL + 1, 2 * FULL - 1])
async def test_statements_around_a_packets_size(endpoint: Endpoint, size: int) -> None:
    head, tail = b"SELECT LENGTH('", b"')"
    text = b"x" * (size - len(head) - len(tail))
    connection = await Connection.open(endpoint)
    try:
        assert await connection.query(head + text + tail) == [(len(text),)]
        await connection.run(b"SET @a=1;SET @b=2", 2)
        assert await connection.query("SELECT @a + @b") == [(3,)]
    finally:
        connection.close()


async def test_the_first_error_ends_a_bundle(endpoint: Endpoint) -> None:
    connection = await Connection.open(endpoint)
    try:
        with pytest.raises(ServerError) as caught:
            await connection.run(b"SET @a=5;SELECT nothing;SET @a=6", 3)
        assert caught.value.number == 1054
        assert await connection.query("SELECT @a") == [(5,)]
    finally:
        connection.close()


async def test_more_answers_than_statements(endpoint: Endpoint) -> None:
    """All are awaited, so that the connection can still be used."""
    connection = await Connection.open(endpoint)
    try:
        for count in (1, 2):
            connection.send(b"SET @a=1;SET @b=2;SET @c=3")
            with pytest.raises(NotSupportedError, match="a statement for several"):
                await connection.receive_answers(count)
    finally:
        connection.close()


async def test_of_several_statements_of_somebody_else_none_runs(endpoint: Endpoint) -> None:
    """In between the session takes bundles, and what is sent to be asked may be of any size."""
    connection = await Connection.open(endpoint)
    try:
        await connection.run(b"SET @a=1;SET @b=2", 2)
        for before in (b"", b"x" * FULL):
            for text in (b"SET @a=4;SET @b=5", b"SET @a=LENGTH('%b');SET @b=5" % before):
                connection.ask(text)
                with pytest.raises(ServerError) as caught:
                    await connection.results()
                assert caught.value.number == 1064
            assert await connection.query("SELECT @a, @b") == [(1, 2)]
            connection.ask(b"SELECT LENGTH('%b'), @a ; -- c" % before)
            await connection.results()
            assert await connection.run_counted(b"SET @a=1;SET @b=2", 2) == [0, 0]
    finally:
        connection.close()


async def test_a_cancellation_when_it_has_just_connected(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = aiomysql.connection._open_unix_connection

    async def cancelled(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] = await connect(path)
        opening.cancel()
        return streams

    monkeypatch.setattr(aiomysql.connection, "_open_unix_connection", cancelled)
    opening = asyncio.create_task(Connection.open(endpoint))
    with pytest.raises(asyncio.CancelledError):
        await opening


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_server_ends_the_connection_when_it_has_just_begun(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = aiomysql.connection._open_connection

    async def ended(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] = await connect(host, port)
        streams[1].transport.abort()
        await asyncio.sleep(0.01)
        return streams

    async def opened() -> None:
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        async with listener:
            with pytest.raises(CannotConnectError, match="reset by peer"):
                await Connection.open(Endpoint("target", "127.0.0.1", port, "", "root", ""))

    monkeypatch.setattr(aiomysql.connection, "_open_connection", ended)
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(opened())


async def test_a_killed_connection_is_lost(endpoint: Endpoint) -> None:
    connection = await Connection.open(endpoint)
    other = await Connection.open(endpoint)
    try:
        await other.query(f"KILL {connection.thread_id}")
        with pytest.raises(ConnectionLostError):
            await connection.query("SELECT 1")
    finally:
        connection.close()
        other.close()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_is_sent_again_and_again_to_a_killed_connection(
    endpoint: Endpoint, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """As bundles are sent ahead of answers; uvloop refuses one after the first that has failed."""

    async def send(connection: Connection) -> None:
        for _ in range(5):
            connection.send(b"DO 1")
            await asyncio.sleep(0.02)
        await connection.receive(1)

    async def kill() -> None:
        connection = await Connection.open(endpoint)
        other = await Connection.open(endpoint)
        try:
            await other.query(f"KILL {connection.thread_id}")
            with pytest.raises(ConnectionLostError):
                await send(connection)
            assert connection.closed
        finally:
            connection.close()
            other.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(kill())


def test_a_lost_connection_is_said_once() -> None:
    error = OperationalError(2013, "Lost connection to MySQL server during query ([Errno 104])")
    error.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    said = translated(error, Endpoint("target", "db1", 3306, "", "root", ""))
    assert str(said) == "connection to the target lost: it was closed by the server"
