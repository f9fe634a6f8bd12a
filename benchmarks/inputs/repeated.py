"""Large binary logs, made of a recorded one: its events again and again, at places of their own.

They do not say what was executed before them, and end with a Stop event: nothing in them
contradicts that one follows another, or itself.
"""

from pathlib import Path
from struct import Struct
from typing import Final

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC, FileFramer
from mtsd.binlog.bytes.header import HEADER_SIZE

_PUT_END: Final = Struct("<I").pack_into
_PUT_SIZE: Final = Struct("<I").pack
_STOP: Final = bytes((EventType.STOP_EVENT.value,))
_STOP_SIZE: Final = HEADER_SIZE + 4
_FIRST: Final[int] = EventType.FORMAT_DESCRIPTION_EVENT.value
_LEFT_OUT: Final = frozenset({
    EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
    EventType.ROTATE_EVENT.value,
    EventType.STOP_EVENT.value,
})  # fmt: skip


def repeated(recorded: Path, times: int) -> Path:
    """Return a file with the transactions of a recorded one so many times; it is kept beside it."""
    path = recorded.parent / f"stopped-times-{times}" / "binlog.000001"
    if path.is_file():
        return path
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    first: list[bytearray] = []
    others: list[bytearray] = []
    for raw in FileFramer().feed(recorded.read_bytes()):
        if raw[4] not in _LEFT_OUT:
            (first if raw[4] == _FIRST else others).append(bytearray(raw))
    last = [bytearray(4) + _STOP + first[0][5:9] + _PUT_SIZE(_STOP_SIZE) + bytes(10)]
    at = len(MAGIC)
    with part.open("wb") as file:
        file.write(MAGIC)
        for number in range(times):
            begins, ends = number == 0, number == times - 1
            for event in (*(first if begins else ()), *others, *(last if ends else ())):
                at += len(event)
                _PUT_END(event, 13, at)
                _PUT_END(event, len(event) - 4, crc32(memoryview(event)[:-4]))
                file.write(event)
    part.rename(path)
    return path


def linked(file: Path, folder: Path, size: int) -> int:
    """Fill a folder with binary logs that are all this file, `size` bytes in all or a bit more.

    Returns how many bytes they have.
    """
    each = file.stat().st_size
    count = -(-size // each)
    for number in range(1, count + 1):
        (folder / f"binlog.{number:06}").symlink_to(file)
    return count * each
