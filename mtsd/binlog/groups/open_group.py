"""A group while it is being read: what the events so far amount to."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from mtsd.binlog.bytes.event_type import MTS_ISOLATE, THREAD_SPECIFIC
from mtsd.binlog.events.dialect import Dialect
from mtsd.binlog.events.gtid_event import GtidEvent, Opens
from mtsd.binlog.events.rows import STMT_END
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.groups.group_scope import GroupScope, databases_of_definition
from mtsd.binlog.groups.group_temporary_tables import DEFINITIONS, GroupTemporaryTables, thread_of
from mtsd.binlog.groups.held_events import HeldEvents
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.refusals import XA_UNDER_RULES, torn_apart, why_not_applied
from mtsd.binlog.groups.replicated_statement import (
    WITHOUT_EFFECT,
    of_version,
    renamed,
    replicated_part,
)
from mtsd.binlog.sql.qualifiers import defines_by_query
from mtsd.filter.filter import Filter
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
from mtsd.model.session import row_state
from mtsd.model.step import FromFile, QueryEvent, Satellite, StatementKind
from mtsd.model.temporary_tables import SourceThread, TemporaryTables
from mtsd.model.xa_xid import XaXid

_OF_XIDS: Final = frozenset({GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE})
_NEVER_EMPTY: Final = frozenset({GroupKind.INCIDENT, GroupKind.XA_PREPARE})
"""What was prepared without changes is committed or rolled back later all the same."""


class OpenGroup:
    """Collects the events of group `number`, which begins with `first`, at `begin`.

    When it has more than `hold_bytes` of them, they are passed on in chunks of about
    `chunk_bytes`, see `overflow`. What is not `replicated` is left out. `description` is the
    format description. `temporary` is what is known about the source's temporary tables; with
    `fold_case` their names are not case-sensitive. `dialect` is the source's. Databases
    that are `merged` are in the order of the stream, whatever the source says.
    """

    __slots__ = (
        "_begin", "_chunk_bytes", "_description", "_dialect", "_flags_differ",
        "_head", "_held", "_hold_bytes", "_kind", "_left_out", "_limit", "_merged", "_number",
        "_owners", "_passed_on", "_replicated", "_row_flags", "_scope", "_temporary", "_timestamp",
        "_timestamp_defaults", "_total", "_unsupported", "begun", "rolled_back", "streaming", "xid",
    )  # fmt: skip

    def __init__(
        self,
        first: bytes,
        number: int,
        *,
        begin: Position,
        hold_bytes: int,
        chunk_bytes: int,
        replicated: Filter,
        description: bytes,
        temporary: TemporaryTables,
        fold_case: bool,
        dialect: Dialect,
        merged: MergedDatabases,
        referred_in: Mapping[str, AbstractSet[str]] | None,
    ) -> None:
        self.begun = False
        """Inside a transaction: BEGIN or XA START has been seen."""
        self.rolled_back = False
        """It ends with ROLLBACK."""
        self.streaming = False
        self.xid: XaXid | None = None
        """Of the XA transaction that it is, or that it completes."""
        self._number = number
        self._begin = begin
        self._hold_bytes = hold_bytes
        self._chunk_bytes = chunk_bytes
        self._replicated = replicated
        self._description = description
        self._dialect = dialect
        self._merged = merged
        self._temporary = GroupTemporaryTables(
            temporary, fold_case=fold_case, renames=dialect.renames_temporary
        )
        self._head: GtidEvent | None = None
        self._kind: GroupKind | None = None
        self._total = 0
        self._limit = hold_bytes
        self._scope = GroupScope(replicated, merged, referred_in)
        self._held = HeldEvents()
        self._timestamp_defaults: bool | None = None
        """The explicit_defaults_for_timestamp of its session, as far as its statements say it."""
        self._unsupported = ""
        self._row_flags: int | None = None
        self._flags_differ = False
        self._left_out: set[bytes] = set()
        """Table ids whose row events are left out."""
        self._owners: dict[str, None] = {}
        """Other channels that replicate what is left out here."""
        self._passed_on = False
        """Whether there were changes among what has been passed on."""
        self._timestamp = int.from_bytes(first[:4], "little")

    @property
    def temporary(self) -> TemporaryTables:
        """What is known about the source's temporary tables after the last statement."""
        return self._temporary.known

    def head(self, head: GtidEvent) -> None:
        """Process the GTID event."""
        self._head = head
        if head.transaction_length > self._hold_bytes:
            self._limit = self._chunk_bytes
        if head.opens is not Opens.NOTHING:
            self.begun = True
            if head.opens is Opens.XA and head.xid is not None:
                self.of_xa(head.xid)

    @property
    def creates_and_fills(self) -> bool:
        """Whether its GTID event says that it creates a table and fills it."""
        return self._head is not None and self._head.opens is Opens.CREATE_SELECT

    def rows(self, event: bytes) -> None:
        """Add a row event. Raises BinlogError."""
        if len(event) < 27:
            raise BinlogError("a row event is shorter than its header")
        if self._left_out and event[19:25] in self._left_out:
            if event[25] & STMT_END:
                self._held.end_statement()
            return
        flags = (event[25] | event[26] << 8) & ~STMT_END
        if self._row_flags is None:
            self._row_flags = flags
        elif self._row_flags != flags:
            self._flags_differ = True
        self._held.add_row(event)

    def leave_out(self, table_id: bytes, owners: Sequence[str]) -> None:
        """Leave out the row events that follow of a table that is not replicated.

        `owners` are the other channels that replicate its database.
        """
        self._left_out.add(table_id)
        for channel in owners:
            self._owners[channel] = None

    def table_map(self, event: bytes, table: TableMap) -> None:
        """Add a Table_map event, as it is on the target."""
        if self._left_out:
            self._left_out.discard(event[19:25])
        self._temporary.only = False
        self._scope.has_rows_of(table)
        self._held.add_row(event)

    def refuse(self, what: str) -> None:
        """Note why the group is not applied; the first reason stays, and "" is none."""
        self._unsupported = self._unsupported or what

    def of_xa(self, xid: XaXid) -> None:
        """Note that it is an XA transaction, or completes one.

        That is refused where there are rules: MySQL does not support it, and its own replica goes
        on as long as something is left of the transaction.
        """
        self.xid = xid
        if self._replicated.rules:
            self.refuse(XA_UNDER_RULES)

    def begin(self, query: QueryEvent) -> None:
        """Note that its BEGIN or XA START has been seen."""
        self.begun = True
        self._timestamp_defaults = query.context.explicit_defaults_for_timestamp
        self._held.row_state = row_state(query.context)

    def ran_under(self, query: QueryEvent) -> None:
        """Correct what was assumed of its session before this statement said it.

        A MySQL source cannot change explicit_defaults_for_timestamp inside a transaction.
        """
        if self.begun:
            self._timestamp_defaults = query.context.explicit_defaults_for_timestamp
            self._held.ran_under(self._timestamp_defaults)

    def satellite(self, satellite: Satellite, event: bytes) -> None:
        """Add session state for the next statement."""
        self._held.add_satellite(satellite, event)

    def load_file(self, event: bytes) -> None:
        """Add a block of the file of a LOAD DATA, or its removal."""
        self._temporary.only = False
        self._held.add_file(event)

    def savepoint(self, event: bytes, query: QueryEvent, kind: StatementKind) -> None:
        """Add a statement that names no database and has no effect unless there is a rollback.

        It may say another state for the rows after it, which then are a step of their own.
        """
        self._held.add_statement(event, query, kind, idle=True)
        changed = self._take_state_over(query)
        if (changed or kind is StatementKind.ROLLBACK_TO) and self._kind is None:
            self._kind = GroupKind.STATEMENTS

    def completion(self, event: bytes, query: QueryEvent, kind: StatementKind, xid: XaXid) -> None:
        """Add the statement that commits or rolls back a prepared transaction.

        It names no database; its partitions are those of what was prepared.
        """
        self.of_xa(xid)
        self._held.add_statement(event, query, kind)

    def statement(
        self, event: bytes, query: QueryEvent, kind: StatementKind, file: FromFile | None = None
    ) -> bool:
        """Add a statement that changes something; `file` is that of a LOAD DATA.

        Return whether it is applied.
        """
        thread = None
        if event[17] & THREAD_SPECIFIC or kind in DEFINITIONS:
            thread = self._temporary.concerned(event, renamed(query, self._replicated), kind)
        applied = self._on_target(query, kind)
        if applied is None:
            if thread is not None and query.alter_phase not in WITHOUT_EFFECT:
                self._temporary.left_out(thread, renamed(query, self._replicated), kind)
            self._held.leave_out_statement(file)
            return False
        if thread is None:
            self._temporary.beside(thread_of(event, query))
        elif not self._has_to_be_applied(thread, applied, kind):
            self._held.leave_out_statement(None)
            return False
        if kind is StatementKind.DDL and self._head is not None:
            applied = of_version(applied, self._head.original_server_version)
        self.refuse(why_not_applied(applied, loads=file is not None))
        if kind is StatementKind.CREATE_SELECT:
            self._kind = GroupKind.CREATE_SELECT
        elif self._kind is None and (self.begun or file is not None):
            self._kind = GroupKind.STATEMENTS
        listed = query.updated_databases
        if kind is StatementKind.DDL and not self._dialect.lists_databases:
            listed = databases_of_definition(query)
        self._scope.has_statement(
            listed,
            applied,
            loads=file is not None,
            defines=not self.begun or self.creates_and_fills,
        )
        if kind in DEFINITIONS and defines_by_query(applied.text):
            self._scope.alone = True
        self._held.add_statement(event, applied, kind, file)
        self._take_state_over(query)
        return True

    def _take_state_over(self, query: QueryEvent) -> bool:
        """Let the rows that follow have the state of a statement; return whether it is another.

        As in a server's own replica, which keeps what the last statement has said.
        """
        former = self._held.row_state
        if former is None:
            return False
        self._held.row_state = row_state(query.context, former)
        return self._held.row_state != former

    def _on_target(self, query: QueryEvent, kind: StatementKind) -> QueryEvent | None:
        """Return a statement as it runs on the target; None if nothing of it is applied."""
        part = replicated_part(query, kind, self._replicated)
        for channel in part.owners:
            self._owners[channel] = None
        if part.refused:
            self.refuse(part.refused)
        return part.query

    def _has_to_be_applied(
        self, thread: SourceThread, query: QueryEvent, kind: StatementKind
    ) -> bool:
        """Note what a statement has to do with its session's temporary tables."""
        applied = self._temporary.statement(thread, query, kind)
        if self._temporary.unsupported:
            self.refuse(self._temporary.unsupported)
        return applied

    @property
    def _holds_changes(self) -> bool:
        # Without a row event there are only table maps.
        return self._held.have_changes(rows=self._row_flags is not None)

    @property
    def is_full(self) -> bool:
        """Whether the events held have to be passed on."""
        return self._held.size > self._limit

    def overflow(self) -> Iterator[StreamItem]:
        """Yield the events held as a chunk, preceded by the opening if it is the first."""
        if not self.streaming:
            self.streaming = True
            self._limit = self._chunk_bytes
            head = self._head
            defaults = self._held.timestamp_defaults
            yield GroupOpened(
                number=self._number,
                gtid=head.gtid if head else None,
                commit_time=self._commit_time(),
                length=head.transaction_length if head else 0,
                format_description=self._description,
                unsupported=self._unsupported,
                begin=self._begin,
                xid=self.xid,
                creates_table=self._kind is GroupKind.CREATE_SELECT,
                timestamp_defaults=self._timestamp_defaults if defaults is None else defaults,
            )
        if self._held:
            yield self._chunk()

    def end(self, kind: GroupKind, event: bytes, end: Position) -> Iterator[StreamItem]:
        """Yield the group, whose last event is `event`."""
        if kind is GroupKind.ROWS and self._kind is not None:
            kind = self._kind
        elif self._kind is GroupKind.CREATE_SELECT and not self.rolled_back:
            # Its table is not transactional, which the target finds out for itself.
            kind = self._kind
        if self._held.idle_bytes and (
            self._kind is None or not (self._passed_on or self._holds_changes)
        ):
            self._held.leave_out_idle()
        if int.from_bytes(event[17:19], "little") & MTS_ISOLATE:
            self._scope.alone = True
        if self._left_out and self._row_flags is None:
            # Table maps may be left, of tables without a row event.
            self._held.leave_out_table_maps()
        if self._owners and (self._passed_on or self._holds_changes):
            self.refuse(torn_apart(self._owners))
        if not self._held:
            if not (self.streaming or self._unsupported or kind in _NEVER_EMPTY):
                kind = GroupKind.EMPTY
                self._scope.databases.clear()
        elif self.streaming:
            yield self._chunk()
        databases = tuple(self._scope.databases)
        head = None if self._head is None else self._merged.in_order(self._head, databases)
        group = Group(
            number=self._number,
            kind=kind,
            end=end,
            databases=databases,
            alone=self._scope.alone,
            steps=self._held.taken_steps(),
            size=self._total + self._held.size,
            row_flags=None if self._flags_differ else self._row_flags,
            format_description=self._description,
            gtid=head.gtid if head else None,
            last_committed=head.last_committed if head else 0,
            sequence_number=head.sequence_number if head else 0,
            commit_time=self._commit_time(),
            unsupported=self._unsupported,
            temporary=self._temporary.news,
            uses_temporary=self._temporary.use(streaming=self.streaming),
            rolled_back=self.rolled_back,
            xid=self.xid if kind in _OF_XIDS else None,
            commit_id=head.commit_id if head else 0,
            begin=self._begin.offset,
        )
        yield GroupClosed(group) if self.streaming else group

    def _chunk(self) -> GroupChunk:
        self._passed_on = self._passed_on or self._holds_changes
        self._total += self._held.size
        return self._held.taken_chunk()

    def _commit_time(self) -> int:
        head = self._head
        logged = 0 if head is None else head.immediate_commit_time
        return logged or self._timestamp * 1_000_000
