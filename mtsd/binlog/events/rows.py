"""The header part of row events; the row images after it are not read here.

Post-header, little-endian: table id u48, flags u16, and since version 2 the length u16 of the extra
data, including itself, and that data. Then the number of columns as a length-encoded integer and a
bitmap of the columns that the images contain; updates have a second bitmap for the after images.
Version 1 is types 23 to 25, version 2 types 30 to 32, and 39 (partial JSON updates) has version
2's layout (MySQL documentation, `mysql::binlog::event::Rows_event`).
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.event_type import EventType, type_name
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError

STMT_END: Final = 0x1
"""The last row event of its statement: the table maps before it are no longer valid."""
NO_FOREIGN_KEY_CHECKS = 0x2
RELAXED_UNIQUE_CHECKS = 0x4
NO_CHECK_CONSTRAINT_CHECKS = 0x80
"""Of MariaDB."""
USE_SQL_FOREIGN_KEY = 0x10
"""Foreign keys are handled by the SQL layer: rows changed by a cascade are logged too."""

VERSION_1 = frozenset(
    {EventType.WRITE_ROWS_EVENT_V1, EventType.UPDATE_ROWS_EVENT_V1, EventType.DELETE_ROWS_EVENT_V1}
)
VERSION_2 = frozenset(
    {
        EventType.WRITE_ROWS_EVENT,
        EventType.UPDATE_ROWS_EVENT,
        EventType.DELETE_ROWS_EVENT,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
    }
)
UPDATES = frozenset(
    {
        EventType.UPDATE_ROWS_EVENT_V1,
        EventType.UPDATE_ROWS_EVENT,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
    }
)
ROW_EVENTS = VERSION_1 | VERSION_2
INSERTS = frozenset({EventType.WRITE_ROWS_EVENT_V1, EventType.WRITE_ROWS_EVENT})
DELETES = frozenset({EventType.DELETE_ROWS_EVENT_V1, EventType.DELETE_ROWS_EVENT})

INSERT_KINDS: Final = frozenset(kind.value for kind in INSERTS)
"""These kinds as the number that an event has in its header."""
UPDATE_KINDS: Final = frozenset(kind.value for kind in UPDATES)
DELETE_KINDS: Final = frozenset(kind.value for kind in DELETES)
VERSION_1_KINDS: Final = frozenset(kind.value for kind in VERSION_1)

DUMMY_TABLE_ID = 0xFFFFFF
"""An event of this table contains no rows: it only ends a statement."""

_V1 = Struct("<IHH")
_V1_END = HEADER_SIZE + _V1.size
_V2 = Struct("<IHHH")
_V2_END = HEADER_SIZE + _V2.size - 2


@dataclass(frozen=True, slots=True)
class RowsHeader:
    """The header part of a row event.

    `width` is the number of columns. `bitmaps_at` is the offset in the event where the first
    column bitmap begins, `rows_at` where the row images begin. `extra` is version 2's extra data.
    """

    table_id: int
    flags: int
    width: int
    extra: bytes
    bitmaps_at: int
    rows_at: int


def parse_rows_header(event: bytes) -> RowsHeader:
    """Decode the head of a row event; raises BinlogError if truncated or of another type."""
    extra = b""
    try:
        kind = event[4]
        if kind in VERSION_2:
            low, high, flags, extra_size = _V2.unpack_from(event, HEADER_SIZE)
            at = _V2_END + extra_size
            if extra_size != 2:
                if extra_size < 2:
                    raise BinlogError(f"row event: extra data of {extra_size} bytes, at least 2")
                extra = event[_V2_END + 2 : at]
        elif kind in VERSION_1:
            low, high, flags = _V1.unpack_from(event, HEADER_SIZE)
            at = _V1_END
        else:
            raise BinlogError(f"{type_name(kind)} is not a row event")
        width = event[at]
        at += 1
        if width >= 251:
            cursor = Cursor(event, at - 1, "row event")
            width = cursor.net_int("number of columns")
            at = cursor.at
    except (struct.error, IndexError) as error:
        raise BinlogError(f"row event: cut off after {len(event)} bytes") from error
    bitmap = (width + 7) >> 3
    rows_at = at + (bitmap + bitmap if kind in UPDATES else bitmap)
    if rows_at > len(event):
        raise BinlogError(f"row event: {width} columns do not fit into {len(event)} bytes")
    return RowsHeader(low | high << 32, flags, width, extra, at, rows_at)


def deletes_rows(events: Iterable[bytes]) -> bool:
    """Return whether one of some events deletes rows."""
    return any(event[4] in DELETES for event in events)


def is_row_of_no_bytes(event: bytes, header: RowsHeader) -> bool:
    """Return whether an event, given without its checksum, is the insert of a row without bytes.

    With `binlog_row_image = MINIMAL`, `INSERT INTO t VALUES ()` logs no column of a row that
    consists of defaults. Servers take such an event for one row.
    """
    return (
        len(event) == header.rows_at
        and event[4] in INSERT_KINDS
        and not any(event[header.bitmaps_at : header.rows_at])
    )


def without_a_column(size: int) -> BinlogError:
    """Return the error of an event that ends with `size` bytes of rows, and has no columns."""
    return BinlogError(f"row event: {size} bytes of rows without a column")
