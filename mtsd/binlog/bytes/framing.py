"""Splits the bytes of a binary log file into events, however the bytes arrive.

A file is the magic number FE 62 69 6E followed by events back to back; an event's length, with
header and checksum, is the u32 at its byte 9 (server source manual, "Binary Log Overview").
"""

from collections.abc import Iterator

from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError
from mtsd.model.position import FIRST_EVENT

MAGIC = b"\xfebin"
ENCRYPTED = b"\xfdbin"
"""What a file begins with that a MySQL has encrypted."""
MAX_EVENT_SIZE = 1 << 30
"""Bytes; the server's own limit is max_allowed_packet, at most 1 GiB."""


def no_log(head: bytes) -> str:
    """Return why a file is no binary log that can be read, by the bytes that it begins with."""
    if head[: len(ENCRYPTED)] == ENCRYPTED:
        return "it is encrypted (binlog_encryption): only its server can read it, and sends it"
    if not head:
        return "not a binary log: it is empty"
    return "not a binary log: it does not begin with the magic number"


class FileFramer:
    """Splits the bytes of one binary log file into events.

    Feed it any split of the file, then call `finish`. Holds at most one event and one piece. Where
    it is not `at_start`, the first piece begins with the event at byte `offset` of the file.
    """

    __slots__ = ("_needed", "_offset", "_parts", "_started", "_waiting")

    def __init__(self, *, at_start: bool = True, offset: int = FIRST_EVENT) -> None:
        self._started = not at_start
        self._offset = 0 if at_start else offset
        self._parts: list[bytes] = []
        self._waiting = 0
        self._needed = HEADER_SIZE if not at_start else len(MAGIC)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the events that `piece` completes. Raises BinlogError on a bad magic or length."""
        self._parts.append(piece)
        self._waiting += len(piece)
        if self._waiting < self._needed:
            return
        data = b"".join(self._parts) if len(self._parts) > 1 else piece
        at = 0
        if not self._started:
            if data[:4] != MAGIC:
                raise BinlogError(no_log(data))
            self._started = True
            self._offset = at = FIRST_EVENT
        end = len(data)
        self._needed = HEADER_SIZE
        while end - at >= HEADER_SIZE:
            size = int.from_bytes(data[at + 9 : at + 13], "little")
            if not HEADER_SIZE <= size <= MAX_EVENT_SIZE:
                raise BinlogError(f"an event at byte {self._offset} claims a length of {size}")
            if end - at < size:
                self._needed = size
                break
            yield data[at : at + size]
            at += size
            self._offset += size
        rest = data[at:]
        self._parts = [rest] if rest else []
        self._waiting = len(rest)

    def finish(self) -> None:
        """Mark the end of the file. Raises BinlogError if it ends inside an event."""
        if not self._waiting and not self._started:
            raise BinlogError(no_log(b""))
        if self._waiting:
            raise BinlogError(
                f"the file ends inside an event: {self._waiting} bytes after byte {self._offset}"
            )
