"""Finds the next event of a file from any byte in it.

A header contains the event's size and its end in the file (modulo 2**32), so a place is plausible
if the two agree; the event's checksum has to match, too. In a file without checksums, the headers
that follow have to agree in the same way. The result can be wrong only if a row contains the bytes
of an event for exactly this place. MariaDB's events inside a group may say 0 instead of their end
(`Dialect.unplaced`); then only the checksum shows that they are there, or what follows and what
comes before: four bytes of a statement that happen to be its distance to the next event make a
header too, if zeros follow them. To exclude a false place, the reader of a part of a file has to
arrive at the beginning of the next part on its own (`mtsd.binlog.files.range_reader`).
"""

import re
from functools import lru_cache
from struct import Struct
from typing import Final, Protocol

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.bytes.checksum import RESIDUE
from mtsd.binlog.bytes.framing import MAX_EVENT_SIZE
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.position import FIRST_EVENT

_size_and_end = Struct("<II").unpack_from
"""At byte 9 of a header."""
_LOW: Final = 0xFFFFFFFF
_WINDOW: Final = 1 << 16
_PIECE: Final = 1 << 20
_CHAIN: Final = 8
"""How many headers have to agree if there is no other evidence of an event."""
_UNPLACED_CHAIN: Final = 256
_NO_PLACE: Final = b"\0\0\0\0"
_LARGEST_TYPE: Final = 0xAB


class FileContents(Protocol):
    """The bytes of a file, wherever it is: the first `size` bytes if the file may be growing."""

    @property
    def size(self) -> int:
        """The number of bytes."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether the file has more bytes than these because it has grown since planning."""
        ...

    def read(self, at: int, count: int) -> bytes:
        """Return `count` bytes starting at byte `at`, fewer only at the end."""
        ...


def first_event(
    contents: FileContents, begin: int, end: int, *, checksums: bool, unplaced: bool = False
) -> int | None:
    """Return the first byte in [`begin`, `end`) at which a whole event begins.

    Whether a byte qualifies does not depend on `begin` and `end`. None if there is no event.
    """
    at = begin
    while at < end:
        count = min(_WINDOW, end - at)
        window = contents.read(at, count + HEADER_SIZE - 1)
        for match in _may_be_headers(at, contents.size, unplaced).finditer(window):
            place = match.start()
            header = window[place:]
            if place < count and is_event(contents, at + place, header, checksums, unplaced):
                return at + place
        at += count
    return None


def is_event(
    contents: FileContents, at: int, header: bytes, checksums: bool, unplaced: bool = False
) -> bool:
    """Tell whether a whole event begins at byte `at`; `header` contains the bytes there."""
    size = _agreed_size(header, at, unplaced)
    if not size or at + size > contents.size:
        return False
    if checksums:
        return _checksum_holds(contents, at, size)
    placed = header[13:17] != _NO_PLACE
    return _chain_holds(contents, at + size, placed, unplaced) and (
        placed or not _is_within_another(contents, at)
    )


def _is_within_another(contents: FileContents, at: int) -> bool:
    """Tell whether the events before byte `at`, as far as they are near, lead past it.

    They are followed from the first one that says where it ends. For example, events begin at the
    bytes 200 and 260 and the second one ends at 330: 260 is on their way, 270 is not.
    """
    begin = max(at - _WINDOW, FIRST_EVENT)
    data = contents.read(begin, at - begin + HEADER_SIZE)
    for match in _may_be_headers(begin, contents.size, unplaced=False).finditer(data):
        place = match.start()
        size = _agreed_size(data[place : place + HEADER_SIZE], begin + place, unplaced=False)
        while size and begin + place < at:
            place += size
            size = _agreed_size(data[place : place + HEADER_SIZE], begin + place, unplaced=True)
            if begin + place > at:
                return True
        if size and begin + place == at:
            return False
    return False


def _may_be_headers(at: int, size: int, unplaced: bool) -> re.Pattern[bytes]:
    """Return a pattern that quickly finds headers from byte `at` on, with false positives."""
    # The high byte of an event's end is that of its own place, or of a place up to 1 GiB later.
    lowest = at >> 24
    highest = min(size, at + _WINDOW + MAX_EVENT_SIZE) >> 24
    return _pattern(lowest & 0xFF, min(highest - lowest, 0xFF), unplaced)


@lru_cache(maxsize=256)
def _pattern(lowest: int, more: int, unplaced: bool) -> re.Pattern[bytes]:
    ends = b"".join(rb"\x%02x" % (byte & 0xFF) for byte in range(lowest, lowest + more + 1))
    if unplaced:
        ends += rb"\x00"
    return re.compile(
        rb"(?=.{4}[\x01-\x%02x].{7}[\x00-\x40].{3}[%b])" % (_LARGEST_TYPE, ends), re.DOTALL
    )


def _agreed_size(header: bytes, at: int, unplaced: bool) -> int:
    """Return the size of an event whose header agrees with its place, 0 if it does not agree."""
    if len(header) < HEADER_SIZE:
        return 0
    size, log_pos = _size_and_end(header, 9)
    if not HEADER_SIZE <= size <= MAX_EVENT_SIZE:
        return 0
    if (at + size) & _LOW != log_pos and not (unplaced and log_pos == 0):
        return 0
    return int(size)


def _checksum_holds(contents: FileContents, at: int, size: int) -> bool:
    if size < HEADER_SIZE + 4:
        return False
    checksum = 0
    end = at + size
    while at < end:
        piece = contents.read(at, min(_PIECE, end - at))
        if not piece:
            return False
        checksum = crc32(piece, checksum)
        at += len(piece)
    return checksum == RESIDUE


def _chain_holds(contents: FileContents, at: int, placed: bool, unplaced: bool) -> bool:
    """Tell whether the headers from byte `at` on agree, which follow one that does.

    `placed`: that one says where its event ends. Without that, one of those after it has to.
    """
    for _ in range(1, _CHAIN if placed else _UNPLACED_CHAIN):
        if contents.size - at < HEADER_SIZE:
            # At the file's end, or in a header that the server was still writing.
            return placed
        header = contents.read(at, HEADER_SIZE)
        size = _agreed_size(header, at, unplaced)
        if not size:
            return False
        if header[13:17] != _NO_PLACE and not placed:
            return True
        at += size
        if at > contents.size:
            return placed
    return True
