"""The short way for what nearly every transaction is: a GTID, BEGIN, rows, Xid, all of it at hand.

It is for MySQL's dialect, and is taken only where the long way of `mtsd.binlog.grouper` gives the
same group: whatever is not of the very form that is expected here, or is damaged, is left to that
one as it stands.
"""

import struct
from collections.abc import Sequence

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.checksum import RESIDUE
from mtsd.binlog.dialect import MYSQL
from mtsd.binlog.event_type import MTS_ISOLATE, EventType
from mtsd.binlog.gtid_event import parse_gtid
from mtsd.binlog.header import HEADER_SIZE
from mtsd.binlog.rows import STMT_END
from mtsd.binlog.table_map import TableMap
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupKind
from mtsd.model.position import Position
from mtsd.model.step import Rows

_QUERY: int = EventType.QUERY_EVENT.value
_TABLE_MAP: int = EventType.TABLE_MAP_EVENT.value
_XID: int = EventType.XID_EVENT.value
_HEADS = MYSQL.heads
_ROWS = MYSQL.rows
_KIND = GroupKind.ROWS
_SHORTEST_ROWS = HEADER_SIZE + 8 + 4
_XID_SIZE = HEADER_SIZE + 8 + 4
_BEGIN = b"\0BEGIN"
_BEGIN_SIZE = HEADER_SIZE + 13 + len(_BEGIN) + 4
"""Less its status variables and its database's name."""
_END = struct.Struct("<I")
"""At byte 13 of a header: the position after the event."""
_LOW = 0xFFFFFFFF
_new = tuple.__new__
_MANY = 4096
_MANY_BYTES = 8 << 20

Read = tuple[Group, int]
"""A group, and the index of the event after its last one."""


class PlainTransactions:
    """Recognizes them by the table maps that the long way has read before, checksums included.

    None has more than `hold_bytes` of events.
    """

    __slots__ = ("_hold_bytes", "_size", "_tables")

    def __init__(self, hold_bytes: int) -> None:
        self._hold_bytes = hold_bytes
        self._tables: dict[bytes, tuple[str, bytes]] = {}
        """Database and event, by what stands behind the header of a Table_map event."""
        self._size = 0

    def learn_table(self, event: bytes, table: TableMap) -> None:
        """Take in a Table_map event, less its checksum, of a table that is replicated."""
        if table.referred_by_foreign_key_of_other_database:
            return
        self._size += len(event)
        if len(self._tables) >= _MANY or self._size > _MANY_BYTES:
            self._tables.clear()
            self._size = len(event)
        self._tables[event[HEADER_SIZE:]] = (table.database, event)

    def forget_tables(self) -> None:
        """Forget all tables: their ids begin anew."""
        self._tables.clear()
        self._size = 0

    def read(
        self,
        events: Sequence[bytes],
        at: int,
        file: str,
        offset: int,
        number: int,
        description: bytes,
    ) -> Read | None:
        """Return the transaction that begins with `events[at]`, at `offset` of `file`.

        None where it is not plain, not whole or not sound. `number` and the format's `description`
        become the group's.
        """
        try:
            first = events[at]
            if first[4] not in _HEADS or crc32(first) != RESIDUE:
                return None
            head = parse_gtid(first[:-4])
            if head.transaction_length > self._hold_bytes:
                return None
            raw = events[at + 1]
            # The sizes of the status variables and of the database's name tell where BEGIN begins.
            if raw[4] != _QUERY or len(raw) != _BEGIN_SIZE + (raw[30] | raw[31] << 8) + raw[27]:
                return None
            if raw[-10:-4] != _BEGIN or crc32(raw) != RESIDUE:
                return None
            unpack = _END.unpack_from
            offset += len(first) + len(raw)
            at += 2
            tables = self._tables
            databases: tuple[str, ...] = ()
            kept: list[bytes] = []
            size = 0
            row_flags = None
            while True:
                raw = events[at]
                at += 1
                if crc32(raw) != RESIDUE:
                    return None
                length = len(raw)
                offset += length
                code = raw[4]
                if code == _TABLE_MAP:
                    known = tables.get(raw[HEADER_SIZE:-4])
                    if known is None:
                        return None
                    database, event = known
                    if database not in databases:
                        databases += (database,)
                elif code in _ROWS:
                    # Where each of these ends tells that none has come twice or out of order.
                    if length < _SHORTEST_ROWS or unpack(raw, 13)[0] != offset & _LOW:
                        return None
                    event = raw[:-4]
                    flags = (raw[25] | raw[26] << 8) & ~STMT_END
                    if flags != row_flags:
                        if row_flags is not None:
                            return None
                        row_flags = flags
                elif code == _XID and length == _XID_SIZE:
                    if unpack(raw, 13)[0] != offset & _LOW:
                        return None
                    break
                else:
                    return None
                kept.append(event)
                size += length - 4
        except (IndexError, struct.error, BinlogError):
            return None
        header_flags = raw[17] | raw[18] << 8
        if header_flags & MTS_ISOLATE or not kept or size > self._hold_bytes:
            return None
        # A named tuple's own way of making one is the slowest part of all this.
        group = _new(
            Group,
            (
                number,
                _KIND,
                Position(file, offset),
                databases,
                False,
                (_new(Rows, (tuple(kept),)),),
                size,
                row_flags,
                description,
                head.gtid,
                head.last_committed,
                head.sequence_number,
                head.immediate_commit_time or int.from_bytes(first[:4], "little") * 1_000_000,
                "",
            ),
        )
        return group, at
