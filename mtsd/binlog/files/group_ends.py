"""Finds where groups end in a file: the last one, or the nearest to a size limit.

Only the surroundings of the place are read, so the cost is about the same wherever it is. As with
any range, a false end would be detected when reading up to it, or from there on.
"""

from dataclasses import dataclass
from typing import Final

from mtsd.binlog.bytes.framing import MAGIC
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.files.file_beginning import LARGEST_DESCRIPTION
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.binlog.files.sync import FileContents
from mtsd.model.position import FIRST_EVENT

_WINDOW: Final = 1 << 20
"""How many bytes before a place are searched first for the end of a group."""


def last_end(contents: FileContents, name: str, first: int, *, tail: Tail) -> int | None:
    """Return the end of the last whole group, or of the last whole event after it.

    None if nothing has ended since byte `first`, where a group begins. Raises BinlogError and
    NotSupportedError as RangeReader does.
    """
    size = contents.size
    if tail is Tail.GROWING and not is_described(contents):
        return None
    window = _WINDOW
    while size > first:
        begin = max(first, size - window)
        reader = RangeReader(contents, ByteRange(name, begin, size, size, first, tail), name)
        for _ in reader.parts():
            pass
        if reader.reached is not None and reader.reached > first:
            return reader.reached
        if begin == first:
            break
        window *= 8
    return None


def end_within(
    contents: FileContents, name: str, first: int, most: int, *, tail: Tail
) -> int | None:
    """Return the last end of a group at most `most` bytes after `first`; None if there is none."""
    if first + most >= contents.size:
        return last_end(contents, name, first, tail=tail)
    return last_end(_Beginning(contents, first + most), name, first, tail=Tail.GROWING)


def end_behind(
    contents: FileContents, name: str, first: int, least: int, *, tail: Tail
) -> int | None:
    """Return the first end of a group over `least` bytes after `first`; None if there is none.

    An end that no event shows may be skipped.
    """
    size = contents.size
    begin = first + least + 1
    if begin < size and (tail is not Tail.GROWING or is_described(contents)):
        bounds = ByteRange(name, begin, size, size, first, tail)
        boundary = RangeReader(contents, bounds, name).first_boundary()
        if boundary is not None:
            return boundary
    return last_end(contents, name, first, tail=tail)


def is_described(contents: FileContents) -> bool:
    """Tell whether a file being created has its format description, or something else there."""
    begin = contents.read(0, FIRST_EVENT + HEADER_SIZE)
    if not MAGIC.startswith(begin[:FIRST_EVENT]):
        return True
    if len(begin) < FIRST_EVENT + HEADER_SIZE:
        return False
    size = parse_header(begin[FIRST_EVENT:]).size
    return size > LARGEST_DESCRIPTION or contents.size >= FIRST_EVENT + size


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first `size` bytes of a file."""

    contents: FileContents
    size: int

    @property
    def has_more(self) -> bool:
        return True

    def read(self, at: int, count: int) -> bytes:
        return self.contents.read(at, max(0, min(count, self.size - at)))
