"""Where events begin in the bytes of a file."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Final

from mtsd.binlog.bytes.framing import MAX_EVENT_SIZE
from mtsd.binlog.bytes.header import HEADER_SIZE

_size: Final = Struct("<I")
"""Of an event, at byte 9 of its header."""


class EventBatch:
    """Events in a row: `places` are where they begin in `data`, and where the last one ends."""

    __slots__ = ("data", "places")

    def __init__(self, data: bytes, places: list[int]) -> None:
        self.data = data
        self.places = places

    def __len__(self) -> int:
        return len(self.places) - 1

    def __iter__(self) -> Iterator[bytes]:
        data = self.data
        return (data[begin:end] for begin, end in pairwise(self.places))

    def within(self, first: int, last: int | None = None) -> "EventBatch":
        """Return the events from number `first` up to `last`, without that one."""
        if not first and last is None:
            return self
        return EventBatch(self.data, self.places[first : None if last is None else last + 1])

    def before(self, size: int) -> "EventBatch":
        """Return the events that begin in the first bytes, as many as that."""
        return self.within(0, bisect_left(self.places, self.places[0] + size, hi=len(self)))


def event_places(data: bytes) -> tuple[list[int], int | None]:
    """Return where events begin, the end of the last whole one, and a length that none can have."""
    at = 0
    places = [0]
    add = places.append
    last = len(data) - HEADER_SIZE
    end = len(data)
    size_at = _size.unpack_from
    while at <= last:
        (size,) = size_at(data, at + 9)
        if not HEADER_SIZE <= size <= MAX_EVENT_SIZE:
            return places, size
        at += size
        if at > end:
            break
        add(at)
    return places, None


def size_of_first(data: bytes) -> int:
    """Return how many bytes an event has, of which these are the first ones."""
    return _size.unpack_from(data, 9)[0] if len(data) >= HEADER_SIZE else HEADER_SIZE
