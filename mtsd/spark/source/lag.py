"""How far a stream is behind: what of the log its batches do not have, in bytes and in seconds."""

from collections.abc import Sequence
from time import time

from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.logs.logs import Logs, name_of


def bytes_between(files: Sequence[tuple[str, int]], begin: Position, end: Position) -> int:
    """Return how many bytes of a log are between two places; `files` are its names and sizes.

    With files of 100, 200 and 50 bytes, there are 60 + 196 + 46 from byte 40 of the first one to
    the end of the last: each file's first four bytes are no event.
    """
    names = [name_of(file) for file, _ in files]
    if begin.file not in names or end.file not in names:
        return 0
    first, last = names.index(begin.file), names.index(end.file)
    ends = [*(size for _, size in files[first:last]), end.offset]
    begins = [begin.offset, *[FIRST_EVENT] * (last - first)]
    return sum(max(0, stop - at) for stop, at in zip(ends, begins, strict=False))


def seconds_behind(logs: Logs, files: Sequence[tuple[str, int]], place: Position) -> int | None:
    """Return how old the first event after a place is, by the source's clock; None if unknown."""
    names = [name_of(file) for file, _ in files]
    first = names.index(place.file) if place.file in names else len(files)
    for number, (file, size) in enumerate(files[first:]):
        at = FIRST_EVENT if number else place.offset
        if size - at < HEADER_SIZE:
            # The next event is in the next file.
            continue
        bounds = ByteRange(file, at, at + HEADER_SIZE, size, at, Tail.GROWING)
        with logs.opened(bounds, logs.origin) as contents:
            header = contents.read(at, HEADER_SIZE)
        return max(0, int(time()) - parse_header(header).timestamp)
    return None
