"""The result of one statement, as aiomysql reads it, within bounds and without its leniency.

aiomysql takes a row with too few values, opens any file that the server names, and holds whatever
comes. What it makes of a malformed packet depends on where that is cut.
"""

import contextlib
from collections.abc import Iterator
from typing import Final, Protocol

from aiomysql.connection import MySQLResult
from pymysql.err import MySQLError

from mtsd.model.errors import MtsdError
from mtsd.wire.inbox import AnswerError

LARGEST_RESULT: Final = 1 << 28
"""Bytes of memory for the rows of one result. The largest that mtsd asks for are whole catalogues:
some MiB."""
PACKET_COST: Final = 100
"""Bytes of memory of a packet or row beside its contents."""
_VALUE_COST: Final = 64
_MAX_COLUMNS: Final = 4096
"""As in the servers."""


class Reading(Protocol):
    """The connection that a result is read from: `LogIn`."""

    def write_packet(self, payload: bytes) -> None:
        """Send one packet."""

    async def _read_packet(self) -> "_Packet": ...

    def may_read(self, size: int) -> None:
        """Allow `size` bytes of memory for what is read from now on."""

    def charge(self, size: int) -> None:
        """Count `size` bytes of memory. Raises AnswerError if those are too many."""


class _Packet(Protocol):
    def read_length_encoded_integer(self) -> int | None: ...


class FileAskedError(Exception):
    """The server has asked for a file where mtsd has none to send, and got an empty one."""


@contextlib.contextmanager
def parsing() -> Iterator[None]:
    """Raise AnswerError for whatever a parser, aiomysql's or PyMySQL's, raises on malformed data.

    It may raise anything from IndexError to a bare Exception. Nothing else may run inside.
    """
    try:
        yield
    except (MySQLError, MtsdError, OSError, EOFError, RuntimeError, FileAskedError):
        raise
    except Exception as error:
        raise AnswerError(f"its answer cannot be read ({type(error).__name__})") from error


class Result(MySQLResult):  # type: ignore[misc]  # aiomysql ships no types
    """One result; without `keep`, its rows are dropped unread: they may be in any character set."""

    def __init__(self, connection: Reading, *, keep: bool) -> None:
        super().__init__(connection)
        self._keep = keep
        self.connection: Reading

    async def _read_load_local_packet(self, _: object) -> None:
        # The session can be used afterwards. What a statement loads from an empty file is nothing.
        self.connection.write_packet(b"")
        with contextlib.suppress(MySQLError):
            await self.connection._read_packet()  # noqa: SLF001
        raise FileAskedError

    async def _read_result_packet(self, first_packet: _Packet) -> None:
        count = first_packet.read_length_encoded_integer()
        if not count or count > _MAX_COLUMNS:
            raise AnswerError(f"a result of {count} columns")
        self.field_count = count
        await self._get_descriptions()
        await self._read_rowdata_packet()

    async def _read_rowdata_packet(self) -> None:
        reading = self.connection
        rows = []
        while True:
            if not self._keep:
                reading.may_read(LARGEST_RESULT)
            packet = await reading._read_packet()  # noqa: SLF001
            if self._check_packet_is_eof(packet):
                break
            if not self._keep:
                continue
            row = self._read_row_from_packet(packet)
            if len(row) != self.field_count:
                raise AnswerError(f"a row of {len(row)} values for {self.field_count} columns")
            reading.charge(_VALUE_COST * self.field_count)
            rows.append(row)
        self.affected_rows = len(rows)
        self.rows = tuple(rows)
