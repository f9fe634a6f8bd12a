"""XA_PREPARE events: the end of a transaction that was prepared, not yet committed.

Body, little-endian: one phase u8, format id i32, gtrid length u32, bqual length u32, both of
them (MySQL documentation, `mysql::binlog::event::XA_prepare_event`). The servers' format ids have
64 bits: only the statements have all of them.
"""

from dataclasses import dataclass

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError
from mtsd.model.xa_xid import LONGEST_PART, XaXid

_WHAT = "XA_PREPARE event"


@dataclass(frozen=True, slots=True)
class XaPrepare:
    """The prepared transaction, with 32 bits of its format id; `one_phase`: it also commits."""

    one_phase: bool
    format_id: int
    gtrid: bytes
    bqual: bytes

    @property
    def xid(self) -> XaXid:
        """Its name."""
        return XaXid(self.format_id, self.gtrid, self.bqual)


def parse_xa_prepare(event: bytes) -> XaPrepare:
    """Decode an XA_PREPARE event; raises BinlogError if it is truncated or inconsistent."""
    cursor = Cursor(event, HEADER_SIZE, _WHAT)
    one_phase = cursor.uint(1, "one phase")
    if one_phase > 1:
        raise BinlogError(f"{_WHAT}: one phase is {one_phase} instead of 0 or 1")
    format_id = int.from_bytes(cursor.take(4, "format id"), "little", signed=True)
    sizes = cursor.uint(4, "gtrid length"), cursor.uint(4, "bqual length")
    if max(sizes) > LONGEST_PART:
        raise BinlogError(f"{_WHAT}: a name with parts of {sizes[0]} and {sizes[1]} bytes")
    gtrid = cursor.take(sizes[0], "gtrid")
    bqual = cursor.take(sizes[1], "bqual")
    cursor.finish()
    return XaPrepare(bool(one_phase), format_id, gtrid, bqual)


def is_of(prepared: XaPrepare, xid: XaXid | None) -> bool:
    """Return whether an event ends the transaction that a statement began with this xid."""
    if xid is None:
        return False
    differs = (xid.format_id ^ prepared.format_id) & 0xFFFFFFFF
    return not differs and (xid.gtrid, xid.bqual) == (prepared.gtrid, prepared.bqual)
