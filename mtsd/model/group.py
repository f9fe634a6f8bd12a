"""A group: the unit that is applied as a whole or not at all, and what is passed on with it."""

import enum
from dataclasses import dataclass
from typing import Final, NamedTuple

from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import NOWHERE, Position
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


class Group(NamedTuple):
    """One group of events of the source. A tuple, because one is created for every transaction.

    `steps` is what has to be applied, in order. It leaves out Rows_query and the events that only
    open or close the group (GTID, BEGIN, Xid, COMMIT).
    """

    number: int
    """Counts every complete group of the channel, starting at 1."""
    kind: GroupKind
    end: Position
    """Right after the group's last event."""
    databases: tuple[str, ...]
    """The partitions under the database policy: every database that the group updates."""
    alone: bool
    """OVER_MAX, or databases unknown: runs while nothing else does."""
    steps: tuple[Step, ...]
    size: int
    """Bytes of the events of its steps, uncompressed."""
    row_flags: int | None
    """The flags, without STMT_END, that all row events share; None if they differ."""
    format_description: bytes
    """The source's format description, as simplified by `mtsd.binlog.rewrite` for the applier."""
    gtid: Gtid | None
    last_committed: int
    sequence_number: int
    commit_time: int
    """Commit time on the source in µs since 1970: from the GTID event, or else the headers."""
    unsupported: str = ""
    """What the group contains that this version does not apply; empty if it can be applied."""
    tables: tuple[str, ...] = ()
    """Every table that it updates, as "database.table"; only if the policy needs them."""
    temporary: TemporaryTables | None = None
    """What is known about the source's temporary tables after it; None if it changes none."""
    uses_temporary: TemporaryUse | None = None
    """What it has to do with temporary tables; None if nothing."""
    rolled_back: bool = False
    """It ends with ROLLBACK: of its changes only those remain that cannot be rolled back."""
    xid: XaXid | None = None
    """The transaction that it prepares or completes, by its kind; None for all other kinds."""
    commit_id: int = 0
    """MariaDB: what the groups of one group commit have in common; 0 if there is none."""
    begin: int = 0
    """The offset of its first event, in the file of `end`."""
    keys: GroupKeys = NO_KEYS
    """The keys of the rows that it changes; only if the policy needs them. The last field, see
    `with_keys`."""

    @property
    def rows(self) -> tuple[bytes, ...]:
        """All its row events and table maps, raw, in order."""
        return row_events(self.steps)


def with_keys(group: Group, keys: GroupKeys) -> Group:
    """Return the group with these keys: as `_replace`, which takes several times as long."""
    fields: tuple[object, ...] = group[:-1] + (keys,)  # noqa: RUF005  # unpacking takes longer
    return _new(Group, fields)


_new: Final = tuple.__new__
"""Bypasses the constructors, which are Python."""


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
    Group | GroupOpened | GroupChunk | GroupClosed | GroupDropped | PositionReached | LargeGroup
)
