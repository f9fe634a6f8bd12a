"""Where the next event of a file begins, seen from any byte of it.

A header says where its event ends in the file (modulo 2**32), and how large it is, so a place is
right where the two agree; then the event's checksum has to hold, too. In a file without checksums
the headers that follow have to agree in the same way. What is found may be wrong only where a row
contains the bytes of an event for this very place: whoever reads a part of a file has to arrive by
itself where the next part begins (`mtsd.binlog.range_reader`).
"""

import re
from functools import lru_cache
from struct import Struct
from typing import Final, Protocol

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.checksum import RESIDUE
from mtsd.binlog.framing import MAX_EVENT_SIZE
from mtsd.binlog.header import HEADER_SIZE

_size_and_end = Struct("<II").unpack_from
"""At byte 9 of a header."""
_LOW: Final = 0xFFFFFFFF
_WINDOW: Final = 1 << 16
_PIECE: Final = 1 << 20
_CHAIN: Final = 8
"""Headers that have to agree where nothing else tells that there is an event."""
_LARGEST_TYPE: Final = 0xAB


class FileContents(Protocol):
    """The bytes of a file, wherever it is: the first `size` of them, as long as it may grow."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether the file has more bytes than these: it has grown since it was planned."""
        ...

    def read(self, at: int, count: int) -> bytes:
        """Return `count` bytes from byte `at` on, fewer only where there are no more."""
        ...


def first_event(contents: FileContents, begin: int, end: int, *, checksums: bool) -> int | None:
    """Return the first byte from `begin` on, before `end`, with which a whole event begins.

    What it answers for a byte does not depend on `begin` and `end`. None where there is no event.
    """
    at = begin
    while at < end:
        count = min(_WINDOW, end - at)
        window = contents.read(at, count + HEADER_SIZE - 1)
        for found in _may_be_headers(at, contents.size).finditer(window):
            place = found.start()
            if place < count and is_event(contents, at + place, window[place:], checksums):
                return at + place
        at += count
    return None


def is_event(contents: FileContents, at: int, header: bytes, checksums: bool) -> bool:
    """Tell whether a whole event begins at byte `at`, whose header these bytes begin with."""
    size = _agreed_size(header, at)
    if not size or at + size > contents.size:
        return False
    if checksums:
        return _checksum_holds(contents, at, size)
    return _chain_holds(contents, at + size)


def _may_be_headers(at: int, size: int) -> re.Pattern[bytes]:
    """Return what finds headers from byte `at` on quickly, and some places more."""
    # The first byte of where an event ends: that of its place, or of what is up to 1 GiB behind.
    lowest = at >> 24
    highest = min(size, at + _WINDOW + MAX_EVENT_SIZE) >> 24
    return _pattern(lowest & 0xFF, min(highest - lowest, 0xFF))


@lru_cache(maxsize=256)
def _pattern(lowest: int, more: int) -> re.Pattern[bytes]:
    ends = b"".join(rb"\x%02x" % (byte & 0xFF) for byte in range(lowest, lowest + more + 1))
    return re.compile(
        rb"(?=.{4}[\x01-\x%02x].{7}[\x00-\x40].{3}[%b])" % (_LARGEST_TYPE, ends), re.DOTALL
    )


def _agreed_size(header: bytes, at: int) -> int:
    """Return the size of an event whose header agrees with its place; 0 where it does not."""
    if len(header) < HEADER_SIZE:
        return 0
    size, log_pos = _size_and_end(header, 9)
    if not HEADER_SIZE <= size <= MAX_EVENT_SIZE or (at + size) & _LOW != log_pos:
        return 0
    return int(size)


def _checksum_holds(contents: FileContents, at: int, size: int) -> bool:
    if size < HEADER_SIZE + 4:
        return False
    found = 0
    end = at + size
    while at < end:
        piece = contents.read(at, min(_PIECE, end - at))
        if not piece:
            return False
        found = crc32(piece, found)
        at += len(piece)
    return found == RESIDUE


def _chain_holds(contents: FileContents, at: int) -> bool:
    """Tell whether the headers from byte `at` on agree, behind one that does."""
    for _ in range(1, _CHAIN):
        if contents.size - at < HEADER_SIZE:
            # At the file's end, or in the header that its server was writing.
            return True
        size = _agreed_size(contents.read(at, HEADER_SIZE), at)
        if not size:
            return False
        at += size
        if at > contents.size:
            return True
    return True
