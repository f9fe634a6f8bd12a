"""MariaDB's GTID and GTID_LIST events.

GTID, type 162, little-endian: number u64, domain u32, flags u8; with flag 2 a commit id u64; with
flag 64 or 128 the XA transaction's name: format id u32, length of gtrid u8, length of bqual u8,
both of them; then extra flags u8, and what belongs to them: with 1 the number of further engines
u8, with 4 or 8 the number of the ALTER that is completed u64, with 16 the thread id u32. The server
is that of the header. Bytes of zero fill up a body of 19 (MariaDB documentation, "Replication
Protocol, GTID_EVENT").

GTID_LIST, type 163: a u32 whose lower 28 bits are the number of GTIDs and whose upper bits are
flags, then for each domain u32, server u32, number u64: the last GTID of each domain and server
before the file, of which a domain's last one is the most recent.
"""

from struct import Struct
from typing import Final

from mtsd.binlog.bytes.cursor import Cursor, u32_at
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.gtid_event import GtidEvent, Opens
from mtsd.model.errors import BinlogError
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.xa_xid import LONGEST_PART, XaXid

STANDALONE: Final = 0x1
"""The group is one statement that commits by itself; without it, this event is also its BEGIN."""
_GROUP_COMMIT_ID: Final = 0x2
DDL: Final = 0x20
PREPARED_XA: Final = 0x40
_COMPLETED_XA: Final = 0x80

_MULTI_ENGINE: Final = 0x1
_START_ALTER: Final = 0x2
_COMMIT_ALTER: Final = 0x4
_ROLLBACK_ALTER: Final = 0x8
_THREAD_ID: Final = 0x10
_KNOWN_EXTRA: Final = _MULTI_ENGINE | _START_ALTER | _COMMIT_ALTER | _ROLLBACK_ALTER | _THREAD_ID

_NOTHING: Final = Opens.NOTHING
_TRANSACTION: Final = Opens.TRANSACTION
_XA: Final = Opens.XA
_CREATE_SELECT: Final = Opens.CREATE_SELECT

_BODY: Final = Struct("<QIB")
_LENGTH: Final = 19
_EMPTY_LIST_FILLING: Final = 2
_LIST_COUNT: Final = (1 << 28) - 1
_WHAT: Final = "MariaDB GTID event"
_origins: Final[dict[tuple[int, int], str]] = {}
# A stream has few servers; the bound is for damaged streams.
_MAX_ORIGINS: Final = 4096


def parse_mariadb_gtid(event: bytes) -> GtidEvent:
    """Decode an event of type 162; raises BinlogError if truncated or a flag is unknown."""
    if len(event) < HEADER_SIZE + _LENGTH:
        raise BinlogError(f"{_WHAT}: cut off after {len(event)} bytes")
    # Declared, so that compiled code knows their types.
    number: int
    domain: int
    flags: int
    number, domain, flags = _BODY.unpack_from(event, HEADER_SIZE)
    if number < 1:
        raise BinlogError(f"{_WHAT}: the transaction number is 0")
    commit_id = 0
    xid: XaXid | None = None
    at = HEADER_SIZE + _BODY.size
    if flags & _GROUP_COMMIT_ID:
        if len(event) < at + 8:
            raise BinlogError(f"{_WHAT}: cut off after {len(event)} bytes, within its commit id")
        commit_id = u32_at(event, at) | u32_at(event, at + 4) << 32
        at += 8
    is_xa = flags & (PREPARED_XA | _COMPLETED_XA)
    if is_xa or any(event[at:]):
        cursor = Cursor(event, at, _WHAT)
        if is_xa:
            xid = _xid(cursor)
        if cursor.left():
            _skip_extra(cursor)
    opens = _NOTHING
    if not flags & STANDALONE:
        opens = _TRANSACTION
        if flags & PREPARED_XA:
            opens = _XA
        elif flags & DDL:
            opens = _CREATE_SELECT
    origin = _origin(domain, u32_at(event, 5))
    # Bypasses the constructor, which is Python and costs more than its arguments.
    gtid = tuple.__new__(Gtid, (origin, number, ""))
    # Whether statements follow is not said.
    return GtidEvent(gtid, True, 0, 0, 0, 0, 0, 0, 0, None, opens, xid, commit_id)


def _xid(cursor: Cursor) -> XaXid:
    format_id = cursor.uint(4, "format id")
    sizes = cursor.uint(1, "gtrid length"), cursor.uint(1, "bqual length")
    if max(sizes) > LONGEST_PART:
        raise BinlogError(f"{_WHAT}: a name with parts of {sizes[0]} and {sizes[1]} bytes")
    return XaXid(format_id, cursor.take(sizes[0], "gtrid"), cursor.take(sizes[1], "bqual"))


def _skip_extra(cursor: Cursor) -> None:
    extra = cursor.uint(1, "extra flags")
    if extra & ~_KNOWN_EXTRA:
        raise BinlogError(f"{_WHAT}: unknown extra flags {extra:#x}")
    if extra & _MULTI_ENGINE:
        cursor.skip(1, "number of engines")
    if extra & (_COMMIT_ALTER | _ROLLBACK_ALTER):
        cursor.skip(8, "number of the ALTER")
    if extra & _THREAD_ID:
        cursor.skip(4, "thread id")
    if any(cursor.take(cursor.left(), "filling")):
        raise BinlogError(f"{_WHAT}: unexpected bytes at its end")


def _origin(domain: int, server: int) -> str:
    origin = _origins.get((domain, server))
    if origin is None:
        if len(_origins) >= _MAX_ORIGINS:
            _origins.clear()
        origin = _origins[domain, server] = f"{domain}-{server}"
    return origin


def parse_gtid_list(event: bytes) -> GtidSet:
    """Decode an event of type 163: what was executed before its file began.

    Raises BinlogError if it is truncated or inconsistent.
    """
    what = "MariaDB GTID_LIST event"
    cursor = Cursor(event, HEADER_SIZE, what)
    count = cursor.uint(4, "number of GTIDs") & _LIST_COUNT
    if not count and cursor.left() == _EMPTY_LIST_FILLING:
        cursor.skip(_EMPTY_LIST_FILLING, "filling")
    if count * 16 != cursor.left():
        raise BinlogError(f"{what}: {count} GTIDs do not have {cursor.left()} bytes")
    texts: list[str] = []
    for _ in range(count):
        domain = cursor.uint(4, "domain")
        server = cursor.uint(4, "server id")
        number = cursor.uint(8, "number")
        texts.append(f"{domain}-{server}-{number}")
    try:
        return GtidSet.parse(",".join(texts))
    except ValueError as error:
        raise BinlogError(f"{what}: {error}") from error
