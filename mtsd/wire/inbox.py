"""Data arriving on a connection, bypassing asyncio's StreamReader where that would cost too much.

A binlog is passed on piece by piece as read from the socket, without being copied into a buffer and
out of it. The answers to a bundle of statements wake their waiter when all of them have arrived,
not one by one.
"""

import asyncio
from collections import deque
from typing import NamedTuple

_OK = 0x00
_ERROR = 0xFF
_EOF = 0xFE
"""The answer to COM_SET_OPTION."""
_ONE_BYTE = 0xFB
"""A number below this, length-encoded, is its only byte."""
_MORE_RESULTS = 0x08
"""SERVER_MORE_RESULTS_EXISTS, in the lower byte of the status."""
_LARGEST_ANSWER = 1 << 16
"""Bytes: an OK packet has a few, an error packet a few hundred."""
_MAX_HELD = 1 << 20
"""Unread bytes before the socket is no longer read: the kernel then holds back the sender."""


class AnswerError(ConnectionError):
    """The packet received is not an answer to a statement that returns no rows."""


class StatementAnswer(NamedTuple):
    """What an OK packet says: how many rows were changed, and how many warnings there are.

    Where `more`, the answer to another statement of the same packet follows.
    """

    rows: int
    warnings: int
    more: bool


class Inbox(asyncio.Protocol):
    """Sits in front of a transport's protocol: while `direct`, it handles the data itself.

    Otherwise all data goes to the protocol behind it, as does everything else in any case.
    """

    def __init__(self, transport: asyncio.Transport, behind: asyncio.Protocol) -> None:
        self.direct = False
        self._transport = transport
        self._behind = behind
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None
        self.waits_since: float | None = None
        """Since when somebody waits for what has not come, on the loop's clock; None: nobody."""
        self._ended = False
        self._due = 0
        """Answers that are being waited for."""
        self._count = 0
        """Those that were, when the wait began."""
        self._kind = _OK
        """What they begin with."""
        self._sequence = 0
        self._error = b""
        self._unexpected = False
        self.wanted: list[StatementAnswer] | None = None
        """Gets what each answer says, if that is wanted."""
        transport.set_protocol(self)

    async def piece(self) -> bytes:
        """Return the next data; b"" at the end of the connection."""
        while not self._pieces:
            if self._ended:
                return b""
            await self._more()
        piece = self._pieces.popleft()
        was_full = self._held > _MAX_HELD
        self._held -= len(piece)
        if was_full and self._held <= _MAX_HELD:
            self._resume()
        return piece

    async def answers(self, count: int, sequence: int) -> bytes:
        """Await the answers to `count` statements; the first packet has number `sequence`.

        Returns b"", or the error packet that ended them. Raises AnswerError, ConnectionError.
        """
        return await self._answers(count, sequence, _OK)

    async def option(self) -> bytes:
        """Await the answer to COM_SET_OPTION as `answers` does."""
        return await self._answers(1, 1, _EOF)

    async def _answers(self, count: int, sequence: int, kind: int) -> bytes:
        self._due = self._count = count
        self._kind = kind
        self._sequence = sequence
        self._error = b""
        while not self._all_there():
            if self._ended:
                raise ConnectionError("it was closed by the server")
            await self._more()
        if self._unexpected:
            raise AnswerError("an unexpected answer")
        return self._error

    @property
    def answered(self) -> int:
        """How many of the answers that are being waited for have come."""
        return self._count - self._due

    def rest(self, seconds: float) -> None:
        """Leave incoming data to the kernel for `seconds`: it wakes nobody."""
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, self._resume)

    def is_empty(self) -> bool:
        """Return whether everything that has arrived was consumed."""
        return not self._pieces

    def data_received(self, data: bytes) -> None:
        """Store incoming data, and wake the waiter if it is complete."""
        if not self.direct:
            self._behind.data_received(data)
            return
        self._pieces.append(data)
        self._held += len(data)
        if self._held > _MAX_HELD >= self._held - len(data):
            self._transport.pause_reading()
        if self._due and not self._all_there():
            return
        self._wake()

    def eof_received(self) -> bool | None:
        """Forward it."""
        self._ended = True
        self._wake()
        return self._behind.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forward it."""
        self._ended = True
        self._wake()
        self._behind.connection_lost(exc)

    def pause_writing(self) -> None:
        """Forward it."""
        self._behind.pause_writing()

    def resume_writing(self) -> None:
        """Forward it."""
        self._behind.resume_writing()

    def _resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    async def _more(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        self.waits_since = loop.time()
        try:
            await self._waiter
        finally:
            self._waiter = self.waits_since = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _all_there(self) -> bool:
        """Consume the answers received; return whether no more are due, or can arrive."""
        if self._unexpected:
            return True
        data = b"".join(self._pieces)
        self._pieces.clear()
        at = 0
        while self._due and len(data) >= at + 4:
            body = at + 4
            size = int.from_bytes(data[at : at + 3], "little")
            if not 0 < size <= _LARGEST_ANSWER:
                self._unexpected = True
                return True
            end = body + size
            if len(data) < end:
                break
            if data[at + 3] != self._sequence or data[body] not in {self._kind, _ERROR}:
                self._unexpected = True
                return True
            if data[body] == _ERROR:
                self._error = data[body:end]
                self._due = 0
            else:
                self._due -= 1
                if self.wanted is not None and self._kind == _OK:
                    # An error here would be asyncio's, and nobody's who waits.
                    answer = _answer(data[body + 1 : end])
                    if answer is None:
                        self._unexpected = True
                        return True
                    self.wanted.append(answer)
            self._sequence = (self._sequence + 1) & 0xFF
            at = end
        rest = data[at:]
        if rest:
            self._pieces.append(rest)
        self._held = len(rest)
        return not self._due


def _answer(ok: bytes) -> StatementAnswer | None:
    """Return what an OK packet says after its first byte; None if it is cut off.

    Rows and a generated id as length-encoded integers, status u16, warnings u16 (MySQL's manual of
    its protocol, OK_Packet).
    """
    rows, at = _length_encoded(ok, 0)
    _, at = _length_encoded(ok, at)
    if len(ok) < at + 4:
        return None
    more = bool(ok[at] & _MORE_RESULTS)
    return StatementAnswer(rows, int.from_bytes(ok[at + 2 : at + 4], "little"), more)


def _length_encoded(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer, and where it ends, which may be beyond the data."""
    first = int.from_bytes(data[at : at + 1], "little")
    if first < _ONE_BYTE:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
    end = at + 1 + size
    return int.from_bytes(data[at + 1 : end], "little") if size else first, end
