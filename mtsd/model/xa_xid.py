"""The name of a transaction branch: X/Open's XID, as MySQL's XA statements have it."""

from typing import NamedTuple

LONGEST_PART = 64
"""Bytes of each of the two parts (X/Open XA, XIDDATASIZE / 2)."""


class XaXid(NamedTuple):
    """The xid of an XA transaction: its parts may be empty and hold any bytes, NULs too."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        """Return the literal that servers log: `X'6162',X'',1`."""
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"
