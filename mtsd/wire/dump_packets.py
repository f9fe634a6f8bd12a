"""The commands by which a replica requests the binlog, and the replies; without I/O.

Layouts: MySQL source documentation, "Replication Protocol" (COM_REGISTER_SLAVE, COM_BINLOG_DUMP,
COM_BINLOG_DUMP_GTID); integers are little-endian. MariaDB documentation, "Replica Registration".
"""

from struct import Struct

from mtsd.model.errors import BinlogError, ServerError
from mtsd.model.position import Position

COM_BINLOG_DUMP = 0x12
COM_REGISTER_SLAVE = 0x15
COM_BINLOG_DUMP_GTID = 0x1E

MARIADB_CAPABILITY = b"@mariadb_slave_capability=4"
"""For SET before a dump: MariaDB then sends its own events instead of replacements for them."""

SEMI_SYNC = b"@rpl_semi_sync_replica=1, @rpl_semi_sync_slave=1"
"""For SET before a dump: each event then says whether the source waits for its acknowledgement."""

_NON_BLOCKING = 1 << 0
_HEARTBEAT_V2 = 1 << 1
"""To MariaDB, this flag requests ANNOTATE_ROWS events: without it, it leaves gaps in their places.
"""
_THROUGH_GTID = 1 << 2
_EVENT = 0x00
_EOF = 0xFE
_ERROR = 0xFF
_ACKNOWLEDGEMENT = 0xEF
_LONGEST_EOF = 9
_LONGEST_HOST = 60
"""Bytes; MySQL before 8.0.17 refuses to register a longer one."""
_LONGEST_TEXT = 4096
"""Bytes of an error message; servers write at most 512."""

_DUMP = Struct("<IHI")
_REGISTER_TAIL = Struct("<HII")


def register(server_id: int, host: str, port: int) -> bytes:
    """Return the payload of COM_REGISTER_SLAVE; user and password are left empty."""
    name = host.encode("utf-8")[:_LONGEST_HOST]
    return (
        server_id.to_bytes(4, "little")
        + bytes((len(name),))
        + name
        + b"\0\0"
        + _REGISTER_TAIL.pack(port, 0, 0)
    )


def dump(server_id: int, file: str, offset: int, *, to_the_end: bool = False) -> bytes:
    """Return the payload of COM_BINLOG_DUMP; raises BinlogError past 4 GiB, its limit.

    `to_the_end`: the dump ends after the last existing event instead of waiting for more.
    """
    if offset >= 1 << 32:
        raise BinlogError(f"{file}:{offset} is beyond 4 GiB: the protocol cannot request it")
    flags = _NON_BLOCKING | _HEARTBEAT_V2 if to_the_end else _HEARTBEAT_V2
    return _DUMP.pack(offset, flags, server_id) + file.encode()


def dump_gtid(server_id: int, gtid_set: bytes) -> bytes:
    """Return the payload of COM_BINLOG_DUMP_GTID: everything that the encoded set lacks."""
    return (
        (_THROUGH_GTID | _HEARTBEAT_V2).to_bytes(2, "little")
        + server_id.to_bytes(4, "little")
        + b"\0\0\0\0"
        + (4).to_bytes(8, "little")
        + len(gtid_set).to_bytes(4, "little")
        + gtid_set
    )


def acknowledgement(position: Position) -> bytes:
    """Return the payload that acknowledges everything up to a place in the source's binlog."""
    offset = position.offset.to_bytes(8, "little")
    return b"%c%b%b" % (_ACKNOWLEDGEMENT, offset, position.file.encode())


def event_of(payload: bytes) -> bytes:
    """Return the event of one packet of a dump, its checksum included.

    Raises ServerError if the packet is an error, EOFError if the source ends the dump,
    BinlogError if it is neither.
    """
    if not payload:
        raise BinlogError("an empty packet instead of an event")
    kind = payload[0]
    if kind == _EVENT:
        return payload[1:]
    if kind == _ERROR and len(payload) >= 3:
        number = int.from_bytes(payload[1:3], "little")
        has_state = payload[3:4] == b"#"
        state = payload[4:9].decode("ascii", "replace") if has_state else ""
        text_at = 9 if has_state else 3
        text = payload[text_at : text_at + _LONGEST_TEXT].decode("utf-8", "replace")
        raise ServerError(number, state, text)
    if kind == _EOF and len(payload) < _LONGEST_EOF:
        raise EOFError("the source ended the dump")
    raise BinlogError(f"a packet that begins with {kind:#04x} instead of an event")
