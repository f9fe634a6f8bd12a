"""Events to groups, one after another as they come from the source.

A group begins at its GTID event (or, without one, at BEGIN, XA START or the first event of a
transaction) and ends at Xid, COMMIT, ROLLBACK or XA_PREPARE; a Query event without BEGIN is a
group by itself (`Log_event` execution modes of the server, sql/rpl_rli.h and log_event.h).
"""

from collections.abc import Iterator, Sequence
from zlib import crc32

from mtsd.binlog.checksum import RESIDUE, verify_format_description
from mtsd.binlog.event_type import IGNORABLE, MTS_ISOLATE, THREAD_SPECIFIC, EventType
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
from mtsd.binlog.gtid_event import GtidEvent, parse_gtid
from mtsd.binlog.header import HEADER_SIZE
from mtsd.binlog.payload import payload_events
from mtsd.binlog.plain_transactions import PlainTransactions
from mtsd.binlog.previous_gtids import parse_previous_gtids
from mtsd.binlog.qualifiers import qualifiers
from mtsd.binlog.query import MOST_DATABASES, QueryEvent, parse_query
from mtsd.binlog.rewrite import plain_format_description
from mtsd.binlog.rotate import parse_rotate
from mtsd.binlog.rows import STMT_END
from mtsd.binlog.statement import StatementKind, classify
from mtsd.binlog.table_map import TableMap, parse_table_map
from mtsd.model.errors import BinlogError
from mtsd.model.group import (
    Group,
    GroupChunk,
    GroupClosed,
    GroupDropped,
    GroupKind,
    GroupOpened,
    PositionReached,
    StreamItem,
)
from mtsd.model.gtid import Gtid
from mtsd.model.position import Position

_TABLE_MAP = EventType.TABLE_MAP_EVENT.value
_XID = EventType.XID_EVENT.value
_QUERY = EventType.QUERY_EVENT.value
_FORMAT_DESCRIPTION = EventType.FORMAT_DESCRIPTION_EVENT.value
_MANY_MAPS = 4096
_DROP_TABLE = b"DROP TABLE "
"""So servers begin the text of a DROP of base tables; it bears the flag of temporary ones."""


class Grouper:
    """Turns raw events, checksums included, into groups and what stands between them.

    One for each connection to the source, as a half group must not outlive it. `hold_bytes`:
    larger groups are streamed in chunks of about `chunk_bytes`. Row events on `position_schema`
    are left out, and it is no partition. `checksums`: whether events before the first format
    description end with a checksum, as they do in a dump, and never in a file.
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
    ) -> None:
        self.next_number = next_number
        """The number of the group that is being read, or of the next one."""
        self._file = start.file
        self._offset = start.offset
        self._hold_bytes = hold_bytes
        self._chunk_bytes = min(chunk_bytes, hold_bytes)
        self._position_schema = position_schema
        self._checksums = checksums
        self._in_payload = False
        self._format = b""
        self._maps: dict[bytes, TableMap] = {}
        self._plain = PlainTransactions(hold_bytes)
        self._open = False
        """Inside a group: its GTID or its first event has been seen."""
        self._begun = False
        """Inside a transaction: BEGIN or XA START has been seen."""
        self._clear()

    @property
    def position(self) -> Position:
        """Right after the last event that was read."""
        return Position(self._file, self._offset)

    def abandon(self) -> Iterator[StreamItem]:
        """End the stream: a half group leaves no trace."""
        if self._streaming:
            yield GroupDropped(self.next_number)
        self._clear()

    def groups(self, events: Sequence[bytes]) -> Iterator[StreamItem]:
        """Yield what the events complete. Raises BinlogError."""
        count = len(events)
        at = 0
        while at < count:
            raw = events[at]
            if not self._open and self._checksums:
                read = self._plain.read(
                    events, at, self._file, self._offset, self.next_number, self._format
                )
                if read is not None:
                    group, at = read
                    self._offset = group.end.offset
                    self.next_number += 1
                    yield group
                    continue
            at += 1
            before = self._offset
            try:
                size = len(raw)
                if size < HEADER_SIZE:
                    raise BinlogError(f"an event of {size} bytes is shorter than a header")
                code = raw[4]
                if self._checksums and code != _FORMAT_DESCRIPTION:
                    if crc32(raw) != RESIDUE:
                        raise BinlogError(f"checksum mismatch in an event of type {code}")
                    event = raw[:-4]
                else:
                    event = raw
                if code in ROWS or code == _TABLE_MAP:
                    # Where such an event ends needs no check: the group's end has one.
                    if not self._in_payload:
                        self._offset = before + size
                    if code == _TABLE_MAP:
                        self._table_map(event)
                    else:
                        self._rows(event)
                    if self._size > self._limit:
                        yield from self._overflow()
                    continue
                log_pos = int.from_bytes(raw[13:17], "little")
                if log_pos:
                    self._offset = before + size
                    if self._offset & 0xFFFFFFFF != log_pos:
                        self._jump(size, log_pos)
                if code == _XID:
                    yield from self._end(GroupKind.ROWS, event)
                elif code in GTIDS:
                    self._gtid(event)
                else:
                    yield from self._other(code, event, log_pos)
                if self._size > self._limit:
                    yield from self._overflow()
            except BinlogError as error:
                raise BinlogError(error.message, Position(self._file, before)) from error

    def _clear(self) -> None:
        self._open = False
        self._begun = False
        self._head: GtidEvent | None = None
        self._kind: GroupKind | None = None
        self._events: list[bytes] = []
        self._size = 0
        self._total = 0
        self._limit = self._hold_bytes
        self._streaming = False
        self._databases: dict[str, None] = {}
        self._alone = False
        self._unsupported = ""
        self._row_flags: int | None = None
        self._flags_differ = False
        self._left_out: set[bytes] = set()
        self._savepoints = False
        self._timestamp = 0

    def _jump(self, size: int, log_pos: int) -> None:
        # The header has the low 32 bits only, and a dump by GTID leaves groups out.
        before = self._offset - size
        offset = (before & ~0xFFFFFFFF) | log_pos
        self._offset = offset if offset >= before else offset + (1 << 32)

    def _begin(self, event: bytes) -> None:
        if self._begun:
            raise BinlogError("BEGIN inside a transaction")
        if not self._open:
            self._begin_group(event)
        self._begun = True

    def _gtid(self, event: bytes) -> None:
        if self._open:
            raise BinlogError("a GTID event inside a group")
        self._begin_group(event)
        self._head = head = parse_gtid(event)
        if head.transaction_length > self._hold_bytes:
            self._limit = self._chunk_bytes

    def _rows(self, event: bytes) -> None:
        if len(event) < 27:
            raise BinlogError("a row event is shorter than its header")
        if not self._open:
            raise BinlogError("a row event outside of a group")
        if self._left_out and event[19:25] in self._left_out:
            return
        flags = (event[25] | event[26] << 8) & ~STMT_END
        if self._row_flags is None:
            self._row_flags = flags
        elif self._row_flags != flags:
            self._flags_differ = True
        self._events.append(event)
        self._size += len(event)

    def _table_map(self, event: bytes) -> None:
        if not self._open:
            raise BinlogError("a table map outside of a group")
        body = event[HEADER_SIZE:]
        table = self._maps.get(body)
        if table is None:
            if len(self._maps) >= _MANY_MAPS:
                self._maps.clear()
            table = self._maps[body] = parse_table_map(event)
        if table.database == self._position_schema:
            self._left_out.add(body[:6])
            return
        self._left_out.discard(body[:6])
        self._plain.learn_table(event, table)
        self._databases[table.database] = None
        if table.referred_by_foreign_key_of_other_database:
            self._alone = True
        self._events.append(event)
        self._size += len(event)

    def _other(self, code: int, event: bytes, log_pos: int) -> Iterator[StreamItem]:
        if code == _QUERY:
            yield from self._query(event)
        elif code == EventType.TRANSACTION_PAYLOAD_EVENT:
            yield from self._payload(event)
        elif code == EventType.XA_PREPARE_LOG_EVENT:
            yield from self._end(GroupKind.XA_PREPARE, event)
        elif code in PASSED_OVER:
            return
        elif code == EventType.ROTATE_EVENT:
            yield from self.abandon()
            rotate = parse_rotate(event)
            self._file = rotate.position.file
            self._offset = rotate.position.offset
            if log_pos:
                yield PositionReached(self.position)
        elif code == EventType.FORMAT_DESCRIPTION_EVENT:
            yield from self.abandon()
            verify_format_description(event)
            description = parse_format_description(event)
            self._checksums = description.checksum_algorithm == 1
            self._format = plain_format_description(event)
            self._maps.clear()
            if log_pos:
                yield PositionReached(self.position)
        elif code == EventType.PREVIOUS_GTIDS_LOG_EVENT:
            gtids = parse_previous_gtids(event)
            if log_pos:
                yield PositionReached(self.position, gtids)
        elif code == EventType.STOP_EVENT:
            yield from self.abandon()
            yield PositionReached(self.position)
        elif code == EventType.INCIDENT_EVENT:
            # Its own GTID comes before it: a person who settles it needs that.
            if self._begun:
                yield from self.abandon()
            if not self._open:
                self._begin_group(event)
            yield from self._end(GroupKind.INCIDENT, event)
        elif code in SATELLITES:
            self._refuse(event, f"{SATELLITES[code]} events")
        elif code in LOAD_DATA:
            self._refuse(event, f"{LOAD_DATA[code]} events (LOAD DATA)")
        elif not int.from_bytes(event[17:19], "little") & IGNORABLE:
            raise BinlogError(f"an event of unknown type {code}")

    def _begin_group(self, event: bytes) -> None:
        self._open = True
        self._timestamp = int.from_bytes(event[:4], "little")

    def _refuse(self, event: bytes, what: str) -> None:
        if not self._open:
            self._begin_group(event)
        self._unsupported = self._unsupported or what
        self._events.append(event)
        self._size += len(event)

    def _payload(self, event: bytes) -> Iterator[StreamItem]:
        # The inner events carry neither checksum nor a position of their own.
        checksums, self._checksums = self._checksums, False
        self._in_payload = True
        try:
            for inner in payload_events(event):
                if inner[4] in NEVER_INSIDE:
                    raise BinlogError(f"an event of type {inner[4]} is not allowed")
                yield from self.groups((inner[:13] + b"\0\0\0\0" + inner[17:],))
        except BinlogError as error:
            # Its position is that of the payload's end.
            raise BinlogError(f"{error.message}, in a transaction payload") from error
        finally:
            self._checksums = checksums
            self._in_payload = False

    def _query(self, event: bytes) -> Iterator[StreamItem]:
        query = parse_query(event)
        kind = classify(query.statement, context=query.context)
        if kind is StatementKind.BEGIN:
            self._begin(event)
        elif kind is StatementKind.XA_START:
            if not self._open:
                self._begin_group(event)
            self._begun = True
            self._unsupported = "XA transactions"
        elif kind is StatementKind.XA_END:
            return
        elif self._begun and kind in {StatementKind.COMMIT, StatementKind.ROLLBACK}:
            if kind is StatementKind.ROLLBACK and (self._events or self._streaming):
                self._unsupported = self._unsupported or "a transaction that was rolled back"
            yield from self._end(GroupKind.NON_TRANSACTIONAL, event)
        elif self._begun and kind in SAVEPOINTS:
            self._savepoint(event, kind)
        elif self._begun:
            self._statement(event, query, kind)
        else:
            if not self._open:
                self._begin_group(event)
            self._statement(event, query, kind)
            if kind in XA_BY_ITSELF:
                self._unsupported = "XA transactions"
                yield from self._end(GroupKind.XA_COMPLETE, event)
            else:
                yield from self._end(GroupKind.DDL, event)

    def _savepoint(self, event: bytes, kind: StatementKind) -> None:
        # Names no database, and does nothing unless the transaction goes back to it.
        self._savepoints = True
        if kind is StatementKind.ROLLBACK_TO and self._kind is None:
            self._kind = GroupKind.STATEMENTS
        self._events.append(event)
        self._size += len(event)

    def _statement(self, event: bytes, query: QueryEvent, kind: StatementKind) -> None:
        if kind is StatementKind.CREATE_SELECT:
            self._kind = GroupKind.CREATE_SELECT
        elif self._begun and self._kind is None:
            self._kind = GroupKind.STATEMENTS
        if kind is StatementKind.TEMPORARY or (
            event[17] & THREAD_SPECIFIC and not query.statement.startswith(_DROP_TABLE)
        ):
            self._unsupported = self._unsupported or "temporary tables"
        names = query.updated_databases
        if names == (self._position_schema,) and self._position_schema:
            return
        if not names or query.over_max or names == ("",):
            self._alone = True
            names = (query.database,) if query.database else ()
        used = dict.fromkeys(names)
        if not self._begun:
            used |= dict.fromkeys(qualifiers(query.statement, query.context))
            if query.database:
                used[query.database] = None
            if len(used) > MOST_DATABASES:
                self._alone = True
        for name in used:
            if name != self._position_schema:
                self._databases[name] = None
        self._events.append(event)
        self._size += len(event)

    def _overflow(self) -> Iterator[StreamItem]:
        if not self._streaming:
            self._streaming = True
            self._limit = self._chunk_bytes
            if self._kind is GroupKind.CREATE_SELECT:
                # Between its statement and its rows nothing else may be sent to the target.
                self._unsupported = self._unsupported or "a large CREATE TABLE … SELECT"
            head = self._head
            yield GroupOpened(
                number=self.next_number,
                gtid=head.gtid if head else None,
                commit_time=self._commit_time(),
                length=head.transaction_length if head else 0,
                format_description=self._format,
                unsupported=self._unsupported,
            )
        yield self._chunk()

    def _chunk(self) -> GroupChunk:
        chunk = GroupChunk(tuple(self._events), self._size)
        self._events = []
        self._total += self._size
        self._size = 0
        return chunk

    def _end(self, kind: GroupKind, event: bytes) -> Iterator[StreamItem]:
        if not self._open:
            raise BinlogError(f"the end of a transaction (event type {event[4]}) without a begin")
        if kind is GroupKind.ROWS and self._kind is not None:
            kind = self._kind
        if self._savepoints and self._kind is None:
            self._events = [kept for kept in self._events if kept[4] != _QUERY]
            self._size = sum(map(len, self._events))
        if int.from_bytes(event[17:19], "little") & MTS_ISOLATE:
            self._alone = True
        streaming = self._streaming
        if streaming and self._events:
            yield self._chunk()
        if not self._events and not streaming and not self._unsupported:
            kind = GroupKind.INCIDENT if kind is GroupKind.INCIDENT else GroupKind.EMPTY
        head = self._head
        gtid: Gtid | None = None
        last_committed = sequence_number = 0
        if head is not None:
            gtid = head.gtid
            last_committed = head.last_committed
            sequence_number = head.sequence_number
        group = Group(
            number=self.next_number,
            kind=kind,
            end=Position(self._file, self._offset),
            databases=tuple(self._databases),
            alone=self._alone,
            events=tuple(self._events),
            size=self._total + self._size,
            row_flags=None if self._flags_differ else self._row_flags,
            format_description=self._format,
            gtid=gtid,
            last_committed=last_committed,
            sequence_number=sequence_number,
            commit_time=self._commit_time(),
            unsupported=self._unsupported,
        )
        self.next_number += 1
        self._clear()
        yield GroupClosed(group) if streaming else group

    def _commit_time(self) -> int:
        head = self._head
        if head is not None and head.immediate_commit_time:
            return head.immediate_commit_time
        return self._timestamp * 1_000_000
