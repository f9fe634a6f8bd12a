"""Byte ranges of binary log files, planned from their sizes alone: what is read side by side.

A group belongs to the range that it begins in, see `mtsd.binlog.range_reader`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from mtsd.model.position import FIRST_EVENT


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `begin` up to `end` of a file of `size` bytes, named as it is opened.

    The ranges of a file lie side by side, from byte 4 on. What has been written to the file behind
    `size` since it was planned is not read.
    """

    file: str
    begin: int
    end: int
    size: int


def ranges_of(file: str, size: int, most: int) -> list[ByteRange]:
    """Return a file's ranges, of about the same size, and of at most `most` bytes.

    A file has at least one, so that someone finds out what is wrong with one that is cut off.
    """
    first = min(FIRST_EVENT, size)
    count = max(1, -(-(size - first) // most))
    cuts = [first + (size - first) * number // count for number in range(count + 1)]
    return [ByteRange(file, begin, end, size) for begin, end in pairwise(cuts)]


def planned(files: Iterable[tuple[str, int]], most: int) -> list[tuple[ByteRange, ...]]:
    """Return what is read together, in order: ranges of at most `most` bytes in all.

    `files` are names and sizes, in the order of the stream.
    """
    found: list[tuple[ByteRange, ...]] = []
    together: list[ByteRange] = []
    total = 0
    for file, size in files:
        for part in ranges_of(file, size, most):
            length = part.end - part.begin
            if together and total + length > most:
                found.append(tuple(together))
                together, total = [], 0
            together.append(part)
            total += length
    if together:
        found.append(tuple(together))
    return found
