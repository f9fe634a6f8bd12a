"""The fast path for what nearly every transaction is: a GTID, BEGIN, rows, Xid, already received.

A MariaDB's GTID is also the BEGIN, and the text of each statement may stand before its rows. This
path handles only what the general one in `mtsd.binlog.groups.grouper` would turn into the same
group: whatever does not have exactly the expected form, or is damaged, is left to that one
untouched.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from zlib_ng.zlib_ng import crc32

from mtsd.binlog.bytes.checksum import RESIDUE
from mtsd.binlog.bytes.cursor import u32_at
from mtsd.binlog.bytes.event_type import MTS_ISOLATE, EventType
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.dialect import MYSQL, Dialect
from mtsd.binlog.events.gtid_event import GtidEvent, Opens, parse_gtid
from mtsd.binlog.events.mariadb_gtid_event import parse_mariadb_gtid
from mtsd.binlog.events.query import MICROSECONDS_SIZE, rows_after_begin
from mtsd.binlog.events.rows import STMT_END
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, GroupKind
from mtsd.model.position import Position
from mtsd.model.session import RowState
from mtsd.model.step import Rows

_QUERY: Final[int] = EventType.QUERY_EVENT.value
_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_XID: Final[int] = EventType.XID_EVENT.value
_ANNOTATE_ROWS: Final[int] = EventType.MARIADB_ANNOTATE_ROWS_EVENT.value
_OF_STATEMENTS: Final[frozenset[int]] = frozenset({
    _QUERY, EventType.INTVAR_EVENT.value, EventType.RAND_EVENT.value,
    EventType.USER_VAR_EVENT.value,
})  # fmt: skip
"""What a transaction of statements begins with."""
_TRANSACTION: Final = Opens.TRANSACTION
_KIND: Final = GroupKind.ROWS
_EMPTY: Final = GroupKind.EMPTY
_END_AT: Final = 13
"""Where a header says at which position its event ends, in the low 32 bits."""
_SHORTEST_ROWS: Final = HEADER_SIZE + 8 + 4
_XID_SIZE: Final = HEADER_SIZE + 8 + 4
_BEGIN: Final = b"\0BEGIN"
_BEGIN_SIZE: Final = HEADER_SIZE + 13 + len(_BEGIN) + 4
"""Without its status variables and its database name."""
_STATUS_AT: Final = HEADER_SIZE + 13
"""Where the status variables begin."""
_AFTER_STATUS: Final = _BEGIN_SIZE - _STATUS_AT
"""From their end to that of the event, without the database name."""
_LOW: Final = 0xFFFFFFFF
_MANY: Final = 4096
_MANY_BYTES: Final = 8 << 20

Read = tuple[Group, int]
"""A group, and the index of the event after its last one."""


class PlainTransactions:
    """Recognizes them by table maps that the general path has read before, checksums included.

    None of them has more than `hold_bytes` of events.
    """

    __slots__ = (
        "_after_time", "_before_time", "_heads", "_hold_bytes", "_is_mysql", "_merged",
        "_row_types", "_size", "_states", "_tables", "_time_at", "_timed_state", "_unplaced",
    )  # fmt: skip

    def __init__(self, hold_bytes: int, merged: MergedDatabases) -> None:
        self.speak(MYSQL)
        self._hold_bytes = hold_bytes
        self._merged = merged
        self._tables: dict[bytes, tuple[str, bytes | None]] = {}
        """By the bytes after the header of a Table_map event: database and event on the target.

        None for the event if the table is not replicated.
        """
        self._size = 0
        self._states: dict[bytes, RowState] = {}
        """By the status variables of BEGIN, where they have no microseconds."""
        self._time_at = 0
        """Where the microseconds were in the last ones that had any; 0 before those."""
        self._before_time = b""
        self._after_time = b""
        """What was before and after them."""
        self._timed_state: RowState | None = None

    def speak(self, dialect: Dialect) -> None:
        """Go on with the events of this dialect."""
        self._is_mysql = dialect is MYSQL
        self._heads = dialect.heads
        self._row_types = dialect.rows
        self._unplaced = dialect.unplaced

    def learn_table(self, body: bytes, table: TableMap, event: bytes | None) -> None:
        """Remember a table, by the bytes after the header of its Table_map event.

        `event` is the one to apply, without its checksum; None if the table is not replicated.
        """
        if table.referred_by_foreign_key_of_other_database and event is not None:
            return
        self._size += len(body)
        if len(self._tables) >= _MANY or self._size > _MANY_BYTES:
            self._tables.clear()
            self._size = len(body)
        self._tables[body] = (table.database, event)

    def forget_tables(self) -> None:
        """Forget all tables: their ids are assigned again."""
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

        None if it is not plain, incomplete or damaged. The group gets `number` and the format
        `description`.
        """
        crc: Callable[[bytes], int] = crc32
        begin = offset
        try:
            first = events[at]
            is_mysql = self._is_mysql
            # Behind BEGIN, which a MySQL has in an event of its own.
            if events[at + 1 + is_mysql][4] in _OF_STATEMENTS:
                return None
            if first[4] not in self._heads or crc(first) != RESIDUE:
                return None
            offset += len(first)
            at += 1
            head: GtidEvent
            state: RowState | None = None
            if is_mysql:
                head = parse_gtid(first[:-4])
                raw = events[at]
                # The sizes of the status variables and of the database name tell where BEGIN is.
                size = _BEGIN_SIZE + (raw[30] | raw[31] << 8) + raw[27]
                if raw[4] != _QUERY or len(raw) != size:
                    return None
                if raw[-10:-4] != _BEGIN or crc(raw) != RESIDUE:
                    return None
                variables = raw[_STATUS_AT : size - _AFTER_STATUS - raw[27]]
                at_time = self._time_at
                if (
                    at_time
                    and variables[:at_time] == self._before_time
                    and variables[at_time + MICROSECONDS_SIZE :] == self._after_time
                ):
                    state = self._timed_state
                else:
                    state = self._states.get(variables)
                    if state is None:
                        state = self._learn_state(variables)
                offset += len(raw)
                at += 1
            else:
                head = parse_mariadb_gtid(first[:-4])
                if head.opens is not _TRANSACTION:
                    return None
            if head.transaction_length > self._hold_bytes:
                return None
            unplaced = self._unplaced
            row_types = self._row_types
            tables = self._tables
            databases: tuple[str, ...] = ()
            kept: list[bytes] = []
            size = 0
            row_flags = -1
            left_out: tuple[bytes, ...] = ()
            while True:
                raw = events[at]
                at += 1
                if crc(raw) != RESIDUE:
                    return None
                length = len(raw)
                offset += length
                code = raw[4]
                if code == _TABLE_MAP:
                    known = tables.get(raw[HEADER_SIZE:-4])
                    if known is None:
                        return None
                    database, described = known
                    if described is None:
                        left_out += (raw[19:25],)
                        continue
                    event = described
                    if database not in databases:
                        databases += (database,)
                elif code in row_types:
                    # The end of each event proves that none is duplicated or out of order.
                    end = u32_at(raw, _END_AT)
                    is_placed = end == offset & _LOW or (unplaced and not end)
                    if length < _SHORTEST_ROWS or not is_placed:
                        return None
                    if left_out:
                        if raw[19:25] not in left_out:
                            return None
                        continue
                    event = raw[:-4]
                    flags = (raw[25] | raw[26] << 8) & ~STMT_END
                    if flags != row_flags:
                        if row_flags >= 0:
                            return None
                        row_flags = flags
                elif code == _XID and length == _XID_SIZE:
                    if u32_at(raw, _END_AT) != offset & _LOW:
                        return None
                    break
                elif code == _ANNOTATE_ROWS and not is_mysql:
                    continue
                else:
                    return None
                kept.append(event)
                size += length - 4
        except (IndexError, struct.error, BinlogError):
            return None
        header_flags = raw[17] | raw[18] << 8
        # What is left out in part takes the general path.
        if header_flags & MTS_ISOLATE or bool(kept) == bool(left_out) or size > self._hold_bytes:
            return None
        if self._merged.names:
            head = self._merged.in_order(head, databases)
        # Bypasses the constructor, which is Python.
        position = tuple.__new__(Position, (file, offset))
        group = Group(
            number,
            _KIND if kept else _EMPTY,
            position,
            databases,
            False,
            (Rows(tuple(kept), state),) if kept else (),
            size,
            None if row_flags < 0 else row_flags,
            description,
            head.gtid,
            head.last_committed,
            head.sequence_number,
            head.immediate_commit_time or u32_at(first, 0) * 1_000_000,
            commit_id=head.commit_id,
            begin=begin,
        )
        return group, at

    def _learn_state(self, variables: bytes) -> RowState:
        state, time_at = rows_after_begin(variables)
        if time_at:
            self._time_at = time_at
            self._before_time = variables[:time_at]
            self._after_time = variables[time_at + MICROSECONDS_SIZE :]
            self._timed_state = state
        else:
            if len(self._states) >= _MANY:
                self._states.clear()
            self._states[variables] = state
        return state
