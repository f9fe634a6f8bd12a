"""A group: the unit that is applied as a whole or not at all, and what is passed on with it."""

import enum
from dataclasses import dataclass
from typing import Final, final

from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import NOWHERE, LogFile, Position
from mtsd.model.step import Step, row_events
from mtsd.model.temporary_tables import TemporaryTables, TemporaryUse
from mtsd.model.xa_xid import XaXid


class GroupKind(enum.Enum):
    """How a group has to be applied."""

    # Members are one of a kind: the enum's own would hash the name, in Python.
    __hash__ = object.__hash__

    EMPTY = "empty"
    """Nothing to apply: it only takes up its number."""
    ROWS = "rows"
    """Row events that end with Xid: may share a target transaction with adjacent groups."""
    STATEMENTS = "statements"
    """A transaction that ends with Xid and contains statements, perhaps row events too."""
    DDL = "ddl"
    """One Query event without BEGIN: commits by itself on the target."""
    CREATE_SELECT = "create_select"
    """`CREATE TABLE … START TRANSACTION`, row events, Xid."""
    NON_TRANSACTIONAL = "non_transactional"
    """Ends with the statement COMMIT or ROLLBACK: it changes a non-transactional table."""
    XA_PREPARE = "xa_prepare"
    """XA START … XA END, XA_PREPARE event; in one phase it is one of the kinds above instead."""
    XA_COMPLETE = "xa_complete"
    """XA COMMIT or XA ROLLBACK of a previously prepared transaction."""
    INCIDENT = "incident"
    """The source says that events were lost: the replica stops here."""


@final
@dataclass(slots=True, init=False)
class Group:
    """One group of events of the source. It never changes.

    `steps` is what has to be applied, in order. It leaves out Rows_query and the events that only
    open or close the group (GTID, BEGIN, Xid, COMMIT). As one is created for every transaction, it
    has a constructor of its own: those of frozen dataclasses and of tuples take several times as
    long.
    """

    number: Final[int]
    """Counts every complete group of the channel, starting at 1."""
    kind: Final[GroupKind]
    end: Final[Position]
    """Right after the group's last event."""
    databases: Final[tuple[str, ...]]
    """The partitions under the database policy: every database that the group updates."""
    alone: Final[bool]
    """OVER_MAX, or databases unknown: runs while nothing else does."""
    steps: Final[tuple[Step, ...]]
    size: Final[int]
    """Bytes of the events of its steps, uncompressed."""
    row_flags: Final[int | None]
    """The flags, without STMT_END, that all row events share; None if they differ."""
    format_description: Final[bytes]
    """The source's format description, simplified for appliers (`mtsd.binlog.groups.rewrite`)."""
    gtid: Final[Gtid | None]
    last_committed: Final[int]
    sequence_number: Final[int]
    commit_time: Final[int]
    """Commit time on the source in µs since 1970: from the GTID event, or else the headers."""
    unsupported: Final[str]
    """What the group contains that this version does not apply; empty if it can be applied."""
    tables: Final[tuple[str, ...]]
    """Every table that it updates, as "database.table"; only if the policy needs them."""
    temporary: Final[TemporaryTables | None]
    """What is known about the source's temporary tables after it; None if it changes none."""
    uses_temporary: Final[TemporaryUse | None]
    """What it has to do with temporary tables; None if nothing."""
    rolled_back: Final[bool]
    """It ends with ROLLBACK: of its changes only those remain that cannot be rolled back."""
    xid: Final[XaXid | None]
    """The transaction that it prepares or completes, by its kind; None for all other kinds."""
    commit_id: Final[int]
    """MariaDB: what the groups of one group commit have in common; 0 if there is none."""
    begin: Final[int]
    """The offset of its first event, in the file of `end`."""
    keys: Final[GroupKeys]
    """The keys of the rows that it changes; only if the policy needs them."""

    def __init__(
        self,
        number: int,
        kind: GroupKind,
        end: Position,
        databases: tuple[str, ...],
        alone: bool,
        steps: tuple[Step, ...],
        size: int,
        row_flags: int | None,
        format_description: bytes,
        gtid: Gtid | None,
        last_committed: int,
        sequence_number: int,
        commit_time: int,
        unsupported: str = "",
        tables: tuple[str, ...] = (),
        temporary: TemporaryTables | None = None,
        uses_temporary: TemporaryUse | None = None,
        rolled_back: bool = False,
        xid: XaXid | None = None,
        commit_id: int = 0,
        begin: int = 0,
        keys: GroupKeys = NO_KEYS,
    ) -> None:
        self.number = number
        self.kind = kind
        self.end = end
        self.databases = databases
        self.alone = alone
        self.steps = steps
        self.size = size
        self.row_flags = row_flags
        self.format_description = format_description
        self.gtid = gtid
        self.last_committed = last_committed
        self.sequence_number = sequence_number
        self.commit_time = commit_time
        self.unsupported = unsupported
        self.tables = tables
        self.temporary = temporary
        self.uses_temporary = uses_temporary
        self.rolled_back = rolled_back
        self.xid = xid
        self.commit_id = commit_id
        self.begin = begin
        self.keys = keys

    @property
    def rows(self) -> tuple[bytes, ...]:
        """All its row events and table maps, raw, in order."""
        return row_events(self.steps)


def with_keys(group: Group, keys: GroupKeys) -> Group:
    """Return the group with these keys: as `dataclasses.replace`, which takes far longer."""
    return Group(
        group.number,
        group.kind,
        group.end,
        group.databases,
        group.alone,
        group.steps,
        group.size,
        group.row_flags,
        group.format_description,
        group.gtid,
        group.last_committed,
        group.sequence_number,
        group.commit_time,
        group.unsupported,
        group.tables,
        group.temporary,
        group.uses_temporary,
        group.rolled_back,
        group.xid,
        group.commit_id,
        group.begin,
        keys,
    )


@dataclass(frozen=True, slots=True)
class GroupOpened:
    """The beginning of a group that is streamed because it is too large to be held in memory."""

    number: int
    gtid: Gtid | None
    commit_time: int
    length: int
    """Bytes announced by the GTID event; 0 if unknown."""
    format_description: bytes
    unsupported: str = ""
    begin: Position = NOWHERE
    """Where its first event begins."""
    xid: XaXid | None = None
    """Of an XA transaction, which its end prepares or, in one phase, commits."""
    creates_table: bool = False
    """It is a CREATE TABLE … SELECT, in row format: the statement, then the rows."""
    timestamp_defaults: bool | None = None
    """The explicit_defaults_for_timestamp of its statements; None if it is not known yet."""


@dataclass(frozen=True, slots=True)
class GroupChunk:
    """The next steps of the streamed group, in order; rows may be split between any two events."""

    steps: tuple[Step, ...]
    size: int


@dataclass(frozen=True, slots=True)
class GroupClosed:
    """The end of the streamed group; `group.steps` is empty, its other fields are complete."""

    group: Group


@dataclass(frozen=True, slots=True)
class GroupDropped:
    """The streamed group ended without its end event: it leaves no trace and uses no number."""

    number: int


@dataclass(frozen=True, slots=True)
class PositionReached:
    """Between groups, the stream has passed `end` (Rotate, FDE, Previous_gtids, Stop).

    `gtids` is everything executed before this place, if a Previous_gtids event says so.
    `temporary` is what is known about the source's temporary tables here, if that has changed.
    """

    end: Position
    gtids: GtidSet | None = None
    temporary: TemporaryTables | None = None


@dataclass(frozen=True, slots=True)
class LargeGroup:
    """A group of rows that is in memory, and large enough to be split (`split_transactions`)."""

    group: Group


StreamItem = (
    Group
    | GroupOpened
    | GroupChunk
    | GroupClosed
    | GroupDropped
    | PositionReached
    | LogFile
    | LargeGroup
)
