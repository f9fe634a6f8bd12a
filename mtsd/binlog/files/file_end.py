"""How a file ends, which tells whether it is complete, and which one is the next.

A server ends a file with a Rotate event, or with a Stop event when it shuts down. If it died, it
wrote neither, but the next file then says that a server was started with it. A truncated copy of a
file may show neither of these.
"""

from dataclasses import dataclass
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.events.format_description import CHECKSUM_CRC32, parse_format_description
from mtsd.binlog.events.rotate import parse_rotate
from mtsd.binlog.files.file_beginning import read_description
from mtsd.binlog.files.sync import FileContents
from mtsd.model.position import FIRST_EVENT

_LARGEST_END: Final = 19 + 8 + 512 + 4
"""The size of the largest Rotate event in bytes."""
_CHECKSUM_SIZE: Final = 4
_LOW: Final = 0xFFFFFFFF
_ROTATE: Final[int] = EventType.ROTATE_EVENT.value
_ENDS: Final = frozenset({_ROTATE, EventType.STOP_EVENT.value})


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The last event of a file: `next_file` is what a Rotate event names, "" for a Stop event."""

    next_file: str = ""


def file_end(contents: FileContents, name: str) -> FileEnd | None:
    """Return how a file ends; None if its last event is neither a Rotate nor a Stop event.

    Raises BinlogError if the file does not begin as a binary log does, or ends with a Rotate event
    that is damaged; `name` is the file's, for positions.
    """
    size = contents.size
    begin = max(FIRST_EVENT, size - _LARGEST_END)
    tail = contents.read(begin, size - begin)
    for at in range(len(tail) - HEADER_SIZE, -1, -1):
        header = parse_header(tail[at : at + HEADER_SIZE])
        if header.type in _ENDS and header.size == len(tail) - at and header.log_pos == size & _LOW:
            if header.type != _ROTATE:
                return FileEnd()
            description = parse_format_description(read_description(contents, name))
            has_checksum = description.checksum_algorithm == CHECKSUM_CRC32
            event = tail[at : len(tail) - _CHECKSUM_SIZE * has_checksum]
            return FileEnd(parse_rotate(event).position.file)
    return None
