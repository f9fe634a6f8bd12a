"""The binary log files of a source, each read unmodified by a dump that ends with the file."""

from collections.abc import Sequence

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.position import BEGUN_UNKNOWN, FIRST_EVENT
from mtsd.source.source_state import BinlogFile
from mtsd.wire.connection import Connection
from mtsd.wire.dump_packets import COM_BINLOG_DUMP, MARIADB_CAPABILITY, dump, event_of
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import BUSY
from mtsd.wire.framing import PacketFramer
from mtsd.wire.neutral_session import make_neutral

NO_EVENT = ER.MASTER_FATAL_ERROR_READING_BINLOG
"""A server's error for a place inside an event, or past the end."""
_NO_REPLICA = 0
"""The server id of a reader that is not a replica: the source ends no other dump for it."""


async def list_files(endpoint: Endpoint) -> Sequence[BinlogFile]:
    """Return the source's files, oldest first. Raises ServerError, ConnectionLostError."""
    connection = await Connection.open(endpoint)
    try:
        await make_neutral(connection)
        rows = await connection.query(b"SHOW BINARY LOGS")
    finally:
        await connection.quit()
    return [BinlogFile(str(row[0]), int(str(row[1]))) for row in rows]


class BinlogFileReader:
    """Reads one file from its beginning to its current end."""

    def __init__(self, connection: Connection, file: BinlogFile) -> None:
        self._connection = connection
        self._framer = PacketFramer(connection.next_sequence)
        self._file = file
        self._ended = False

    @classmethod
    async def open(
        cls, endpoint: Endpoint, file: BinlogFile, *, offset: int = FIRST_EVENT
    ) -> "BinlogFileReader":
        """Connect and request the file, starting with the event at `offset`.

        Raises ServerError, ConnectionLostError.
        """
        connection = await Connection.open(endpoint)
        try:
            await make_neutral(connection)
            await connection.run(
                b"SET @master_binlog_checksum=@@global.binlog_checksum,"
                b" @source_binlog_checksum=@@global.binlog_checksum, " + MARIADB_CAPABILITY,
                1,
            )
            request = dump(_NO_REPLICA, file.name, offset, to_the_end=True)
            await connection.command(COM_BINLOG_DUMP, request, answer=False)
        except BaseException:
            connection.close()
            raise
        return cls(connection, file)

    async def read(self) -> Sequence[bytes]:
        """Return the next events with their checksums; empty at the end.

        Raises NeedsPersonError if the source refuses, ConnectionLostError.
        """
        events: list[bytes] = []
        while not events and not self._ended:
            for payload in self._framer.feed(await self._connection.read()):
                try:
                    event = event_of(payload)
                except EOFError:
                    self._ended = True
                    break
                if len(event) < HEADER_SIZE:
                    raise NeedsPersonError(f"the source sends no events of {self._file.name}")
                if event[4] == EventType.ROTATE_EVENT:
                    if not any(event[13:17]):
                        # Artificial: it names the file that begins. After a file that ends with the
                        # server's shutdown, that is the next one.
                        self._ended = not _names(event, self._file.name)
                        if self._ended:
                            break
                        continue
                    self._ended = True
                events.append(event)
                if self._ended:
                    break
        return events

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


async def read_begun(endpoint: Endpoint, file: str) -> int:
    """Return when the source began a file, in seconds since 1970: the time of its first event.

    BEGUN_UNKNOWN if a privilege is missing, the file was purged just now, or the user may have no
    other connection: the one that there is goes on, and its dump says what is wrong.
    Raises ServerError, ConnectionLostError, NeedsPersonError.
    """
    try:
        reader = await BinlogFileReader.open(endpoint, BinlogFile(file, 0))
        try:
            events = await reader.read()
        finally:
            reader.close()
    except ServerError as error:
        if error.number not in {*NOT_ALLOWED, *BUSY, NO_EVENT}:
            raise
        return BEGUN_UNKNOWN
    if not events or events[0][4] != EventType.FORMAT_DESCRIPTION_EVENT:
        return BEGUN_UNKNOWN
    return int.from_bytes(events[0][:4], "little")


def _names(rotate: bytes, name: str) -> bool:
    """Return whether a Rotate event, with or without its checksum, names a file."""
    following = rotate[HEADER_SIZE + 8 :]
    return following.startswith(name.encode()) and len(following) - len(name.encode()) in {0, 4}
