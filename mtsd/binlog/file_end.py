"""Tells whether a file is complete, so that reading may continue with the next one.

A server ends a file with a Rotate event, or with a Stop event when it shuts down. If it died, it
wrote neither, but the next file then says that a server was started with it. A truncated copy of a
file may show neither of these.
"""

from typing import Final

from mtsd.binlog.event_type import EventType
from mtsd.binlog.file_beginning import LARGEST_DESCRIPTION
from mtsd.binlog.format_description import parse_format_description
from mtsd.binlog.header import HEADER_SIZE, parse_header
from mtsd.binlog.sync import FileContents
from mtsd.model.position import FIRST_EVENT

_LARGEST_END: Final = 19 + 8 + 512 + 4
"""The size of the largest Rotate event in bytes."""
_LOW: Final = 0xFFFFFFFF
_ENDS: Final = frozenset({EventType.ROTATE_EVENT.value, EventType.STOP_EVENT.value})


def ends_as_written(contents: FileContents) -> bool:
    """Tell whether the last event of a file is a Rotate or Stop event."""
    size = contents.size
    begin = max(FIRST_EVENT, size - _LARGEST_END)
    tail = contents.read(begin, size - begin)
    for at in range(len(tail) - HEADER_SIZE, -1, -1):
        header = parse_header(tail[at : at + HEADER_SIZE])
        if header.type in _ENDS and header.size == len(tail) - at and header.log_pos == size & _LOW:
            return True
    return False


def begins_with_a_server(contents: FileContents) -> bool:
    """Tell whether a server was started with a file. Raises BinlogError if it is not a binlog."""
    begin = contents.read(FIRST_EVENT, HEADER_SIZE)
    size = min(parse_header(begin).size, LARGEST_DESCRIPTION)
    return parse_format_description(contents.read(FIRST_EVENT, size)).created != 0
