"""Xid events: the transaction before them was committed by the storage engines.

Body: the transaction's number in the source's engines, u64, little-endian.
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE


@dataclass(frozen=True, slots=True)
class Xid:
    """The end of a transaction; `number` is meaningful only on the source."""

    number: int


def parse_xid(event: bytes) -> Xid:
    """Decode an Xid event; raises BinlogError if its body is not 8 bytes."""
    cursor = Cursor(event, HEADER_SIZE, "Xid event")
    number = cursor.uint(8, "number")
    cursor.finish()
    return Xid(number)
