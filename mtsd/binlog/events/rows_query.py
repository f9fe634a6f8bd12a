"""Rows_query events: the statement that the row events after them come from, for readers.

Body: a length u8, which is unreliable, as it is the text's length modulo 256 at best; then the
text up to the event's end (MySQL documentation, `mysql::binlog::event::Rows_query_event`).
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """The text of a statement that was logged as rows."""

    statement: bytes


def parse_rows_query(event: bytes) -> RowsQuery:
    """Decode a Rows_query event; raises BinlogError if it is truncated."""
    cursor = Cursor(event, HEADER_SIZE, "Rows_query event")
    cursor.skip(1, "length")
    return RowsQuery(cursor.take(cursor.left(), "statement"))
