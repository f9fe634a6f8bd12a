"""Statements on a connection: packets that are sent one behind the other, and their answers.

The answers come in the order of the packets; a packet of several statements has several of them.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from pymysql.err import MySQLError, raise_mysql_exception
from pymysql.protocol import OKPacketWrapper

from mtsd.model.errors import ConnectionLostError, NotSupportedError
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.inbox import AnswerError, Inbox, StatementAnswer
from mtsd.wire.login import LogIn
from mtsd.wire.result import LARGEST_RESULT, parsing

_QUERY = 0x03
_SET_OPTION = 0x1B
_SEVERAL_ON = 0
_SEVERAL_OFF = 1
_FULL = 0xFFFFFF

Value = str | bytes | int | float | None
Row = tuple[Value, ...]

_NUMBERS = re.compile(rb"\d+")
"""In the text of an answer, whose language may be any."""
_MAX_UNEXPECTED = 1 << 16
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


class LoadCounts(NamedTuple):
    """What LOAD DATA has done, in rows; `warnings` is their number."""

    records: int
    deleted: int
    skipped: int
    warnings: int


class Exchange:
    """The statements that a session has sent, and what the server answers to them.

    It raises what PyMySQL and the event loop raise, and ends the session where what comes next
    could not be told any more.
    """

    def __init__(self, raw: LogIn, endpoint: Endpoint) -> None:
        self._raw = raw
        self._endpoint = endpoint
        self._in_flight: deque[_Sent] = deque()
        self._due: _Sent | None = None
        """That of them whose answer is being awaited."""
        self._takes_several = True
        """Whether the server takes several statements in one packet, as since the login."""
        self._asked_at: float | None = None
        """When something that may return rows was sent, until it is answered."""
        writer = raw._writer  # noqa: SLF001
        self.inbox = Inbox(writer.transport, writer.transport.get_protocol())

    @property
    def awaited(self) -> Awaited | None:
        """What the server has not answered yet, where somebody waits for that; else None."""
        due = self._due
        if due is None:
            return None
        if self._asked_at is not None:
            return Awaited(due.statements, 0, self._asked_at)
        since = self.inbox.waits_since
        if since is None:
            return None
        return Awaited(due.statements, due.answered + self.inbox.answered, since)

    def write(self, statements: bytes, *, several: bool | None = None) -> None:
        """Send statements; `several`: whether the server shall take several, None if either."""
        writer = self._raw._writer  # noqa: SLF001
        if writer is None:
            raise ConnectionLostError(self._endpoint.role, "it is closed")
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
                self._raw.close()
                raise ConnectionLostError(self._endpoint.role, str(error)) from error
            sequence = (sequence + 1) & 0xFF
            left = left[len(part) :]
            command = before = b""
            if size < _FULL:
                break
        self._in_flight.append(_Sent(statements, sequence, after_option=bool(option)))

    async def query(self, sql: str | bytes) -> list[Row]:
        """Run one statement of mtsd's own; return the rows of its last result set."""
        self.inbox.direct = False
        self.write(sql.encode() if isinstance(sql, str) else sql)
        return await self.results(keep=True)

    async def query_each(self, statements: Sequence[bytes]) -> list[list[Row]]:
        """Run statements of mtsd's own in one packet; return the rows of each."""
        self.inbox.direct = False
        self.write(b";".join(statements), several=True)
        answers: list[list[Row]] = []
        await self.results(keep=True, each=answers)
        if len(answers) != len(statements):
            raise self._several()
        return answers

    async def receive(self, count: int, *, more: bool) -> None:
        """Await `count` results of the first bundle; `more`: further ones of it come after them."""
        self._due = due = self._in_flight.popleft()
        if due.after_option:
            due.after_option = False
            if refusal := await self.inbox.option():
                try:
                    raise_mysql_exception(refusal)
                except MySQLError as error:
                    raise self._no_option(error) from error
        refusal = await self.inbox.answers(count, due.sequence)
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
        if not self._in_flight and not self.inbox.is_empty():
            raise AnswerError("an answer without a request")

    async def receive_answers(self, count: int) -> list[StatementAnswer]:
        """Await `count` results of the first bundle, and return what each of them says.

        Raises NotSupportedError if the server has found more statements than that.
        """
        answers: list[StatementAnswer] = []
        self.inbox.wanted = answers
        try:
            await self.receive(count, more=True)
            while answers[-1].more and len(answers) < count + _MAX_UNEXPECTED:
                await self.receive(1, more=True)
        finally:
            self.inbox.wanted = None
        self._in_flight.popleft()
        self._due = None
        if len(answers) > count:
            if answers[-1].more:
                self._raw.close()
            raise self._several()
        return answers

    async def results(self, *, keep: bool, each: list[list[Row]] | None = None) -> list[Row]:
        """Await the results of the one statement that is next; return the last ones' rows."""
        due = self._begin_results()
        count = 0
        try:
            await self._begin_answer(due)
            while True:
                result = await self._raw.read_result(keep=keep)
                count += 1
                if each is not None:
                    each.append(list(result.rows or ()))
                if not result.has_next:
                    break
            if not keep and count > 1:
                raise self._several()
            return list(result.rows or ())
        finally:
            self._asked_at = self._due = None

    def _several(self) -> NotSupportedError:
        return NotSupportedError(f"the {self._endpoint.role} has taken a statement for several")

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
        self._raw.close()
        return NotSupportedError(
            f"the {self._endpoint.role} does not let a session turn several statements in one"
            f" packet off and on (COM_SET_OPTION: {error.args[-1]}): a text of the source could be"
            " several there. Connect to the server itself, without a proxy in between"
        )

    async def load(self, pieces: AsyncIterator[bytes]) -> LoadCounts:
        """Send the file of a LOAD DATA that has been sent, and return what it has done."""
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
                numbers = [int(number) for number in _NUMBERS.findall(text)]
        finally:
            self._asked_at = self._due = None
        if len(numbers) != len(LoadCounts._fields):
            raise AnswerError("it has not said how many rows it has loaded")
        return LoadCounts(*numbers)

    async def _send_file(self, pieces: AsyncIterator[bytes]) -> None:
        """Send a file and its end. The server reads all of it, whatever fails meanwhile."""
        raw = self._raw
        try:
            async for piece in pieces:
                raw.write_packet(piece)
                await raw._writer.drain()  # noqa: SLF001
        except BaseException:
            # Its end would make the rest of it a whole file.
            self._raw.close()
            raise
        raw.write_packet(b"")
        await raw._writer.drain()  # noqa: SLF001
