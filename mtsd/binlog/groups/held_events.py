"""The part of a group that is held until it is passed on: its steps, in their order."""

from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.load_data import parse_block
from mtsd.binlog.events.rows import STMT_END
from mtsd.binlog.groups.group_parts import SAVEPOINTS
from mtsd.binlog.groups.timestamp_defaults import under
from mtsd.model.group import GroupChunk
from mtsd.model.session import RowState
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

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value


class HeldEvents:
    """The events of a group that have been read and not been passed on, as steps."""

    __slots__ = ("_rows", "_satellites", "_steps", "idle_bytes", "row_state", "size")

    def __init__(self) -> None:
        self.size = 0
        """Bytes of all events."""
        self.idle_bytes = 0
        """Of savepoints and files, which have no effect by themselves."""
        self.row_state: RowState | None = None
        """Of the session whose rows are added."""
        self._steps: list[Step] = []
        self._rows: list[bytes] = []
        """Events of the step that comes after `_steps`, if any."""
        self._satellites: list[Satellite] = []
        """Of the next statement."""

    def __bool__(self) -> bool:
        """Return whether anything is held but satellites."""
        return bool(self._rows or self._steps)

    def have_changes(self, *, rows: bool) -> bool:
        """Return whether a step changes something; without `rows` there are only table maps."""
        return (rows and bool(self._rows)) or any(
            _is_change(step) and (rows or not isinstance(step, Rows)) for step in self._steps
        )

    def add_row(self, event: bytes) -> None:
        """Add a Table_map or row event."""
        self._rows.append(event)
        self.size += len(event)

    def add_satellite(self, satellite: Satellite, event: bytes) -> None:
        """Add session state for the next statement."""
        self._satellites.append(satellite)
        self.size += len(event)

    def add_file(self, event: bytes) -> None:
        """Add a block of the file of a LOAD DATA, or its removal."""
        self.idle_bytes += len(event)
        self._add(LoadFile(event), event)

    def add_statement(
        self,
        event: bytes,
        query: QueryEvent,
        kind: StatementKind,
        file: FromFile | None = None,
        *,
        idle: bool = False,
    ) -> None:
        """Add a statement; `idle`: it has no effect by itself."""
        if idle:
            self.idle_bytes += len(event)
        flags = event[17] | event[18] << 8
        satellites, self._satellites = self._satellites, []
        self._add(Statement(query, kind, flags, tuple(satellites), file), event)

    @property
    def timestamp_defaults(self) -> bool | None:
        """The explicit_defaults_for_timestamp of the first statement that has one."""
        defaults = (
            step.query.context.explicit_defaults_for_timestamp
            for step in self._steps
            if isinstance(step, Statement)
        )
        return next((each for each in defaults if each is not None), None)

    def ran_under(self, timestamp_defaults: bool | None) -> None:
        """Give all statements this explicit_defaults_for_timestamp."""
        self._steps = [
            step._replace(query=under(step.query, timestamp_defaults))
            if isinstance(step, Statement)
            else step
            for step in self._steps
        ]

    def end_statement(self) -> None:
        """End the statement of the last row event that is held: the one that did is left out."""
        if self._rows and self._rows[-1][4] != _TABLE_MAP:
            last = self._rows[-1]
            self._rows[-1] = last[:25] + bytes((last[25] | STMT_END,)) + last[26:]

    def leave_out_statement(self, file: FromFile | None) -> None:
        """Leave out what came before a statement that is not applied, and its file."""
        self._satellites = []
        if file is None:
            return
        kept = [
            step
            for step in self._steps
            if not (isinstance(step, LoadFile) and parse_block(step.event)[0] == file.file_id)
        ]
        self._steps = kept

    def leave_out_table_maps(self) -> None:
        """Leave out what is held if it is nothing but table maps."""
        if not self._steps:
            self._rows = []
            self.size = 0

    def leave_out_idle(self) -> None:
        """Reduce a transaction without other steps than rows to the one that it is."""
        self._rows = list(row_events(self.taken_steps()))
        self.size -= self.idle_bytes

    def taken_steps(self) -> tuple[Step, ...]:
        """Return the steps, which are no longer held; their bytes still count."""
        self._end_rows()
        steps, self._steps = self._steps, []
        for step in steps:
            if isinstance(step, Statement):
                step.query.text.let_go()
        return tuple(steps)

    def taken_chunk(self) -> GroupChunk:
        """Return what is held as a chunk, and hold nothing."""
        chunk = GroupChunk(self.taken_steps(), self.size)
        self.size = self.idle_bytes = 0
        return chunk

    def _add(self, step: Step, event: bytes) -> None:
        self._end_rows()
        self._steps.append(step)
        self.size += len(event)

    def _end_rows(self) -> None:
        if self._rows:
            self._steps.append(Rows(tuple(self._rows), self.row_state))
            self._rows = []


def _is_change(step: Step) -> bool:
    """Return whether a step changes something, rather than prepare or undo what others change."""
    if isinstance(step, LoadFile):
        return False
    return isinstance(step, Rows) or step.kind not in SAVEPOINTS
