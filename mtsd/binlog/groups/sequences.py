"""Changes of sequences, which a MariaDB logs as rows.

A sequence has no keys and no locks that last until the commit: what sessions take of it at the same
time is logged in one group commit, each change with the whole row. The last one has to stay.
"""

import re
from collections.abc import Iterable
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_COLUMNS: Final = re.compile(rb"\0\x08([\x01\x02\x03\x08\x09])\1{3}\x08\x08\x01\x08\0\0")
"""The end of the table's name, eight columns, their types, no metadata of them, and none that may
be NULL: four integers of the sequence's type, two of eight bytes, one of a byte, one of eight."""


def changes_sequence(events: Iterable[bytes]) -> bool:
    """Return whether some events change a sequence, or a table with the columns of one."""
    return any(
        event[4] == _TABLE_MAP and _COLUMNS.search(event, HEADER_SIZE) is not None
        for event in events
    )
