"""A group while it is being read: what its events so far make of it."""

from collections.abc import Iterator

from mtsd.binlog.event_type import MTS_ISOLATE, THREAD_SPECIFIC, EventType
from mtsd.binlog.gtid_event import GtidEvent, parse_gtid
from mtsd.binlog.qualifiers import qualifiers
from mtsd.binlog.query import MOST_DATABASES, QueryEvent
from mtsd.binlog.rows import STMT_END
from mtsd.binlog.statement import StatementKind
from mtsd.binlog.table_map import TableMap
from mtsd.model.errors import BinlogError
from mtsd.model.group import (
    Group,
    GroupChunk,
    GroupClosed,
    GroupKind,
    GroupOpened,
    StreamItem,
)
from mtsd.model.position import Position

_QUERY = EventType.QUERY_EVENT.value
_DROP_TABLE = b"DROP TABLE "
"""So servers begin the text of a DROP of base tables; it bears the flag of temporary ones."""

_MOST_NAMED = 1 << 16
"""Databases of a group: one that has more runs alone, and the rest need not be known."""


class OpenGroup:
    """Collects the events of group `number`, which begins with `first`.

    More than `hold_bytes` of them go on as chunks of about `chunk_bytes`, see `overflow`. Row
    events and statements on `position_schema` are left out, and it is no partition.
    `description` is the format's.
    """

    __slots__ = (
        "_alone", "_chunk_bytes", "_databases", "_description", "_flags_differ", "_head",
        "_hold_bytes", "_kind", "_left_out", "_limit", "_number", "_position_schema",
        "_row_flags", "_savepoints", "_size", "_timestamp", "_total", "_unsupported", "begun",
        "events", "streaming",
    )  # fmt: skip

    def __init__(
        self,
        first: bytes,
        number: int,
        *,
        hold_bytes: int,
        chunk_bytes: int,
        position_schema: str,
        description: bytes,
    ) -> None:
        self.begun = False
        """Inside a transaction: BEGIN or XA START has been seen."""
        self.streaming = False
        self.events: list[bytes] = []
        self._number = number
        self._hold_bytes = hold_bytes
        self._chunk_bytes = chunk_bytes
        self._position_schema = position_schema
        self._description = description
        self._head: GtidEvent | None = None
        self._kind: GroupKind | None = None
        self._size = 0
        self._total = 0
        self._limit = hold_bytes
        self._databases: dict[str, None] = {}
        self._alone = False
        self._unsupported = ""
        self._row_flags: int | None = None
        self._flags_differ = False
        self._left_out: set[bytes] = set()
        self._savepoints = False
        self._timestamp = int.from_bytes(first[:4], "little")

    def head(self, event: bytes) -> None:
        """Take in the GTID event. Raises BinlogError."""
        self._head = head = parse_gtid(event)
        if head.transaction_length > self._hold_bytes:
            self._limit = self._chunk_bytes

    def rows(self, event: bytes) -> None:
        """Take in a row event. Raises BinlogError."""
        if len(event) < 27:
            raise BinlogError("a row event is shorter than its header")
        if self._left_out and event[19:25] in self._left_out:
            return
        flags = (event[25] | event[26] << 8) & ~STMT_END
        if self._row_flags is None:
            self._row_flags = flags
        elif self._row_flags != flags:
            self._flags_differ = True
        self._keep(event)

    def table_map(self, event: bytes, table: TableMap) -> bool:
        """Take in a Table_map event; tell whether the table is replicated."""
        table_id = event[19:25]
        if table.database == self._position_schema:
            self._left_out.add(table_id)
            return False
        self._left_out.discard(table_id)
        if len(self._databases) < _MOST_NAMED:
            self._databases[table.database] = None
        else:
            self._alone = True
        if table.referred_by_foreign_key_of_other_database:
            self._alone = True
        self._keep(event)
        return True

    def refuse(self, what: str, event: bytes | None = None) -> None:
        """Note that the group holds what is not applied, and keep the event, if given."""
        self._unsupported = self._unsupported or what
        if event is not None:
            self._keep(event)

    def savepoint(self, event: bytes, kind: StatementKind) -> None:
        """Take in what names no database, and does nothing unless the transaction goes back."""
        self._savepoints = True
        if kind is StatementKind.ROLLBACK_TO and self._kind is None:
            self._kind = GroupKind.STATEMENTS
        self._keep(event)

    def statement(self, event: bytes, query: QueryEvent, kind: StatementKind) -> None:
        """Take in a statement that changes something."""
        if kind is StatementKind.CREATE_SELECT:
            self._kind = GroupKind.CREATE_SELECT
        elif self.begun and self._kind is None:
            self._kind = GroupKind.STATEMENTS
        if kind is StatementKind.TEMPORARY or (
            event[17] & THREAD_SPECIFIC and not query.statement.startswith(_DROP_TABLE)
        ):
            self.refuse("temporary tables")
        names = query.updated_databases
        if names == (self._position_schema,) and self._position_schema:
            return
        if not names or query.over_max or names == ("",):
            self._alone = True
            names = (query.database,) if query.database else ()
        used = dict.fromkeys(names)
        if not self.begun:
            used |= dict.fromkeys(qualifiers(query.statement, query.context))
            if query.database:
                used[query.database] = None
            if len(used) > MOST_DATABASES:
                self._alone = True
        for name in used:
            if len(self._databases) >= _MOST_NAMED:
                self._alone = True
            elif name != self._position_schema:
                self._databases[name] = None
        self._keep(event)

    @property
    def is_full(self) -> bool:
        """Whether what is held has to go on."""
        return self._size > self._limit

    def overflow(self) -> Iterator[StreamItem]:
        """Yield what is held as a chunk, and the opening before the first."""
        if not self.streaming:
            self.streaming = True
            self._limit = self._chunk_bytes
            if self._kind is GroupKind.CREATE_SELECT:
                # Between its statement and its rows nothing else may be sent to the target.
                self.refuse("a large CREATE TABLE … SELECT")
            head = self._head
            yield GroupOpened(
                number=self._number,
                gtid=head.gtid if head else None,
                commit_time=self._commit_time(),
                length=head.transaction_length if head else 0,
                format_description=self._description,
                unsupported=self._unsupported,
            )
        yield self._chunk()

    def end(self, kind: GroupKind, event: bytes, end: Position) -> Iterator[StreamItem]:
        """Yield the group, whose last event is `event`."""
        if kind is GroupKind.ROWS and self._kind is not None:
            kind = self._kind
        if self._savepoints and self._kind is None:
            self.events = [kept for kept in self.events if kept[4] != _QUERY]
            self._size = sum(map(len, self.events))
        if int.from_bytes(event[17:19], "little") & MTS_ISOLATE:
            self._alone = True
        if self.streaming and self.events:
            yield self._chunk()
        if not (self.events or self.streaming or self._unsupported or kind is GroupKind.INCIDENT):
            kind = GroupKind.EMPTY
        head = self._head
        group = Group(
            number=self._number,
            kind=kind,
            end=end,
            databases=tuple(self._databases),
            alone=self._alone,
            events=tuple(self.events),
            size=self._total + self._size,
            row_flags=None if self._flags_differ else self._row_flags,
            format_description=self._description,
            gtid=head.gtid if head else None,
            last_committed=head.last_committed if head else 0,
            sequence_number=head.sequence_number if head else 0,
            commit_time=self._commit_time(),
            unsupported=self._unsupported,
        )
        yield GroupClosed(group) if self.streaming else group

    def _keep(self, event: bytes) -> None:
        self.events.append(event)
        self._size += len(event)

    def _chunk(self) -> GroupChunk:
        chunk = GroupChunk(tuple(self.events), self._size)
        self.events = []
        self._total += self._size
        self._size = 0
        return chunk

    def _commit_time(self) -> int:
        head = self._head
        if head is not None and head.immediate_commit_time:
            return head.immediate_commit_time
        return self._timestamp * 1_000_000
