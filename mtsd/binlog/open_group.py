"""A group while it is being read: what the events so far amount to."""

from collections.abc import Iterator
from typing import Final

from mtsd.binlog.event_type import MTS_ISOLATE, THREAD_SPECIFIC
from mtsd.binlog.gtid_event import GtidEvent
from mtsd.binlog.position_schema import Treatment, treatment
from mtsd.binlog.qualifiers import qualifiers
from mtsd.binlog.query import INTERRUPTIONS, MAX_DBS_IN_EVENT_MTS
from mtsd.binlog.rows import STMT_END
from mtsd.binlog.table_map import TableMap
from mtsd.binlog.temporary_tables import (
    after,
    changes_only_temporary_tables,
    may_use_temporary_tables,
    names_one,
    what_may_use,
)
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
from mtsd.model.step import (
    FromFile,
    LoadFile,
    QueryEvent,
    Rows,
    Satellite,
    Statement,
    StatementKind,
    Step,
    row_events,
)
from mtsd.model.temporary_tables import (
    SourceThread,
    TableName,
    TemporaryTables,
    TemporaryUse,
)

_NONE: Final[frozenset[TableName]] = frozenset()
_MOST_NAMED: Final = 1 << 16
"""Databases of a group: one with more runs alone, and the rest need not be known."""


class OpenGroup:
    """Collects the events of group `number`, which begins with `first`.

    When it has more than `hold_bytes` of them, they are passed on in chunks of about
    `chunk_bytes`, see `overflow`. Row events and statements on `position_schema` are left out,
    and it is not a partition. `description` is the format description. `temporary` is what is
    known about the source's temporary tables; with `fold_case` their names are not case-sensitive.
    """

    __slots__ = (
        "_alone", "_chunk_bytes", "_created", "_databases", "_description", "_flags_differ",
        "_fold_case", "_head", "_hold_bytes", "_kind", "_left_out", "_limit", "_number",
        "_position_schema", "_row_flags", "_rows", "_satellites", "_savepoint_bytes", "_size",
        "_steps", "_temporary_before", "_thread", "_timestamp", "_total", "_unsupported",
        "_uses_only", "_uses_temporary", "begun", "rolled_back", "streaming", "temporary",
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
        temporary: TemporaryTables,
        fold_case: bool,
    ) -> None:
        self.begun = False
        """Inside a transaction: BEGIN or XA START has been seen."""
        self.rolled_back = False
        """It ends with ROLLBACK."""
        self.streaming = False
        self._number = number
        self._hold_bytes = hold_bytes
        self._chunk_bytes = chunk_bytes
        self._position_schema = position_schema
        self._description = description
        self.temporary = temporary
        """What is known about temporary tables after the last statement."""
        self._temporary_before = temporary
        self._thread: SourceThread | None = None
        """That whose temporary tables it has to do with."""
        self._uses_temporary = False
        self._created: frozenset[TableName] = frozenset()
        self._uses_only = True
        """It changes nothing but temporary tables."""
        self._fold_case = fold_case
        self._head: GtidEvent | None = None
        self._kind: GroupKind | None = None
        self._size = 0
        self._total = 0
        self._limit = hold_bytes
        self._databases: dict[str, None] = {}
        self._steps: list[Step] = []
        self._rows: list[bytes] = []
        """Events of the step that comes after `_steps`, if any."""
        self._satellites: list[Satellite] = []
        """Of the next statement."""
        self._alone = False
        self._unsupported = ""
        self._row_flags: int | None = None
        self._flags_differ = False
        self._left_out: set[bytes] = set()
        self._savepoint_bytes = 0
        """Of those held."""
        self._timestamp = int.from_bytes(first[:4], "little")

    def head(self, head: GtidEvent) -> None:
        """Process the GTID event."""
        self._head = head
        if head.transaction_length > self._hold_bytes:
            self._limit = self._chunk_bytes

    def rows(self, event: bytes) -> None:
        """Add a row event. Raises BinlogError."""
        if len(event) < 27:
            raise BinlogError("a row event is shorter than its header")
        if self._left_out and event[19:25] in self._left_out:
            return
        flags = (event[25] | event[26] << 8) & ~STMT_END
        if self._row_flags is None:
            self._row_flags = flags
        elif self._row_flags != flags:
            self._flags_differ = True
        self._keep_row(event)

    def table_map(self, event: bytes, table: TableMap) -> bool:
        """Add a Table_map event; return whether the table is replicated."""
        table_id = event[19:25]
        if table.database == self._position_schema:
            self._left_out.add(table_id)
            return False
        self._left_out.discard(table_id)
        self._uses_only = False
        if len(self._databases) < _MOST_NAMED:
            self._databases[table.database] = None
        else:
            self._alone = True
        if table.referred_by_foreign_key_of_other_database:
            self._alone = True
        self._keep_row(event)
        return True

    def refuse(self, what: str) -> None:
        """Note that the group contains something that is not applied."""
        self._unsupported = self._unsupported or what

    def satellite(self, satellite: Satellite, event: bytes) -> None:
        """Add session state for the next statement."""
        self._satellites.append(satellite)
        self._size += len(event)

    def load_file(self, event: bytes) -> None:
        """Add a block of the file of a LOAD DATA, or its removal."""
        self._uses_only = False
        self._kind = self._kind or GroupKind.STATEMENTS
        self._keep(LoadFile(event), event)

    def savepoint(self, event: bytes, query: QueryEvent, kind: StatementKind) -> None:
        """Add a statement that names no database and has no effect unless there is a rollback."""
        self._savepoint_bytes += len(event)
        if kind is StatementKind.ROLLBACK_TO and self._kind is None:
            self._kind = GroupKind.STATEMENTS
        self._keep_statement(event, query, kind)

    def statement(
        self, event: bytes, query: QueryEvent, kind: StatementKind, file: FromFile | None = None
    ) -> None:
        """Add a statement that changes something; `file` is that of a LOAD DATA."""
        thread = int.from_bytes(event[5:9], "little"), query.thread_id
        if event[17] & THREAD_SPECIFIC or kind is StatementKind.TEMPORARY:
            if not self._thread_specific(thread, query, kind):
                self._satellites = []
                return
        else:
            self._uses_only = False
        if query.error_code in INTERRUPTIONS:
            self.refuse(
                f"a statement that was interrupted on the source (error {query.error_code}),"
                " perhaps after a part of its changes"
            )
        if kind is StatementKind.CREATE_SELECT:
            self._kind = GroupKind.CREATE_SELECT
        elif self.begun and self._kind is None:
            self._kind = GroupKind.STATEMENTS
        names = query.updated_databases
        treated = treatment(query, self._position_schema)
        if treated is Treatment.LEFT_OUT:
            self._satellites = []
            return
        if treated is Treatment.REFUSED:
            self.refuse(
                f"a statement on a database with the position schema's name,"
                f" {self._position_schema!r}, and on others"
            )
        if not names or query.over_max or names == ("",):
            self._alone = True
            names = (query.database,) if query.database else ()
        used = dict.fromkeys(names)
        if file is not None and query.database:
            # Its character set is that of the file.
            used[query.database] = None
        if not self.begun:
            used |= dict.fromkeys(qualifiers(query.statement, query.context))
            if query.database:
                used[query.database] = None
            if len(used) > MAX_DBS_IN_EVENT_MTS:
                self._alone = True
        for name in used:
            if len(self._databases) >= _MOST_NAMED:
                self._alone = True
            elif name != self._position_schema:
                self._databases[name] = None
        self._keep_statement(event, query, kind, file)

    def _thread_specific(
        self, thread: SourceThread, query: QueryEvent, kind: StatementKind
    ) -> bool:
        """Note what a statement does to the temporary tables of its session, and uses of them.

        Return whether it has to be applied: dropping a table that was never created has not.
        """
        before = self.temporary
        known = thread in before.by_thread
        self.temporary = after(before, thread, query, kind, fold_case=self._fold_case)
        has = self.temporary.by_thread.get(thread, _NONE)
        self._created |= has - before.by_thread.get(thread, _NONE)
        if kind is StatementKind.DROP_TEMPORARY:
            if self.temporary is before:
                return False
        elif kind is not StatementKind.TEMPORARY:
            if not (before.may_have(thread) and may_use_temporary_tables(query, kind)):
                self._uses_only = False
                return True
            if not known or not (before.knows(thread) or names_one(before, thread, query)):
                self.refuse(what_may_use(before, thread))
                return True
            self._uses_temporary = True
        self._uses_only = self._uses_only and changes_only_temporary_tables(
            before, thread, query, kind, fold_case=self._fold_case
        )
        if self._thread is not None and self._thread != thread:
            self.refuse("temporary tables of several sessions in one transaction")
        self._thread = thread
        return True

    def _temporary_use(self) -> TemporaryUse | None:
        thread = self._thread
        if thread is None:
            return None
        return TemporaryUse(
            thread,
            self._temporary_before.by_thread.get(thread, frozenset()),
            self.temporary.by_thread.get(thread, frozenset()),
            self._uses_temporary,
            self._uses_only and not self.streaming,
            self._created,
        )

    @property
    def holds_nothing(self) -> bool:
        """Whether it has no steps so far."""
        return not (self._rows or self._steps or self.streaming)

    @property
    def is_full(self) -> bool:
        """Whether the events held have to be passed on."""
        return self._size > self._limit

    def overflow(self) -> Iterator[StreamItem]:
        """Yield the events held as a chunk, preceded by the opening if it is the first."""
        if not self.streaming:
            self.streaming = True
            self._limit = self._chunk_bytes
            if self._kind is GroupKind.CREATE_SELECT:
                # Nothing else may be sent to the target between its statement and its rows.
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
        if self._rows or self._steps:
            yield self._chunk()

    def end(self, kind: GroupKind, event: bytes, end: Position) -> Iterator[StreamItem]:
        """Yield the group, whose last event is `event`."""
        if kind is GroupKind.ROWS and self._kind is not None:
            kind = self._kind
        if self._savepoint_bytes and self._kind is None:
            self._leave_out_savepoints()
        if int.from_bytes(event[17:19], "little") & MTS_ISOLATE:
            self._alone = True
        if not (self._rows or self._steps):
            if not (self.streaming or self._unsupported or kind is GroupKind.INCIDENT):
                kind = GroupKind.EMPTY
        elif self.streaming:
            yield self._chunk()
        head = self._head
        group = Group(
            number=self._number,
            kind=kind,
            end=end,
            databases=tuple(self._databases),
            alone=self._alone,
            steps=self._taken_steps(),
            size=self._total + self._size,
            row_flags=None if self._flags_differ else self._row_flags,
            format_description=self._description,
            gtid=head.gtid if head else None,
            last_committed=head.last_committed if head else 0,
            sequence_number=head.sequence_number if head else 0,
            commit_time=self._commit_time(),
            unsupported=self._unsupported,
            temporary=None if self.temporary is self._temporary_before else self.temporary,
            uses_temporary=self._temporary_use(),
            rolled_back=self.rolled_back,
        )
        yield GroupClosed(group) if self.streaming else group

    def _keep_row(self, event: bytes) -> None:
        self._rows.append(event)
        self._size += len(event)

    def _keep_statement(
        self, event: bytes, query: QueryEvent, kind: StatementKind, file: FromFile | None = None
    ) -> None:
        flags = event[17] | event[18] << 8
        self._keep(Statement(query, kind, flags, self._taken_satellites(), file), event)

    def _keep(self, step: Step, event: bytes) -> None:
        self._end_rows()
        self._steps.append(step)
        self._size += len(event)

    def _end_rows(self) -> None:
        if self._rows:
            self._steps.append(Rows(tuple(self._rows)))
            self._rows = []

    def _taken_satellites(self) -> tuple[Satellite, ...]:
        satellites, self._satellites = self._satellites, []
        return tuple(satellites)

    def _taken_steps(self) -> tuple[Step, ...]:
        self._end_rows()
        steps, self._steps = self._steps, []
        return tuple(steps)

    def _leave_out_savepoints(self) -> None:
        """Reduce a transaction without statements to the one step of rows that it is."""
        self._rows = list(row_events(self._taken_steps()))
        self._size -= self._savepoint_bytes

    def _chunk(self) -> GroupChunk:
        chunk = GroupChunk(self._taken_steps(), self._size)
        self._total += self._size
        self._size = self._savepoint_bytes = 0
        return chunk

    def _commit_time(self) -> int:
        head = self._head
        if head is not None and head.immediate_commit_time:
            return head.immediate_commit_time
        return self._timestamp * 1_000_000
