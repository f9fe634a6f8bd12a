"""The beginning of a binary log file: the magic number, and the format description behind it."""

from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import ENCRYPTED, MAGIC, no_log
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.files.sync import FileContents
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.position import FIRST_EVENT, Position

LARGEST_DESCRIPTION: Final = 1 << 12
"""Bytes; servers write about 120."""


def read_description(contents: FileContents, name: str) -> bytes:
    """Return the format description of a file; `name` is the file's, for positions.

    Raises BinlogError if the file does not begin with one, NotSupportedError if it is encrypted.
    """
    head = contents.read(0, FIRST_EVENT + HEADER_SIZE)
    if head[:FIRST_EVENT] == ENCRYPTED:
        raise NotSupportedError(f"{name}: {no_log(head)}")
    if head[:FIRST_EVENT] != MAGIC:
        raise _error(name, no_log(head), 0)
    if len(head) < FIRST_EVENT + HEADER_SIZE:
        raise _error(name, "the file ends before its format description", FIRST_EVENT)
    header = parse_header(head[FIRST_EVENT:])
    if header.type != EventType.FORMAT_DESCRIPTION_EVENT or not (
        HEADER_SIZE <= header.size <= LARGEST_DESCRIPTION
    ):
        raise _error(name, "the file does not begin with a format description", FIRST_EVENT)
    raw = contents.read(FIRST_EVENT, header.size)
    if len(raw) < header.size:
        raise _error(name, "the file ends inside its format description", FIRST_EVENT)
    return raw


def _error(name: str, message: str, at: int) -> BinlogError:
    return BinlogError(message, Position(name, at))
