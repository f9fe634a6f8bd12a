"""MariaDB's events for human readers and for the server's own recovery.

ANNOTATE_ROWS, type 160: the text of the statement that the row events after it come from.
BINLOG_CHECKPOINT, type 161: length u32 and name of the oldest file that a crash recovery of the
server would need (MariaDB documentation, "Replication Protocol").
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.rows_query import RowsQuery


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint:
    """The oldest file that the server needs after a crash."""

    file: str


def parse_annotate_rows(event: bytes) -> RowsQuery:
    """Decode an event of type 160; raises BinlogError if it is truncated."""
    cursor = Cursor(event, HEADER_SIZE, "ANNOTATE_ROWS event")
    return RowsQuery(cursor.take(cursor.left(), "statement"))


def parse_binlog_checkpoint(event: bytes) -> BinlogCheckpoint:
    """Decode an event of type 161; raises BinlogError if it is truncated or inconsistent."""
    cursor = Cursor(event, HEADER_SIZE, "BINLOG_CHECKPOINT event")
    file = cursor.text(cursor.uint(4, "length"), "file name")
    cursor.finish()
    return BinlogCheckpoint(file)
