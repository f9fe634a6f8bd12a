"""A connection to a MySQL server: aiomysql's handshake, with mtsd's own commands on top of it.

This, `login` and `result` are the only modules that touch aiomysql's internals (`_writer`,
`_connect`, `_execute_command`, `_read_packet`, `_next_seq_id`, `MySQLResult`), and the project pins
its minor version.
"""

import asyncio
import contextlib
import fcntl
import re
import socket
import termios
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import NamedTuple, TypeVar

from pymysql.err import MySQLError, raise_mysql_exception
from pymysql.protocol import OKPacketWrapper

from mtsd.model.errors import ConnectionLostError, NotSupportedError
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import CLOSED, NO_SESSION, not_opened, translated, why_ended
from mtsd.wire.inbox import Answer, AnswerError, Inbox
from mtsd.wire.login import LogIn
from mtsd.wire.result import LARGEST_RESULT, FileAskedError, parsing
from mtsd.wire.understood import NOT_UNDERSTOOD

_QUIT = 0x01
_QUERY = 0x03
_SET_OPTION = 0x1B
_SEVERAL_ON = 0
_SEVERAL_OFF = 1
_FULL = 0xFFFFFF
_KEEPALIVE_IDLE_S = 15
_KEEPALIVE_INTERVAL_S = 5
_KEEPALIVE_PROBES = 3

Value = str | bytes | int | float | None
Row = tuple[Value, ...]
T = TypeVar("T")

_NUMBERS = re.compile(rb"\d+")
"""In the text of an answer, whose language may be any."""
_MOST_UNEXPECTED = 1 << 16
"""Answers beyond those that were expected: as many as a text may be statements."""


class Awaited(NamedTuple):
    """An answer that has not come: to the statement after the first `answered` ones of a packet.

    `since` when it is awaited is on the event loop's clock, in seconds. The packet may hold secrets
    and rows: only the kind of the statement may be shown.
    """

    packet: bytes
    answered: int
    since: float


class _Sent:
    """A packet in flight: the number of the next packet of its answer, and what is answered.

    With `after_option` the answer to COM_SET_OPTION comes first.
    """

    __slots__ = ("after_option", "answered", "sequence", "statements")

    def __init__(self, statements: bytes, sequence: int, *, after_option: bool) -> None:
        self.statements = statements
        self.sequence = sequence
        self.after_option = after_option
        self.answered = 0


class Loaded(NamedTuple):
    """What LOAD DATA has done, in rows; `warnings` is their number."""

    records: int
    deleted: int
    skipped: int
    warnings: int


class Connection:
    """One session on a server. Must not be used by two coroutines at once."""

    def __init__(self, raw: LogIn, endpoint: Endpoint) -> None:
        self._raw = raw
        self.endpoint = endpoint
        self._in_flight: deque[_Sent] = deque()
        self._due: _Sent | None = None
        """That of them whose answer is being awaited."""
        self._takes_several = True
        """Whether the server takes several statements in one packet, as since the login."""
        self._asked_at: float | None = None
        """When something that may return rows was sent, until it is answered."""
        writer = raw._writer  # noqa: SLF001
        self._inbox = Inbox(writer.transport, writer.transport.get_protocol())

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
        Raises RefusedError if another attempt would fail too, ServerError with a number in BUSY if
        one may succeed, ConnectionLostError if the server cannot be reached within
        `endpoint.connect_timeout` seconds.
        """
        raw = LogIn(endpoint, program_name, about)
        try:
            async with asyncio.timeout(endpoint.connect_timeout):
                await raw._connect()  # noqa: SLF001 - aiomysql.connect has no server-side cancel
        except BaseException as error:
            writer = raw._writer  # noqa: SLF001
            if writer is not None:
                writer.transport.abort()
                raw.close()
            if isinstance(error, NO_SESSION):
                raise not_opened(endpoint, error) from error
            raise
        if not endpoint.unix_socket:
            _keep_alive(raw._writer.get_extra_info("socket"))  # noqa: SLF001
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
        due = self._due
        if due is None:
            return None
        if self._asked_at is not None:
            return Awaited(due.statements, 0, self._asked_at)
        since = self._inbox.waits_since
        if since is None:
            return None
        return Awaited(due.statements, due.answered + self._inbox.answered, since)

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
        return await self._guarded(self._query(sql))

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
        return [answer.rows for answer in await self.receive_told(count)]

    def send(self, statements: bytes) -> None:
        """Start sending a bundle; `receive` must follow. Raises ConnectionLostError.

        A second one may be sent before that: the server begins it after it has answered the first,
        whether successfully or not.
        """
        self._inbox.direct = True
        self._write(statements, several=True)

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
        self._write(statement, several=False)

    def _write(self, statements: bytes, *, several: bool | None = None) -> None:
        """Send statements; `several`: whether the server shall take several, None if either."""
        writer = self._raw._writer  # noqa: SLF001
        if writer is None:
            raise ConnectionLostError(self.endpoint.role, "it is closed")
        option = before = b""
        if several is not None and several != self._takes_several:
            self._takes_several = several
            option = before = b"\3\0\0\0%c%c\0" % (
                _SET_OPTION,
                _SEVERAL_ON if several else _SEVERAL_OFF,
            )
        # A bundle is not copied just to be put after its first byte.
        left = memoryview(statements)
        command = b"%c" % _QUERY
        sequence = 0
        while True:
            part = left[: _FULL - len(command)]
            size = len(command) + len(part)
            try:
                head = b"%b%b%c%b" % (before, size.to_bytes(3, "little"), sequence, command)
                writer.writelines((head, part))
            except RuntimeError as error:
                # uvloop, of a connection that it has closed because an earlier write has failed.
                self.close()
                raise ConnectionLostError(self.endpoint.role, str(error)) from error
            sequence = (sequence + 1) & 0xFF
            left = left[len(part) :]
            command = before = b""
            if size < _FULL:
                break
        self._in_flight.append(_Sent(statements, sequence, after_option=bool(option)))

    async def receive(self, count: int, *, more: bool = False) -> None:
        """Await `count` results of the first bundle in flight. Raises as `run` does.

        `more`: further results of it will be awaited after these, unless there is an error.
        """
        await self._guarded(self._receive(count, more=more))

    async def receive_told(self, count: int) -> list[Answer]:
        """Await `count` results as `receive` does, and return what each of them says.

        Raises NotSupportedError if the server has found more statements than that.
        """
        answers: list[Answer] = []
        self._inbox.wanted = answers
        try:
            await self.receive(count, more=True)
            while answers[-1].more and len(answers) < count + _MOST_UNEXPECTED:
                await self.receive(1, more=True)
        finally:
            self._inbox.wanted = None
        self._in_flight.popleft()
        self._due = None
        if len(answers) > count:
            if answers[-1].more:
                self.close()
            raise self._several()
        return answers

    async def results(self) -> None:
        """Await the results of the one statement that `ask` has sent; its rows are dropped.

        Raises NotSupportedError if the server has found several in it, or asks for a file,
        ServerError, ConnectionLostError.
        """
        await self._guarded(self._results(keep=False))

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

    async def load(self, statement: bytes, pieces: AsyncIterator[bytes]) -> Loaded:
        """Run a LOAD DATA LOCAL statement with `pieces` as its file, and return the counts.

        It is sent as by `ask`. Raises ServerError, ConnectionLostError, and what `pieces` raises,
        after closing.
        """
        self.ask(statement)
        return await self._guarded(self._load(pieces))

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
        patience = max(self.endpoint.connect_timeout, seconds)
        try:
            async with asyncio.timeout(patience):
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
                self.endpoint.role, f"{self.endpoint} has not answered within {patience:g} s"
            ) from error

    def expect_receipt(self, seconds: float) -> None:
        """Treat the connection as lost if sent data is not acknowledged for that long.

        Only for a session to which little is sent: a busy server accepts no more than the
        system's buffers hold, and that would look the same.
        """
        if not self.endpoint.unix_socket and not self.closed:
            connected = self._raw._writer.get_extra_info("socket")  # noqa: SLF001
            milliseconds = int(seconds * 1000)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)

    def close(self) -> None:
        """Close immediately, without telling the server; whoever waits on it is woken."""
        writer = self._raw._writer  # noqa: SLF001
        if writer is not None:
            # Closing properly would wait for the server's side of TLS: half a minute if silent.
            writer.transport.abort()
            self._raw.close()

    async def quit(self) -> None:
        """Close, telling the server so; never raises."""
        with contextlib.suppress(MySQLError, OSError, RuntimeError):
            await self._raw._execute_command(_QUIT, b"")  # noqa: SLF001
            await self._raw._writer.drain()  # noqa: SLF001
        self.close()

    async def _query(self, sql: str | bytes) -> list[Row]:
        self._inbox.direct = False
        self._write(sql.encode() if isinstance(sql, str) else sql)
        return await self._results(keep=True)

    def _several(self) -> NotSupportedError:
        return NotSupportedError(f"the {self.endpoint.role} has taken a statement for several")

    async def _results(self, *, keep: bool) -> list[Row]:
        due = self._begin_results()
        count = 0
        try:
            await self._begin_answer(due)
            while True:
                result = await self._raw.read_result(keep=keep)
                count += 1
                if not result.has_next:
                    break
            if not keep and count > 1:
                raise self._several()
            return list(result.rows or ())
        finally:
            self._asked_at = self._due = None

    def _begin_results(self) -> _Sent:
        self._due = due = self._in_flight.popleft()
        self._asked_at = asyncio.get_running_loop().time()
        return due

    async def _begin_answer(self, due: _Sent) -> None:
        """Send the rest, and get ready to read what the statement returns."""
        raw = self._raw
        await raw._writer.drain()  # noqa: SLF001
        raw.may_read(LARGEST_RESULT)
        if due.after_option:
            raw._next_seq_id = 1  # noqa: SLF001
            try:
                await raw._read_packet()  # noqa: SLF001
            except MySQLError as error:
                raise self._no_option(error) from error
        raw._next_seq_id = due.sequence  # noqa: SLF001

    def _no_option(self, error: MySQLError) -> NotSupportedError:
        """Close: what was sent behind the option may run in spite of its error."""
        self.close()
        return NotSupportedError(
            f"the {self.endpoint.role} does not let a session turn several statements in one packet"
            f" off and on (COM_SET_OPTION: {error.args[-1]}): a text of the source could be several"
            " there. Connect to the server itself, without a proxy in between"
        )

    async def _load(self, pieces: AsyncIterator[bytes]) -> Loaded:
        raw = self._raw
        due = self._begin_results()
        try:
            await self._begin_answer(due)
            asked = await raw._read_packet()  # noqa: SLF001
            if not asked.is_load_local_packet():
                raise AnswerError("it has not asked for the file of LOAD DATA LOCAL")
            await self._send_file(pieces)
            answer = await raw._read_packet()  # noqa: SLF001
            # After the text's length, which may look like a digit.
            with parsing():
                text = OKPacketWrapper(answer).message[1:]
                numbers = [int(found) for found in _NUMBERS.findall(text)]
        finally:
            self._asked_at = self._due = None
        if len(numbers) != len(Loaded._fields):
            raise AnswerError("it has not said how many rows it has loaded")
        return Loaded(*numbers)

    async def _send_file(self, pieces: AsyncIterator[bytes]) -> None:
        """Send a file and its end. The server reads all of it, whatever fails meanwhile."""
        raw = self._raw
        try:
            async for piece in pieces:
                raw.write_packet(piece)
                await raw._writer.drain()  # noqa: SLF001
        except BaseException:
            # Its end would make the rest of it a whole file.
            self.close()
            raise
        raw.write_packet(b"")
        await raw._writer.drain()  # noqa: SLF001

    async def _receive(self, count: int, *, more: bool) -> None:
        self._due = due = self._in_flight.popleft()
        if due.after_option:
            due.after_option = False
            if refusal := await self._inbox.option():
                try:
                    raise_mysql_exception(refusal)
                except MySQLError as error:
                    raise self._no_option(error) from error
        refusal = await self._inbox.answers(count, due.sequence)
        if refusal:
            self._due = None
            with parsing():
                raise_mysql_exception(refusal)
        if more:
            due.sequence = (due.sequence + count) & 0xFF
            due.answered += count
            self._in_flight.appendleft(due)
        else:
            self._due = None
        if not self._in_flight and not self._inbox.is_empty():
            raise AnswerError("an answer without a request")

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
            said = translated(error, self.endpoint)
            if isinstance(said, ConnectionLostError):
                self.close()
            raise said from error
        except FileAskedError as error:
            raise NotSupportedError(
                f"the {self.endpoint.role} asks for a file of this machine (LOAD DATA LOCAL) for a"
                " statement that came without one, which no server logs: it has got none"
            ) from error
        except (OSError, asyncio.IncompleteReadError, RuntimeError) as error:
            self.close()
            raise ConnectionLostError(self.endpoint.role, why_ended(error)) from error


def _keep_alive(connected: socket.socket) -> None:
    """Let the system detect within half a minute that an idle session's server has vanished."""
    for option, value in (
        (socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S),
        (socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S),
        (socket.TCP_KEEPCNT, _KEEPALIVE_PROBES),
    ):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
