"""GTID, ANONYMOUS_GTID and GTID_TAGGED events: the first event of a group.

Types 33 and 34, little-endian: flags u8, UUID 16 bytes, number i64; since 5.7 a type u8 (2),
last_committed i64, sequence_number i64; since 8.0.1 immediate commit time u56 (bit 55 set: the
original one follows, u56); since 8.0.2 transaction length as a length-encoded integer; since 8.0.14
immediate server version u32 (bit 31 set: the original one follows, u32), and perhaps a commit group
ticket u64. What a server did not know yet is missing at the end.

Type 42 is a message of MySQL's serialization library: format version (1), size of the message,
the last field that a reader must know, then pairs of field id and value in ascending order of id;
all integers are the library's (`mtsd.binlog.bytes.cursor`), signed in group and clock. Fields: 0
flags, 1 UUID (16 integers), 2 number, 3 tag (length, bytes), 4 last_committed, 5 sequence_number,
6 immediate commit time, 7 original commit time, 8 transaction length, 9 immediate server version,
10 original server version, 11 commit group ticket; 7, 10 and 11 may be missing (MySQL
documentation, `mysql::binlog::event::Gtid_event` and "MySQL Serialization Library").
"""

import enum
import re
import struct
from dataclasses import dataclass
from struct import Struct
from typing import Final, final

from mtsd.binlog.bytes.cursor import Cursor, u32_at
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import Gtid
from mtsd.model.xa_xid import XaXid

MAY_HAVE_STATEMENTS: Final = 0x1
_LOGICAL_CLOCK: Final = 2
_GTID: Final[int] = EventType.GTID_LOG_EVENT.value
_GTID_TAGGED: Final[int] = EventType.GTID_TAGGED_LOG_EVENT.value

_ONLY_GTID: Final = Struct("<B16sq")
_WITH_CLOCK: Final = Struct("<B16sqBqq")
_WITH_TIME: Final = _WITH_CLOCK.size + 7
_WITH_TIMES: Final = Struct("<B16sqBqqQ")
_TIMES_END: Final = HEADER_SIZE + _WITH_TIMES.size
_U16: Final = Struct("<H")
_LOW_56: Final = (1 << 56) - 1
_BIT_55: Final = 1 << 55
_BIT_31: Final = 1 << 31

# A stream has few source UUIDs; the bound is for damaged streams.
_MAX_UUIDS: Final = 4096
_uuids: Final[dict[bytes, str]] = {}


class Opens(enum.Enum):
    """What a GTID event begins besides its group; on MySQL nothing, other events do that."""

    NOTHING = enum.auto()
    TRANSACTION = enum.auto()
    """As BEGIN does."""
    XA = enum.auto()
    """As XA START does."""
    CREATE_SELECT = enum.auto()
    """A CREATE TABLE, followed by rows."""


@final
@dataclass(slots=True, init=False)
class GtidEvent:
    """What is known about a group at its beginning.

    `gtid` is None for an anonymous group. Commit times are in µs since 1970, and 0 if the source
    does not provide them (before 8.0.1); the same applies to `transaction_length`, in bytes from
    this event to the group's last as written to the file, and to the server versions (80041 for
    8.0.41). `last_committed` and `sequence_number` are 0 if there is no logical clock (5.6). Its
    constructor is as that of `mtsd.model.group.Group`.
    """

    gtid: Final[Gtid | None]
    may_have_statements: Final[bool]
    last_committed: Final[int]
    sequence_number: Final[int]
    immediate_commit_time: Final[int]
    original_commit_time: Final[int]
    transaction_length: Final[int]
    immediate_server_version: Final[int]
    original_server_version: Final[int]
    commit_group_ticket: Final[int | None]
    opens: Final[Opens]
    xid: Final[XaXid | None]
    """MariaDB: of the XA transaction that the group prepares or completes."""
    commit_id: Final[int]
    """MariaDB: what the transactions of one group commit have in common; 0 if it was alone."""

    def __init__(
        self,
        gtid: Gtid | None,
        may_have_statements: bool,
        last_committed: int,
        sequence_number: int,
        immediate_commit_time: int,
        original_commit_time: int,
        transaction_length: int,
        immediate_server_version: int,
        original_server_version: int,
        commit_group_ticket: int | None,
        opens: Opens = Opens.NOTHING,
        xid: XaXid | None = None,
        commit_id: int = 0,
    ) -> None:
        self.gtid = gtid
        self.may_have_statements = may_have_statements
        self.last_committed = last_committed
        self.sequence_number = sequence_number
        self.immediate_commit_time = immediate_commit_time
        self.original_commit_time = original_commit_time
        self.transaction_length = transaction_length
        self.immediate_server_version = immediate_server_version
        self.original_server_version = original_server_version
        self.commit_group_ticket = commit_group_ticket
        self.opens = opens
        self.xid = xid
        self.commit_id = commit_id


def uuid_text(raw: bytes) -> str:
    """Return the text form of a UUID's 16 bytes."""
    text = _uuids.get(raw)
    if text is None:
        digits = raw.hex()
        text = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        if len(_uuids) >= _MAX_UUIDS:
            _uuids.clear()
        _uuids[raw] = text
    return text


def parse_gtid(event: bytes) -> GtidEvent:
    """Decode an event of type 33, 34 or 42; raises BinlogError if truncated or inconsistent."""
    size = len(event)
    if size < _TIMES_END:
        return _parse_short(event)
    kind = event[4]
    if kind == _GTID_TAGGED:
        return _parse_tagged(event)
    # Declared, so that compiled code knows their types.
    flags: int
    sid: bytes
    number: int
    clock: int
    last_committed: int
    sequence_number: int
    immediate: int
    version: int
    flags, sid, number, clock, last_committed, sequence_number, immediate = _WITH_TIMES.unpack_from(
        event, HEADER_SIZE
    )
    # The last field read is the 7 bytes of a time and the byte after them.
    at = _TIMES_END - 1
    immediate &= _LOW_56
    try:
        if immediate & _BIT_55:
            immediate ^= _BIT_55
            original: int = int.from_bytes(event[at : at + 7], "little")
            at += 7
        else:
            original = immediate
        length = 0
        if at < size:
            length = event[at]
            at += 1
        if length >= 251:
            if length == 252:
                length = _U16.unpack_from(event, at)[0]
                at += 2
            else:
                cursor = Cursor(event, at - 1, "GTID event")
                length = cursor.net_int("transaction length")
                at = cursor.at
        version = 0
        if at < size:
            version = u32_at(event, at)
            at += 4
        original_version = version
        if version & _BIT_31:
            version ^= _BIT_31
            original_version = u32_at(event, at)
            at += 4
    except (struct.error, IndexError) as error:
        raise BinlogError(f"GTID event: cut off after {size} bytes") from error
    ticket: int | None = None
    if at != size:
        if at > size:
            raise BinlogError(f"GTID event: cut off after {size} bytes")
        if size - at != 8:
            raise BinlogError(f"GTID event: {size - at} unexpected bytes at its end")
        ticket = int.from_bytes(event[at:], "little")
    if clock != _LOGICAL_CLOCK:
        raise BinlogError(f"GTID event: logical timestamps of an unknown type {clock}")
    uuid = _uuids.get(sid)
    gtid: Gtid | None
    if kind == _GTID and uuid is not None and number > 0:
        # Bypasses the constructor, which is Python and costs more than its arguments.
        gtid = tuple.__new__(Gtid, (uuid, number, ""))
    else:
        gtid = _gtid(kind, sid, number)
    return GtidEvent(
        gtid,
        flags & MAY_HAVE_STATEMENTS != 0,
        last_committed,
        sequence_number,
        immediate,
        original,
        length,
        version,
        original_version,
        ticket,
    )


def _gtid(kind: int, sid: bytes, number: int) -> Gtid | None:
    if kind == EventType.GTID_LOG_EVENT:
        if number < 1:
            raise BinlogError(f"GTID event: the transaction number {number} is not positive")
        return Gtid(uuid_text(sid), number)
    if kind != EventType.ANONYMOUS_GTID_LOG_EVENT:
        raise BinlogError(f"GTID event: event type {kind} is not 33, 34 or 42")
    if number:
        raise BinlogError(f"GTID event: anonymous, but with the transaction number {number}")
    return None


def _parse_short(event: bytes) -> GtidEvent:
    """Decode the formats of 5.6, 5.7 and 8.0.1, which end before the transaction length."""
    size = len(event) - HEADER_SIZE
    if size >= 0 and event[4] == EventType.GTID_TAGGED_LOG_EVENT:
        return _parse_tagged(event)
    last_committed = sequence_number = time = 0
    if size == _ONLY_GTID.size:
        flags, sid, number = _ONLY_GTID.unpack_from(event, HEADER_SIZE)
    elif size in {_WITH_CLOCK.size, _WITH_TIME}:
        flags, sid, number, clock, last_committed, sequence_number = _WITH_CLOCK.unpack_from(
            event, HEADER_SIZE
        )
        if clock != _LOGICAL_CLOCK:
            raise BinlogError(f"GTID event: logical timestamps of an unknown type {clock}")
        time = int.from_bytes(event[HEADER_SIZE + _WITH_CLOCK.size :], "little")
        if time & _BIT_55:
            raise BinlogError(f"GTID event: cut off after {len(event)} bytes")
    else:
        raise BinlogError(f"GTID event: a body of {size} bytes has no known format")
    gtid = _gtid(event[4], sid, number)
    may_have_statements = bool(flags & MAY_HAVE_STATEMENTS)
    return GtidEvent(
        gtid, may_have_statements, last_committed, sequence_number, time, time, 0, 0, 0, None
    )


_FIELDS: Final = (
    "flags",
    "UUID",
    "number",
    "tag",
    "last_committed",
    "sequence_number",
    "immediate commit time",
    "original commit time",
    "transaction length",
    "immediate server version",
    "original server version",
    "commit group ticket",
)
_SIGNED: Final = frozenset({2, 4, 5})
_MAY_BE_MISSING: Final = frozenset({7, 10, 11})
_TAG: Final = re.compile(r"([a-z_][a-z0-9_]{0,31})?")
_BITS: Final = {6: 55, 7: 55, 9: 31, 10: 31}
"""The number of bits that events of type 33 have for these fields."""


def _parse_tagged(event: bytes) -> GtidEvent:
    what = "GTID_TAGGED event"
    cursor = Cursor(event, HEADER_SIZE, what)
    version = cursor.varlen_uint("format version")
    if version != 1:
        raise BinlogError(f"{what}: unknown format version {version}")
    size = cursor.varlen_uint("size")
    if size != len(event) - HEADER_SIZE:
        raise BinlogError(f"{what}: announces {size} bytes, but has {len(event) - HEADER_SIZE}")
    needed = cursor.varlen_uint("last field that a reader must know")
    if needed >= len(_FIELDS):
        raise BinlogError(f"{what}: field {needed} is required but unknown")
    numbers: dict[int, int] = {}
    sid = tag = b""
    last = -1
    while cursor.left():
        field = cursor.varlen_uint("field id")
        if field <= last:
            raise BinlogError(f"{what}: field {field} comes after field {last}")
        last = field
        if field >= len(_FIELDS):
            # A value does not include its size, so nothing after an unknown one can be read; what
            # the event allows a reader to skip always comes last.
            break
        name = _FIELDS[field]
        if field == 1:
            octets = [cursor.varlen_uint(name) for _ in range(16)]
            if max(octets) > 255:
                raise BinlogError(f"{what}: {max(octets)} is not a byte of a UUID")
            sid = bytes(octets)
        elif field == 3:
            tag = cursor.take(cursor.varlen_uint("tag length"), name)
        elif field in _SIGNED:
            numbers[field] = cursor.varlen_int(name)
        else:
            numbers[field] = cursor.varlen_uint(name)
            if numbers[field] >> _BITS.get(field, 64):
                raise BinlogError(f"{what}: {name} {numbers[field]} is too large")
    for field, name in enumerate(_FIELDS):
        present = bool(sid) if field == 1 else field in numbers
        if not present and field != 3 and field not in _MAY_BE_MISSING:
            raise BinlogError(f"{what}: no field {name}")
    if numbers[2] < 1:
        raise BinlogError(f"{what}: the transaction number {numbers[2]} is not positive")
    tag_text = cursor.as_text(tag, "tag")
    if not _TAG.fullmatch(tag_text):
        raise BinlogError(f"{what}: {tag_text[:80]!r} is not a tag")
    return GtidEvent(
        Gtid(uuid_text(sid), numbers[2], tag_text),
        bool(numbers[0] & MAY_HAVE_STATEMENTS),
        numbers[4],
        numbers[5],
        numbers[6],
        numbers.get(7, numbers[6]),
        numbers[8],
        numbers[9],
        numbers.get(10, numbers[9]),
        numbers.get(11),
    )
