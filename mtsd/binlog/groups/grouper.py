"""From events to groups, one after another as they come from the source.

A group begins at its GTID event (or, without one, at BEGIN, XA START or the first event of a
transaction) and ends at Xid, COMMIT, ROLLBACK or XA_PREPARE; a Query event without BEGIN is a
group by itself (`Log_event` execution modes of the server, sql/rpl_rli.h and log_event.h).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from mtsd.binlog.bytes.event_type import ARTIFICIAL, IGNORABLE, EventType, type_name
from mtsd.binlog.bytes.header import HEADER_SIZE
from mtsd.binlog.events.dialect import MYSQL
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.load_data import BEFORE_5_0, failed_after_a_part, parse_execute_load_query
from mtsd.binlog.events.query import in_utf8
from mtsd.binlog.events.xa_prepare import is_of, parse_xa_prepare
from mtsd.binlog.events.xid import parse_xid
from mtsd.binlog.groups.group_parts import SAVEPOINTS, XA_BY_ITSELF, XA_COMPLETIONS
from mtsd.binlog.groups.known_temporary_tables import KnownTemporaryTables
from mtsd.binlog.groups.load_data_files import LoadDataFiles
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.open_group import OpenGroup
from mtsd.binlog.groups.plain_transactions import PlainTransactions
from mtsd.binlog.groups.replicated_table_maps import ReplicatedTableMaps
from mtsd.binlog.groups.rewrite import plain_format_description
from mtsd.binlog.groups.timestamp_defaults import TimestampDefaults
from mtsd.binlog.groups.ungrouped import why_not_grouped
from mtsd.binlog.sql.statement import classify
from mtsd.binlog.sql.xa_statement import xid_of
from mtsd.filter.filter import UNFILTERED, Filter
from mtsd.model.errors import BinlogError
from mtsd.model.group import GroupDropped, GroupKind, PositionReached, StreamItem
from mtsd.model.gtid import Gtid
from mtsd.model.position import LogFile, Position
from mtsd.model.step import StatementKind
from mtsd.model.temporary_tables import NOT_KNOWN, TemporaryTables

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_XID: Final[int] = EventType.XID_EVENT.value
_QUERY: Final[int] = EventType.QUERY_EVENT.value


class Grouper:
    """Turns raw events, checksums included, into groups and what is between them.

    One for each connection to the source, because a partial group must not outlive it. Groups
    larger than `hold_bytes` are streamed in chunks of about `chunk_bytes`. What is not `replicated`
    is left out, and the rest has its names on the target. `checksums`, `description` and
    `leaving_out` are as for EventReader. `temporary` is what is known about the source's temporary
    tables at `start`, whatever a dump by GTID begins with before that; with `fold_case` their names
    are not case-sensitive. `files` are those of the connection before, if this one continues it;
    `timestamp_defaults`, what is known of the source's sessions, fills in what statements lack.
    `merged` is what earlier connections have learned about that. `referred_in`: by database, under
    its name on the target, those that a group concerns where others refer to its table; None: all.
    """

    def __init__(
        self,
        *,
        start: Position,
        next_number: int,
        checksums: bool,
        hold_bytes: int,
        chunk_bytes: int,
        replicated: Filter = UNFILTERED,
        temporary: TemporaryTables = NOT_KNOWN,
        fold_case: bool = False,
        description: bytes = b"",
        files: LoadDataFiles | None = None,
        in_place: bool = True,
        leaving_out: Sequence[Gtid] = (),
        timestamp_defaults: TimestampDefaults | None = None,
        merged: MergedDatabases | None = None,
        referred_in: Mapping[str, AbstractSet[str]] | None = None,
    ) -> None:
        self.next_number = next_number
        """The number of the group being read, or of the next one."""
        self._reader = EventReader(
            start,
            checksums=checksums,
            description=description,
            in_place=in_place,
            leaving_out=leaving_out,
        )
        self._dialect = MYSQL
        self._rows = MYSQL.rows
        self._hold_bytes = hold_bytes
        self._chunk_bytes = min(chunk_bytes, hold_bytes)
        self._replicated = replicated
        self.files = files or LoadDataFiles(hold_bytes)
        """The files of LOAD DATA whose statement has not been read."""
        self._fold_case = fold_case
        self._timestamp_defaults = timestamp_defaults or TimestampDefaults(None)
        self._merged = merged or MergedDatabases()
        self._temporary = KnownTemporaryTables(temporary, start, self._reader)
        self._before = start.offset
        """Where the last event begins, in its file."""
        self._format = b""
        self._referred_in = referred_in
        self._maps = ReplicatedTableMaps(replicated, self._merged, referred_in)
        self._plain = PlainTransactions(hold_bytes, self._merged)
        self._group: OpenGroup | None = None
        """The group whose GTID or first event has been seen, but not its end."""
        if description:
            self._described(description)

    @property
    def temporary(self) -> TemporaryTables:
        """What is known about the source's temporary tables after the last complete group."""
        return self._temporary.known

    @property
    def inside(self) -> bool:
        """Whether a group has begun and not ended."""
        return self._group is not None

    @property
    def position(self) -> Position:
        """Right after the last event read."""
        return self._reader.position

    def abandon(self) -> Iterator[StreamItem]:
        """End the stream: a partial group leaves no trace."""
        group, self._group = self._group, None
        self.files.abandon_group()
        if group is not None and group.streaming:
            yield GroupDropped(self.next_number)

    def pass_over(self, offset: int, count: int) -> None:
        """Go on at `offset` of the file, after `count` whole groups of rows that others read."""
        self._reader.offset = self._before = offset
        self.next_number += count

    def groups(self, events: Sequence[bytes]) -> Iterator[StreamItem]:
        """Yield what the events complete. Raises BinlogError."""
        reader = self._reader
        read = reader.read
        count = len(events)
        at = 0
        while at < count:
            if self._group is None and reader.checksums:
                plain = self._plain.read(
                    events, at, reader.file, reader.offset, self.next_number, self._format
                )
                if plain is not None:
                    reader.offset = plain[0].end.offset
                    self.next_number += 1
                    yield plain[0]
                    at = plain[1]
                    continue
            file = reader.file
            before = self._before = reader.offset
            try:
                group = self._group
                event = read(events[at], group is not None)
                code = event[4]
                if group is not None and (code in self._rows or code == _TABLE_MAP):
                    if code == _TABLE_MAP:
                        self._table_map(event, group)
                    else:
                        group.rows(event)
                    if group.is_full:
                        yield from group.overflow()
                elif group is None and code in self._dialect.heads:
                    if self._temporary.has_gap:
                        self._before = reader.offset - len(events[at])
                        known = self._temporary.after_gap()
                        if known is not None:
                            yield PositionReached(Position(file, self._before), temporary=known)
                    self._opened(event).head(self._dialect.parse_head(event))
                else:
                    yield from self._other(code, event)
            except BinlogError as error:
                raise BinlogError(error.message, Position(file, before)) from error
            at += 1

    def _inner(self, event: bytes, group: OpenGroup) -> Iterable[StreamItem]:
        """Process an event of a payload; return what it completes."""
        code = event[4]
        if code == _TABLE_MAP:
            self._table_map(event, group)
        elif code in self._rows:
            group.rows(event)
        else:
            return self._other(code, event)
        return group.overflow() if group.is_full else ()

    def _opened(self, event: bytes) -> OpenGroup:
        """Return the group being read; if there is none, one begins with this event."""
        if self._group is None:
            self._group = OpenGroup(
                event,
                self.next_number,
                begin=Position(self._reader.file, self._before),
                hold_bytes=self._hold_bytes,
                chunk_bytes=self._chunk_bytes,
                replicated=self._replicated,
                description=self._format,
                temporary=self._temporary.known,
                fold_case=self._fold_case,
                dialect=self._dialect,
                merged=self._merged,
                referred_in=self._referred_in,
            )
        return self._group

    def _table_map(self, event: bytes, group: OpenGroup) -> None:
        body = event[HEADER_SIZE:]
        table, kept = self._maps.of(body, event)
        if kept is None:
            group.leave_out(event[19:25], self._replicated.owners(table.database))
            if reason := self._maps.refusal(table):
                # Unlearned: the fast path would leave it out without a word.
                group.refuse(reason)
                return
        else:
            group.table_map(kept, table)
        self._plain.learn_table(body, table, kept)

    def _other(self, code: int, event: bytes) -> Iterator[StreamItem]:
        in_file = event[13:17] != b"\0\0\0\0"
        dialect = self._dialect
        if code == _XID:
            parse_xid(event)
            yield from self._end(GroupKind.ROWS, event)
        elif code == _QUERY:
            yield from self._query(event)
        elif code in dialect.heads:
            raise BinlogError("a GTID event inside a group")
        elif code == _TABLE_MAP:
            raise BinlogError("a table map outside of a group")
        elif code in self._rows:
            raise BinlogError("a row event outside of a group")
        elif code in dialect.payloads:
            yield from self._payload(event)
        elif code == EventType.XA_PREPARE_LOG_EVENT:
            prepared = parse_xa_prepare(event)
            if self._group is None or not is_of(prepared, self._group.xid):
                raise BinlogError(f"XA PREPARE {prepared.xid} of another transaction, or of none")
            kind = GroupKind.ROWS if prepared.one_phase else GroupKind.XA_PREPARE
            yield from self._end(kind, event)
        elif code in dialect.passed_over:
            known = self._temporary.after_gap()
            if known is not None:
                yield PositionReached(self.position, temporary=known)
            if code in dialect.between_groups and self._group is None:
                yield PositionReached(self.position)
        elif code == EventType.ROTATE_EVENT:
            yield from self.abandon()
            if in_file:
                yield PositionReached(self.position)
        elif code == EventType.FORMAT_DESCRIPTION_EVENT:
            yield from self.abandon()
            known = self._temporary.after_start() if self._described(event) and in_file else None
            yield LogFile(self._reader.file, int.from_bytes(event[:4], "little"))
            if in_file:
                yield PositionReached(self.position, temporary=known)
        elif code in dialect.previous_gtids:
            if self._group is not None:
                if event[17] & ARTIFICIAL:
                    # Where a MariaDB's log lacks the GTID of a place, this follows the next one.
                    return
                raise BinlogError(f"a {type_name(code)} inside a group")
            gtids = dialect.previous_gtids[code](event)
            first = in_file and dialect.all_have_gtids and not gtids
            known = self._temporary.after_previous_gtids(first=first)
            if in_file:
                yield PositionReached(self.position, gtids, known)
        elif code == EventType.STOP_EVENT:
            yield from self.abandon()
            yield PositionReached(self.position)
        elif code == EventType.INCIDENT_EVENT:
            # Its own GTID comes first: the person who resolves it needs that.
            if self._group is not None and self._group.begun:
                yield from self.abandon()
            self._opened(event)
            yield from self._end(GroupKind.INCIDENT, event)
        elif code in dialect.satellites:
            parse = dialect.satellites[code]
            self._opened(event).satellite(parse(event), event)
        elif code in dialect.load_data:
            yield from self._load_data(code, event)
        elif code in dialect.fragments or not int.from_bytes(event[17:19], "little") & IGNORABLE:
            raise BinlogError(why_not_grouped(code, dialect))
        if self._group is not None and self._group.is_full:
            yield from self._group.overflow()

    def _described(self, event: bytes) -> bool:
        """Process a format description; return whether the source started with its file."""
        before, self._format = self._format, plain_format_description(event)
        dialect = self._reader.dialect
        if dialect is not self._dialect:
            self._dialect = dialect
            self._rows = dialect.rows
            self._plain.speak(dialect)
        description = self._reader.description
        created = description is not None and description.created != 0
        if created:
            self._timestamp_defaults.forget_sessions()
        # A source numbers its tables from its start on, and goes on in its next file.
        if created or self._format != before:
            self._maps.forget()
            self._plain.forget_tables()
        return created

    def _payload(self, event: bytes) -> Iterator[StreamItem]:
        group = self._group
        if group is None or group.begun:
            raise BinlogError("a transaction payload that does not come right after its GTID event")
        # The group is complete before it is known whether the rest of the payload is valid.
        held: StreamItem | None = None
        try:
            for inner in self._reader.inner(event):
                if self._group is None:
                    raise BinlogError(f"an event of type {inner[4]} after the transaction's end")
                for item in self._inner(inner, self._group):
                    if held is not None:
                        yield held
                    held = item
            if self._group is not None:
                raise BinlogError("a transaction without its end")
        except BinlogError as error:
            # Its position is the end of the payload.
            raise BinlogError(f"{error.message}, in a transaction payload") from error
        if held is not None:
            yield held

    def _query(self, event: bytes) -> Iterator[StreamItem]:
        query = self._dialect.parse_query(event)
        kind = classify(query.text)
        if kind is StatementKind.XA_END:
            if self._group is None:
                raise BinlogError("XA END outside of a transaction")
            return
        group = self._opened(event)
        if self._timestamp_defaults.learn(query):
            group.ran_under(query)
        query = self._timestamp_defaults.completed(query)
        if kind is StatementKind.DDL and group.creates_and_fills:
            kind = StatementKind.CREATE_SELECT
        if kind is StatementKind.CREATE_SELECT:
            query = in_utf8(query)
        if kind in {StatementKind.BEGIN, StatementKind.XA_START}:
            if group.begun:
                raise BinlogError("BEGIN inside a transaction")
            group.begin(query)
            if kind is StatementKind.XA_START:
                group.of_xa(xid_of(query.text))
        elif not group.begun:
            if kind in XA_BY_ITSELF:
                xid = xid_of(query.text)
                group.completion(event, query, kind, xid)
                if kind not in XA_COMPLETIONS:
                    group.refuse("XA PREPARE, or XA COMMIT … ONE PHASE, as a statement")
                yield from self._end(GroupKind.XA_COMPLETE, event)
            else:
                group.statement(event, query, kind)
                yield from self._end(GroupKind.DDL, event)
        elif kind in {StatementKind.COMMIT, StatementKind.ROLLBACK}:
            group.rolled_back = kind is StatementKind.ROLLBACK
            yield from self._end(GroupKind.NON_TRANSACTIONAL, event)
        elif kind in SAVEPOINTS:
            group.savepoint(event, query, kind)
        else:
            group.statement(event, query, kind)

    def _load_data(self, code: int, event: bytes) -> Iterator[StreamItem]:
        if code in BEFORE_5_0:
            raise BinlogError(why_not_grouped(code, self._dialect))
        group = self._opened(event)
        if code != EventType.EXECUTE_LOAD_QUERY_EVENT:
            self.files.take(event)
            if group.streaming:
                self.files.pass_on()
            group.load_file(event)
            return
        query, file = parse_execute_load_query(event, self._dialect.parse_query)
        query = self._timestamp_defaults.completed(query)
        if reason := failed_after_a_part(query):
            group.refuse(reason)
        earlier = self.files.of_statement(file.file_id)
        if not isinstance(earlier, str):
            for block in earlier:
                group.load_file(block)
        applied = group.statement(event, query, StatementKind.DML, file)
        if applied and isinstance(earlier, str):
            group.refuse(earlier)
        if not group.begun:
            yield from self._end(GroupKind.NON_TRANSACTIONAL, event)

    def _end(self, kind: GroupKind, event: bytes) -> Iterator[StreamItem]:
        group, self._group = self._group, None
        if group is None:
            raise BinlogError(f"the end of a transaction (event type {event[4]}) without a BEGIN")
        self.next_number += 1
        self._temporary.known = group.temporary
        self.files.end_group()
        yield from group.end(kind, event, self.position)
