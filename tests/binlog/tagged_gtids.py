"""Events of tagged GTIDs, built field by field."""

from mtsd.binlog.bytes.event_type import EventType
from tests.binlog.building import event, varlen

UUID = "01234567-89ab-cdef-0123-456789abcdef"
SID = bytes.fromhex(UUID.replace("-", ""))


def tagged(fields: list[tuple[int, bytes]], *, needed: int = 0, version: int = 1) -> bytes:
    body = varlen(needed) + b"".join(varlen(number) + value for number, value in fields)
    size = len(body) + 2
    return event(EventType.GTID_TAGGED_LOG_EVENT, varlen(version) + varlen(size) + body)


def signed(number: int) -> bytes:
    return varlen(number << 1 if number >= 0 else (~number << 1) | 1)


FIELDS = [
    (0, varlen(1)),
    (1, b"".join(map(varlen, SID))),
    (2, signed(1 << 62)),
    (3, varlen(3) + b"tag"),
    (4, signed(5)),
    (5, signed(6)),
    (6, varlen(1795258616317314)),
    (8, varlen(1000)),
    (9, varlen(90704)),
]
