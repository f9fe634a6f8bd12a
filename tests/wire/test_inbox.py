"""What comes on a connection, piece by piece and answer by answer, on both event loops."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from mtsd.wire.inbox import AnswerError, Inbox

Loop = Callable[[], asyncio.AbstractEventLoop]
OK = b"\x07\0\0%c\0\0\0\2\0\0\0"
ERROR = b"\x0d\0\0%c\xff\x28\x04#HY000what"

loops = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])


def run(loop: Loop, peer: bytes, use: Callable[[Inbox], Awaitable[None]]) -> None:
    """Run `use` on an inbox whose peer sends those bytes and closes."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(peer)
        writer.close()

    async def connect() -> None:
        server = await asyncio.start_server(send, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader = asyncio.StreamReader()
        made: list[Inbox] = []

        def protocol() -> asyncio.Protocol:
            return Direct(made, asyncio.StreamReaderProtocol(reader))

        transport, _ = await asyncio.get_running_loop().create_connection(
            protocol, "127.0.0.1", port
        )
        await use(made[0])
        transport.abort()
        server.close()
        await server.wait_closed()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(connect())


class Direct(asyncio.Protocol):
    """Puts an inbox before a protocol as soon as there is a transport, and lets it take all."""

    def __init__(self, made: list[Inbox], behind: asyncio.Protocol) -> None:
        self._made = made
        self._behind = behind

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._behind.connection_made(transport)
        inbox = Inbox(transport, self._behind)  # type: ignore[arg-type] # uvloop's is none of asyncio's
        inbox.direct = True
        self._made.append(inbox)


@loops
@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_pieces_of_a_peer_that_has_gone_meanwhile(loop: Loop, size: int) -> None:
    sent = bytes(range(250)) * (size // 250) or b"x" * size

    async def read(inbox: Inbox) -> None:
        # Longer than it takes to fill what may be held, and to close.
        await asyncio.sleep(0.2)
        assert inbox._held < 4_000_000
        found: list[bytes] = []
        while not found or found[-1]:
            found.append(await inbox.piece())
        assert b"".join(found) == sent

    run(loop, sent, read)


@loops
def test_answers(loop: Loop) -> None:
    sent = OK % 1 + OK % 2 + OK % 1 + ERROR % 2 + OK % 1

    async def ask(inbox: Inbox) -> None:
        assert await inbox.answers(2, 1) == b""
        assert not inbox.is_empty()
        assert await inbox.answers(3, 1) == b"\xff\x28\x04#HY000what"
        assert await inbox.answers(1, 1) == b""
        assert inbox.is_empty()
        with pytest.raises(ConnectionError, match="closed"):
            await inbox.answers(1, 1)

    run(loop, sent, ask)


def ok(
    sequence: int,
    rows: bytes,
    generated: bytes,
    warnings: int,
    text: bytes = b"",
    *,
    status: int = 2,
) -> bytes:
    body = b"\0" + rows + generated + b"%c\0" % status + warnings.to_bytes(2, "little") + text
    return len(body).to_bytes(3, "little") + bytes((sequence,)) + body


@loops
def test_what_answers_say(loop: Loop) -> None:
    sent = (
        ok(1, b"\0", b"\0", 0)
        + ok(2, b"\xfa", b"\xfc\x05\x04", 7, b"a text")
        + ok(3, b"\xfc\xfb\0", b"\xfd\1\2\3", 65535)
        + ok(4, b"\xfd\1\0\1", b"\xfe" + bytes(8), 256)
        + ok(5, b"\xfe\1\0\0\0\1\0\0\0", b"\0", 0)
        + ok(6, b"\1", b"\0", 0, status=0x0A)
        + ERROR % 7
    )

    async def ask(inbox: Inbox) -> None:
        inbox.wanted = []
        assert await inbox.answers(7, 1)
        assert [(each.rows, each.warnings) for each in inbox.wanted] == [
            (0, 0), (250, 7), (251, 65535), (65537, 256), (2**32 + 1, 0), (1, 0),
        ]  # fmt: skip
        assert [each.more for each in inbox.wanted] == [False] * 5 + [True]

    run(loop, sent, ask)


@loops
@pytest.mark.parametrize("sent", [OK % 2, b"\1\0\0\1\xfe", b"\1\0\0\1\1", b"\0\0\0\1"])
def test_what_is_no_answer(loop: Loop, sent: bytes) -> None:
    async def ask(inbox: Inbox) -> None:
        with pytest.raises(AnswerError):
            await inbox.answers(1, 1)

    run(loop, sent, ask)


@loops
def test_an_answer_that_claims_a_huge_length_is_not_waited_for(loop: Loop) -> None:
    async def ask(inbox: Inbox) -> None:
        with pytest.raises(AnswerError):
            await asyncio.wait_for(inbox.answers(1, 1), 5)

    async def fill(inbox: Inbox) -> None:
        # What is held stops the reading: it would be for ever.
        await asyncio.sleep(0.05)
        await ask(inbox)

    run(loop, b"\xff\xff\xff\1\0" + bytes(3 << 20), fill)


@loops
def test_an_answer_that_is_cut_off(loop: Loop) -> None:
    async def ask(inbox: Inbox) -> None:
        with pytest.raises(ConnectionError, match="closed"):
            await inbox.answers(2, 1)

    run(loop, OK % 1 + (OK % 2)[:-1], ask)


@loops
@pytest.mark.parametrize("there", [True, False])
def test_a_rest_delays_and_loses_nothing(loop: Loop, there: bool) -> None:
    async def use(inbox: Inbox) -> None:
        if there:
            await asyncio.sleep(0.05)
        clock = asyncio.get_running_loop().time
        began = clock()
        inbox.rest(0.1)
        assert await inbox.answers(1, 1) == b""
        if not there:
            assert clock() - began >= 0.09
        assert await inbox.answers(1, 2) == b""
        inbox.rest(0.1)
        with pytest.raises(ConnectionError):
            await inbox.answers(1, 3)

    run(loop, OK % 1 + OK % 2, use)


@loops
def test_closing_during_a_rest(loop: Loop) -> None:
    async def use(inbox: Inbox) -> None:
        inbox.rest(0.02)
        asyncio.get_running_loop().call_later(0.01, inbox._transport.abort)
        with pytest.raises(ConnectionError):
            await inbox.answers(1, 1)
        await asyncio.sleep(0.03)

    run(loop, b"", use)
