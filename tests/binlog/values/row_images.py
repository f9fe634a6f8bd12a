"""Images of rows built by hand, right and damaged, and the tables that they are of."""

import random
from collections.abc import Iterator
from decimal import Decimal

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.packed_decimal import groups
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.table_metadata import OptionalMetadata
from tests.binlog.building import event


def pack_decimal(number: Decimal, digits: int, scale: int) -> bytes:
    """Return a DECIMAL as a server packs it."""
    text = f"{abs(int(number.scaleb(scale))):0{digits}d}"
    at = 0
    raw = b""
    for size, count in groups(digits, scale):
        raw += int(text[at : at + count]).to_bytes(size, "big")
        at += count
    raw = bytes((raw[0] ^ 0x80,)) + raw[1:]
    return bytes(byte ^ 0xFF for byte in raw) if number < 0 else raw


SIGNED = OptionalMetadata(unsigned=dict.fromkeys(range(70), False))


def plain_table(types: bytes, metadata: bytes = b"") -> TableMap:
    return TableMap(1, 0, "d", "t", types, metadata, bytes((len(types) + 7) // 8), b"")


def rows_event(
    kind: EventType, width: int, present: int, images: bytes, after: int | None = None
) -> bytes:
    size = (width + 7) // 8
    bitmaps = present.to_bytes(size, "little")
    if after is not None:
        bitmaps += after.to_bytes(size, "little")
    return event(kind, bytes((1, 0, 0, 0, 0, 0, 0, 0, 2, 0, width)) + bitmaps + images)


DOCUMENT = bytes.fromhex(
    "00 0100 1f00 0b00 0100 0c 0c00 6b 11 61206c6f6e6720656e6f756768206f6e65 00"
)


def damaged(rng: random.Random, raw: bytes) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(changed))
        match rng.randrange(3):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                changed[at] ^= 1 << rng.randrange(8)
            case _:
                del changed[at : at + rng.randrange(1, 4)]
        if not changed:
            return b"\0"
    return bytes(changed)


TYPES = {
    ColumnType.TINY: b"",
    ColumnType.LONGLONG: b"",
    ColumnType.NEWDECIMAL: bytes((30, 10)),
    ColumnType.VARCHAR: b"\x40\x01",
    ColumnType.BLOB: b"\x02",
    ColumnType.JSON: b"\x04",
    ColumnType.DATETIME2: b"\x03",
    ColumnType.TIME2: b"\x05",
    ColumnType.TIMESTAMP2: b"\x06",
    ColumnType.DATE: b"",
    ColumnType.BIT: b"\x03\x01",
}
TOLD = OptionalMetadata({0: False, 1: True}, {3: 255, 4: 63})


def images(rng: random.Random) -> Iterator[bytes]:
    while True:
        raw = b"\0\0" + b"\x05" + rng.randbytes(8)
        raw += pack_decimal(Decimal(rng.randrange(-(10**20), 10**20)).scaleb(-10), 30, 10)
        raw += b"\x03\0abc" + b"\x04\0\xff\xfe\xfd\xfc" + len(DOCUMENT).to_bytes(4, "little")
        raw += DOCUMENT + bytes.fromhex("99b2bd7d65 0bb8") + bytes.fromhex("80a3c5 000000")
        yield raw + rng.randbytes(4) + b"\0\0\1" + b"\x21\xd0\x0f" + b"\7\xff"
