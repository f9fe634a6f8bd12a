"""A connection to a MySQL server: aiomysql's handshake, with mtsd's own commands on top of it.

This, `exchange`, `login` and `result` are the only modules that touch aiomysql's internals
(`_writer`, `_connect`, `_execute_command`, `_read_packet`, `_next_seq_id`, `MySQLResult`), and the
project pins its minor version.
"""

import asyncio
import contextlib
import fcntl
import socket
import termios
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TypeVar

from pymysql.err import MySQLError

from mtsd.model.errors import ConnectionLostError, NotSupportedError
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.exchange import Awaited, Exchange, LoadCounts, Row, Value
from mtsd.wire.failure import CLOSED, NO_SESSION, not_opened, translated, why_ended
from mtsd.wire.inbox import AnswerError, StatementAnswer
from mtsd.wire.login import LogIn
from mtsd.wire.result import LARGEST_RESULT, FileAskedError
from mtsd.wire.understood import NOT_UNDERSTOOD

_QUIT = 0x01

T = TypeVar("T")


class Connection:
    """One session on a server. Must not be used by two coroutines at once."""

    def __init__(self, raw: LogIn, endpoint: Endpoint) -> None:
        self._raw = raw
        self.endpoint = endpoint
        self._exchange = Exchange(raw, endpoint)
        self._inbox = self._exchange.inbox

    @classmethod
    async def open(
        cls,
        endpoint: Endpoint,
        *,
        program_name: str = "mtsd",
        about: Sequence[tuple[str, str]] = (),
    ) -> "Connection":
        """Connect and authenticate; `about` are further attributes of the session, by name.

        performance_schema.session_connect_attrs shows these on the server, and the program's name.
        Raises SessionRefusedError if another attempt would fail too, ServerError with a number in
        BUSY if one may succeed, ConnectionLostError if the server cannot be reached within
        `endpoint.connect_timeout` seconds.
        """
        raw = LogIn(endpoint, program_name, about)
        try:
            async with asyncio.timeout(endpoint.connect_timeout):
                await raw._connect()  # noqa: SLF001 - aiomysql.connect has no server-side cancel
        except BaseException as error:
            raw.close()
            if isinstance(error, NO_SESSION):
                raise not_opened(endpoint, error) from error
            raise
        return cls(raw, endpoint)

    @property
    def encrypted(self) -> bool:
        """Whether the session runs over TLS."""
        return self._raw._writer is not None and (  # noqa: SLF001
            self._raw._writer.get_extra_info("ssl_object") is not None  # noqa: SLF001
        )

    @property
    def thread_id(self) -> int:
        """The server's id of this connection, for KILL."""
        return int(self._raw.thread_id())

    @property
    def server_version(self) -> str:
        """The version in the server's greeting, such as "9.7.0" or "11.8.1-MariaDB"."""
        return str(self._raw.server_version)

    @property
    def closed(self) -> bool:
        """Whether this side of the connection is closed."""
        return self._raw._writer is None  # noqa: SLF001

    @property
    def awaited(self) -> Awaited | None:
        """What the server has not answered yet, where somebody waits for that; else None."""
        return self._exchange.awaited

    @property
    def is_sending(self) -> bool:
        """Whether the other side has not yet acknowledged everything that was sent."""
        writer = self._raw._writer  # noqa: SLF001
        # One that the other side has closed has no socket any more, though nobody has used it yet.
        if writer is None or writer.transport.is_closing():
            return False
        left = fcntl.ioctl(writer.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return any(left)

    async def query(self, sql: str | bytes) -> list[Row]:
        """Run one statement of mtsd's own and return the rows of its (last) result set.

        Raises ServerError, ConnectionLostError.
        """
        return await self._guarded(self._exchange.query(sql))

    async def query_each(self, statements: Sequence[bytes]) -> list[list[Row]]:
        """Run statements of mtsd's own in one packet, and return the rows of each.

        The server stops at the first error. Raises ServerError, ConnectionLostError.
        """
        return await self._guarded(self._exchange.query_each(statements))

    async def query_named(self, sql: str | bytes) -> list[dict[str, Value]]:
        """Run one statement and return its rows by column name. Raises as `query` does."""
        rows = await self.query(sql)
        result = self._raw._result  # noqa: SLF001
        columns = result.description if result is not None else None
        names = [str(column[0]) for column in columns or ()]
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def run(self, statements: bytes, count: int) -> None:
        """Run a bundle of `count` statements in one packet; the server stops at the first error.

        Results are counted, because the OK of a BINLOG statement does not say that more follow. No
        statement may return rows. Raises ServerError, ConnectionLostError.
        """
        self.send(statements)
        await self.receive(count)

    async def run_counted(self, statements: bytes, count: int) -> list[int]:
        """Run a bundle as `run` does, and return the number of rows of each statement."""
        self.send(statements)
        return [answer.rows for answer in await self.receive_answers(count)]

    def send(self, statements: bytes) -> None:
        """Start sending a bundle; `receive` must follow. Raises ConnectionLostError.

        A second one may be sent before that: the server begins it after it has answered the first,
        whether successfully or not.
        """
        self._inbox.direct = True
        self._exchange.write(statements, several=True)

    async def drained(self) -> None:
        """Wait until the other side has taken nearly all that was sent; raises ConnectionLostError.

        While the event loop is busy with something else, nothing of the rest goes out.
        """
        writer = self._raw._writer  # noqa: SLF001
        if writer is not None:
            await self._guarded(writer.drain())

    def rest(self, seconds: float) -> None:
        """Do not check for answers for `seconds`."""
        if not self.closed:
            self._inbox.rest(seconds)

    def ask(self, statement: bytes) -> None:
        """Start sending one statement, which may return rows; `results` must follow.

        It is somebody else's, and never more than one: the server is told so before it, in the
        same write. Of several it then runs none, with an error. Raises ConnectionLostError.
        """
        self._inbox.direct = False
        self._exchange.write(statement, several=False)

    async def receive(self, count: int, *, more: bool = False) -> None:
        """Await `count` results of the first bundle in flight. Raises as `run` does.

        `more`: further results of it will be awaited after these, unless there is an error.
        """
        await self._guarded(self._exchange.receive(count, more=more))

    async def receive_answers(self, count: int) -> list[StatementAnswer]:
        """Await `count` results as `receive` does, and return what each of them says.

        Raises NotSupportedError if the server has found more statements than that.
        """
        return await self._guarded(self._exchange.receive_answers(count))

    async def results(self) -> None:
        """Await the results of the one statement that `ask` has sent; its rows are dropped.

        Raises NotSupportedError if the server has found several in it, or asks for a file,
        ServerError, ConnectionLostError.
        """
        await self._guarded(self._exchange.results(keep=False))

    @property
    def affected_rows(self) -> int:
        """How many rows the statement of the last `results` has changed; 0 if it returns rows."""
        result = self._raw._result  # noqa: SLF001
        return 0 if result is None or result.description else int(result.affected_rows or 0)

    @property
    def warnings(self) -> int:
        """How many warnings the statement of the last `results` has left."""
        result = self._raw._result  # noqa: SLF001
        return 0 if result is None else int(result.warning_count or 0)

    async def load(self, statement: bytes, pieces: AsyncIterator[bytes]) -> LoadCounts:
        """Run a LOAD DATA LOCAL statement with `pieces` as its file, and return the counts.

        It is sent as by `ask`. Raises ServerError, ConnectionLostError, and what `pieces` raises,
        after closing.
        """
        self.ask(statement)
        return await self._guarded(self._exchange.load(pieces))

    async def command(self, code: int, payload: bytes, *, answer: bool) -> None:
        """Send a protocol command; await its OK if it has an `answer`, else `read` what follows."""
        await self._guarded(self._command(code, payload, answer=answer))

    async def read(self) -> bytes:
        """Return what has arrived next, unframed, after a command without an answer.

        Raises ConnectionLostError at the end.
        """
        data = await self._inbox.piece()
        if not data:
            raise ConnectionLostError(self.endpoint.role, CLOSED)
        return data

    def notify(self, payload: bytes) -> None:
        """Send a packet that is not answered while what `read` returns comes in."""
        writer = self._raw._writer  # noqa: SLF001
        if writer is not None and not writer.transport.is_closing():
            writer.write(len(payload).to_bytes(3, "little") + b"\0" + payload)

    @property
    def next_sequence(self) -> int:
        """The number that the server's next packet must have."""
        return int(self._raw._next_seq_id)  # noqa: SLF001

    @contextlib.asynccontextmanager
    async def answering(self, seconds: float = 0.0) -> AsyncIterator[None]:
        """Limit how long the block waits for answers that should come promptly: connect_timeout.

        Or `seconds`, if that is longer. Raises ConnectionLostError after that, and for answers that
        are not what was asked, as `understood` does.
        """
        timeout = max(self.endpoint.connect_timeout, seconds)
        try:
            async with asyncio.timeout(timeout):
                yield
        except NOT_UNDERSTOOD as error:
            self.close()
            raise ConnectionLostError(
                self.endpoint.role,
                f"{self.endpoint} has answered something else than it was asked"
                f" ({type(error).__name__})",
            ) from error
        except TimeoutError as error:
            self.close()
            raise ConnectionLostError(
                self.endpoint.role, f"{self.endpoint} has not answered within {timeout:g} s"
            ) from error

    def expect_receipt(self, seconds: float) -> None:
        """Treat the connection as lost if sent data is not acknowledged for that long.

        Only for a session to which little is sent: a busy server accepts no more than the
        system's buffers hold, and that would look the same. Raises ConnectionLostError.
        """
        if not self.endpoint.unix_socket and not self.closed:
            try:
                self._raw.set_tcp(socket.TCP_USER_TIMEOUT, int(seconds * 1000))
            except OSError as error:
                raise ConnectionLostError(self.endpoint.role, why_ended(error)) from error

    def close(self) -> None:
        """Close immediately, without telling the server; whoever waits on it is woken."""
        self._raw.close()

    async def quit(self) -> None:
        """Close, telling the server so; never raises."""
        with contextlib.suppress(MySQLError, OSError, RuntimeError):
            await self._raw._execute_command(_QUIT, b"")  # noqa: SLF001
            await self._raw._writer.drain()  # noqa: SLF001
        self.close()

    async def _command(self, code: int, payload: bytes, *, answer: bool) -> None:
        self._inbox.direct = not answer
        await self._raw._execute_command(code, payload)  # noqa: SLF001
        await self._raw._writer.drain()  # noqa: SLF001
        if answer:
            self._raw.may_read(LARGEST_RESULT)
            packet = await self._raw._read_packet()  # noqa: SLF001
            if not packet.is_ok_packet():
                raise AnswerError("an unexpected answer to a command")

    async def _guarded(self, awaitable: Awaitable[T]) -> T:
        try:
            return await awaitable
        except MySQLError as error:
            explained = translated(error, self.endpoint)
            if isinstance(explained, ConnectionLostError):
                self.close()
            try:
                raise explained from error
            finally:
                # An error that a frame of its own traceback keeps is a cycle.
                del explained
        except FileAskedError as error:
            raise NotSupportedError(
                f"the {self.endpoint.role} asks for a file of this machine (LOAD DATA LOCAL) for a"
                " statement that came without one, which no server logs: it has got none"
            ) from error
        except (OSError, asyncio.IncompleteReadError, RuntimeError) as error:
            self.close()
            raise ConnectionLostError(self.endpoint.role, why_ended(error)) from error
