"""Byte ranges of binary log files to be read in parallel, planned from file sizes alone.

A group belongs to the range in which it begins; see `mtsd.binlog.files.range_reader`.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mtsd.model.position import FIRST_EVENT


class Tail(enum.Enum):
    """What the bytes that are read of a file may end with."""

    AS_FLAGGED = enum.auto()
    """A partial group, if the file is marked as being written, or as not closed properly."""
    GROWING = enum.auto()
    """A partial group."""
    WHOLE = enum.auto()
    """Only the end of a group."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `begin` up to `end` of a file of `size` bytes; `file` is used to open it.

    The ranges of a file are adjacent, starting at byte `first`, which is byte 4 or the beginning of
    a group. `following` is the next file of the log, if that is read next. What has been written to
    the file past `size` since planning is not read.
    """

    file: str
    begin: int
    end: int
    size: int
    first: int = FIRST_EVENT
    tail: Tail = Tail.AS_FLAGGED
    following: str = ""


def whole_file(file: str, size: int) -> ByteRange:
    """Return a whole file as one range."""
    return ByteRange(file, min(FIRST_EVENT, size), size, size)


def whole_files(files: Sequence[tuple[str, int]]) -> list[ByteRange]:
    """Return each whole file as one range; `files` are consecutive, as names and sizes."""
    following = [*(name for name, _ in files[1:]), ""]
    return [replace(whole_file(*file), following=following[n]) for n, file in enumerate(files)]


def ranges_of(file: str, size: int, most: int) -> list[ByteRange]:
    """Return a file's ranges, which have about the same size and at most `most` bytes.

    Every file has at least one, so that a truncated file is detected.
    """
    return _cut(whole_file(file, size), most)


def _cut(part: ByteRange, most: int) -> list[ByteRange]:
    size = part.end - part.begin
    count = max(1, -(-size // most))
    cuts = [part.begin + size * number // count for number in range(count + 1)]
    return [replace(part, begin=begin, end=end) for begin, end in pairwise(cuts)]


def planned(parts: Iterable[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
    """Return the ranges in order, combined into tuples of at most `most` bytes in total.

    `parts` contains one range per file, in the order of the stream.
    """
    return together([range_ for part in parts for range_ in _cut(part, most)], most)


def together(ranges: Iterable[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
    """Return the unchanged ranges, with neighbours combined up to `most` bytes."""
    parts: list[tuple[ByteRange, ...]] = []
    held: list[ByteRange] = []
    total = 0
    for part in ranges:
        length = part.end - part.begin
        if held and total + length > most:
            parts.append(tuple(held))
            held, total = [], 0
        held.append(part)
        total += length
    if held:
        parts.append(tuple(held))
    return parts
