"""Which events are read in a thread: on the event loop, all else would wait for them.

It is the text of statements that takes long. Rows are passed on as they are, and of them only the
checksum is read: a row of 64 KiB takes some 20 µs, less than a thread takes to be woken.
"""

from collections.abc import Sequence
from typing import Final

from mtsd.binlog.events.rows import ROW_EVENTS
from mtsd.binlog.sql.long_text import LONGEST_READ

_LONGEST_ROWS: Final = 1 << 20
"""Bytes of a row event."""
_ROWS: Final = frozenset(kind.value for kind in ROW_EVENTS)
"""Not a MariaDB's compressed ones, which are read."""


def any_takes_long(events: Sequence[bytes]) -> bool:
    """Return whether one of the events takes long to read."""
    return max(map(len, events), default=0) > LONGEST_READ and any(map(takes_long, events))


def takes_long(event: bytes) -> bool:
    """Return whether the event takes long to read."""
    size = len(event)
    return size > LONGEST_READ and (size > _LONGEST_ROWS or event[4] not in _ROWS)
