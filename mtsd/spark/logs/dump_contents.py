"""The bytes of a live source's binary log file, received through a dump.

A dump can begin with any event, and continues to the file's end. Reading mostly moves forward along
one dump; another one is requested to read further back than the bytes that are kept, or to continue
after the connection was lost.
"""

import asyncio
from time import monotonic
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rotate import parse_rotate
from mtsd.binlog.files.ranges import ByteRange
from mtsd.model.error_numbers import ER
from mtsd.model.errors import BinlogError, ConnectionLostError, MtsdError, ServerError
from mtsd.model.position import FIRST_EVENT
from mtsd.spark.logs.live_connection import SourceError, in_options, may_pass, open_dump, retried
from mtsd.spark.logs.logs import name_of
from mtsd.spark.options.live_options import LiveOptions
from mtsd.wire.backoff import Backoff
from mtsd.wire.connection import Connection
from mtsd.wire.dump_packets import event_of
from mtsd.wire.framing import PacketFramer

_KEPT: Final = 4 << 20
"""How many bytes before the newest ones are kept, so that they can be read again."""
_STEP: Final = 1 << 20
"""Bytes between the places where another dump may begin."""
_SILENT_S: Final = 60.0
_HEARTBEATS: Final = frozenset({
    EventType.HEARTBEAT_LOG_EVENT.value, EventType.HEARTBEAT_LOG_EVENT_V2.value,
})  # fmt: skip
_ROTATE: Final[int] = EventType.ROTATE_EVENT.value
_FORMAT_DESCRIPTION: Final[int] = EventType.FORMAT_DESCRIPTION_EVENT.value
_START_ENCRYPTION: Final[int] = EventType.MARIADB_START_ENCRYPTION_EVENT.value


class DumpContents:
    """A file's bytes, up to the size of a range. Raises SourceError and BinlogError."""

    has_more = False

    def __init__(self, live: LiveOptions, bounds: ByteRange, uuid: str = "") -> None:
        """`uuid` is the source's server UUID, if it is known."""
        self.size = bounds.size
        self._uuid = uuid
        self._live = live
        self._file = name_of(bounds.file)
        self._runner = asyncio.Runner()
        self._connection: Connection | None = None
        self._framer = PacketFramer(0)
        self._head = b""
        """The magic number and the format description."""
        self._places = [bounds.first]
        """Offsets of events that a dump may begin with, in order, from the first one read."""
        self._kept = bytearray()
        self._begin = bounds.first
        """The offset of the first byte that is kept."""
        self._received = bounds.first
        """The offset after the last event received."""
        self._wanted = bounds.first
        """The offset where the last read began."""
        self._ended = False

    def close(self) -> None:
        """Close the connection."""
        self._disconnect()
        self._runner.close()

    def read(self, at: int, count: int) -> bytes:
        """Return `count` bytes starting at byte `at`, fewer only at the end of the file."""
        if not self._head:
            self._runner.run(self._fill(self._received + 1))
        stop = min(at + count, self.size)
        head = self._head[at:stop]
        at += len(head)
        if at >= stop:
            return head
        self._wanted = at
        if at < self._begin:
            self._go_back(at)
        if stop > self._received:
            self._runner.run(self._fill(stop))
        return head + bytes(self._kept[at - self._begin : stop - self._begin])

    def _go_back(self, at: int) -> None:
        self._disconnect()
        places = [place for place in self._places if place <= at]
        if not places:
            raise SourceError(f"{self._file}: nothing before byte {self._places[0]} was asked for")
        self._begin = self._received = places[-1]
        self._kept.clear()
        self._ended = False

    async def _fill(self, stop: int) -> None:
        """Receive up to byte `stop`, or to the file's end."""
        backoff = Backoff()
        deadline = monotonic() + self._live.retry_seconds
        while (self._received < stop or not self._head) and not self._ended:
            before = self._received
            try:
                await self._receive()
            except (ConnectionLostError, TimeoutError, EOFError) as error:
                self._disconnect()
                if monotonic() > deadline:
                    raise self._lost(error) from error
                await asyncio.sleep(backoff.next_pause())
            except ServerError as error:
                self._disconnect()
                if not may_pass(error) or monotonic() > deadline:
                    raise self._refused(error) from error
                await asyncio.sleep(backoff.next_pause())
            if self._received > before:
                backoff.reset()
                deadline = monotonic() + self._live.retry_seconds

    async def _receive(self) -> None:
        if self._connection is None:
            file, offset = self._file, self._received
            self._connection = await retried(
                self._live, lambda: open_dump(self._live, file, offset, self._uuid)
            )
            self._framer = PacketFramer(self._connection.next_sequence)
        async with asyncio.timeout(_SILENT_S):
            data = await self._connection.read()
        kept = self._kept
        passed = min(self._wanted, self._received) - self._begin - _KEPT
        if passed > _KEPT:
            del kept[:passed]
            self._begin += passed
        for payload in self._framer.feed(data):
            event = payload[1:] if payload[:1] == b"\0" else event_of(payload)
            if len(event) < HEADER_SIZE:
                raise BinlogError(f"an event of {len(event)} bytes is shorter than a header")
            code = event[4]
            in_file = event[13:17] != b"\0\0\0\0"
            if code in _HEARTBEATS:
                continue
            if code == _ROTATE and not in_file:
                # It names the file that follows; the first one names the requested file.
                if not _names(event, self._file):
                    self._ended = True
                    self._disconnect()
                    return
                continue
            if code == _FORMAT_DESCRIPTION:
                self._head = self._head or MAGIC + event
                if self._received != FIRST_EVENT:
                    continue
            if code == _START_ENCRYPTION and not in_file:
                continue
            kept += event
            self._received += len(event)
            if self._received >= self._places[-1] + _STEP:
                self._places.append(self._received)
            if self._received >= self.size:
                # Nothing after this is needed, and the end of the dump is no failure.
                self._disconnect()
                return

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lost(self, error: BaseException) -> SourceError:
        if isinstance(error, ConnectionLostError):
            return in_options(self._live, error)
        return SourceError(
            f"the source {self._live} has sent nothing of {self._file} from byte {self._received}"
            f" on, which it says to have {self.size} bytes, for {self._live.retry_seconds:g} s"
        )

    def _refused(self, error: ServerError) -> MtsdError:
        if error.number != ER.MASTER_FATAL_ERROR_READING_BINLOG:
            return in_options(self._live, error)
        answer = " ".join(error.text.split()).rstrip(".")
        if "could not find first log file name" in answer.lower():
            answer += ": it was purged"
        return SourceError(
            f"the source {self._live} cannot send {self._file} from byte {self._received} on:"
            f" {answer}"
        )


def _names(rotate: bytes, name: str) -> bool:
    """Tell whether a Rotate event, with or without its checksum, names a file."""
    for event in (rotate, rotate[:-4]):
        try:
            if parse_rotate(event).position.file == name:
                return True
        except BinlogError:
            continue
    return False
