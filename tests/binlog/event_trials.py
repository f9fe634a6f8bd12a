"""What the grouper does with an event of each type, found out by giving it one."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.dialect import MYSQL
from mtsd.binlog.events.mariadb_compressed import PLAIN_TYPES
from mtsd.binlog.events.mariadb_gtid_event import STANDALONE
from mtsd.binlog.events.rows import UPDATES, VERSION_1
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.group import Group, GroupKind, PositionReached
from mtsd.model.position import FIRST_EVENT, Position
from tests.binlog.building import event, query
from tests.binlog.tagged_gtids import FIELDS, tagged
from tests.binlog.transactions import begin, grouper, gtid, placed, table_map, xid

T = EventType
BETWEEN, HEADED, INSIDE, PACKED = (
    "between groups", "after a GTID event", "inside a transaction", "in a payload",
)  # fmt: skip
PLACES: Final = {"MySQL": (BETWEEN, HEADED, INSIDE, PACKED), "MariaDB": (BETWEEN, HEADED, INSIDE)}
"""By family of servers."""
FILE: Final = "binlog.000001"
START: Final = Position(FILE, FIRST_EVENT)
XA_START: Final = b"XA START X'78',X'',1"
_HEARTBEATS: Final = frozenset({T.HEARTBEAT_LOG_EVENT, T.HEARTBEAT_LOG_EVENT_V2})
_VERSIONS: Final = {"MySQL": b"9.7.4", "MariaDB": b"11.8.2-MariaDB"}
_COMPRESSED: Final = PLAIN_TYPES.keys() - {T.MARIADB_QUERY_COMPRESSED_EVENT.value}


@dataclass(frozen=True)
class Trial:
    """What became of an event: in words, or the message of the error that it stops with."""

    outcome: str
    error: str = ""


def examples(code: int, family: str) -> dict[str, bytes]:
    """Return a valid event of each kind that a type has, by what a person calls the kind.

    Types of no known contents have 40 bytes of zeros.
    """
    if code in {T.QUERY_EVENT, T.MARIADB_QUERY_COMPRESSED_EVENT}:
        statements = {
            "BEGIN": b"BEGIN",
            "COMMIT or ROLLBACK": b"COMMIT",
            "any other statement": b"CREATE TABLE t (a INT)",
        }
        return {
            name: query(statement) if code == T.QUERY_EVENT else _compressed_query(statement)
            for name, statement in statements.items()
        }
    return {"": event(code, _body(code, family))}


def tried(family: str, code: int, raw: bytes, place: str) -> Trial:
    """Give the grouper an event at a place of a family's binary log."""
    if place == PACKED:
        return _in_payload(family, code, raw)
    stream = _before(family, place, code)
    *former, last = placed([*stream, raw])
    if code in _HEARTBEATS:
        last = _heartbeat(last, FIRST_EVENT + sum(map(len, stream)))
    feed = grouper(start=START)
    for _ in feed.groups(former):
        pass
    inside, number = feed.inside, feed.next_number
    try:
        found = list(feed.groups([last]))
    except (BinlogError, NotSupportedError) as error:
        return Trial("stops", _message(error))
    moved = any(isinstance(item, PositionReached) for item in found)
    assert not (moved and feed.inside), "a position inside a group"
    for group in found:
        if isinstance(group, Group):
            assert feed.next_number == number + 1
            if group.kind is GroupKind.INCIDENT:
                return Trial("stops", "the source reports an incident")
            return Trial("ends the group" if inside else "is a group by itself")
    if inside and not feed.inside:
        return Trial("drops the incomplete group")
    if feed.inside and not inside:
        return Trial("begins a group")
    if moved:
        return Trial("moves the position")
    if inside and _finished(stream, last) != _finished(stream):
        return Trial("is part of the group")
    return Trial("passed over")


def _finished(stream: Sequence[bytes], *more: bytes) -> Group:
    """Return the group that the events become with an end, whatever its position."""
    feed = grouper(start=START)
    for raw in placed([*stream, *more, query(b"CREATE TABLE t (a INT)"), xid()]):
        for item in feed.groups([raw]):
            if isinstance(item, Group):
                return replace(item, end=START)
    raise AssertionError("the group has not ended")


def _in_payload(family: str, code: int, raw: bytes) -> Trial:
    ends = code in {T.XID_EVENT, T.XA_PREPARE_LOG_EVENT} or raw[19:] == query(b"COMMIT")[19:]
    inner = [begin(), raw, *([] if ends else [xid()])]
    if raw[19:] == begin()[19:]:
        inner = [raw, xid()]
    if code == T.XA_PREPARE_LOG_EVENT:
        inner[0] = query(XA_START)
    feed = grouper(start=START)
    try:
        found = list(feed.groups(placed([*_before(family, HEADED), payload(inner)])))
    except (BinlogError, NotSupportedError) as error:
        return Trial("stops", _message(error))
    assert sum(isinstance(item, Group) for item in found) == 1
    return Trial("allowed")


def _before(family: str, place: str, code: int = 0) -> list[bytes]:
    """Return the events before a place."""
    stream = [described(family)]
    if place in {HEADED, INSIDE}:
        mysql = family == "MySQL"
        stream.append(gtid(1) if mysql else mariadb_gtid(STANDALONE if place == HEADED else 0))
        if place == INSIDE and code == T.XA_PREPARE_LOG_EVENT:
            stream[1:] = [gtid(1), query(XA_START)] if mysql else [query(XA_START)]
        elif place == INSIDE:
            stream += [*([begin()] if mysql else []), table_map(1)]
    return stream


def _message(error: BinlogError | NotSupportedError) -> str:
    return error.message if isinstance(error, BinlogError) else str(error)


def described(family: str, *, checksums: bool = False) -> bytes:
    """Return a family's format description; if there are `checksums`, without its own one."""
    lengths = bytearray(42)
    for code, size in {2: 13, 4: 8, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10, 33: 42,
                       34: 42, 39: 10}.items():  # fmt: skip
        lengths[code - 1] = size
    head = struct.pack("<H50sIB", 4, _VERSIONS[family], 0, 19)
    ending = b"\1" if checksums else b"\0" + bytes(4)
    return event(T.FORMAT_DESCRIPTION_EVENT, head + bytes(lengths) + ending)


def mariadb_gtid(flags: int = 0, rest: bytes = b"") -> bytes:
    """Return MariaDB's GTID event; `rest` is what its flags announce."""
    body = struct.pack("<QIB", 5, 0, flags) + rest
    return event(T.MARIADB_GTID_EVENT, body.ljust(19, b"\0"))


def payload(events: Sequence[bytes]) -> bytes:
    """Return a transaction payload that is not compressed."""
    inner = b"".join(events)
    fields = b"\x02\x03\xfc\xff\x00" + b"\x01\x03\xfc" + struct.pack("<H", len(inner)) + b"\0"
    return event(T.TRANSACTION_PAYLOAD_EVENT, fields + inner)


def _heartbeat(raw: bytes, offset: int) -> bytes:
    """Return the heartbeat of an example's type that fits the place."""
    name = FILE.encode()
    body = name
    if raw[4] == T.HEARTBEAT_LOG_EVENT_V2:
        where = b"\x02\x03\xfc" + struct.pack("<H", offset)
        body = bytes((1, len(name))) + name + where + b"\0"
    flags = int.from_bytes(raw[17:19], "little")
    return event(raw[4], body, flags=flags, log_pos=offset)


def _compressed_query(statement: bytes) -> bytes:
    plain = query(statement)
    head = plain[19 : len(plain) - len(statement)]
    return event(T.MARIADB_QUERY_COMPRESSED_EVENT, head + _packed(statement))


def _packed(data: bytes) -> bytes:
    return bytes((0x81, len(data))) + zlib.compress(data)


def _body(code: int, family: str) -> bytes:
    """Return the body of an event of a type."""
    if code in MYSQL.rows:
        return _row_event(code, b"\0\1\0\0\0")
    if code in _COMPRESSED:
        plain = _row_event(PLAIN_TYPES[code], b"")
        return plain + _packed(b"\0\1\0\0\0")
    if code in _BODIES:
        return _BODIES[code]
    if code == T.FORMAT_DESCRIPTION_EVENT:
        return described(family)[19:]
    return bytes(40)


def _row_event(code: int, images: bytes) -> bytes:
    extra = b"" if code in VERSION_1 else b"\2\0"
    bitmaps = b"\xff\xff" if code in UPDATES else b"\xff"
    return (1).to_bytes(6, "little") + b"\1\0" + extra + b"\1" + bitmaps + images


_BODIES: Final[dict[int, bytes]] = {
    T.ROTATE_EVENT: struct.pack("<Q", FIRST_EVENT) + b"binlog.000002",
    T.STOP_EVENT: b"",
    T.INTVAR_EVENT: struct.pack("<BQ", 1, 5),
    T.RAND_EVENT: bytes(16),
    T.USER_VAR_EVENT: struct.pack("<I", 1) + b"v\1",
    T.XID_EVENT: bytes(8),
    T.TABLE_MAP_EVENT: table_map(2)[19:],
    T.BEGIN_LOAD_QUERY_EVENT: b"\1\0\0\0block",
    T.APPEND_BLOCK_EVENT: b"\1\0\0\0block",
    T.DELETE_FILE_EVENT: b"\1\0\0\0",
    T.EXECUTE_LOAD_QUERY_EVENT: struct.pack("<IIBHHIIIB", 7, 0, 1, 0, 0, 1, 9, 19, 0)
    + b"d\0LOAD DATA INFILE 'x' INTO TABLE t",
    T.INCIDENT_EVENT: b"\1\0\4lost",
    T.GTID_LOG_EVENT: gtid(1)[19:],
    T.ANONYMOUS_GTID_LOG_EVENT: gtid()[19:],
    T.PREVIOUS_GTIDS_LOG_EVENT: bytes(8),
    T.GTID_TAGGED_LOG_EVENT: tagged(FIELDS)[19:],
    T.XA_PREPARE_LOG_EVENT: struct.pack("<BiII", 0, 1, 1, 0) + b"x",
    T.TRANSACTION_PAYLOAD_EVENT: payload([begin(), xid()])[19:],
    T.MARIADB_GTID_EVENT: mariadb_gtid()[19:],
    T.MARIADB_GTID_LIST_EVENT: struct.pack("<IIIQ", 1, 0, 1, 5),
    T.MARIADB_BINLOG_CHECKPOINT_EVENT: struct.pack("<I", len(FILE)) + FILE.encode(),
}
