"""Compressed transactions built by hand, right and damaged."""

import sys

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.payload import ZSTD
from tests.binlog.building import event, net_int

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

INNER = [event(EventType.QUERY_EVENT, b"x" * size) for size in (0, 10, 5000, 300_000, 0, 1)]
PLAIN = b"".join(INNER)


def field(number: int, value: int) -> bytes:
    """Return a field of a payload's header: its number, its length, and its value."""
    encoded = net_int(value)
    return bytes((number, len(encoded))) + encoded


def payload(
    body: bytes,
    *,
    kind: int = ZSTD,
    uncompressed: int | None = len(PLAIN),
    size: int | None = None,
    more: bytes = b"",
) -> bytes:
    """Return a Transaction_payload event; by default its header tells of `PLAIN`."""
    fields = field(2, kind)
    if uncompressed is not None:
        fields += field(3, uncompressed)
    fields += field(1, len(body) if size is None else size) + more + b"\0"
    return event(EventType.TRANSACTION_PAYLOAD_EVENT, fields + body)


def compressed(*events: bytes) -> bytes:
    """Return these events as one payload, with every number of its header in eight bytes."""
    plain = b"".join(events)
    packed = compress(plain)
    fields = b""
    for number, value in ((2, 0), (3, len(plain)), (1, len(packed))):
        fields += bytes((number, 9, 0xFE)) + value.to_bytes(8, "little")
    return event(EventType.TRANSACTION_PAYLOAD_EVENT, fields + b"\0" + packed)
