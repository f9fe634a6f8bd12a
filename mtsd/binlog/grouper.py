"""Events to groups, one after another as they come from the source.

A group begins at its GTID event (or, without one, at BEGIN, XA START or the first event of a
transaction) and ends at Xid, COMMIT, ROLLBACK or XA_PREPARE; a Query event without BEGIN is a
group by itself (`Log_event` execution modes of the server, sql/rpl_rli.h and log_event.h).
"""

from collections.abc import Iterator, Sequence
from struct import Struct

from mtsd.binlog.checksum import strip_checksum, verify_format_description
from mtsd.binlog.event_type import IGNORABLE, EventType
from mtsd.binlog.format_description import parse_format_description
from mtsd.binlog.group_parts import (
    GTIDS,
    LOAD_DATA,
    NEVER_INSIDE,
    PASSED_OVER,
    ROWS,
    SATELLITES,
    SAVEPOINTS,
    XA_BY_ITSELF,
)
from mtsd.binlog.header import HEADER_SIZE
from mtsd.binlog.heartbeat import parse_heartbeat
from mtsd.binlog.open_group import OpenGroup
from mtsd.binlog.payload import payload_events
from mtsd.binlog.plain_transactions import PlainTransactions
from mtsd.binlog.previous_gtids import parse_previous_gtids
from mtsd.binlog.query import parse_query
from mtsd.binlog.rewrite import plain_format_description
from mtsd.binlog.rotate import parse_rotate
from mtsd.binlog.statement import classify
from mtsd.binlog.table_map import TableMap, parse_table_map
from mtsd.binlog.temporary_tables import TemporaryTables
from mtsd.binlog.xa_prepare import parse_xa_prepare
from mtsd.binlog.xid import parse_xid
from mtsd.model.errors import BinlogError
from mtsd.model.group import GroupDropped, GroupKind, PositionReached, StreamItem
from mtsd.model.position import Position
from mtsd.model.step import StatementKind

_TABLE_MAP = EventType.TABLE_MAP_EVENT.value
_XID = EventType.XID_EVENT.value
_QUERY = EventType.QUERY_EVENT.value
_FORMAT_DESCRIPTION = EventType.FORMAT_DESCRIPTION_EVENT.value
_HEARTBEATS = frozenset({
    EventType.HEARTBEAT_LOG_EVENT.value, EventType.HEARTBEAT_LOG_EVENT_V2.value,
})  # fmt: skip
_ARTIFICIAL = frozenset({
    EventType.ROTATE_EVENT.value, _FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS_LOG_EVENT.value,
})  # fmt: skip
"""They may be in no file: then a source has made them for the dump."""
_SIZE_AND_END = Struct("<II")
"""At byte 9 of a header."""
_LOW = 0xFFFFFFFF
_FIRST = 4
"""Where a file's first event begins."""
_MANY_MAPS = 4096
_MANY_BYTES = 8 << 20


class Grouper:
    """Turns raw events, checksums included, into groups and what stands between them.

    One for each connection to the source, as a half group must not outlive it. `hold_bytes`:
    larger groups are streamed in chunks of about `chunk_bytes`. Row events on `position_schema`
    are left out, and it is no partition. `checksums`: whether events before the first format
    description end with a checksum, as they do in a dump, and never in a file.

    Every event has to begin where the one before it has ended: what a checksum does not tell is
    that whole events are missing, come twice or are out of order. A dump by GTID leaves groups
    out, and a source bridges these gaps by heartbeats. `temporary` goes on from a connection to the
    next.
    """

    def __init__(
        self,
        *,
        start: Position,
        next_number: int,
        checksums: bool,
        hold_bytes: int,
        chunk_bytes: int,
        position_schema: str = "",
        temporary: TemporaryTables | None = None,
    ) -> None:
        self.next_number = next_number
        """The number of the group that is being read, or of the next one."""
        self._file = start.file
        self._offset = start.offset
        self._hold_bytes = hold_bytes
        self._chunk_bytes = min(chunk_bytes, hold_bytes)
        self._position_schema = position_schema
        self._temporary = TemporaryTables() if temporary is None else temporary
        self._checksums = checksums
        self._in_payload = False
        self._format = b""
        self._maps: dict[bytes, tuple[TableMap, bytes]] = {}
        """By what stands behind the header: its contents, and the first such event.

        That one stands for all of them: their headers tell nothing that is of use.
        """
        self._maps_size = 0
        self._plain = PlainTransactions(hold_bytes)
        self._group: OpenGroup | None = None
        """The group whose GTID or first event has been seen, and not its end."""

    @property
    def position(self) -> Position:
        """Right after the last event that was read."""
        return Position(self._file, self._offset)

    def abandon(self) -> Iterator[StreamItem]:
        """End the stream: a half group leaves no trace."""
        group, self._group = self._group, None
        if group is not None and group.streaming:
            yield GroupDropped(self.next_number)

    def groups(self, events: Sequence[bytes]) -> Iterator[StreamItem]:
        """Yield what the events complete. Raises BinlogError."""
        count = len(events)
        at = 0
        while at < count:
            raw = events[at]
            if self._group is None and self._checksums:
                plain = self._plain.read(
                    events, at, self._file, self._offset, self.next_number, self._format
                )
                if plain is not None:
                    self._offset = plain[0].end.offset
                    self.next_number += 1
                    yield plain[0]
                    at = plain[1]
                    continue
            at += 1
            before = self._offset
            try:
                size = len(raw)
                if size < HEADER_SIZE:
                    raise BinlogError(f"an event of {size} bytes is shorter than a header")
                code = raw[4]
                if self._checksums and code != _FORMAT_DESCRIPTION:
                    event = strip_checksum(raw)
                else:
                    event = raw
                if not self._in_payload:
                    claimed, log_pos = _SIZE_AND_END.unpack_from(raw, 9)
                    if claimed != size:
                        raise BinlogError(f"an event of {size} bytes claims a length of {claimed}")
                    self._offset = before + size
                    if self._offset & _LOW != log_pos:
                        self._offset = self._moved(code, event, before, log_pos)
                if code in ROWS or code == _TABLE_MAP:
                    group = self._group
                    if group is None:
                        what = "table map" if code == _TABLE_MAP else "row event"
                        raise BinlogError(f"a {what} outside of a group")
                    if code == _TABLE_MAP:
                        self._table_map(event, group)
                    else:
                        group.rows(event)
                    if group.is_full:
                        yield from group.overflow()
                    continue
                if code == _XID:
                    parse_xid(event)
                    yield from self._end(GroupKind.ROWS, event)
                elif code in GTIDS:
                    if self._group is not None:
                        raise BinlogError("a GTID event inside a group")
                    self._opened(event).head(event)
                else:
                    yield from self._other(code, event)
                if self._group is not None and self._group.is_full:
                    yield from self._group.overflow()
            except BinlogError as error:
                raise BinlogError(error.message, Position(self._file, before)) from error

    def _moved(self, code: int, event: bytes, before: int, log_pos: int) -> int:
        """Return the offset after an event that does not lie right behind the one before it."""
        if code in _HEARTBEATS:
            position = parse_heartbeat(event).position
            offset = position.offset
            if code == EventType.HEARTBEAT_LOG_EVENT:
                # It has the low 32 bits only.
                offset = (before & ~_LOW) | log_pos
                offset += (1 << 32) * (offset < before)
            if position.file == self._file and offset >= before:
                if self._group is None or offset == before:
                    if offset != before:
                        self._temporary.miss()
                    return offset
                raise BinlogError(f"a heartbeat at {offset} inside a group: events are missing")
            raise BinlogError(f"a heartbeat at {position}")
        # The source's death leaves a half group, and the next file begins with a Rotate.
        inside = self._group is not None and code != EventType.ROTATE_EVENT
        if log_pos == 0 and code in _ARTIFICIAL and not inside:
            return before
        raise BinlogError(
            f"an event of type {code}, {len(event)} bytes, that ends at {log_pos}:"
            " events are missing, come twice or are out of order"
        )

    def _opened(self, event: bytes) -> OpenGroup:
        """Return the group that is being read, which begins with the event if there is none."""
        if self._group is None:
            self._group = OpenGroup(
                event,
                self.next_number,
                hold_bytes=self._hold_bytes,
                chunk_bytes=self._chunk_bytes,
                position_schema=self._position_schema,
                description=self._format,
                temporary=self._temporary,
            )
        return self._group

    def _table_map(self, event: bytes, group: OpenGroup) -> None:
        body = event[HEADER_SIZE:]
        known = self._maps.get(body)
        if known is None:
            self._maps_size += len(body)
            if len(self._maps) >= _MANY_MAPS or self._maps_size > _MANY_BYTES:
                self._maps.clear()
                self._maps_size = len(body)
            known = self._maps[body] = (parse_table_map(event), event)
        table, event = known
        if group.table_map(event, table):
            self._plain.learn_table(event, table)

    def _other(self, code: int, event: bytes) -> Iterator[StreamItem]:
        in_file = event[13:17] != b"\0\0\0\0"
        if code == _QUERY:
            yield from self._query(event)
        elif code == EventType.TRANSACTION_PAYLOAD_EVENT:
            yield from self._payload(event)
        elif code == EventType.XA_PREPARE_LOG_EVENT:
            parse_xa_prepare(event)
            yield from self._end(GroupKind.XA_PREPARE, event)
        elif code in PASSED_OVER:
            return
        elif code == EventType.ROTATE_EVENT:
            yield from self.abandon()
            self._rotate(parse_rotate(event).position)
            if in_file:
                yield PositionReached(self.position)
        elif code == EventType.FORMAT_DESCRIPTION_EVENT:
            yield from self.abandon()
            verify_format_description(event)
            description = parse_format_description(event)
            self._checksums = description.checksum_algorithm == 1
            self._format = plain_format_description(event)
            self._temporary.describe(int.from_bytes(event[5:9], "little"), description.created)
            self._maps.clear()
            self._maps_size = 0
            self._plain.forget_tables()
            if in_file:
                yield PositionReached(self.position)
        elif code == EventType.PREVIOUS_GTIDS_LOG_EVENT:
            gtids = parse_previous_gtids(event)
            if in_file:
                yield PositionReached(self.position, gtids)
        elif code == EventType.STOP_EVENT:
            yield from self.abandon()
            yield PositionReached(self.position)
        elif code == EventType.INCIDENT_EVENT:
            # Its own GTID comes before it: a person who settles it needs that.
            if self._group is not None and self._group.begun:
                yield from self.abandon()
            self._opened(event)
            yield from self._end(GroupKind.INCIDENT, event)
        elif code in SATELLITES:
            name, parse = SATELLITES[code]
            group = self._opened(event)
            group.refuse(f"{name} events")
            group.satellite(parse(event), event)
        elif code in LOAD_DATA:
            group = self._opened(event)
            group.refuse(f"{LOAD_DATA[code]} events (LOAD DATA)")
            group.load_file(event)
        elif not int.from_bytes(event[17:19], "little") & IGNORABLE:
            raise BinlogError(f"an event of unknown type {code}")

    def _rotate(self, to: Position) -> None:
        # The first one says where a dump begins. After that there is always one that tells the
        # next file, and mostly one in the file before it too.
        here = self.position
        if self._format and to != here:
            at_its_start = here.offset == _FIRST or to.offset != _FIRST
            if at_its_start or to.file == here.file or to < here:
                raise BinlogError(f"a Rotate event to {to}")
        self._file, self._offset = to

    def _payload(self, event: bytes) -> Iterator[StreamItem]:
        group = self._group
        if group is None or group.begun:
            raise BinlogError("a transaction payload that does not come right after its GTID event")
        # The inner events carry neither checksum nor a position of their own.
        checksums, self._checksums = self._checksums, False
        self._in_payload = True
        # The group is complete before it is known that the payload is sound to its end.
        held: StreamItem | None = None
        try:
            for inner in payload_events(event):
                if inner[4] in NEVER_INSIDE:
                    raise BinlogError(f"an event of type {inner[4]} is not allowed")
                if self._group is None:
                    raise BinlogError(f"an event of type {inner[4]} after the transaction's end")
                for item in self.groups((inner,)):
                    if held is not None:
                        yield held
                    held = item
            if self._group is not None:
                raise BinlogError("a transaction without its end")
        except BinlogError as error:
            # Its position is that of the payload's end.
            raise BinlogError(f"{error.message}, in a transaction payload") from error
        finally:
            self._checksums = checksums
            self._in_payload = False
        if held is not None:
            yield held

    def _query(self, event: bytes) -> Iterator[StreamItem]:
        query = parse_query(event)
        kind = classify(query.statement, context=query.context)
        if kind is StatementKind.XA_END:
            if self._group is None:
                raise BinlogError("XA END outside of a transaction")
            return
        group = self._opened(event)
        if kind in {StatementKind.BEGIN, StatementKind.XA_START}:
            if group.begun:
                raise BinlogError("BEGIN inside a transaction")
            group.begun = True
            if kind is StatementKind.XA_START:
                group.refuse("XA transactions")
        elif not group.begun:
            group.statement(event, query, kind)
            if kind in XA_BY_ITSELF:
                group.refuse("XA transactions")
                yield from self._end(GroupKind.XA_COMPLETE, event)
            else:
                yield from self._end(GroupKind.DDL, event)
        elif kind in {StatementKind.COMMIT, StatementKind.ROLLBACK}:
            if kind is StatementKind.ROLLBACK and not group.holds_nothing:
                group.refuse("a transaction that was rolled back")
            yield from self._end(GroupKind.NON_TRANSACTIONAL, event)
        elif kind in SAVEPOINTS:
            group.savepoint(event, query, kind)
        else:
            group.statement(event, query, kind)

    def _end(self, kind: GroupKind, event: bytes) -> Iterator[StreamItem]:
        group, self._group = self._group, None
        if group is None:
            raise BinlogError(f"the end of a transaction (event type {event[4]}) without a begin")
        self.next_number += 1
        yield from group.end(kind, event, self.position)
