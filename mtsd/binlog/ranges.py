"""Byte ranges of binary log files, planned from their sizes alone: what is read side by side.

A group belongs to the range that it begins in, see `mtsd.binlog.range_reader`.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mtsd.model.position import FIRST_EVENT


class Tail(enum.Enum):
    """What may stand at the end of the bytes that are read of a file."""

    AS_FLAGGED = enum.auto()
    """A part of a group, if the file says that a server writes it, or wrote it when it died."""
    GROWING = enum.auto()
    """A part of a group."""
    WHOLE = enum.auto()
    """A group's end, and nothing else."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `begin` up to `end` of a file of `size` bytes, named as it is opened.

    The ranges of a file lie side by side, from byte `first` on: that is byte 4, or where a group
    begins. `following` is the next file of the log, if there is one and it is read next. What has
    been written to the file behind `size` since it was planned is not read.
    """

    file: str
    begin: int
    end: int
    size: int
    first: int = FIRST_EVENT
    tail: Tail = Tail.AS_FLAGGED
    following: str = ""


def whole_file(file: str, size: int) -> ByteRange:
    """Return all of a file as one range."""
    return ByteRange(file, min(FIRST_EVENT, size), size, size)


def whole_files(files: Sequence[tuple[str, int]]) -> list[ByteRange]:
    """Return all of each file as one range; `files` are names and sizes, one after the other."""
    names = [name for name, _ in files]
    return [
        replace(whole_file(*file), following=following)
        for file, following in zip(files, [*names[1:], ""], strict=True)
    ]


def ranges_of(file: str, size: int, most: int) -> list[ByteRange]:
    """Return a file's ranges, of about the same size, and of at most `most` bytes.

    A file has at least one, so that someone finds out what is wrong with one that is cut off.
    """
    return _cut(whole_file(file, size), most)


def _cut(part: ByteRange, most: int) -> list[ByteRange]:
    size = part.end - part.begin
    count = max(1, -(-size // most))
    cuts = [part.begin + size * number // count for number in range(count + 1)]
    return [replace(part, begin=begin, end=end) for begin, end in pairwise(cuts)]


def planned(parts: Iterable[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
    """Return what is read together, in order: ranges of at most `most` bytes in all.

    `parts` are one range for each file, in the order of the stream.
    """
    return together([range_ for part in parts for range_ in _cut(part, most)], most)


def together(ranges: Iterable[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
    """Return the ranges as they are, neighbours together as long as they have `most` bytes."""
    found: list[tuple[ByteRange, ...]] = []
    held: list[ByteRange] = []
    total = 0
    for part in ranges:
        length = part.end - part.begin
        if held and total + length > most:
            found.append(tuple(held))
            held, total = [], 0
        held.append(part)
        total += length
    if held:
        found.append(tuple(held))
    return found
