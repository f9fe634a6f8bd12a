"""Incident events: the source reports that its binlog is incomplete. A replica stops here.

Body, little-endian: number u16 (1: events were lost), message length u8, message (MySQL
documentation, `mysql::binlog::event::Incident_event`).
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE

LOST_EVENTS = 1


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened on the source, in its own words."""

    number: int
    message: str


def parse_incident(event: bytes) -> Incident:
    """Decode an Incident event; raises BinlogError if it is truncated."""
    cursor = Cursor(event, HEADER_SIZE, "Incident event")
    number = cursor.uint(2, "number")
    message = cursor.take(cursor.uint(1, "message length"), "message")
    cursor.finish()
    return Incident(number, message.decode(errors="replace"))
