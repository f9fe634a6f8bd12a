"""Files to be read by ranges: small ones, and what their ranges give."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC, FileFramer
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.dialect import MYSQL
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange
from mtsd.model.group import Group, GroupKind
from mtsd.model.position import FIRST_EVENT
from mtsd.model.step import Rows, Statement, StatementKind, Step

NAME = "binlog.000007"


@dataclass
class Small:
    """A small file of a real server, and its groups."""

    data: bytes
    wanted: list[GroupPart]


@dataclass
class Contents:
    """The bytes of a file, with zeros up to `base` behind its format description."""

    data: bytes
    has_more: bool = False

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, at: int, count: int) -> bytes:
        return self.data[at : at + count]


@dataclass
class LargeContents:
    """A format description, zeros, and events at the byte `base` and on."""

    description: bytes
    base: int
    events: bytes
    has_more: bool = False

    @property
    def size(self) -> int:
        return self.base + len(self.events)

    def read(self, at: int, count: int) -> bytes:
        if at >= self.base:
            return self.events[at - self.base : at - self.base + count]
        before = (MAGIC + self.description)[at : at + count]
        zeros = min(count, self.base - at) - len(before)
        rest = count - len(before) - zeros
        return before + bytes(zeros) + (self.events[:rest] if rest else b"")


def parts(
    data: bytes, cuts: Iterable[int] = (), *, has_more: bool = False, hold_bytes: int = 8 << 20
) -> list[GroupPart]:
    """Return what the ranges between these cuts give, in order."""
    places = sorted({min(FIRST_EVENT, len(data)), *cuts, len(data)})
    found: list[GroupPart] = []
    for begin, end in pairwise(places):
        bounds = ByteRange(NAME, begin, end, len(data))
        contents = Contents(data, has_more)
        found += RangeReader(contents, bounds, NAME, hold_bytes=hold_bytes).parts()
    return found


def events(data: bytes, cuts: Iterable[int] = ()) -> list[tuple[int, bytes, bool]]:
    """Return the events that the ranges between these cuts give, in order."""
    places = sorted({FIRST_EVENT, *cuts, len(data)})
    found: list[tuple[int, bytes, bool]] = []
    for begin, end in pairwise(places):
        bounds = ByteRange(NAME, begin, end, len(data))
        found += RangeReader(Contents(data), bounds, NAME).events()
    return found


def declared(found: Sequence[GroupPart]) -> list[tuple[object, ...]]:
    """Return what has to be the same however the file was cut."""
    return [
        (
            part.begin,
            part.end,
            part.gtid,
            part.commit_time,
            [_without_places(step) for step in part.steps if not _drops_temporary(step)],
            part.group is not None and _declared(part.group, part.steps),
        )
        for part in found
    ]


def _declared(group: Group, steps: Sequence[Step]) -> Group:
    # Whether a session has the temporary table that it drops is not known from the middle of a log.
    declared = replace(
        group, number=0, steps=(), unsupported="", size=0, temporary=None, uses_temporary=None
    )
    if steps and all(map(_drops_temporary, steps)):
        return replace(declared, kind=GroupKind.EMPTY, databases=(), alone=False)
    return declared


def _drops_temporary(step: Step) -> bool:
    return isinstance(step, Statement) and step.kind is StatementKind.DROP_TEMPORARY


@lru_cache(maxsize=100_000)
def _without_place(event: bytes) -> bytes:
    # One table map stands for all that say the same.
    return event[19:] if event[4] == EventType.TABLE_MAP_EVENT else event


def _without_places(step: Step) -> object:
    return [_without_place(event) for event in step.events] if isinstance(step, Rows) else step


def raw_events(data: bytes) -> list[bytes]:
    """Return the file's events as they are."""
    return list(FileFramer().feed(data))


def places(data: bytes) -> list[int]:
    """Return the places after the first event that a cut, or the file's end, can differ at.

    Between these it is in the same part of the same event. Where the next event is found from any
    byte, a test of its own says.
    """
    found: set[int] = set()
    at = FIRST_EVENT
    for raw in raw_events(data):
        end = at + len(raw)
        found |= {at, at + 1, at + HEADER_SIZE - 1, at + HEADER_SIZE, end - 5, end - 1}
        at = end
    return sorted(place for place in found if place > FIRST_EVENT)


def moved(event: bytes, at: int, *, checksum: bool) -> bytes:
    """Return an event as it would be at byte `at`."""
    found = event[:13] + struct.pack("<I", (at + len(event)) & 0xFFFFFFFF) + event[17:]
    return found[:-4] + struct.pack("<I", crc32(found[:-4])) if checksum else found


def chosen(data: bytes, wanted: Callable[[bytes], bool], *, checksum: bool) -> bytes:
    """Return the file with those events only that are wanted."""
    found = MAGIC
    for event in raw_events(data):
        if wanted(event):
            found += moved(event, len(found), checksum=checksum)
    return found


def without_gtids(data: bytes, *, checksum: bool) -> bytes:
    """Return the file as a server writes it that knows no GTID events."""
    left_out = MYSQL.heads | {
        EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
        EventType.TRANSACTION_PAYLOAD_EVENT.value,
    }
    return chosen(data, lambda event: event[4] not in left_out, checksum=checksum)
