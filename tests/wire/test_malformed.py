"""What a hostile server answers ends as a lost connection or a refusal, whatever it is."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import pytest

from mtsd.model.errors import ConnectionLostError, MtsdError, NotSupportedError, ServerError
from mtsd.wire import login, result
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.refusal import SessionRefusedError

GREETING = (
    b"\x0a9.7.0\0\x07\0\0\0saltsalt\0\xff\xf7\xff\x02\0\xff\xdf\x15" + bytes(10)
    + b"saltsaltsalt\0mysql_native_password\0"
)  # fmt: skip
OK = b"\0\0\0\2\0\0\0"
MORE = b"\0\0\0\x0a\0\0\0"
EOF = b"\xfe\0\0\2\0"
COLUMN = b"\3def\0\0\0\1a\0\x0c\x3f\0\1\0\0\0\3\0\0\0\0\0"
BLOB = COLUMN[:-6] + b"\xfc" + COLUMN[-5:]

Use = Callable[[Connection], Awaitable[object]]


def packets(payloads: Iterable[bytes], sequence: int) -> bytes:
    framed = bytearray()
    for number, payload in enumerate(payloads):
        framed += len(payload).to_bytes(3, "little") + bytes(((sequence + number) & 0xFF,))
        framed += payload
    return bytes(framed)


async def talk(
    use: Use, *answers: bytes, greeting: bytes = GREETING, welcome: bytes = OK
) -> MtsdError | None:
    """Log in to a server that answers so, use the session, and return what that raises."""
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(greeting if not greeting.startswith(b"\x0a") else packets([greeting], 0))
            # The third is its answer to the file that it has asked for.
            for said in (packets([welcome], 2), packets(answers, 1), packets([OK], 3)):
                if asked := await reader.read(1 << 16):
                    # What is not mtsd's own comes after a COM_SET_OPTION.
                    if asked.startswith(b"\3\0\0\0\x1b"):
                        writer.write(packets([EOF], 1))
                    for at in range(0, len(said), 1 << 16):
                        writer.write(said[at : at + (1 << 16)])
                        await writer.drain()
            while await reader.read(1 << 16):
                pass
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
            done.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = Endpoint("target", "127.0.0.1", port, "", "root", "p", connect_timeout=5.0)
    raised = None
    connection = None
    try:
        connection = await Connection.open(endpoint)
        async with connection.answering():
            await use(connection)
    except MtsdError as error:
        raised = error
    if connection is not None:
        connection.close()
    await done.wait()
    server.close()
    assert "\n" not in str(raised)
    return raised


def query(connection: Connection) -> Awaitable[object]:
    return connection.query("SELECT 1")


def named(connection: Connection) -> Awaitable[object]:
    return connection.query_named("SELECT 1")


def run(connection: Connection) -> Awaitable[object]:
    return connection.run(b"DO 1", 1)


def counted(connection: Connection) -> Awaitable[object]:
    return connection.run_counted(b"DO 1", 1)


def command(connection: Connection) -> Awaitable[object]:
    return connection.command(2, b"d", answer=True)


async def statement(connection: Connection) -> None:
    connection.ask(b"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE d.t")
    await connection.results()


def load(connection: Connection) -> Awaitable[object]:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"1\n"

    return connection.load(b"LOAD DATA", pieces())


def test_what_is_an_answer() -> None:
    """The fake server is one that can be talked to."""
    for use, answers in (
        (query, (b"\1", COLUMN, EOF, b"\x011", EOF)),
        (named, (b"\1", COLUMN, EOF, EOF)),
        (statement, (b"\1", COLUMN, EOF, b"\x011", EOF)),
        (run, (OK,)),
        (counted, (OK,)),
        (command, (OK,)),
    ):
        assert asyncio.run(talk(use, *answers)) is None
    assert isinstance(asyncio.run(talk(query, b"\xff\x28\x04#42000no")), ServerError)


@pytest.mark.parametrize(
    "answers",
    [
        (b"",),
        (b"\0",),
        (b"\0\0\0",),
        (b"\0\xfe\1\0\0\0\0",),
        (b"\xff",),
        (b"\xff\x28",),
        (b"\xfe",),
        (b"\xfb", b""),
        (b"\xfc\xff",),
        (b"\xfd\0\0\1",),
        (b"\2", COLUMN, EOF),
        (b"\1", b"", EOF),
        (b"\1", COLUMN[:9], EOF),
        (b"\1", COLUMN[:5] + b"\xfb" + COLUMN[6:], EOF),
        (b"\1", COLUMN, COLUMN),
        (b"\1", COLUMN, EOF, b""),
        (b"\1", COLUMN, EOF, b"\x051"),
        (b"\1", COLUMN, EOF, b"\1a", EOF),
        (b"\2", COLUMN, COLUMN, EOF, b"\x011", EOF),
        (b"\1", COLUMN, EOF, b"\x011", EOF[:3]),
    ],
)
async def test_what_is_none(answers: tuple[bytes, ...]) -> None:
    for use in (query, named, statement, run, counted, command, load):
        # Without its status, an OK tells as much as one with it where nobody asks for that.
        if answers[0][:1] == b"\0" and use in {run, command}:
            continue
        # Rows that nobody keeps are not read.
        if len(answers) > 3 and use is statement:
            continue
        error = await talk(use, *answers)
        assert isinstance(error, ConnectionLostError | NotSupportedError), (use, error)
        assert (type(error) is NotSupportedError) == (
            answers[0] == b"\xfb" and use in {query, named, statement}
        )


@pytest.mark.parametrize(
    "greeting",
    [
        b"\x0a",
        b"\x0a9",
        b"\x0a9.7.0\0\1",
        b"\x0aeleven\0" + GREETING[7:],
        b"SSH-2.0-x",
    ],
)
async def test_greetings_that_are_none(greeting: bytes) -> None:
    error = await talk(query, greeting=greeting)
    assert isinstance(error, SessionRefusedError)
    assert "is not a MySQL server" in str(error)


@pytest.mark.parametrize(
    "welcome",
    [
        b"",
        b"\xff",
        b"\xfe",
        b"\xfemysql_native_password",
        b"\1",
        b"\1\7",
        b"\xfecaching_sha2_password\0",
    ],
)
async def test_welcomes_that_are_none(welcome: bytes) -> None:
    error = await talk(query, b"\1\4", b"", welcome=welcome)
    assert isinstance(error, ConnectionLostError), error


async def test_a_file_that_is_asked_for_unasked() -> None:
    """The session can still be used: what failed has to be rolled back on it."""

    async def twice(connection: Connection) -> None:
        with pytest.raises(NotSupportedError, match="asks for a file of this machine"):
            await statement(connection)
        assert not connection.closed

    assert await talk(twice, b"\xfb/etc/passwd") is None


@pytest.mark.parametrize("size", [b"\xff\xff\xff", b"\0\0\1"])
async def test_a_greeting_without_an_end(size: bytes) -> None:
    """It is refused by its length, before any of it is read."""
    error = await talk(query, greeting=size + b"\0" + GREETING)
    assert isinstance(error, SessionRefusedError)


async def test_a_result_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no more memory than one that makes sense."""
    monkeypatch.setattr(login, "LARGEST_RESULT", 1 << 20)
    monkeypatch.setattr(result, "LARGEST_RESULT", 1 << 20)
    row = b"\xfd" + (1 << 16).to_bytes(3, "little") + bytes(1 << 16)
    empty = b"\xfb"
    for rows, use, most in (
        ([row] * 200, query, 1 << 20),
        ([empty] * 20_000, query, 1 << 20),
        # A source's statement may return any number of rows: nobody keeps them.
        ([row] * 200, statement, 1 << 20),
    ):
        answers = (b"\1", BLOB, EOF, *rows, EOF)
        tracemalloc.start()
        try:
            error = await talk(use, *answers)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        if use is query:
            assert "larger than any" in str(error)
        else:
            assert error is None
        # What the fake server sends is there, too, while it is put together.
        assert peak < 2.3 * len(packets(answers, 1)) + most + (2 << 20)
