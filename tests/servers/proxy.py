"""A proxy between a client and a server on which faults are put: in a thread of its own.

Each direction of each connection can be cut, held up, cut into small pieces and slowed down, and
what it carries changed; all of that is decided by whoever calls, at the instant of the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event, Thread
from types import TracebackType
from typing import Literal, Self

from tests.servers.mysqld import Server

Direction = Literal["up", "down"]
"""Up: what the client says to the server. Down: what the server answers."""
BOTH: tuple[Direction, Direction] = ("up", "down")
_READ = 1 << 16


@dataclass(slots=True)
class Weather:
    """How one direction fares at present.

    `piece`: bytes that are passed on at a time, 0 all that there is. `rate`: bytes a second, 0 as
    fast as it goes. `stalled_until`: nothing passes before that moment (time.monotonic).
    """

    piece: int = 0
    rate: int = 0
    stalled_until: float = 0.0


class Proxy:
    """Listens on a port of 127.0.0.1 and passes on to `server`; a context manager.

    `changes` makes, for each connection, what is given each piece that comes down and returns what
    is passed on instead.
    """

    def __init__(
        self, server: Server, changes: Callable[[], Callable[[bytes], bytes]] | None = None
    ) -> None:
        self._to = server.port
        self._changes = changes
        self._weather: dict[Direction, Weather] = {"up": Weather(), "down": Weather()}
        self._sockets: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._listening = Event()
        self._ended: asyncio.Event | None = None
        self._thread = Thread(target=self._live, name="proxy", daemon=True)
        self.port = 0
        self.passed: dict[Direction, int] = {"up": 0, "down": 0}
        """Bytes that have been passed on."""
        self.heard = bytearray()
        """The first bytes that clients have said."""
        self.connections = 0

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._listening.wait(10):
            raise AssertionError("the proxy does not listen")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)
        self._loop.close()

    def drop(self) -> int:
        """Cut every connection at once, as a reset does; return how many there were."""
        done: Future[int] = Future()

        def cut() -> None:
            done.set_result(len(self._sockets) // 2)
            for writer in self._sockets:
                writer.transport.abort()

        self._loop.call_soon_threadsafe(cut)
        return done.result(10)

    def stall(self, seconds: float, directions: tuple[Direction, ...] = BOTH) -> None:
        """Pass nothing on for so long; the connections stay."""
        for direction in directions:
            self._weather[direction].stalled_until = time.monotonic() + seconds

    def split(self, piece: int, directions: tuple[Direction, ...] = BOTH) -> None:
        """Pass on pieces of so many bytes, each by itself; 0: as they come."""
        for direction in directions:
            self._weather[direction].piece = piece

    def slow(self, rate: int, directions: tuple[Direction, ...] = BOTH) -> None:
        """Pass on so many bytes a second; 0: as fast as it goes."""
        for direction in directions:
            self._weather[direction].rate = rate

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._ended.wait()
        server.close()
        for writer in self._sockets:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(
        self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            reader, server = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            client.transport.abort()
            return
        ends = {client, server}
        self._sockets |= ends
        try:
            await asyncio.gather(
                self._pass_on("up", client_reader, server), self._pass_on("down", reader, client)
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._sockets -= ends
            for writer in ends:
                writer.transport.abort()

    async def _pass_on(
        self, direction: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        weather = self._weather[direction]
        change = self._changes() if direction == "down" and self._changes is not None else None
        while data := await _read(reader):
            if direction == "up":
                self.heard += data[: 4096 - len(self.heard)]
            elif change is not None:
                data = change(data)
            at = 0
            while at < len(data):
                await _stalled(weather)
                size = weather.piece or _READ
                if weather.rate:
                    size = min(size, max(1, weather.rate // 20))
                part = data[at : at + size]
                writer.write(part)
                await writer.drain()
                at += len(part)
                self.passed[direction] += len(part)
                # A pause lets each piece go by itself.
                await asyncio.sleep(len(part) / weather.rate if weather.rate else 0)
        # The end of a connection is held up like all else: a network that has failed tells nothing.
        await _stalled(weather)
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_READ)
    except OSError:
        return b""


async def _stalled(weather: Weather) -> None:
    # Another thread may make the stall longer, or end it.
    while (wait := weather.stalled_until - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(wait, 0.05))
